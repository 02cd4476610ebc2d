"""Model that is loaded once and serves every session of a process, of whatever agents: one driver for each session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from edgeagent.core.agent import Agent
from edgeagent.driver.model import ModelDriver
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.runtime.attached import Attached
from edgeagent.runtime.calibration import use_calibration
from edgeagent.runtime.config import ModelSettings
from edgeagent.runtime.wiring import PLAIN, SCRIPT_PREFIX, dialect_of, llama_model, script_of


class Model(Protocol):
    """A loaded model. Close its sessions before it."""

    @property
    def settings(self) -> ModelSettings:
        """What it was loaded with."""

    @property
    def dialect(self) -> str:
        """How it writes calls."""

    def driver(self, agent: Agent, doors: Attached, root: Path, answered: int) -> ModelDriver:
        """Answer one session of this agent, which has been answered so often already. Raises GrammarError and more."""

    def close(self) -> None:
        """Let go of it."""


class Script:
    """Answers that were written beforehand, instead of a model: each session is given the same ones, in order."""

    def __init__(self, answers: Sequence[str], settings: ModelSettings | None = None) -> None:
        self.settings = settings or ModelSettings(name="script", dialect=PLAIN)
        self.dialect = dialect_of(self.settings)
        self._answers = tuple(answers)

    def driver(self, agent: Agent, doors: Attached, root: Path, answered: int) -> ModelDriver:
        """Go on behind what was answered."""
        return ScriptedModel(self._answers[answered:])

    def close(self) -> None:
        """Nothing is held."""


class Weights:
    """llama.cpp with the weights of a file."""

    def __init__(self, settings: ModelSettings, *, verbose: bool = False) -> None:
        self.settings, self.dialect = settings, dialect_of(settings)
        self._verbose = verbose

    def driver(self, agent: Agent, doors: Attached, root: Path, answered: int) -> ModelDriver:
        """Answer with the agent's calibration, if it has one."""
        driver = llama_model(
            agent, self.settings, on_text=doors.stream, on_progress=doors.progress, verbose=self._verbose
        )
        if unused := use_calibration(root, driver, agent):
            doors.tell_owner(unused)
        return driver

    def close(self) -> None:
        """Let go of it."""


def load_model(settings: ModelSettings, *, verbose: bool = False) -> Model:
    """Load the model that the settings name, or its script. Raises ConfigError and ModelError."""
    if settings.name.startswith(SCRIPT_PREFIX):
        return Script(script_of(settings.name), settings)
    return Weights(settings, verbose=verbose)
