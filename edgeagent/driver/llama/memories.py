"""Memories that wait beside the model, in this process, while another session is served.

The model holds one conversation and one agent's tools' texts at a time. What it held for others is kept here, as
llama.cpp's own bytes, up to a bound; the one that was not asked for longest goes first, and is evaluated again when it
is wanted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from edgeagent.driver.llama.engine import Engine

MEMORIES_BYTES_MAX = 128 << 20
"""About 5,500 tokens of SmolLM2 (23 kB each): some ten conversations of a device, and what their agents begin with."""


class _Part(NamedTuple):
    """What one sequence held."""

    name: str
    sequence: int
    tokens: list[int]
    state: bytearray


class Memories:
    """What sequences held, by a name for it."""

    def __init__(self, engine: Engine, bytes_max: int = MEMORIES_BYTES_MAX) -> None:
        self._engine, self._bytes_max = engine, bytes_max
        self._kept: OrderedDict[str, list[_Part]] = OrderedDict()

    def __contains__(self, name: str) -> bool:
        return name in self._kept

    @property
    def size_bytes(self) -> int:
        """The bytes that all take together."""
        return sum(len(part.state) for parts in self._kept.values() for part in parts)

    def keep(self, name: str, places: Mapping[str, int]) -> None:
        """Keep what these sequences hold now, by the names of what stands in them."""
        engine = self._engine
        parts = [_Part(each, place, engine.kept(place), engine.export_state(place)) for each, place in places.items()]
        self._kept[name] = parts
        self._kept.move_to_end(name)
        while self._kept and self.size_bytes > self._bytes_max:
            self._kept.popitem(last=False)

    def give_back(self, name: str) -> dict[str, int]:
        """Fill the sequences with what is kept under the name, in its order; return what belongs where.

        Nothing is returned where nothing is kept. The sequence of what there is no room for is empty.
        """
        parts = self._kept.get(name, [])
        if parts:
            self._kept.move_to_end(name)
        for part in parts:
            self._engine.import_state(part.state, part.tokens, part.sequence)
        return {part.name: part.sequence for part in parts}

    def forget(self, name: str) -> None:
        """Let go of what is kept under the name."""
        self._kept.pop(name, None)

    def clear(self) -> None:
        """Let go of everything."""
        self._kept.clear()
