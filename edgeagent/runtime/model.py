"""Model that is loaded once and serves every session of a process, of whatever agents.

Knows settings and files; what it loads answers through one driver for each session.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import orjson

from edgeagent.codec.dialect import dialect_called, dialect_for
from edgeagent.core.agent import Agent
from edgeagent.driver.model import ModelDriver
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.errors import ConfigError
from edgeagent.runtime.attached import Attached
from edgeagent.runtime.config import ModelSettings

SCRIPT_PREFIX = "script:"
"""A model name that begins so is a JSON file with a list of answers, for dry runs without weights."""

AUTO, PLAIN = "auto", "plain"
"""The setting that leaves the dialect to the model's template, and the dialect of scripts."""


class Model(Protocol):
    """A loaded model. Its sessions are closed before it is."""

    @property
    def settings(self) -> ModelSettings:
        """What it was loaded with."""

    @property
    def dialect(self) -> str:
        """How it writes calls."""

    def driver(self, agent: Agent, doors: Attached, *, root: Path, answered: int) -> ModelDriver:
        """Answer one session of this agent, which has been answered so often already. Raises GrammarError and more."""

    def close(self) -> None:
        """Let go of it."""


class Script:
    """Answers instead of a model: each session is given the same ones, in order."""

    def __init__(self, answers: Sequence[str], settings: ModelSettings | None = None) -> None:
        self.settings = settings or ModelSettings(name="script")
        self.dialect = PLAIN if self.settings.dialect == AUTO else self.settings.dialect
        self._answers = tuple(answers)

    def driver(self, agent: Agent, doors: Attached, *, root: Path, answered: int) -> ModelDriver:
        """Go on behind what was answered."""
        return ScriptedModel(self._answers[answered:])

    def close(self) -> None:
        """Nothing is held."""
