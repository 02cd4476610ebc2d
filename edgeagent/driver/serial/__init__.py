"""The serial line and what speaks over it: consoles, SMP, Modbus, SCPI."""
