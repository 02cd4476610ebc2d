"""Ask a person whether a call may run. Silence, a closed terminal and an error are all a no."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from edgeagent.core.effects import AskUser, Effect
from edgeagent.core.events import UserDecided
from edgeagent.core.text import error_text
from edgeagent.driver.base import Post


class Decision(NamedTuple):
    """What a person said to a question. `digest` is that of the question which was answered, so that a yes is to it."""

    approved: bool
    text: str = ""
    digest: str = ""


Decide = Callable[[AskUser], Decision | None]
"""Answers a question, or says with None that the answer comes from elsewhere (`PersonDriver.answer`)."""


def nobody(question: AskUser) -> Decision:
    """Decide for a run that no person watches."""
    return Decision(False, "nobody was there to ask")


class _Open(NamedTuple):
    question: AskUser
    post: Post
    expires: threading.Timer


class PersonDriver:
    """Owns the places where a person can be asked: each is put one question at a time, and the first answer counts."""

    def __init__(self, decide: Decide = nobody) -> None:
        self._open: dict[int, _Open] = {}
        self._lock = threading.Lock()
        self._places: tuple[tuple[Decide, threading.Lock], ...] = ()
        self.ask_also(decide)

    def ask_also(self, decide: Decide) -> None:
        """Put questions to this place too, from the next one on."""
        self._places = (*self._places, (decide, threading.Lock()))

    def ask_no_more(self, decide: Decide) -> None:
        """Put no questions to this place any more."""
        self._places = tuple(place for place in self._places if place[0] != decide)

    def submit(self, effect: Effect, post: Post) -> None:
        """Put the question; UserDecided follows, at the latest when it expires."""
        assert isinstance(effect, AskUser), "the wiring sends only questions here"
        expires = threading.Timer(
            effect.timeout_ms / 1000, self.answer, (effect.effect_id, Decision(False, "no answer"))
        )
        expires.daemon = True
        with self._lock:
            self._open[effect.effect_id] = _Open(effect, post, expires)
        expires.start()
        for place in self._places:
            threading.Thread(target=self._put, args=(effect, *place), name="question", daemon=True).start()

    def answer(self, effect_id: int, decision: Decision) -> bool:
        """Answer a question; False if none of that id is open (any more)."""
        with self._lock:
            found = self._open.pop(effect_id, None)
        if found is None:
            return False
        found.expires.cancel()
        found.post(UserDecided(0, effect_id, decision.approved, decision.text, decision.digest))
        return True

    def cancel(self, effect_id: int) -> None:
        """The question may stay on the screen; its answer no longer counts."""

    def close(self) -> None:
        """Stop waiting for answers."""
        with self._lock:
            waiting = list(self._open.values())
            self._open.clear()
        for each in waiting:
            each.expires.cancel()

    def _put(self, question: AskUser, decide: Decide, one_at_a_time: threading.Lock) -> None:
        with one_at_a_time:
            if question.effect_id not in self._open:
                return
            try:
                decision = decide(question)
            # Whatever is wrong with the terminal or the callback, the safe answer is no.
            except Exception as error:
                decision = Decision(False, f"could not ask: {error_text(error)}")
        if decision is not None:
            self.answer(question.effect_id, decision)
