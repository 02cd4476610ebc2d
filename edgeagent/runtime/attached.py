"""Attached doors: each is shown every transition, asked every question, and has a place in the trace if it is named."""

from __future__ import annotations

import threading
from collections.abc import Callable

from edgeagent.core.effects import Effect, Finish, Say
from edgeagent.core.events import Event
from edgeagent.core.state import State
from edgeagent.driver.person import PersonDriver, nobody
from edgeagent.runtime.cursor import Cursor
from edgeagent.runtime.door import Door


class Attached:
    """The doors of one session, as one door.

    What goes wrong at the door that opened the session goes on to whoever runs it. A door that was attached later and
    fails is let go of; its place stays, and it is shown the rest when it is attached again.
    """

    def __init__(self, owner: Door | None = None, name: str = "") -> None:
        self.owner, self.owner_name = owner, name
        self.person = PersonDriver(nobody if owner is None else owner.decide)
        self._changing = threading.Lock()
        self._doors: tuple[tuple[Door, Cursor | None], ...] = ()

    def add(self, door: Door, cursor: Cursor | None) -> None:
        """Show and ask this door too, from now on."""
        with self._changing:
            self._doors = (*self._doors, (door, cursor))
            if door is not self.owner:
                self.person.ask_also(door.decide)

    def remove(self, door: Door) -> None:
        """Show and ask this door nothing any more."""
        with self._changing:
            self._doors = tuple(each for each in self._doors if each[0] is not door)
            self.person.ask_no_more(door.decide)

    def watch(self, event: Event, state: State, effects: tuple[Effect, ...]) -> None:
        """Show one transition to all."""
        self._show(lambda door: door.watch(event, state, effects))

    def move(self, seq: int, head: bytes) -> None:
        """Write down that all have had everything before record `seq`. Raises TraceError."""
        for _, cursor in self._doors:
            if cursor is not None:
                cursor.move(seq, head)

    @property
    def have_places(self) -> bool:
        """Whether any door has a place to be written."""
        return any(cursor is not None for _, cursor in self._doors)

    def stream(self, text: str) -> None:
        """Show words as the model writes them."""
        self._show(lambda door: door.stream(text))

    def progress(self, done: int, total: int) -> None:
        """Show how many tokens of a prompt are evaluated."""
        self._show(lambda door: door.progress(done, total))

    def waiting(self, place: int) -> None:
        """Show the session's place in the model's queue."""
        self._show(lambda door: door.waiting(place))

    def activity(self, text: str) -> None:
        """Say a sentence about what goes on."""
        self._show(lambda door: door.activity(text))

    def tell_owner(self, text: str) -> None:
        """Say a sentence to the door that opens the session."""
        if self.owner is not None:
            self.owner.activity(text)

    def _show(self, show: Callable[[Door], None]) -> None:
        for door, _ in self._doors:
            try:
                show(door)
            # An attached door is another program's code and may raise anything; the session is not its own.
            except Exception as error:
                if door is self.owner:
                    raise
                self.remove(door)
                self.activity(f"a door is let go of: {type(error).__name__}: {error}")


def is_said(effects: tuple[Effect, ...]) -> bool:
    """Whether a transition says something that must reach every door."""
    return any(isinstance(effect, Say | Finish) for effect in effects)
