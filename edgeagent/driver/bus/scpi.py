"""What does an instrument answer to a SCPI line? One line out, one line back, within one deadline.

SCPI answers carry no number, so after a missing answer the line is not trusted until it was quiet again.
"""

from __future__ import annotations

import threading
import time

from msgspec import Struct

from edgeagent.driver.line.port import LinkLost, SerialPort
from edgeagent.errors import PeerMisbehaved

ANSWER_BYTES_MAX = 65_536
"""A long waveform in text; a longer one is somebody else's data."""

RESYNC_S = 0.3


class ScpiDone(Struct, frozen=True):
    """The instrument's answer; empty after a command that asks nothing."""

    text: str


class ScpiUnknown(Struct, frozen=True):
    """No answer in time, or nonsense. A command may have happened."""

    because: str


ScpiOutcome = ScpiDone | ScpiUnknown


def line_of(heard: bytes, terminator: bytes = b"\n") -> str | None:
    """Return the first whole line, or None while there is none. Raises PeerMisbehaved."""
    line, ended, _ = heard.partition(terminator)
    if not ended:
        if len(heard) > ANSWER_BYTES_MAX:
            raise PeerMisbehaved(f"the instrument sent {len(heard)} bytes without an end of line")
        return None
    if len(line) > ANSWER_BYTES_MAX:
        raise PeerMisbehaved(f"the instrument sent a line of {len(line)} bytes; {ANSWER_BYTES_MAX} is the most")
    line = line.removesuffix(b"\r")
    if any(byte < 0x20 and byte != 0x09 for byte in line) or any(byte > 0x7E for byte in line):
        raise PeerMisbehaved(f"the instrument sent {line[:40]!r}, which is no line of text")
    return line.decode("ascii")


class ScpiClient:
    """Speaks with one instrument over one port."""

    def __init__(self, port: SerialPort, *, terminator: bytes = b"\n") -> None:
        self.port = port
        self.terminator = terminator
        self._doubtful = True
        self._turn = threading.Lock()

    def ask(self, query: str, timeout_s: float = 3.0) -> ScpiOutcome:
        """Send a query and return its answer."""
        with self._turn:
            until = time.monotonic() + timeout_s
            try:
                since, problem = self._say(query, until)
                return problem or self._answer(since, until)
            except LinkLost as lost:
                return ScpiUnknown(str(lost))

    def tell(self, command: str, timeout_s: float = 3.0) -> ScpiOutcome:
        """Send a command that has no answer."""
        with self._turn:
            try:
                _, problem = self._say(command, time.monotonic() + timeout_s)
                return problem or ScpiDone("")
            except LinkLost as lost:
                return ScpiUnknown(str(lost))

    def _say(self, line: str, until: float) -> tuple[int, ScpiOutcome | None]:
        if not line or any(not 0x20 <= ord(c) <= 0x7E for c in line):
            return 0, ScpiUnknown(f"{line!r} is not one line of text; nothing was sent")
        while self._doubtful and self.port.wait(self.port.offset, RESYNC_S)[0]:
            if time.monotonic() >= until:
                return 0, ScpiUnknown("the line was never quiet; nothing was sent")
        since = self.port.offset
        data = line.encode() + self.terminator
        if self.port.write(data, timeout_s=max(0.0, until - time.monotonic())) < len(data):
            return since, ScpiUnknown("the line was not taken whole")
        return since, None

    def _answer(self, since: int, until: float) -> ScpiOutcome:
        self._doubtful = True
        heard = b""
        while (left := until - time.monotonic()) > 0:
            portion, since = self.port.wait(since, left)
            heard += portion
            try:
                line = line_of(heard, self.terminator)
            except PeerMisbehaved as error:
                return ScpiUnknown(str(error))
            if line is not None:
                self._doubtful = False
                return ScpiDone(line)
        return ScpiUnknown("no answer in time")
