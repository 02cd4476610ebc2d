"""Calls that a program dictates, in the place of a model: each is written as a model would write it, and judged alike.

So a call that comes from outside passes the same reading, rules, questions and budgets, and stands in the same trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskModel, Effect
from edgeagent.core.events import ModelAnswered
from edgeagent.core.values import Usage, canonical_json
from edgeagent.driver.base import Post
from edgeagent.driver.model import ModelDriver, Warm
from edgeagent.runtime.attached import Attached
from edgeagent.runtime.config import ModelSettings
from edgeagent.runtime.model import Manner
from edgeagent.runtime.wiring import PLAIN

WINDOW_TOKENS = 1 << 16
"""Nobody reads what stands in the window, so it need not be small; only the state is bounded by it."""


class Dictation:
    """A model of one session that writes the call it was given, and is silent after it."""

    def __init__(self) -> None:
        self.settings = ModelSettings(name="dictated", dialect=PLAIN, context_tokens=WINDOW_TOKENS)
        self.dialect = PLAIN
        self._next = self.told = ""
        """`told` is what a model would have been told of the call."""

    def dictate(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Have this call written next. `tool` is the name that a model writes."""
        self._next, self.told = canonical_json({"name": tool, "arguments": arguments}), ""

    def driver(
        self, agent: Agent, doors: Attached, root: Path, answered: int, manner: Manner | None = None
    ) -> ModelDriver:
        """Answer the one session."""
        return _Driver(self)

    def take(self, ask: AskModel) -> str:
        """What is written now."""
        text, self._next = self._next, ""
        if not text and ask.messages:
            self.told = ask.messages[-1].text
        return text or "Done."

    def close(self) -> None:
        """Nothing is held."""


class _Driver:
    """Writes what is dictated."""

    def __init__(self, dictation: Dictation) -> None:
        self._dictation = dictation

    @property
    def warm(self) -> Warm | None:
        """Nothing is in memory."""
        return None

    def describe(self) -> str:
        """What was loaded, in a sentence."""
        return "a program dictates the calls; no model is loaded"

    def submit(self, effect: Effect, post: Post) -> None:
        """Post it at once."""
        assert isinstance(effect, AskModel), "the wiring sends only model calls here"
        post(ModelAnswered(0, effect.effect_id, self._dictation.take(effect), "end", Usage()))

    def cancel(self, effect_id: int) -> None:
        """Everything was answered when it was submitted."""

    def close(self) -> None:
        """Nothing is held."""
