"""A person at a line: keys go to it, what it says comes to the terminal, until one of them ends or the person leaves.

Law: nothing in this loop waits for the device, for the line or for the terminal; so leaving is always heard.
"""

from __future__ import annotations

import os
import selectors
import signal
import sys
import time
from collections.abc import Callable

from msgspec import Struct

from edgeagent.doors.line.ends import Line
from edgeagent.doors.line.keys import KEYS, KeyReader, Wish, help_lines
from edgeagent.doors.line.shows import STAMPS, JsonShow, LineShow, Show, Stamper, Stamps, noted
from edgeagent.doors.line.terminal import Outlet, descriptor_of, leaving_noticed, raw_keys
from edgeagent.driver.line.displayed import Displayed
from edgeagent.driver.line.port import Moment
from edgeagent.errors import DriverUnavailable, ExitCode

LOOK_EVERY_S = 0.25
TAKEN_AT_ONCE = 64
"""Moments that are shown before the keys are looked at again: each is at most 4 kB."""

AFTER_KEYS_S = 1.0
"""How long is listened after the last key of a pipe has been sent, unless `--for` says longer."""


class Wanted(Struct, frozen=True):
    """How a person wants the line to be shown, and for how long."""

    until: float | None = None
    stamps: Stamps = "none"
    as_hex: bool = False
    as_json: bool = False
    shown_on: str = "stdout"


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
                while self._leaving is None:
                    self._turn(selector)
            finally:
                self._out.put(self._show.restoring)
                self._out.end()
                self._told.end()
                self._line.close()
        return self._leaving

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
            self._heard += len(moment.data) if moment.who == "device" else 0
            self._out.put(self._show.moment(moment))
        else:
            self._line.incoming.wake()
        if because := self._line.incoming.ended:
            self.tell(because)
            self._leave(ExitCode.ERROR)

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
        act = self._acts.get(wish.name)
        if act is None:
            self.tell(f"Ctrl-T {wish.key} is no key of ours; Ctrl-T ? lists them")
            return
        try:
            act()
        except DriverUnavailable as error:
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
            "stamps": self._next_stamps,
            "hex": self._switch_hex,
            "echo": self._switch_echo,
            "clear": lambda: self._out.put(b"\x1b[H\x1b[2J"),
            "type_leave": lambda: self._type(b"\x1c"),
            "type_escape": lambda: self._type(b"\x14"),
        }
        assert set(acts) == {each.wish for each in KEYS}
        return acts

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
