"""Spoken text: the pieces of one answer as the model writes them, without what is no answer (calls)."""

from __future__ import annotations

from collections.abc import Callable

from edgeagent.core.effects import AskModel, Effect, Say
from edgeagent.core.events import Event
from edgeagent.core.state import State
from edgeagent.runtime.answer import Word
from edgeagent.runtime.door import QuietDoor

CALL_BEGINS = ("{", "[", "<", "`")
"""What a call begins with, in every dialect; an answer that begins so comes whole, at its end."""


class Spoken(QuietDoor):
    """Gives on the answer to one word, piece by piece; the pieces together are its text."""

    def __init__(self, word: Word, give: Callable[[str], None]) -> None:
        self._word, self._give = word, give
        self._given, self._held = "", ""
        self._is_over = self._is_call = False

    def stream(self, text: str) -> None:
        """Give words on; white space waits until something follows it."""
        if self._is_over or self._is_call or not self._word.begun.is_set():
            return
        self._held += text
        if not self._given:
            self._held = self._held.lstrip()
            self._is_call = self._held.startswith(CALL_BEGINS)
        ready = self._held.rstrip()
        if ready and not self._is_call:
            self._pass(ready)

    def watch(self, event: Event, state: State, effects: tuple[Effect, ...]) -> None:
        """Give on what is left of the answer when it is said."""
        if self._is_over or not self._word.begun.is_set():
            return
        for effect in effects:
            if isinstance(effect, AskModel):
                self._is_call, self._held = False, ""
            if isinstance(effect, Say):
                self._is_over = True
                given = self._given
                self._give(effect.text[len(given) :] if effect.text.startswith(given) else f"\n{effect.text}")
                return

    def _pass(self, ready: str) -> None:
        self._given, self._held = self._given + ready, self._held[len(ready) :]
        self._give(ready)
