"""Door: what a person's or a program's end of a session must offer. Knows no terminal, no socket and no loop.

    watch       one transition; returning is the acknowledgement
    decide      a question about a call; None where the answer will come later, through `Session.decide`
    stream      words as the model writes them
    progress    how far a prompt is evaluated
    waiting     place in the model's queue: 0 is the model's own turn
    activity    a sentence about what goes on

Any of them may be called from another thread than the one that opened the session.
"""

from __future__ import annotations

from typing import Protocol

from edgeagent.core.effects import AskUser, Effect
from edgeagent.core.events import Event
from edgeagent.core.state import State
from edgeagent.driver.person import Decision as Decision


class Door(Protocol):
    """One end of a session."""

    def watch(self, event: Event, state: State, effects: tuple[Effect, ...]) -> None:
        """Take one transition: what happened, where the session stands, what it asks for."""

    def decide(self, question: AskUser) -> Decision | None:
        """Answer whether a call may run; None says that the answer comes through `Session.decide`, or never."""

    def stream(self, text: str) -> None:
        """Take words as the model writes them; calls are written so too."""

    def progress(self, done: int, total: int) -> None:
        """Take how many tokens of a prompt are evaluated."""

    def waiting(self, place: int) -> None:
        """Take the session's place in the model's queue; 0 when its turn has come."""

    def activity(self, text: str) -> None:
        """Take a sentence about what goes on."""


class QuietDoor:
    """A door that shows nothing and leaves every question to others. To be built upon."""

    def watch(self, event: Event, state: State, effects: tuple[Effect, ...]) -> None:
        """Show nothing."""

    def decide(self, question: AskUser) -> Decision | None:
        """Leave the question open: the answer comes through `Session.decide`, or silence is a no."""
        return None

    def stream(self, text: str) -> None:
        """Show nothing."""

    def progress(self, done: int, total: int) -> None:
        """Show nothing."""

    def waiting(self, place: int) -> None:
        """Show nothing."""

    def activity(self, text: str) -> None:
        """Show nothing."""
