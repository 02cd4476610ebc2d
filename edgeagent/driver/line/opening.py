"""Opening of a serial device or URL: exclusively, without an edge on a modem line, and without losing the banner."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import termios
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

from edgeagent.driver.line.identity import holder_of, holders, why_not_opened
from edgeagent.errors import DriverUnavailable

KEEP_ALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 20_000}
"""A silent TCP line is asked after 15 s, and is gone after 30; what was sent and not taken ends it after 20."""


class PortSettings(Struct, frozen=True):
    """How to speak on the line. `flow` is hardware (rtscts), software (xonxoff) or none."""

    identity: str
    baud: int = 115_200
    data_bits: Literal[5, 6, 7, 8] = 8
    parity: Literal["N", "E", "O"] = "N"
    stop_bits: Literal[1, 2] = 1
    flow: Literal["none", "rtscts", "xonxoff"] = "none"


class PortBusy(DriverUnavailable):
    """Somebody else owns the line; the text says who."""


# What a port raises when it is unplugged, over the calls we make: SerialException and OSError (one is the other),
# termios.error, and TypeError or ValueError when its descriptor is gone already.
FOREIGN = (OSError, termios.error, TypeError, ValueError, EOFError)


def descriptor_of(line: Any) -> int:
    """Return the descriptor that the kernel can wait for; -1 where there is none."""
    try:
        return int(line.fileno())
    except (*FOREIGN, AttributeError):
        return -1  # rfc2217 has none: its bytes come through a thread of its own.


def forget(line: Any) -> None:
    """Let go of a line whose descriptor a tool has closed: not even when it is collected may it close that number."""
    line.is_open = False
    connection = getattr(line, "_socket", None)
    if isinstance(connection, socket.socket):
        connection.detach()


def shut(line: Any) -> None:
    """Close a line, and its connection too: pyserial leaves that of a peer that is gone to the garbage collector."""
    connection = getattr(line, "_socket", None)
    with contextlib.suppress(*FOREIGN):
        line.close()
    if isinstance(connection, socket.socket):
        connection.close()


def opened(place: str, settings: PortSettings) -> Any:
    """Open a device or URL. Raises PortBusy (naming the holder) or DriverUnavailable; then nothing is held."""
    import serial  # The extra `serial`; needed only once a port is opened.

    line = serial.serial_for_url(place, do_not_open=True)
    line.baudrate, line.bytesize = settings.baud, settings.data_bits
    line.parity, line.stopbits = settings.parity, settings.stop_bits
    line.rtscts, line.xonxoff = settings.flow == "rtscts", settings.flow == "xonxoff"
    line.timeout = 0
    own_device = place.startswith("/")
    if own_device:
        line.exclusive = True
        _refuse_if_held(place)
    try:
        with _untouched(line):
            line.open()
        if own_device:
            _settle(place, line.fd)
        _keep_alive(line)
    except FOREIGN as error:
        shut(line)
        raise _as_ours(place, error) from None
    return line


def _refuse_if_held(place: str) -> None:
    """Refuse a device that another program reads without a lock: two readers steal each other's bytes.

    A pseudo-terminal is left out: the program behind it may keep its own end open.
    """
    if not os.path.realpath(place).startswith("/dev/pts/") and holders(place):
        raise PortBusy(why_not_opened(place, errno.EBUSY))


def _as_ours(place: str, error: BaseException) -> DriverUnavailable:
    number = getattr(error, "errno", None) or 0
    text = why_not_opened(place, number, str(error))
    if number in (errno.EBUSY, errno.EAGAIN) or holder_of(place):
        return PortBusy(why_not_opened(place, errno.EBUSY))
    return DriverUnavailable(text)


@contextlib.contextmanager
def _untouched(line: Any) -> Iterator[None]:
    """While it opens, keep pyserial from setting modem lines (resets boards) and from throwing the banner away."""
    names = (
        "_update_dtr_state",
        "_update_rts_state",
        "_reset_input_buffer",
        "reset_input_buffer",
        "reset_output_buffer",
    )
    for name in names:
        if hasattr(line, name):
            setattr(line, name, lambda: None)
    try:
        yield
    finally:
        for name in names:
            line.__dict__.pop(name, None)


def _settle(place: str, descriptor: int) -> None:
    """No edge at close either (micropython#9659), and nobody else may open the device while we hold it."""
    attributes = termios.tcgetattr(descriptor)
    attributes[2] &= ~termios.HUPCL
    termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
    # A pseudo-terminal keeps this mark after we are gone, because its other end lives on; there the lock must do.
    if not os.path.realpath(place).startswith("/dev/pts/"):
        fcntl.ioctl(descriptor, termios.TIOCEXCL)


def configure_again(line: Any) -> None:
    """Set speed and format once more, even if the kernel says that they are set already."""
    again = getattr(line, "_reconfigure_port", None)
    if again is not None and descriptor_of(line) >= 0 and hasattr(line, "fd"):
        again(force_update=True)
    elif again is not None:
        again()


def _keep_alive(line: Any) -> None:
    """Have the kernel notice a peer that went away without a word (ser2net#33)."""
    connection = getattr(line, "_socket", None)
    if not isinstance(connection, socket.socket):
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():
        if hasattr(socket, name):  # Linux has all of them.
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
