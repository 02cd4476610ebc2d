"""A Modbus RTU device by pymodbus behind a pseudo-terminal; prints the terminal's path. Run by test_modbus.py.

`--slow SECONDS` keeps each answer back so long; `--echo` gives back every byte it hears, as a two-wire adapter does;
`--busy` fills the bus with text for ever.
"""

from __future__ import annotations

import os
import pty
import sys
import threading
import time
import tty
import warnings

# The datastore's classes are announced to change; which ones serve here makes no difference to the bytes.
warnings.simplefilter("ignore")

from pymodbus.datastore import ModbusDeviceContext, ModbusSequentialDataBlock, ModbusServerContext  # noqa: E402
from pymodbus.server import StartSerialServer  # noqa: E402


def raw_terminal() -> tuple[int, int, str]:
    """Return both ends of a pseudo-terminal without a line discipline in between, and its path."""
    master, slave = pty.openpty()
    tty.setraw(master)
    tty.setraw(slave)
    return master, slave, os.ttyname(slave)


def carry(source: int, target: int, echo: bool, slow_s: float = 0.0) -> None:
    """Copy what is heard, later if told so, and give it back as an echo if told so."""
    while True:
        portion = os.read(source, 256)
        time.sleep(slow_s)
        if echo:
            os.write(source, portion)
        os.write(target, portion)


def main() -> None:
    """Serve until killed."""
    outer, _outer_slave, path = raw_terminal()
    inner, _inner_slave, inner_path = raw_terminal()
    print(path, flush=True)
    if "--busy" in sys.argv:
        while True:
            os.write(outer, b" Busy ")
            time.sleep(0.002)
    threading.Thread(target=carry, args=(outer, inner, "--echo" in sys.argv), daemon=True).start()
    slow_s = float(sys.argv[-1]) if "--slow" in sys.argv else 0.0
    threading.Thread(target=carry, args=(inner, outer, False, slow_s), daemon=True).start()
    block = ModbusSequentialDataBlock(1, list(range(100, 200)))
    bits = ModbusSequentialDataBlock(1, [1, 0] * 50)
    device = ModbusDeviceContext(hr=block, ir=block, co=bits, di=bits)
    StartSerialServer(ModbusServerContext(devices={7: device}, single=False), port=inner_path, baudrate=115200)


if __name__ == "__main__":
    main()
