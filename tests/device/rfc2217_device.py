"""A serial line behind pyserial's own RFC 2217 server, which prints what befalls it. Run by test_network_lines.py.

python rfc2217_device.py PORT      serves one client; what is written comes back, as on a line with its ends joined
"""

from __future__ import annotations

import socket
import sys
import threading
import time

import serial
from serial.rfc2217 import PortManager


class Client:
    """The connection, as pyserial's server writes to it."""

    def __init__(self, connection: socket.socket) -> None:
        self.write = connection.sendall


def tell_breaks(line: serial.SerialBase) -> None:
    """Print when the line goes into its break condition, and when it comes back."""
    was = False
    while True:
        if line.break_condition != was:
            was = line.break_condition
            print("break begins" if was else "break ends", flush=True)
        time.sleep(0.002)


def main() -> None:
    """Serve until the client goes."""
    line = serial.serial_for_url("loop://", baudrate=9600, timeout=0)
    served = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    print("ready", flush=True)
    connection, _ = served.accept()
    manager = PortManager(line, Client(connection))
    threading.Thread(target=tell_breaks, args=(line,), daemon=True).start()
    while came := connection.recv(1_024):
        for byte in manager.filter(came):
            line.write(byte)
        connection.sendall(b"".join(manager.escape(line.read(line.in_waiting))))
        print(f"speed {line.baudrate}", flush=True)


if __name__ == "__main__":
    main()
