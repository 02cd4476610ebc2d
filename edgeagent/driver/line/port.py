"""Serial line with one owner, and what came over it. One thread holds it; every byte is kept with its time.

Laws: opening never touches a modem line, so it never resets a board; `reset` is an effect of its own. Nothing that
arrives between two turns is lost. However a line goes away, that is one `LinkLost`. What was accepted is counted.
Knows nothing of consoles or frames.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Literal

from msgspec import Struct

from edgeagent.driver.line.identity import locate
from edgeagent.driver.line.opening import FOREIGN, configure_again, descriptor_of, forget, opened, shut
from edgeagent.driver.line.opening import PortBusy as PortBusy
from edgeagent.driver.line.opening import PortSettings as PortSettings
from edgeagent.driver.line.screen import Redactor
from edgeagent.errors import DriverUnavailable
from edgeagent.trace.disk import file_behind

NOTES_KEPT = 32
"""Notes that nobody has taken yet; a line that comes and goes for an hour leaves many, and the last ones count."""

KEPT_BYTES_MAX = 4 * 1024 * 1024
"""Six minutes of a line at 115200 baud without a pause. What falls out is counted."""

LOST = "link lost"
"""How the note of a line begins that went away by itself."""

PORTION_BYTES = 4_096
POLL_S = 0.02
"""How often a line without a descriptor (rfc2217) is asked; with one, the kernel wakes us."""

QUIET_S = 0.5
"""How long a begun secret is held back before it is taken for ordinary text: longer than between two echoed keys."""

BACK_OFF_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Waits between attempts to come back: never a busy loop (tio#13)."""

Who = Literal["device", "agent", "person", "port"]
ModemLine = Literal["dtr", "rts"]


class Moment(Struct, frozen=True):
    """Something on the line: bytes that the device, the agent or a person sent, or a note of the port itself."""

    at_ns: int
    who: Who
    data: bytes = b""
    note: str = ""


class LinkLost(DriverUnavailable):
    """The line is gone, however it went. `last_byte_at_ns` is the monotonic time of the last byte heard, or 0."""

    def __init__(self, because: str, last_byte_at_ns: int) -> None:
        super().__init__(because)
        self.last_byte_at_ns = last_byte_at_ns


class _Outgoing:
    """Bytes on their way out, and how many of them the kernel has taken."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.accepted = 0
        self.done = threading.Event()


class SerialPort:
    """One serial line. Make it, `open()` it, and ask it what it heard; safe to use from any thread."""

    def __init__(self, settings: PortSettings) -> None:
        self.settings = settings
        self.moments: deque[Moment] = deque()
        self.watchers: list[Callable[[Moment], None]] = []
        self._notes: deque[str] = deque(maxlen=NOTES_KEPT)
        self._changed = threading.Condition()
        self._heard = bytearray()
        self._dropped = 0
        self._kept = 0
        self._last_byte_ns = 0
        self._lost: LinkLost | None = LinkLost(f"{settings.identity} is not open", 0)
        self._line: Any = None
        self._thread: threading.Thread | None = None
        self._outgoing: deque[_Outgoing] = deque()
        self._wake: tuple[int, int] | None = None
        self._ours: dict[int, tuple[int, int] | None] = {}
        self._closing = False
        self._redactor: Redactor | None = None

    # -- opening and closing

    def open(self) -> None:
        """Take the line. Raises PortBusy (naming the holder) or DriverUnavailable; then nothing is held."""
        if self._thread is not None:
            raise DriverUnavailable(f"{self.settings.identity} is open already")
        place = locate(self.settings.identity)
        self._line = opened(place, self.settings)
        self._closing, self._lost = False, None
        self._wake = os.pipe()
        self._ours = {each: file_behind(each) for each in (*self._wake, descriptor_of(self._line)) if each >= 0}
        self._note(f"opened {place}", told=bool(self.moments))
        self._thread = threading.Thread(target=self._own, args=(self._wake[0],), name=f"port {place}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let the line go. The modem lines stay as they are."""
        with self._changed:
            self._closing = True
            self._poke()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)
        self._thread = None
        if self._lost is None:
            self._lose("closed")

    def reopen(self, timeout_s: float, because: str = "") -> None:
        """Come back after a LinkLost, by identity. Raises DriverUnavailable with the last reason after the time."""
        if because:
            self._note(because)
        self.close()
        until = time.monotonic() + timeout_s
        for attempt in range(1_000_000):
            try:
                self.open()
            except DriverUnavailable:
                wait = BACK_OFF_S[min(attempt, len(BACK_OFF_S) - 1)]
                if time.monotonic() + wait > until:
                    raise
                time.sleep(wait)
            else:
                return

    @property
    def is_open(self) -> bool:
        """Whether the line is there."""
        return self._lost is None

    # -- hearing

    @property
    def offset(self) -> int:
        """How many bytes were heard since the port was made."""
        with self._changed:
            return self._dropped + len(self._heard)

    @property
    def last_byte_at_ns(self) -> int:
        """Monotonic time of the last byte heard, or 0."""
        return self._last_byte_ns

    def heard(self, since: int) -> bytes:
        """Return the bytes heard from this offset on, as far as they are still kept."""
        with self._changed:
            return bytes(self._heard[max(0, since - self._dropped) :])

    def wait(self, since: int, timeout_s: float) -> tuple[bytes, int]:
        """Return what was heard from `since` on, as soon as there is any, and the offset after it.

        Empty after the time. Raises LinkLost once everything heard before it has been given out.
        """
        until = time.monotonic() + timeout_s
        with self._changed:
            while self._dropped + len(self._heard) <= since:
                if self._lost is not None:
                    raise self._lost
                left = until - time.monotonic()
                if left <= 0:
                    return b"", since
                self._changed.wait(left)
            return bytes(self._heard[max(0, since - self._dropped) :]), self._dropped + len(self._heard)

    def hide(self, secret: bytes) -> None:
        """From now on show this secret as stars, in what is heard and in every view."""
        self._redactor = Redactor(secret) if secret else None

    # -- sending

    def write(self, data: bytes, *, timeout_s: float = 5.0, who: Who = "agent", hidden: bool = False) -> int:
        """Send bytes; return how many the kernel accepted within the time. Raises LinkLost.

        Fewer than all means: what became of the rest is known (not sent), of the accepted ones only that they left us.
        """
        outgoing = _Outgoing(data)
        with self._changed:
            if self._lost is None and not all(map(self._is_ours, self._ours)):
                self._lose("a tool closed its descriptors")  # The thread may wait on them for ever.
            if self._lost is not None:
                raise self._lost
            self._outgoing.append(outgoing)
            self._poke()
        finished = outgoing.done.wait(timeout_s)
        with self._changed:
            if not finished and outgoing in self._outgoing:
                self._outgoing.remove(outgoing)
            accepted = outgoing.accepted
            lost = self._lost
        shown = Moment(time.monotonic_ns(), who, b"" if hidden else data[:accepted], _sent_note(data, accepted, hidden))
        self._remember(shown)
        if lost is not None and accepted < len(data):
            raise lost
        return accepted

    def reset(self, *, line: ModemLine = "dtr", pulse_s: float = 0.1) -> None:
        """Pulse a modem line once: what a board's auto-reset circuit waits for. Raises DriverUnavailable, LinkLost."""
        with self._modem_line(line):
            self._note(f"reset: {line} pulsed for {pulse_s:g} s")
            setattr(self._line, line, False)
            time.sleep(pulse_s)
            setattr(self._line, line, True)

    def switch(self, line: ModemLine) -> None:
        """Put a modem line on if it is off, and off if it is on. Raises DriverUnavailable, LinkLost."""
        with self._modem_line(line):
            on = not getattr(self._line, line)
            setattr(self._line, line, on)
            self._note(f"{line} {'on' if on else 'off'}")

    def modem_lines(self) -> dict[str, bool]:
        """Return which modem lines are on; those that cannot be told are missing. Raises LinkLost."""
        found: dict[str, bool] = {}
        for name in ("dtr", "rts", "cts", "dsr", "cd", "ri"):
            with contextlib.suppress(DriverUnavailable), self._modem_line("dtr" if name == "dtr" else "rts"):
                found[name] = bool(getattr(self._line, name))
        return found

    @contextlib.contextmanager
    def _modem_line(self, line: ModemLine) -> Iterator[None]:
        if self._lost is not None:
            raise self._lost
        if "socket" in type(self._line).__module__:
            raise DriverUnavailable(f"{self.settings.identity} carries bytes only and has no {line.upper()} line")
        try:
            yield
        except FOREIGN as error:
            raise DriverUnavailable(f"{self.settings.identity} has no {line.upper()} line: {error}") from None

    def apply_settings(self, because: str) -> None:
        """Set speed and format of the line once more, and note why: an adapter may have lost them."""
        self._note(f"{because} again")
        with contextlib.suppress(*FOREIGN):
            configure_again(self._line)

    def send_break(self, seconds: float = 0.25) -> None:
        """Hold the line in break condition. Raises DriverUnavailable where it cannot, LinkLost."""
        if self._lost is not None:
            raise self._lost
        try:
            self._line.send_break(seconds)
        except FOREIGN as error:
            raise DriverUnavailable(f"{self.settings.identity} cannot send a break: {error}") from None
        self._note(f"break for {seconds:g} s")

    # -- the thread that owns the line

    def _own(self, wake: int) -> None:
        because = "closed"
        try:
            if hasattr(self._line, "fileno") and descriptor_of(self._line) >= 0:
                self._serve_descriptor(descriptor_of(self._line), wake)
            else:
                self._serve_polling()
        except FOREIGN as error:
            because = str(error) or type(error).__name__
        finally:
            shut(self._line) if self._is_ours(descriptor_of(self._line)) else forget(self._line)
            self._lose(because)

    def _is_ours(self, descriptor: int) -> bool:
        """Whether no tool has closed this descriptor of ours; its number may be another file's by then."""
        return descriptor not in self._ours or file_behind(descriptor) == self._ours[descriptor]

    def _serve_descriptor(self, descriptor: int, wake: int) -> None:
        while not self._closing:
            waiting = [descriptor] if self._outgoing else []
            idle_s = QUIET_S if self._redactor else None
            readable, writable, _ = select.select([descriptor, wake], waiting, [], idle_s)
            if not (self._is_ours(descriptor) and self._is_ours(wake)):
                raise OSError(errno.EBADF, "a tool closed the line's descriptor")
            if wake in readable:
                os.read(wake, 4_096)
            if descriptor in readable:
                with contextlib.suppress(BlockingIOError):
                    self._take_in(_nonempty(os.read(descriptor, PORTION_BYTES)))
            elif self._redactor and not readable and not writable:
                self._keep(self._redactor.flush())
            if writable:
                with contextlib.suppress(BlockingIOError):
                    self._give_out(lambda data: os.write(descriptor, data))

    def _serve_polling(self) -> None:
        self._line.timeout = POLL_S
        while not self._closing:
            portion = self._line.read(max(1, self._line.in_waiting))
            if portion:
                self._take_in(portion)
            elif self._redactor:
                self._keep(self._redactor.flush())
            while self._outgoing:
                self._give_out(self._line.write)

    def _take_in(self, portion: bytes) -> None:
        self._last_byte_ns = time.monotonic_ns()
        self._keep(self._redactor.feed(portion) if self._redactor else portion)

    def _keep(self, portion: bytes) -> None:
        if not portion:
            return
        with self._changed:
            self._heard += portion
            excess = len(self._heard) - KEPT_BYTES_MAX
            if excess > 0:
                del self._heard[:excess]
                self._dropped += excess
            self._changed.notify_all()
        self._remember(Moment(self._last_byte_ns, "device", portion))

    def _give_out(self, send: Callable[[bytes], int]) -> None:
        with self._changed:
            if not self._outgoing:
                return
            outgoing = self._outgoing[0]
            outgoing.accepted += send(outgoing.data[outgoing.accepted : outgoing.accepted + PORTION_BYTES])
            if outgoing.accepted >= len(outgoing.data):
                self._outgoing.popleft()
                outgoing.done.set()

    def _lose(self, because: str) -> None:
        with self._changed:
            if self._lost is None:
                silent = "nothing was heard on it" if not self._last_byte_ns else "it had been heard before"
                self._lost = LinkLost(
                    f"{self.settings.identity}: the line is gone ({because}); {silent}", self._last_byte_ns
                )
            for outgoing in self._outgoing:
                outgoing.done.set()
            self._outgoing.clear()
            for end in filter(self._is_ours, self._wake or ()):
                os.close(end)
            self._wake = None
            self._changed.notify_all()
        self._note(f"{LOST}: {because}" if because != "closed" else "closed", told=because != "closed")

    def _poke(self) -> None:
        if self._wake is not None and self._is_ours(self._wake[1]):
            os.write(self._wake[1], b"x")

    # -- the timeline

    def _note(self, note: str, *, told: bool = True) -> None:
        if told:
            self._notes.append(note)
        self._remember(Moment(time.monotonic_ns(), "port", b"", note))

    def take_notes(self) -> tuple[str, ...]:
        """Return what befell the line since this was last asked: lost, opened again, set again; for the trace."""
        with self._changed:
            taken = tuple(self._notes)
            self._notes.clear()
        return taken

    def timeline(self) -> tuple[Moment, ...]:
        """Return everything that is kept of what happened on the line, in order."""
        with self._changed:
            return tuple(self.moments)

    def _remember(self, moment: Moment) -> None:
        with self._changed:
            self.moments.append(moment)
            self._kept += len(moment.data) + 64  # 64: about what a moment costs besides its bytes.
            while self._kept > KEPT_BYTES_MAX:
                self._kept -= len(self.moments.popleft().data) + 64
            watchers = tuple(self.watchers)
        for watch in watchers:
            watch(moment)


def _sent_note(data: bytes, accepted: int, hidden: bool) -> str:
    parts = ["hidden" if hidden else "", f"{accepted} of {len(data)} bytes accepted" if accepted < len(data) else ""]
    return ", ".join(part for part in parts if part)


def _nonempty(portion: bytes) -> bytes:
    if not portion:
        raise OSError(errno.EIO, "end of file")
    return portion
