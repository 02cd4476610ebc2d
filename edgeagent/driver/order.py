"""Order of models: each ask goes to the first that can be reached, never to another one in the middle of an answer.

There may be one order for asks that choose a call and another for those that are answered in words. Which models were
asked, and why those before the last did not answer, is in the event that follows.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from edgeagent.core.effects import AskModel, Effect
from edgeagent.core.events import Event, ModelAnswered, ModelFailed
from edgeagent.driver.base import Post
from edgeagent.driver.model import ModelDriver, Warm

Use = Literal["choose", "answer"]


def use_of(ask: AskModel) -> Use:
    """What an ask is for: `choose` where a call may be what a word leads to, `answer` where words are to come.

    Behind a result words are to come; a model that wants to call again may.
    """
    if ask.choice == "call":
        return "choose"
    is_behind_result = bool(ask.messages) and ask.messages[-1].role == "tool"
    return "answer" if ask.choice == "answer" or not ask.tools or is_behind_result else "choose"


class OrderedModels:
    """Several drivers of one session, by the names of their models; the first is asked first."""

    def __init__(
        self, drivers: Sequence[tuple[str, ModelDriver]], uses: Mapping[Use, Sequence[str]] | None = None
    ) -> None:
        """`uses` are the orders of names by what an ask is for; without them every ask goes by the drivers' own."""
        self._drivers, by_name = tuple(drivers), dict(drivers)
        orders = {use: tuple((name, by_name[name]) for name in names) for use, names in (uses or {}).items()}
        self._orders: Mapping[Use, tuple[tuple[str, ModelDriver], ...]] = orders
        self._at: dict[int, ModelDriver] = {}
        self._cancelled: set[int] = set()
        self._lock = threading.Lock()

    @property
    def warm(self) -> Warm | None:
        """The keeping of memory, of the first that keeps any."""
        return next((each.warm for _, each in self._drivers if each.warm is not None), None)

    def describe(self) -> str:
        """What was loaded, in a sentence."""
        if len(set(self._orders.values())) < 2:
            return _described(self._drivers)
        return ". ".join(f"To {use}, {_described(drivers)}" for use, drivers in self._orders.items())

    def submit(self, effect: Effect, post: Post) -> None:
        """Ask the first one."""
        assert isinstance(effect, AskModel), "the wiring sends only model calls here"
        self._ask(effect, self._orders.get(use_of(effect), self._drivers), (), post)

    def _ask(
        self,
        ask: AskModel,
        order: Sequence[tuple[str, ModelDriver]],
        before: tuple[tuple[str, str], ...],
        post: Post,
    ) -> None:
        (name, driver), *others = order

        def answered(event: Event) -> None:
            with self._lock:
                is_cancelled = ask.effect_id in self._cancelled
            if isinstance(event, ModelFailed) and event.reason == "unavailable" and others and not is_cancelled:
                self._ask(ask, others, (*before, (name, event.message)), post)
                return
            with self._lock:
                self._at.pop(ask.effect_id, None)
                self._cancelled.discard(ask.effect_id)
            post(_told(event, before, name))

        with self._lock:
            self._at[ask.effect_id] = driver
        driver.submit(ask, answered)
        with self._lock:
            is_cancelled = ask.effect_id in self._cancelled
        if is_cancelled:  # While it was on its way to this one, which may not have known it yet.
            driver.cancel(ask.effect_id)

    def cancel(self, effect_id: int) -> None:
        """Stop the one that is asked; no other is asked then."""
        with self._lock:
            driver = self._at.get(effect_id)
            if driver is None:
                return
            self._cancelled.add(effect_id)
        driver.cancel(effect_id)

    def close(self) -> None:
        """Close all of them."""
        for _, driver in self._drivers:
            driver.close()


def _described(drivers: Sequence[tuple[str, ModelDriver]]) -> str:
    return "; else ".join(f"{name}: {driver.describe()}" for name, driver in drivers)


def _told(event: Event, before: tuple[tuple[str, str], ...], name: str) -> Event:
    if isinstance(event, ModelAnswered):
        own = event.asked or ((name, ""),)  # It may have been asked more than once.
        return replace(event, asked=(*before, *((name, why) for _, why in own)))
    if isinstance(event, ModelFailed) and before:
        passed = "; ".join(f"{model}: {why}" for model, why in before)
        return replace(event, message=f"{name}: {event.message} (before it {passed})")
    return event
