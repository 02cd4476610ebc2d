"""Machine protocols over a line: Modbus, SCPI, SMP."""
