"""Model that is loaded once and serves every session of a process, of whatever agents: one driver for each session."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast
from weakref import WeakValueDictionary

import msgspec

from edgeagent.codec.dialect import dialect_called
from edgeagent.core.agent import Agent
from edgeagent.driver.model import Lender, ModelDriver, Sampling
from edgeagent.driver.order import OrderedModels, Use
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.errors import ConfigError, EdgeAgentError
from edgeagent.runtime.attached import Attached
from edgeagent.runtime.calibration import tools_digest, use_calibration
from edgeagent.runtime.config import ModelSettings, NamedModel, endpoint_of
from edgeagent.runtime.tiers import embedder_of, judge_of, one_of, orders_of, writers
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
    """Named models: each ask goes to the first of its use that can be reached."""

    def __init__(
        self, settings: ModelSettings, *, verbose: bool = False, loaded: Sequence[Model] | None = None
    ) -> None:
        """Load each model once, whatever it is used for; of those that are `loaded` already no weights are added.

        Raises ConfigError and ModelError.
        """
        self.settings, self.dialect = settings, dialect_of(settings)
        self._uses: dict[Use, tuple[str, ...]] = {
            use: tuple(name for name, _ in order) for use, order in orders_of(settings).items()
        }
        self._judge = "".join(name for name, _ in judge_of(settings))
        if self._judge and dialect_called(self.dialect).decides:
            raise ConfigError(f"model.for.judge: a model that writes {self.dialect} decides about calls by itself")
        last = {order[-1] for order in self._uses.values()}
        self._models: dict[str, Model] = {}
        try:
            for name, each in (writers(settings) | dict(judge_of(settings))).items():
                own, is_last = one_of(settings, each), name in last
                found = next((model for model in loaded or () if _is_same(model, each, own, is_last)), None)
                if found is None and each.name and loaded is not None:
                    raise ConfigError(f"the weights of {name} are not loaded, and are only at the next start")
                if found is None:
                    found = load_model(own, shared=True, verbose=verbose) if each.name else Remote(each, own, is_last)
                self._models[name] = found
        except EdgeAgentError:
            self.close()
            raise

    def driver(
        self, agent: Agent, doors: Attached, root: Path, answered: int, manner: Manner | None = None
    ) -> ModelDriver:
        """Ask the first of an order, and the next where it cannot be reached."""
        drivers: dict[str, ModelDriver] = {}
        try:
            for name in sorted(self._models, key=lambda name: isinstance(self._models[name], Remote)):
                model = self._models[name]
                drivers[name] = (
                    model.driver(agent, doors, root, answered, manner, self._lender(drivers))
                    if isinstance(model, Remote)
                    else model.driver(agent, doors, root, answered, manner)
                )
        except EdgeAgentError:
            for driver in drivers.values():
                driver.close()
            raise
        if len(drivers) == 1 and not self.settings.tiers:
            return next(iter(drivers.values()))
        return OrderedModels(tuple((name, drivers[name]) for name in self._models), self._uses)

    @property
    def parts(self) -> tuple[Model, ...]:
        """The models themselves."""
        return tuple(self._models.values())

    def _lender(self, drivers: dict[str, ModelDriver]) -> Lender | None:
        """The driver of the judge, which is made before those that ask it."""
        return cast(Lender, drivers[self._judge]) if self._judge else None

    def close(self) -> None:
        """Let go of all of them."""
        for model in self._models.values():
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
            f"a model behind an endpoint needs pycurl ({error}): pip install 'edgeagent[remote]'. Where the index has "
            "no wheel (armv7, riscv64): apt install python3-pycurl, in a venv with --system-site-packages. "
            "The images of edgeagent have it"
        ) from error


class Remote:
    """A model behind an endpoint, for all sessions."""

    def __init__(self, named: NamedModel, settings: ModelSettings, is_last: bool = True) -> None:
        self.settings, self.dialect, self.named, self.is_last = settings, PLAIN, named, is_last
        with needs_curl():
            from edgeagent.driver.remote.model import Price, RemoteModel
        price = Price(**{str(name): value for name, value in named.price.items()})
        meaning = embedder(embedder_of(settings)) if settings.meaning and named.calls != "own" else None
        self._loaded = RemoteModel(endpoint_of(named), price, meaning)

    def driver(
        self,
        agent: Agent,
        doors: Attached,
        root: Path,
        answered: int,
        manner: Manner | None = None,
        judge: Lender | None = None,
    ) -> ModelDriver:
        """Answer one session. `judge` weighs what is planned here."""
        asking = Manner() if manner is None else manner
        heat = self.settings.temperature if asking.temperature is None else asking.temperature
        sampling = Sampling(heat, asking.top_p)
        more: Any = {"plans": asking.chooses, "is_last": self.is_last, "judge": judge}
        return self._loaded.driver(agent, doors.stream, sampling, **more)

    def close(self) -> None:
        """End its thread."""
        self._loaded.close()

    def retire(self) -> None:
        """Take no session more, and end with the last."""
        self._loaded.retire()


def _calibrated(driver: LlamaDriver, agent: Agent, doors: Attached, root: Path) -> ModelDriver:
    if unused := use_calibration(root, driver, agent):
        doors.tell_owner(unused)
    return driver


def load_model(settings: ModelSettings, *, shared: bool, verbose: bool = False) -> Model:
    """Load the model that the settings name, or its script; one that is not `shared` is for one session.

    Raises ConfigError and ModelError.
    """
    if writers(settings):
        return Chain(settings, verbose=verbose)
    if settings.name.startswith(SCRIPT_PREFIX):
        return Script(script_of(settings.name), settings)
    return Weights(settings, verbose=verbose) if shared else OneSessionsWeights(settings, verbose=verbose)


def renewed(model: Model, settings: ModelSettings) -> Model:
    """The model as settings say that were read again: weights that are loaded stay. Raises ConfigError where other ones
    would have to be loaded."""
    if isinstance(model, OneSessionsWeights):
        raise ConfigError(
            f"{model.settings.name} alone was loaded, for one session: other models come at the next start"
        )
    parts = parts_of(model)
    if writers(settings):
        return Chain(settings, loaded=parts)
    for each in parts:
        if _is_same(each, NamedModel(name=settings.name), one_of(settings, NamedModel(name=settings.name)), True):
            return each
    raise ConfigError(f"the weights of {settings.name} are not loaded, and are only at the next start")


def parts_of(model: Model) -> tuple[Model, ...]:
    """The models that a model is made of: itself, or those of its order."""
    return model.parts if isinstance(model, Chain) else (model,)


def _is_same(model: Model, named: NamedModel, own: ModelSettings, is_last: bool) -> bool:
    """Whether a loaded model is what would be loaded for this name."""
    if isinstance(model, Remote):
        return (model.named, model.settings, model.is_last) == (named, own, is_last)
    return bool(named.name) and one_of(model.settings, named) == own and model.settings.name == named.name
