"""Answers of a device to SMP requests: each sent once, paced, matched by its sequence number, within one deadline.

Laws: a request whose answer does not come is unknown and is never sent again. A late answer is dropped, never taken for
another request's.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from msgspec import Struct

from edgeagent.driver.bus import smp
from edgeagent.driver.line.port import LinkLost, SerialPort
from edgeagent.errors import PeerMisbehaved

FRAGMENT_MS = 30.0
"""Zephyr's console takes a line in before it looks for the next; a burst of lines is lost (zephyr#34891)."""

BUFFER_BYTES_LEAST = 256
"""What every server holds; more only when it says so itself."""


class SmpDone(Struct, frozen=True):
    """The device did it; `body` is its answer."""

    body: dict[Any, Any]


class SmpRefused(Struct, frozen=True):
    """The device said no: `code` of `group`."""

    group: int
    code: int
    body: dict[Any, Any]


class SmpNotSent(Struct, frozen=True):
    """Nothing was sent, so nothing happened."""

    because: str


class SmpUnknown(Struct, frozen=True):
    """Sent, or partly sent, and no valid answer came. It may have happened."""

    because: str


SmpOutcome = SmpDone | SmpRefused | SmpNotSent | SmpUnknown


class SmpClient:
    """Asks one device over one port. One request at a time; safe to use from any thread."""

    def __init__(self, port: SerialPort, *, fragment_ms: float = FRAGMENT_MS, first_sequence: int = 0) -> None:
        self.port = port
        self.fragment_ms = fragment_ms
        self.buffer_bytes = BUFFER_BYTES_LEAST
        self.aside = b""
        self._sequence = first_sequence & 0xFF
        self._turn = threading.Lock()

    def greet(self, timeout_s: float = 3.0) -> SmpOutcome:
        """Ask how much one request may hold, and keep to it."""
        outcome = self.request(smp.READ, smp.OS, smp.PARAMETERS, {}, timeout_s)
        size = outcome.body.get("buf_size") if isinstance(outcome, SmpDone) else None
        if isinstance(size, int) and 64 <= size <= smp.PACKET_BYTES_MAX:
            # The device's buffer also holds the frame's length and checksum.
            self.buffer_bytes = size - smp.FRAME_BYTES
        return outcome

    def echo(self, text: str, timeout_s: float = 3.0) -> SmpOutcome:
        """Have the device say it again."""
        return self.request(smp.WRITE, smp.OS, smp.ECHO, {"d": text}, timeout_s)

    def reset(self, timeout_s: float = 3.0) -> SmpOutcome:
        """Have the device start again."""
        return self.request(smp.WRITE, smp.OS, smp.RESET, {}, timeout_s)

    def shell(self, words: tuple[str, ...], timeout_s: float = 5.0) -> SmpOutcome:
        """Run a shell command, given as its words."""
        return self.request(smp.WRITE, smp.SHELL, 0, {"argv": list(words)}, timeout_s)

    def statistics_groups(self, timeout_s: float = 3.0) -> SmpOutcome:
        """List the groups of statistics."""
        return self.request(smp.READ, smp.STATISTICS, 1, {}, timeout_s)

    def statistics(self, name: str, timeout_s: float = 3.0) -> SmpOutcome:
        """Read one group of statistics."""
        return self.request(smp.READ, smp.STATISTICS, 0, {"name": name}, timeout_s)

    def read_setting(self, name: str, timeout_s: float = 3.0) -> SmpOutcome:
        """Read one setting."""
        return self.request(smp.READ, smp.SETTINGS, 0, {"name": name}, timeout_s)

    def images(self, timeout_s: float = 3.0) -> SmpOutcome:
        """Read which images the device holds, and their state."""
        return self.request(smp.READ, smp.IMAGE, 0, {}, timeout_s)

    def mark_image(self, digest: bytes | None, *, confirm: bool, timeout_s: float = 3.0) -> SmpOutcome:
        """Have the image with this hash tried at the next start, or `confirm` it for good; None is the running one."""
        body = {"confirm": confirm} | ({} if digest is None else {"hash": digest})
        return self.request(smp.WRITE, smp.IMAGE, 0, body, timeout_s)

    def request(self, op: int, group: int, command: int, body: dict[Any, Any], timeout_s: float) -> SmpOutcome:
        """Send one request once and wait for its answer, both within the time. What a device does raises nothing."""
        with self._turn:
            until = time.monotonic() + timeout_s
            self._sequence = (self._sequence + 1) & 0xFF
            asked = smp.Message(op, group, command, self._sequence, body)
            packet = smp.encode(asked)
            if len(packet) > self.buffer_bytes:
                return SmpNotSent(f"the request has {len(packet)} bytes; the device takes {self.buffer_bytes}")
            since = self.port.offset
            try:
                problem = self._send(packet, until)
                return problem or self._answer(asked, since, until)
            except LinkLost as lost:
                return SmpUnknown(str(lost))

    def _send(self, packet: bytes, until: float) -> SmpOutcome | None:
        for number, line in enumerate(smp.lines(packet)):
            if number:
                time.sleep(self.fragment_ms / 1000)
            left = until - time.monotonic()
            if left <= 0 and number == 0:
                return SmpNotSent("there was no time left")
            accepted = self.port.write(line, timeout_s=max(0.0, left)) if left > 0 else 0
            if accepted < len(line):
                return SmpUnknown(f"line {number + 1} was not taken whole ({accepted} of {len(line)} bytes)")
        return None

    def _answer(self, asked: smp.Message, since: int, until: float) -> SmpOutcome:
        reader, seen = smp.Reader(), ""
        while (left := until - time.monotonic()) > 0:
            portion, since = self.port.wait(since, left)
            for heard in reader.feed(portion):
                match heard:
                    case smp.Aside():
                        self.aside = (self.aside + heard.data)[-smp.PACKET_BYTES_MAX :]
                    case smp.Broken():
                        seen = f"; a broken frame came: {heard.because}"
                    case smp.Packet():
                        try:
                            outcome = _outcome(asked, smp.decode(heard.data))
                        except PeerMisbehaved as error:
                            seen = f"; {error}"
                            continue
                        if outcome is not None:
                            return outcome
        return SmpUnknown(f"no answer in time{seen}")


def _outcome(asked: smp.Message, heard: smp.Message) -> SmpOutcome | None:
    """Return what this answer means, or None when it answers something else. Raises PeerMisbehaved."""
    ours = (asked.op + 1, asked.group, asked.command, asked.sequence)
    if (heard.op, heard.group, heard.command, heard.sequence) != ours:
        return None
    error = smp.error_of(heard)
    return SmpDone(heard.body) if error is None else SmpRefused(*error, heard.body)
