"""Spoken text: the pieces of one answer as the model writes them, without what is no answer (calls)."""

from __future__ import annotations

from collections.abc import Callable

from edgeagent.core.effects import AskModel, Effect
from edgeagent.core.events import Event
from edgeagent.core.state import State
from edgeagent.runtime.answer import Word
from edgeagent.runtime.door import QuietDoor

CALL_BEGINS = ("{", "[", "<", "`")
"""What a call begins with, in every dialect; an answer that begins so comes whole, at its end."""


class Spoken(QuietDoor):
    """Gives on the answer to one word, or of any turn, piece by piece; the pieces together are its text."""

    def __init__(self, word: Word | None, give: Callable[[str], None]) -> None:
        self._word, self._give = word, give
        self._given, self._held, self._is_call = "", "", False

    def stream(self, text: str) -> None:
        """Give words on; white space waits until something follows it."""
        word = self._word
        if self._is_call or (word is not None and (not word.begun.is_set() or word.answered.done())):
            return
        self._held += text
        if not self._given:
            self._held = self._held.lstrip()
            self._is_call = self._held.startswith(CALL_BEGINS)
        ready = self._held.rstrip()
        if ready and not self._is_call:
            self._given, self._held = self._given + ready, self._held[len(ready) :]
            self._give(ready)

    def watch(self, event: Event, state: State, effects: tuple[Effect, ...]) -> None:
        """Begin anew when the model is asked again."""
        if any(isinstance(effect, AskModel) for effect in effects):
            self._held, self._is_call = "", False

    def end(self, text: str) -> None:
        """Give on what is left of the answer; all of it where the model began anew in another way."""
        rest = text[len(self._given) :] if text.startswith(self._given) else f"\n{text}"
        if rest:
            self._give(rest)
