"""A person at a line: keys go to it, what it says comes to the terminal, until one of them ends or the person leaves.

Law: nothing in this loop waits for the device, for the line or for the terminal; so leaving is always heard.
"""

from __future__ import annotations

import os
import selectors
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from edgeagent.doors.line.ends import Line
from edgeagent.doors.line.keys import KEYS, KeyReader, Wish, help_lines
from edgeagent.doors.line.log import Log
from edgeagent.doors.line.modes import Asking, Mode, Sending
from edgeagent.doors.line.scroll_back import ScrollBack
from edgeagent.doors.line.shows import STAMPS, JsonShow, LineShow, Show, Stamper, Stamps, noted
from edgeagent.doors.line.terminal import Outlet, descriptor_of, leaving_noticed, raw_keys
from edgeagent.driver.line.displayed import Displayed
from edgeagent.driver.line.file_sending import WAYS, Way, send_file
from edgeagent.driver.line.port import Moment
from edgeagent.errors import ConfigError, DriverUnavailable, ExitCode

LOOK_EVERY_S = 0.25
TAKEN_AT_ONCE = 64
"""Moments that are shown before the keys are looked at again: each is at most 4 kB."""

AFTER_KEYS_S = 1.0
"""How long is listened after the last key of a pipe has been sent, unless `--for` says longer."""

PROGRESS_EVERY_S = 2.0
HISTORY_BYTES_MAX = 1 << 20
"""What can be looked back at: some 10,000 lines."""

HELD_BYTES_MAX = 256 * 1024
"""What waits while a person looks back or answers; more is not shown, and that is said."""


class Wanted(Struct, frozen=True):
    """How a person wants the line to be shown, and for how long."""

    until: float | None = None
    stamps: Stamps = "none"
    as_hex: bool = False
    as_json: bool = False
    shown_on: str = "stdout"
    log: Path | None = None
    log_as_text: bool = False
    send: tuple[Way, Path] | None = None


class LineLoop:
    """One person, one terminal, one line."""

    def __init__(self, line: Line, wanted: Wanted) -> None:
        self._line = line
        self._wanted = wanted
        self._stamper = Stamper(wanted.stamps, time.monotonic_ns(), time.time_ns())
        self._as_hex = wanted.as_hex
        self._show: Show = JsonShow() if wanted.as_json else LineShow(self._stamper, as_hex=wanted.as_hex)
        self._keys = None if wanted.as_json else descriptor_of(sys.stdin)
        self._reader = KeyReader()
        self._echo: Displayed | None = None
        self._leaving: ExitCode | None = None
        self._keys_over = time.monotonic() if self._keys is None and not wanted.as_json else 0.0
        self._heard = 0
        self._history = bytearray()
        self._mode: Mode | None = None
        self._held: deque[Moment] = deque()
        self._held_bytes = 0
        self._failed = False
        self._log = None if wanted.log is None else Log(wanted.log, as_text=wanted.log_as_text)
        shown_on, told_on = getattr(sys, wanted.shown_on), sys.stderr
        self._out = Outlet(shown_on, self._too_slow)
        apart = shown_on is not told_on and not self._out.is_terminal
        self._told = Outlet(told_on, self._too_slow) if apart else self._out
        self._acts: dict[str, Callable[[], None]] = self._acts_by_wish()

    def run(self) -> ExitCode:
        """Carry on until it ends; the terminal is as it was before, and the line is closed."""
        with leaving_noticed(self._signalled), raw_keys(self._keys), selectors.PollSelector() as selector:
            selector.register(self._line.incoming, selectors.EVENT_READ)
            if self._keys is not None:
                selector.register(self._keys, selectors.EVENT_READ)
            self.tell(f"{self._line.about}; Ctrl-T ? lists the keys, Ctrl-\\ leaves")
            try:
                if (send := self._wanted.send) is not None:
                    self._failed = True  # Until it is sent.
                    self._guarded(lambda: self._send(*send))
                while self._leaving is None:
                    self._turn(selector)
            finally:
                self._end()
        return ExitCode.ERROR if self._failed and self._leaving == ExitCode.DONE else self._leaving

    def _end(self) -> None:
        """Let everything go, each in bounded time."""
        if isinstance(self._mode, Sending):
            self._mode.stopped.set()
        if self._mode is not None:
            self._out.put(self._mode.closing)
        self._line.sender.finish()
        self._line.close()
        self._out.put(self._show.restoring)
        for out in (self._out, self._told):
            out.end()
        if self._log is not None:
            self._log.close()

    def tell(self, note: str) -> None:
        """Say something to the person."""
        if not self._wanted.as_json:
            self._told.put(noted(note))

    # -- one turn

    def _turn(self, selector: selectors.BaseSelector) -> None:
        until = self._wanted.until
        left = LOOK_EVERY_S if until is None else min(LOOK_EVERY_S, max(0.0, until - time.monotonic()))
        for key, _ in selector.select(left):
            if key.fileobj is self._line.incoming:
                self._line.incoming.calm()
            else:
                self._take_keys(selector)
        self._take_moments()
        now = time.monotonic()
        if (
            self._out.gone
            or (until is not None and now >= until)
            or (self._keys_over and until is None and self._line.sender.idle and now - self._keys_over > AFTER_KEYS_S)
        ):
            self._leave(ExitCode.DONE)

    def _take_moments(self) -> None:
        for _ in range(TAKEN_AT_ONCE):
            moment = self._line.incoming.take()
            if moment is None:
                break
            self._take(moment)
        else:
            self._line.incoming.wake()
        if because := self._line.incoming.ended:
            self.tell(because)
            self._leave(ExitCode.ERROR)

        if self._mode is not None and self._mode.over:
            self._leave_mode(self._mode)
        if self._log is not None and self._log.failed:
            self.tell(f"{self._log.path} takes no more: the log ends here")
            self._log = None

    def _take(self, moment: Moment) -> None:
        """Log it, keep it for looking back, and show it: now, later, or not at all."""
        if self._log is not None:
            self._log.moment(moment)
        if moment.who == "device":
            self._heard += len(moment.data)
            self._history += moment.data
            del self._history[: max(0, len(self._history) - HISTORY_BYTES_MAX)]
        shows = "all" if self._mode is None else self._mode.shows
        if shows == "all" or (shows == "notes" and moment.who == "port"):
            self._out.put(self._show.moment(moment))
        elif shows == "later":
            self._held.append(moment)
            self._held_bytes += len(moment.data)
            while self._held_bytes > HELD_BYTES_MAX:
                self._held_bytes -= len(self._held.popleft().data)

    # -- modes

    def _enter(self, mode: Mode) -> None:
        self._mode = mode
        self._out.put(mode.opening)

    def _leave_mode(self, mode: Mode) -> None:
        """Go on with what the mode was for, and show what waited."""
        self._mode = None
        self._out.put(mode.closing)
        if isinstance(mode, Asking) and mode.answer:
            self._guarded(lambda: mode.then(mode.answer))
        while self._held and self._mode is None:
            moment = self._held.popleft()
            self._held_bytes -= len(moment.data)
            self._out.put(self._show.moment(moment))

    def _take_keys(self, selector: selectors.BaseSelector) -> None:
        assert self._keys is not None
        try:
            typed = os.read(self._keys, 4_096)
        except OSError:
            typed = b""
        if not typed:
            selector.unregister(self._keys)
            self._keys_over = time.monotonic()
            if os.isatty(self._keys) or self._out.gone:
                self._leave(ExitCode.DONE)  # The terminal was hung up.
        for meant in self._reader.feed(typed):
            if isinstance(meant, bytes):
                self._type(meant)
            else:
                self._do(meant)

    def _type(self, data: bytes) -> None:
        if self._mode is not None:
            mode = self._mode
            self._out.put(mode.feed(data))
            if mode.over:
                self._leave_mode(mode)
            return
        self._line.type(data)
        if self._echo is not None:
            self._out.put(self._echo.feed(data.replace(b"\r", b"\r\n")))

    def _leave(self, code: ExitCode) -> None:
        self._leaving = code if self._leaving is None else self._leaving

    def _signalled(self, number: int) -> None:
        self._leave(ExitCode.INTERRUPTED if number != signal.SIGHUP else ExitCode.DONE)
        self._line.incoming.wake()

    # -- what the keys after Ctrl-T do

    def _do(self, wish: Wish) -> None:
        if self._mode is not None and wish.name != "leave":
            return  # It takes the keys until it is over.
        act = self._acts.get(wish.name)
        if act is None:
            self.tell(f"Ctrl-T {wish.key} is no key of ours; Ctrl-T ? lists them")
            return
        self._guarded(act)

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except (DriverUnavailable, ConfigError) as error:
            self.tell(str(error))

    def _acts_by_wish(self) -> dict[str, Callable[[], None]]:
        line = self._line
        acts: dict[str, Callable[[], None]] = {
            "help": lambda: self._told.put(b"".join(f"\r\n{each}".encode() for each in help_lines()) + b"\r\n"),
            "leave": lambda: self._leave(ExitCode.DONE),
            "break": lambda: line.sender.do(line.port.send_break),
            "dtr": lambda: line.sender.do(lambda: line.port.switch("dtr")),
            "rts": lambda: line.sender.do(lambda: line.port.switch("rts")),
            "pulse_dtr": lambda: line.sender.do(lambda: line.port.reset(line="dtr")),
            "pulse_rts": lambda: line.sender.do(lambda: line.port.reset(line="rts")),
            "about": lambda: line.sender.do(self._tell_about),
            **{way: self._asks_for(way) for way in WAYS},
            "scroll_back": self._look_back,
            "log": self._switch_log,
            "stamps": self._next_stamps,
            "hex": self._switch_hex,
            "echo": self._switch_echo,
            "clear": lambda: self._out.put(b"\x1b[H\x1b[2J"),
            "type_leave": lambda: self._type(b"\x1c"),
            "type_escape": lambda: self._type(b"\x14"),
        }
        assert set(acts) == {each.wish for each in KEYS}
        return acts

    def _asks_for(self, way: Way) -> Callable[[], None]:
        return lambda: self._enter(
            Asking(f"file to send ({way})", lambda name: self._send(way, Path(name).expanduser()))
        )

    def _send(self, way: Way, path: Path) -> None:
        """Have a file sent by the sender's thread; its outcome is told, and whether it failed is kept."""
        port, incoming, sending = self._line.port, self._line.incoming, Sending("all" if way == "raw" else "notes")
        said_at = time.monotonic()

        def told(done: int, size: int) -> None:
            nonlocal said_at
            if time.monotonic() - said_at > PROGRESS_EVERY_S:
                said_at = time.monotonic()
                incoming.note(f"{path.name}: {done} of {size} bytes")

        def act() -> None:
            try:
                incoming.note(f"sending {path.name} ({way}); Ctrl-C gives up")
                send_file(port, path, way, self._line.pacing, sending.stopped, told)
                incoming.note(f"{path.name} sent")
                self._failed = False
            except (DriverUnavailable, ConfigError) as error:
                incoming.note(f"{path.name} was not sent: {error}")
            finally:
                sending.over = True
                incoming.wake()

        self._enter(sending)
        self._line.sender.do(act)

    def _look_back(self) -> None:
        if not self._out.is_terminal:
            raise ConfigError("looking back needs a terminal")
        columns, rows = self._out.size
        self._enter(ScrollBack(bytes(self._history), rows, columns))

    def _switch_log(self) -> None:
        if self._log is None:
            self._enter(Asking("log to file", self._begin_log))
        else:
            self._log.close()
            self.tell(f"logged to {self._log.path}")
            self._log = None

    def _begin_log(self, name: str) -> None:
        self._log = Log(Path(name).expanduser(), as_text=self._wanted.log_as_text)
        self.tell(f"logging to {name}")

    def _tell_about(self) -> None:
        line = self._line
        lines = " ".join(f"{name.upper()}={'on' if on else 'off'}" for name, on in line.port.modem_lines().items())
        settings = line.port.settings
        way = f"{settings.baud} {settings.data_bits}{settings.parity}{settings.stop_bits}, flow {settings.flow}"
        line.incoming.note(f"{settings.identity}: {way}; {lines or 'no modem lines'}; {self._heard} bytes heard")

    def _next_stamps(self) -> None:
        self._stamper.kind = STAMPS[(STAMPS.index(self._stamper.kind) + 1) % len(STAMPS)]
        self.tell(f"time before each line: {self._stamper.kind}")

    def _switch_hex(self) -> None:
        self._as_hex = not self._as_hex
        self._out.put(self._show.restoring)
        self.tell("bytes in hex" if self._as_hex else "text")
        self._show = LineShow(self._stamper, as_hex=self._as_hex)

    def _switch_echo(self) -> None:
        self._echo = Displayed() if self._echo is None else None
        self.tell("what is typed is shown" if self._echo else "what is typed is not shown")

    def _too_slow(self, dropped: int) -> bytes:
        note = f"{dropped} bytes are not shown: they are taken too slowly here"
        return self._show.moment(Moment(time.monotonic_ns(), "port", b"", note))
