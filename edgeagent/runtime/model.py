"""Model that is loaded once and serves every session of a process, of whatever agents: one driver for each session."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from edgeagent.core.agent import Agent
from edgeagent.driver.model import ModelDriver, Sampling
from edgeagent.driver.order import OrderedModels
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.errors import ConfigError, EdgeAgentError
from edgeagent.runtime.attached import Attached
from edgeagent.runtime.calibration import tools_digest, use_calibration
from edgeagent.runtime.config import ModelSettings, NamedModel, endpoint_of
from edgeagent.runtime.wiring import (
    PLAIN,
    SCRIPT_PREFIX,
    dialect_of,
    embedder,
    llama_model,
    script_of,
    shared_llama_model,
)

if TYPE_CHECKING:
    from edgeagent.driver.llama.hearing import Asking
    from edgeagent.driver.llama.model import LlamaDriver
    from edgeagent.driver.remote.probe import Finding


class Manner(msgspec.Struct, frozen=True):
    """How an ask is answered where the settings are not to hold. Without `chooses` the model alone decides."""

    temperature: float | None = None
    top_p: float | None = None
    chooses: bool = True


class Model(Protocol):
    """A loaded model. Close its sessions before it."""

    @property
    def settings(self) -> ModelSettings:
        """What it was loaded with."""

    @property
    def dialect(self) -> str:
        """How it writes calls."""

    def driver(
        self, agent: Agent, doors: Attached, root: Path, answered: int, manner: Manner | None = None
    ) -> ModelDriver:
        """Answer one session of this agent, which has been answered so often already. Raises GrammarError and more.

        `manner` None is that of the settings.
        """

    def close(self) -> None:
        """Let go of it."""


class Script:
    """Answers that were written beforehand, instead of a model: each session is given the same ones, in order."""

    def __init__(self, answers: Sequence[str], settings: ModelSettings | None = None) -> None:
        self.settings = settings or ModelSettings(name="script", dialect=PLAIN)
        self.dialect = dialect_of(self.settings)
        self._answers = tuple(answers)

    def driver(
        self, agent: Agent, doors: Attached, root: Path, answered: int, manner: Manner | None = None
    ) -> ModelDriver:
        """Go on behind what was answered."""
        return ScriptedModel(self._answers[answered:])

    def close(self) -> None:
        """Nothing is held."""


class Weights:
    """The weights of a file, loaded once for all sessions; asks wait in one queue that is fair between them."""

    def __init__(self, settings: ModelSettings, *, verbose: bool = False) -> None:
        self.settings, self.dialect = settings, dialect_of(settings)
        self._loaded = shared_llama_model(settings, verbose=verbose)
        self._agents: WeakValueDictionary[str, Agent] = WeakValueDictionary()

    def driver(
        self, agent: Agent, doors: Attached, root: Path, answered: int, manner: Manner | None = None
    ) -> ModelDriver:
        """Answer with the agent's calibration, if it has one. Sessions of one agent share its preparation."""
        known = self._agents.setdefault(f"{agent.digest} {tools_digest(agent)}", agent)
        more: Asking = {"on_text": doors.stream, "on_progress": doors.progress, "on_waiting": doors.waiting}
        if manner is None:
            driver = self._loaded.driver(known, temperature=self.settings.temperature, **more)
            return _calibrated(driver, agent, doors, root)
        heat = self.settings.temperature if manner.temperature is None else manner.temperature
        more["chooses"] = manner.chooses
        if manner.top_p is not None:
            more["top_p"] = manner.top_p
        return self._loaded.driver(known, temperature=heat, **more)

    def close(self) -> None:
        """Unload the weights."""
        self._loaded.close()


class OneSessionsWeights:
    """The weights of a file for one session, which closes them."""

    def __init__(self, settings: ModelSettings, *, verbose: bool = False) -> None:
        self.settings, self.dialect = settings, dialect_of(settings)
        self._verbose = verbose

    def driver(
        self, agent: Agent, doors: Attached, root: Path, answered: int, manner: Manner | None = None
    ) -> ModelDriver:
        """Load the weights and answer with the agent's calibration, if it has one."""
        driver = llama_model(
            agent, self.settings, on_text=doors.stream, on_progress=doors.progress, verbose=self._verbose
        )
        return _calibrated(driver, agent, doors, root)

    def close(self) -> None:
        """The session has closed them."""


class Chain:
    """Named models in their order: each ask goes to the first that can be reached."""

    def __init__(self, settings: ModelSettings, *, shared: bool, verbose: bool = False) -> None:
        self.settings, self.dialect = settings, dialect_of(settings)
        self._models: list[tuple[str, Model]] = []
        try:
            for place, (name, each) in enumerate(settings.chain):
                is_last = place + 1 == len(settings.chain)
                own = replace(settings, name=each.name, order=(), chain=())
                model = (
                    load_model(own, shared=shared, verbose=verbose) if each.name else Remote(each, own, is_last=is_last)
                )
                self._models.append((name, model))
        except EdgeAgentError:
            self.close()
            raise

    def driver(
        self, agent: Agent, doors: Attached, root: Path, answered: int, manner: Manner | None = None
    ) -> ModelDriver:
        """Ask the first, and the next where it cannot be reached."""
        drivers: list[tuple[str, ModelDriver]] = []
        try:
            for name, model in self._models:
                drivers.append((name, model.driver(agent, doors, root, answered, manner)))
        except EdgeAgentError:
            for _, driver in drivers:
                driver.close()
            raise
        return drivers[0][1] if len(drivers) == 1 else OrderedModels(drivers)

    def close(self) -> None:
        """Let go of all of them."""
        for _, model in self._models:
            model.close()


def probed(named: NamedModel) -> Iterator[Finding]:
    """What a model behind an endpoint can do. Raises ConfigError, and ModelError if it cannot be asked at all."""
    with needs_curl():
        from edgeagent.driver.remote.probe import probe

    return probe(endpoint_of(named))


@contextlib.contextmanager
def needs_curl() -> Iterator[None]:
    """Say what to install where curl is missing. Raises ConfigError."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"a model behind an endpoint needs pycurl ({error}): pip install 'edgeagent[remote]', or apt install "
            "python3-pycurl"
        ) from error


class Remote:
    """A model behind an endpoint, for all sessions."""

    def __init__(self, named: NamedModel, settings: ModelSettings, *, is_last: bool = True) -> None:
        self.settings, self.dialect, self._is_last = settings, PLAIN, is_last
        with needs_curl():
            from edgeagent.driver.remote.model import Price, RemoteModel
        price = Price(**{str(name): value for name, value in named.price.items()})
        meaning = embedder() if settings.meaning and named.calls != "own" else None
        self._loaded = RemoteModel(endpoint_of(named), price, meaning)

    def driver(
        self, agent: Agent, doors: Attached, root: Path, answered: int, manner: Manner | None = None
    ) -> ModelDriver:
        """Answer one session."""
        asking = Manner() if manner is None else manner
        heat = self.settings.temperature if asking.temperature is None else asking.temperature
        sampling = Sampling(heat, asking.top_p)
        return self._loaded.driver(agent, doors.stream, sampling, plans=asking.chooses, is_last=self._is_last)

    def close(self) -> None:
        """End its thread."""
        self._loaded.close()


def _calibrated(driver: LlamaDriver, agent: Agent, doors: Attached, root: Path) -> ModelDriver:
    if unused := use_calibration(root, driver, agent):
        doors.tell_owner(unused)
    return driver


def load_model(settings: ModelSettings, *, shared: bool, verbose: bool = False) -> Model:
    """Load the model that the settings name, or its script; one that is not `shared` is for one session.

    Raises ConfigError and ModelError.
    """
    if settings.chain:
        return Chain(settings, shared=shared, verbose=verbose)
    if settings.name.startswith(SCRIPT_PREFIX):
        return Script(script_of(settings.name), settings)
    return Weights(settings, verbose=verbose) if shared else OneSessionsWeights(settings, verbose=verbose)
