"""Lines that the device behind a tool prints, as a door may show them: only what is promised; a driver keeps it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec


class Line(msgspec.Struct, frozen=True):
    """A whole line, counted from the first that was kept on; a note is what befell the way there, in our own words."""

    number: int
    text: str
    is_note: bool = False


class Excerpt(msgspec.Struct, frozen=True):
    """The lines from a number on, as far as they are kept; which number comes next; what stands on the line begun."""

    lines: tuple[Line, ...]
    next: int
    begun: str


class Lines(Protocol):
    """The last lines of a device. Looking at them opens nothing, and types nothing."""

    @property
    def name(self) -> str:
        """What the device is called."""

    @property
    def is_open(self) -> bool:
        """Whether the way there is open now."""

    @property
    def is_lost(self) -> bool:
        """Whether it was open, and the way there went away by itself."""

    def since(self, number: int) -> Excerpt:
        """The lines from this number on. From any thread."""

    def follow(self, changed: Callable[[], None]) -> None:
        """Call this whenever there may be more, from any thread, until `leave`."""

    def leave(self, changed: Callable[[], None]) -> None:
        """Call it no more."""
