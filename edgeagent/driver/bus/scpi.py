"""Lines of a SCPI instrument: one out, one back, within one deadline.

SCPI answers carry no number, so after a missing answer the line is doubtful (`doubt.py`). What an instrument says to a
command that asked nothing, and to which nobody waited, comes before the answer to the next question: that one is asked
when the line is quiet, and its answer is the last line before it is quiet again.
"""

from __future__ import annotations

import threading
import time

from msgspec import Struct

from edgeagent.driver.bus.doubt import Doubt
from edgeagent.driver.line.port import LinkLost, SerialPort
from edgeagent.errors import PeerMisbehaved

ANSWER_BYTES_MAX = 65_536
"""A long waveform in text; a longer one is somebody else's data."""

RESYNC_S = 0.3
"""How long a line must be quiet before nothing more is taken to come of what was said before."""

LATE_S = 10.0
"""How long after its question an answer may still come, unless the profile says so: a sweep, a calibration."""


class ScpiDone(Struct, frozen=True):
    """The instrument's answer; empty after a command that asks nothing."""

    text: str


class ScpiUnknown(Struct, frozen=True):
    """No answer in time, or nonsense. A command may have happened, unless nothing was `sent`."""

    because: str
    sent: bool = True


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


class Owed(Struct, frozen=True):
    """A line that was sent, and how many lines besides its echo are still to come of it and of what was told before."""

    line: str
    lines: int


class ScpiClient:
    """Speaks with one instrument over one port.

    `echo`: it gives back each line it was sent. `answers_every_command`: it answers a command with a line too.
    `late_s`: how long after its question an answer may still come.
    """

    def __init__(
        self,
        port: SerialPort,
        *,
        terminator: bytes = b"\n",
        echo: bool = False,
        answers_every_command: bool = False,
        late_s: float = LATE_S,
    ) -> None:
        self.port = port
        self.terminator = terminator
        self.echo = echo
        self.answers_every_command = answers_every_command
        self._doubt = Doubt(port, late_s, self._has_come, Owed)
        self._fresh = True
        self._told = 0
        self._turn = threading.Lock()

    def ask(self, query: str, timeout_s: float = 3.0) -> ScpiOutcome:
        """Send a query and return its answer."""
        return self._exchanged(query, timeout_s, answers=True)

    def tell(self, command: str, timeout_s: float = 3.0) -> ScpiOutcome:
        """Send a command that asks nothing. What the instrument says to it, if it does, is its answer."""
        outcome = self._exchanged(command, timeout_s, answers=self.answers_every_command)
        self._told += not self.answers_every_command
        return outcome

    def _exchanged(self, line: str, timeout_s: float, *, answers: bool) -> ScpiOutcome:
        if not line or any(not 0x20 <= ord(c) <= 0x7E for c in line):
            return ScpiUnknown(f"{line!r} is not one line of text; nothing was sent", sent=False)
        with self._turn:
            try:
                self._doubt.drain(lambda _: True)  # SCPI answers carry no number: any may be any other's.
                until = time.monotonic() + timeout_s
                if not self._quiet(until):
                    return ScpiUnknown("the line was never quiet; nothing was sent", sent=False)
                return self._sent(line, until, answers=answers)
            except LinkLost as lost:
                return ScpiUnknown(str(lost))

    def _sent(self, line: str, until: float, *, answers: bool) -> ScpiOutcome:
        since, data, told = self.port.offset, line.encode() + self.terminator, self._told
        self._doubt.asked(Owed(line, told + answers), since)
        self._told = 0  # Unless it is answered, nothing else is said before all of that may have come.
        if self.port.write(data, timeout_s=max(0.0, until - time.monotonic())) < len(data):
            return ScpiUnknown("not taken whole")
        outcome = self._answer(line, since, until, told, answers=answers)
        if isinstance(outcome, ScpiDone):
            self._doubt.answered()
            self._told = 0 if answers else told
        return outcome

    def _quiet(self, until: float) -> bool:
        """Before the first exchange, and after a command: whatever an instrument still says is nobody's answer."""
        while (self._fresh or self._told) and self.port.wait(self.port.offset, RESYNC_S)[0]:
            if time.monotonic() >= until:
                return False
        self._fresh = False
        return True

    def _answer(self, line: str, since: int, until: float, told: int, *, answers: bool) -> ScpiOutcome:
        """Read its answer, behind what may still come of the `told` commands before it."""
        heard, echoes, answer = b"", self.echo, None
        while echoes or (answers and (answer is None or told)):
            try:
                said = line_of(heard, self.terminator)
            except PeerMisbehaved as error:
                return ScpiUnknown(str(error))
            if said is None:
                left = until - time.monotonic() if answer is None else RESYNC_S
                portion, since = self.port.wait(since, left) if left > 0 else (b"", since)
                if portion:
                    heard += portion
                    continue
                if answer is None:
                    return ScpiUnknown("no answer in time")
                break
            heard = heard.partition(self.terminator)[2]
            if said == line:
                echoes = False  # An echo that the profile does not know of is no answer either.
            elif echoes and not told:
                return ScpiUnknown(f"instead of the echo of {line!r} came {said[:40]!r}")
            elif said or not told:
                answer = said
        return ScpiDone(answer or "")

    def _has_come(self, heard: bytes, owed: Owed) -> bool:
        lines = (line.strip() for line in heard.split(self.terminator)[:-1])
        return sum(bool(line) and line != owed.line.encode() for line in lines) >= owed.lines
