"""A model that writes what a script says: for scenarios, demonstrations without weights, and tests of the loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edgeagent.core.effects import AskModel, Effect
from edgeagent.core.events import ModelAnswered, ModelFailed
from edgeagent.core.values import Usage
from edgeagent.driver.base import Post
from edgeagent.driver.model import Warm


class ScriptedModel:
    """Answers each AskModel with the next text of the script; after its end the model is unavailable."""

    def __init__(self, script: Iterable[str]) -> None:
        self._script: Iterator[str] = iter(script)

    @property
    def warm(self) -> Warm | None:
        """Nothing is in memory."""
        return None

    def describe(self) -> str:
        """What was loaded, in a sentence."""
        return "a script answers; no model is loaded"

    def submit(self, effect: Effect, post: Post) -> None:
        """Post the next text at once."""
        assert isinstance(effect, AskModel), "the wiring sends only model calls here"
        text = next(self._script, None)
        if text is None:
            post(ModelFailed(0, effect.effect_id, "unavailable", "the script has no more answers"))
            return
        words = len(text.split())
        post(ModelAnswered(0, effect.effect_id, text, "end", Usage(prompt=words, evaluated=words, completion=words)))

    def cancel(self, effect_id: int) -> None:
        """Everything was answered when it was submitted."""

    def close(self) -> None:
        """Nothing is held."""
