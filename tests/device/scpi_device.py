"""The simulated instrument of pyvisa-sim behind a pseudo-terminal; prints the terminal's path. Run by test_scpi.py.

python scpi_device.py [SECONDS]      each answer comes so much later
"""

from __future__ import annotations

import contextlib
import os
import pty
import sys
import time
import tty

import pyvisa


def main() -> None:
    """Answer line by line until killed."""
    instrument = pyvisa.ResourceManager("@sim").open_resource(
        "ASRL1::INSTR", read_termination="\n", write_termination="\r\n"
    )
    instrument.timeout = 300
    master, slave = pty.openpty()
    tty.setraw(master)
    tty.setraw(slave)
    print(os.ttyname(slave), flush=True)
    heard = b""
    while True:
        heard += os.read(master, 256)
        while b"\n" in heard:
            line, _, heard = heard.partition(b"\n")
            instrument.write(line.decode())
            with contextlib.suppress(pyvisa.errors.VisaIOError):  # It has no answer to this.
                answer = instrument.read().encode() + b"\n"
                time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0.0)
                os.write(master, answer)


if __name__ == "__main__":
    main()
