"""Judge texts beside the conversation, and hold what they begin with: the tools' texts wait in memory for a request.

Each text has a sequence of the engine's memory for itself as long as there are enough; then the one that was not asked
for longest gives its place. A conversation that needs the room takes it back (`Engine.evaluate`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from edgeagent.driver.llama.batch import Beside
from edgeagent.driver.llama.engine import Engine, Halt


class Text(NamedTuple):
    """What is judged: how probable is the continuation behind the prefix, which may not be empty?"""

    prefix: Sequence[int]
    continuation: Sequence[int] = ()


class Shelf:
    """The engine's sequences beside the first, by the names of the texts that stand in them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._places: dict[str, int] = {}
        """In the order of their last use."""

    def judge(self, texts: Mapping[str, Text], halt: Halt | None = None) -> dict[str, float] | None:
        """The log-probability of each continuation behind its prefix; None if there is no room or no time for it."""
        at_once = self._engine.sequences - 1
        if at_once < 1:
            return None
        told: dict[str, float] = {}
        names = iter(texts)
        while group := list(islice(names, at_once)):
            places = self._placed(group)
            scores = self._engine.score_beside([Beside(places[name], *texts[name]) for name in group], halt=halt)
            if scores is None:
                return None
            told |= zip(group, scores, strict=True)
        return told

    def hold(self, prefixes: Mapping[str, Sequence[int]], halt: Halt | None = None) -> None:
        """Evaluate what texts begin with, so that only continuations are left to do; nothing without room or time."""
        self.judge({name: Text(prefix) for name, prefix in prefixes.items()}, halt)

    def standing(self) -> dict[str, int]:
        """The sequences of the texts that are in memory, in the order of their places."""
        held = [(place, name) for name, place in self._places.items() if self._engine.kept(place)]
        return {name: place for place, name in sorted(held)}

    def give_back(self, places: Mapping[str, int]) -> None:
        """Say what belongs where, after it was restored; it counts as used in this order."""
        self._places = dict(places)

    def _placed(self, group: Sequence[str]) -> dict[str, int]:
        """A place for each of the group; those that have one keep it."""
        kept = {name: self._places.pop(name) for name in group if name in self._places}
        free = [
            place for place in range(1, self._engine.sequences) if place not in (*kept.values(), *self._places.values())
        ]
        for name in group:
            if name not in kept:
                if not free:
                    free.append(self._places.pop(next(iter(self._places))))
                kept[name] = free.pop(0)
        self._places |= kept
        return kept
