"""Order of models: each ask goes to the first that can be reached, never to another one in the middle of an answer.

Which were asked, and why those before the last did not answer, is in the event that follows.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from msgspec.structs import replace

from edgeagent.core.effects import AskModel, Effect
from edgeagent.core.events import Event, ModelAnswered, ModelFailed
from edgeagent.driver.base import Post
from edgeagent.driver.model import ModelDriver, Warm


class OrderedModels:
    """Several drivers of one session, by the names of their models; the first is asked first."""

    def __init__(self, drivers: Sequence[tuple[str, ModelDriver]]) -> None:
        self._drivers = tuple(drivers)
        self._at: dict[int, int] = {}
        self._cancelled: set[int] = set()
        self._lock = threading.Lock()

    @property
    def warm(self) -> Warm | None:
        """The keeping of memory, of the first that keeps any."""
        return next((each.warm for _, each in self._drivers if each.warm is not None), None)

    def describe(self) -> str:
        """What was loaded, in a sentence."""
        return "; else ".join(f"{name}: {driver.describe()}" for name, driver in self._drivers)

    def submit(self, effect: Effect, post: Post) -> None:
        """Ask the first one."""
        assert isinstance(effect, AskModel), "the wiring sends only model calls here"
        self._ask(effect, 0, (), post)

    def _ask(self, ask: AskModel, place: int, before: tuple[tuple[str, str], ...], post: Post) -> None:
        name, driver = self._drivers[place]

        def answered(event: Event) -> None:
            is_last = place + 1 == len(self._drivers)
            with self._lock:
                is_cancelled = ask.effect_id in self._cancelled
            if isinstance(event, ModelFailed) and event.reason == "unavailable" and not is_last and not is_cancelled:
                self._ask(ask, place + 1, (*before, (name, event.message)), post)
                return
            with self._lock:
                self._at.pop(ask.effect_id, None)
                self._cancelled.discard(ask.effect_id)
            post(_told(event, before, name))

        with self._lock:
            self._at[ask.effect_id] = place
        driver.submit(ask, answered)
        with self._lock:
            is_cancelled = ask.effect_id in self._cancelled
        if is_cancelled:  # While it was on its way to this one, which may not have known it yet.
            driver.cancel(ask.effect_id)

    def cancel(self, effect_id: int) -> None:
        """Stop the one that is asked; no other is asked then."""
        with self._lock:
            place = self._at.get(effect_id)
            if place is None:
                return
            self._cancelled.add(effect_id)
        self._drivers[place][1].cancel(effect_id)

    def close(self) -> None:
        """Close all of them."""
        for _, driver in self._drivers:
            driver.close()


def _told(event: Event, before: tuple[tuple[str, str], ...], name: str) -> Event:
    if isinstance(event, ModelAnswered):
        return replace(event, asked=(*before, (name, "")))
    if isinstance(event, ModelFailed) and before:
        passed = "; ".join(f"{model}: {why}" for model, why in before)
        return replace(event, message=f"{name}: {event.message} (before it {passed})")
    return event
