"""Reading of one console: its text, the line that a prompt would be on, and what that line is. Bytes in; no clock.

Knows nothing of commands: whether one has ended is for `ending.py`.
"""

from __future__ import annotations

import re
from typing import Literal

from edgeagent.driver.line.boot_hold import hold_key, offer_in
from edgeagent.driver.line.profile import Profile
from edgeagent.driver.line.screen import CursorAsked, Cutter, Screen, printed, set_aside

State = Literal["off", "boot_loader", "booting", "log_in", "password", "shell", "repl", "unknown"]

READY: tuple[State, ...] = ("boot_loader", "shell", "repl")
TAIL_CHARS = 300
"""What a message shows of the last lines heard: three or four lines."""


class View:
    """What was heard from one moment on, as a terminal shows it."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.raw = bytearray()
        self.typed = ""
        self.asked = 0
        self._cutter = Cutter()
        self._screen = Screen(profile.columns, profile.noise_patterns)
        self._clean: tuple[str, tuple[str, ...]] | None = None

    def feed(self, portion: bytes) -> None:
        """Take in what came."""
        self.raw += portion
        events = self._cutter.feed(portion.replace(b"\0", b""))  # Terminals skip NUL, in a sequence too.
        self._screen.show(events)
        self.typed += printed(events)
        self.asked += sum(isinstance(event, CursorAsked) for event in events)
        self._clean = None

    def drop_line(self) -> None:
        """Take back the line that the cursor is on: a pager's, which the device will draw over."""
        self._screen.drop_line()
        self._clean = None

    @property
    def text(self) -> str:
        """All of the text. A device's start is looked for here: its lines are the kernel's too."""
        return self._screen.text

    @property
    def clean(self) -> tuple[str, tuple[str, ...]]:
        """The text without noise lines, and those."""
        if self._clean is None:
            text, aside = set_aside(self._screen.text, self.profile.noise_patterns)
            # A noise line that was printed below the prompt leaves the prompt where it was.
            self._clean = (text.rstrip("\n") if aside and self._ends_in_noise() else text), aside
        return self._clean

    def _ends_in_noise(self) -> bool:
        text = self._screen.text
        whole = text[: text.rfind("\n") + 1]
        last = whole[whole.rfind("\n", 0, -1) + 1 :]
        return text == whole and any(pattern.search(last) for pattern in self.profile.noise_patterns)

    @property
    def last_line(self) -> str:
        """The line that a prompt would be on."""
        return self.clean[0].rpartition("\n")[2]

    @property
    def tail(self) -> str:
        """The last lines heard, for a message."""
        return self.clean[0].rstrip()[-TAIL_CHARS:].lstrip("\n")

    @property
    def prompt(self) -> State | None:
        """The state whose prompt stands on the last line; a log-in's may have ended its line (labgrid#1786)."""
        text = self.clean[0]
        last = text.rpartition("\n")[2]
        for state, pattern in self.profile.prompt_patterns:
            if pattern.search(last):
                return state  # type: ignore[return-value]  # the names come from the fields of Prompts
        asked = None if last else dict(self.profile.prompt_patterns).get("log_in")
        return "log_in" if asked is not None and asked.search(text.rstrip("\n").rpartition("\n")[2]) else None

    @property
    def banner(self) -> str:
        """What only a start of the device prints, if it is there."""
        return next((m.group() for p in self.profile.banner_patterns if (m := p.search(self.text))), "")

    @property
    def pager_key(self) -> str:
        """The key that the pager on the last line waits for; empty when there is none."""
        last = self.last_line.strip()
        keys = (key for pattern, key in self.profile.pager_patterns if last and pattern.fullmatch(last))
        return next(keys, "")

    @property
    def question(self) -> str:
        """The question on the last line, or nothing."""
        last = self.last_line
        asks = last and any(pattern.search(last) for pattern in self.profile.question_patterns)
        return last.strip() if asks else ""

    @property
    def hold_key(self) -> str:
        """The key that holds the boot loader which offers it; nothing where none does, or none is wanted."""
        boot, offer = self.profile.boot, "" if self.prompt else offer_in(self.clean[0])
        if offer and boot.autoboot and re.search(boot.autoboot, offer):
            return boot.autoboot_key
        return hold_key(offer) if offer and self.profile.prompts.boot_loader else ""
