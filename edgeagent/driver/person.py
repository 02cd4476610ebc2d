"""Ask a person whether a call may run. Silence, a closed terminal and an error are all a no."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from edgeagent.core.effects import AskUser, Effect
from edgeagent.core.events import UserDecided
from edgeagent.driver.base import Post


class Decision(NamedTuple):
    """What a person said to a question. `digest` is that of the question which was answered, so that a yes is to it."""

    approved: bool
    text: str = ""
    digest: str = ""


Decide = Callable[[AskUser], Decision]


def nobody(question: AskUser) -> Decision:
    """Decide for a run that no person watches."""
    return Decision(False, "nobody was there to ask")


class PersonDriver:
    """Owns the one place where a person can be asked; questions come one after the other."""

    def __init__(self, decide: Decide = nobody) -> None:
        self._decide = decide
        self._one_at_a_time = threading.Lock()
        self._open: dict[int, threading.Timer] = {}
        self._lock = threading.Lock()

    def submit(self, effect: Effect, post: Post) -> None:
        """Put the question; UserDecided follows, at the latest when it expires."""
        assert isinstance(effect, AskUser), "the wiring sends only questions here"
        expire = threading.Timer(effect.timeout_ms / 1000, self._answer, (effect, Decision(False, "no answer"), post))
        expire.daemon = True
        with self._lock:
            self._open[effect.effect_id] = expire
        expire.start()
        threading.Thread(target=self._put, args=(effect, post), name="question", daemon=True).start()

    def cancel(self, effect_id: int) -> None:
        """The question may stay on the screen; its answer no longer counts."""

    def close(self) -> None:
        """Stop waiting for answers."""
        with self._lock:
            timers = list(self._open.values())
            self._open.clear()
        for timer in timers:
            timer.cancel()

    def _put(self, question: AskUser, post: Post) -> None:
        with self._one_at_a_time:
            if question.effect_id not in self._open:
                return
            try:
                decision = self._decide(question)
            # Whatever is wrong with the terminal or the callback, the safe answer is no.
            except Exception as error:
                decision = Decision(False, f"could not ask: {error}")
        self._answer(question, decision, post)

    def _answer(self, question: AskUser, decision: Decision, post: Post) -> None:
        with self._lock:
            timer = self._open.pop(question.effect_id, None)
        if timer is None:
            return
        timer.cancel()
        post(UserDecided(0, question.effect_id, decision.approved, decision.text, decision.digest))
