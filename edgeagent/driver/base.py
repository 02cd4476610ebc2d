"""What every driver is: it owns one outside thing and answers each effect with exactly one event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from edgeagent.core.effects import Effect
from edgeagent.core.events import Event

Post = Callable[[Event], None]
"""Puts an event into the inbox. Safe to call from any thread; `at_ms` is stamped there, so drivers leave it 0."""


class Driver(Protocol):
    """One outside thing. `submit` returns at once; its answer comes through `post`, exactly one for each effect id."""

    def submit(self, effect: Effect, post: Post) -> None:
        """Begin to work on the effect. Raises nothing: what goes wrong is a ...Failed event."""

    def cancel(self, effect_id: int) -> None:
        """Stop working on it if that is possible; the one event still comes."""

    def close(self) -> None:
        """Let go of the outside thing. Nothing is posted afterwards."""
