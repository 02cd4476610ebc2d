"""Files on their way to a device: XMODEM, YMODEM, or as they are. Speaks on an open port; knows no terminal.

The `xmodem` package sends the blocks; YMODEM's first and last are made here. Law: what the device did not acknowledge
is never said to be sent, and a transfer that is given up is cancelled at the device too.
"""

from __future__ import annotations

import binascii
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Literal

from edgeagent.driver.line.port import LinkLost, SerialPort
from edgeagent.driver.line.profile import Pacing
from edgeagent.errors import ConfigError, DriverUnavailable

Way = Literal["xmodem", "xmodem-1k", "ymodem", "raw"]
WAYS: tuple[Way, ...] = ("xmodem", "xmodem-1k", "ymodem", "raw")

START_S = 60.0
"""How long the device may take to ask for the file: a person starts its receiving command by hand."""

ANSWER_S = 10.0
"""How long one block may take to be answered: some devices erase flash meanwhile."""

TRIES = 10
LOOK_EVERY_S = 0.2
SHORT_BLOCK, LONG_BLOCK = 128, 1_024
EOT, ACK, NAK, CAN, CRC = b"\x04", b"\x06", b"\x15", b"\x18", b"C"
QUESTIONS = CRC + NAK
ENDS_MAX = 3
STRANGE_MAX = 3
"""An end is Ctrl-D to a shell: it is sent so often at most, and no more once so many bytes came that are text."""

END_UNKNOWN = "every block was acknowledged, but not the end: look at the device whether it has the file"
GIVEN_UP = CAN * 8 + b"\x08" * 10
"""Eight cancels as lrzsz sends them, and what takes them back from a command line, should one be there."""

Progress = Callable[[int, int], None]


class TransferFailed(DriverUnavailable):
    """The file, or its rest, was not sent; the text says why."""


class _Receiver:
    """The device that receives: what it answers, and what is sent to it."""

    def __init__(self, port: SerialPort, stopped: threading.Event) -> None:
        self._port = port
        self._stopped = stopped
        self._at = port.offset
        self._heard = b""
        self._cancels = 0
        self._ends = 0
        self._strange = 0

    def asked(self) -> None:
        """Wait until it asks for a file; the question stays to be read. Raises TransferFailed."""
        question = self._answer(QUESTIONS, START_S)
        if not question:
            raise TransferFailed(
                f"the device did not ask for a file within {START_S:g} s: start its receiving command first"
            )
        self._heard = question + self._heard

    def getc(self, size: int, timeout: float | None = None) -> bytes | None:
        """One answer, for the library: it asks for a start without a time, and for anything else with one."""
        assert size == 1
        return self._answer(QUESTIONS, START_S) if timeout is None else self._answer(ACK + NAK, timeout)

    def putc(self, data: bytes, timeout: float = ANSWER_S) -> int:
        """Send a block. What was heard before answers something else, and is forgotten. Raises TransferFailed."""
        self._at, before = self._port.offset, self._heard + self._port.heard(self._at)
        self._heard = b""
        if CAN * 2 in before:
            raise TransferFailed("the device cancelled")
        self._ends += data == EOT
        if self._ends > ENDS_MAX:
            raise TransferFailed(END_UNKNOWN)
        taken = 0
        until = time.monotonic() + timeout
        while taken < len(data) and time.monotonic() < until and not self._stopped.is_set():
            taken += self._port.write(bytes(data[taken:]), who="person", timeout_s=LOOK_EVERY_S)
        return taken

    def _answer(self, awaited: bytes, timeout_s: float) -> bytes | None:
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            if self._stopped.is_set():
                raise TransferFailed("given up")
            if not self._heard:
                self._heard, self._at = self._port.wait(self._at, LOOK_EVERY_S)
                continue
            byte, self._heard = self._heard[:1], self._heard[1:]
            self._cancels = self._cancels + 1 if byte == CAN else 0
            if self._cancels == 2:
                raise TransferFailed("the device cancelled")
            if byte in awaited:
                return byte
            self._strange += bool(self._ends) and byte not in QUESTIONS
            if self._strange > STRANGE_MAX:
                raise TransferFailed(END_UNKNOWN)
        return None


def send_file(port: SerialPort, path: Path, way: Way, pacing: Pacing, stopped: threading.Event, told: Progress) -> None:
    """Send this file; `told` hears how many bytes of how many have gone. Raises TransferFailed, LinkLost, ConfigError.

    XMODEM knows no length: the device gets the last block filled up with 0x1A. Setting `stopped` gives up.
    """
    if not path.is_file():
        raise ConfigError(f"{path} is no file")
    if way != "raw" and port.settings.flow == "xonxoff":
        raise ConfigError(f"{way} needs every byte for itself: set flow to none or rtscts (wire.flow is xonxoff)")
    try:
        with path.open("rb") as file:
            if way == "raw":
                _send_raw(port, file, path.stat().st_size, pacing, stopped, told)
            else:
                _send_in_blocks(_Receiver(port, stopped), file, path, way, told)
    except (TransferFailed, LinkLost) as error:
        if way != "raw" and port.is_open and str(error) != END_UNKNOWN:
            port.write(GIVEN_UP, who="person", timeout_s=LOOK_EVERY_S)
        raise
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None


def _send_in_blocks(receiver: _Receiver, file: BinaryIO, path: Path, way: Way, told: Progress) -> None:
    from xmodem import XMODEM  # The extra `serial`; needed only once a file is sent.

    size = path.stat().st_size
    block = SHORT_BLOCK if way == "xmodem" else LONG_BLOCK
    modem = XMODEM(receiver.getc, receiver.putc, "xmodem" if way == "xmodem" else "xmodem1k")
    modem.log.addHandler(_SILENT)  # Without one its complaints would go to the terminal.
    receiver.asked()
    if way == "ymodem":
        _send_header(receiver, f"{path.name}\0{size} {int(path.stat().st_mtime):o}".encode())
    sent = modem.send(
        file, TRIES, ANSWER_S, quiet=True, callback=lambda _, done, __: told(min(size, done * block), size)
    )
    if not sent:
        raise TransferFailed(f"the device did not acknowledge a block of {path.name} in {TRIES} tries")
    if way == "ymodem":
        receiver.asked()
        _send_header(receiver, b"")


def _send_header(receiver: _Receiver, content: bytes) -> None:
    """Send YMODEM's block 0: the file's name and length, or nothing where no further file comes."""
    length = SHORT_BLOCK if len(content) < SHORT_BLOCK else LONG_BLOCK
    filled = content[:LONG_BLOCK].ljust(length, b"\0")
    start = b"\x01" if length == SHORT_BLOCK else b"\x02"
    block = start + b"\x00\xff" + filled + binascii.crc_hqx(filled, 0).to_bytes(2, "big")
    for _ in range(TRIES):
        receiver.putc(block)
        if receiver.getc(1, ANSWER_S) == ACK:
            return
    raise TransferFailed(f"the device did not acknowledge YMODEM's header in {TRIES} tries")


def _send_raw(
    port: SerialPort, file: BinaryIO, size: int, pacing: Pacing, stopped: threading.Event, told: Progress
) -> None:
    """Send the bytes as they are, at the profile's pace."""
    done = 0
    while portion := file.read(1 if pacing.char_ms else max(1, pacing.chunk_bytes)):
        at = 0
        while at < len(portion):
            if stopped.is_set():
                raise TransferFailed(f"given up after {done + at} of {size} bytes")
            at += port.write(portion[at:], who="person", timeout_s=LOOK_EVERY_S)
        done += len(portion)
        told(done, size)
        pause_ms = pacing.char_ms or pacing.chunk_ms
        stopped.wait((pause_ms + (pacing.line_ms if portion.endswith((b"\r", b"\n")) else 0)) / 1000)


_SILENT = logging.NullHandler()
