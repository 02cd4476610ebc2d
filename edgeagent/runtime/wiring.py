"""Put the parts together, by value: agent file → agent → guard → drivers → session."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast, get_args

import orjson

from edgeagent.codec.dialect import dialect_called, dialect_for
from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskModel, AskUser, CallTool, SetTimer
from edgeagent.core.replay import Step
from edgeagent.driver.base import Driver
from edgeagent.driver.clock import ClockDriver
from edgeagent.driver.model import ModelDriver
from edgeagent.driver.person import PersonDriver
from edgeagent.driver.tool import ToolDriver
from edgeagent.errors import ConfigError, EdgeAgentError, ModelError, TraceError
from edgeagent.policy.all_guards import guard_for
from edgeagent.policy.guard import Guard, guarded_step
from edgeagent.policy.nested import FamilyStep
from edgeagent.runtime.config import EngineName, ModelSettings
from edgeagent.runtime.keys import KV_NAME, local_key
from edgeagent.runtime.tiers import embedder_of, one_of, writers
from edgeagent.trace.disk import DISK, Disk

if TYPE_CHECKING:
    from edgeagent.driver.llama.loaded import Options
    from edgeagent.driver.llama.model import LlamaDriver, LlamaModel
    from edgeagent.driver.llama.template import GivenTemplate
    from edgeagent.driver.meaning.embedder import Embedder

SCRIPT_PREFIX = "script:"
"""A model name that begins so is a JSON file with a list of answers, for dry runs without weights."""

VECTORS_FOLDER = ".vectors"
"""In the models' folder: what an embedder made of the texts of tools."""

AUTO, PLAIN = "auto", "plain"
"""The setting that leaves the dialect to the model's template, and the dialect of scripts."""

TEMPLATE_BYTES_MAX = 1 << 20
"""As long as a text in a model file may be; real templates have 20 kB at most."""

PACKAGES = {
    "RPi": "RPi.GPIO",
    "serial": "pyserial",
    "usb": "pyusb",
    "can": "python-can",
    "board": "adafruit-blinka",
    "busio": "adafruit-blinka",
    "digitalio": "adafruit-blinka",
    "paho": "paho-mqtt",
    "zmq": "pyzmq",
    "yaml": "PyYAML",
    "PIL": "Pillow",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
}
"""Which package brings a module that is not called like it: those that agents on boards import."""

OnText = Callable[[str], None]
OnProgress = Callable[[int, int], None]


def load_agent(spec: str) -> Agent:
    """Load `FILE.py` or `FILE.py:NAME`; without a name the file must hold exactly one Agent.

    Raises ConfigError naming the file, and ShapeError or GrammarError as the declarations deserve.
    """
    path, name = _split_spec(spec)
    module = _run_file(path)
    agents = {n: v for n, v in vars(module).items() if isinstance(v, Agent)}
    if name:
        if name not in agents:
            raise ConfigError(f"{path} has no Agent called {name}; it has: {', '.join(agents) or 'none'}")
        return agents[name]
    different = list({id(a): a for a in agents.values()}.values())
    if len(different) != 1:
        found = ", ".join(agents) or "none"
        raise ConfigError(f"{path} must hold one Agent, or say which as {path}:NAME; it holds: {found}")
    return different[0]


def agent_path(spec: str) -> Path:
    """The file of an agent spec."""
    return _split_spec(spec)[0]


def guard_of(agent: Agent) -> Guard:
    """The guard that enforces the agent's rules. Raises ConfigError for a rule that cannot hold for this agent."""
    return guard_for(agent)


def step_of(agent: Agent) -> Step:
    """The guarded step of this agent: what the loop runs and what replay repeats."""
    if len(agent.by_path) > 1:
        return FamilyStep(agent, guard_of)
    return partial(guarded_step, guard_of(agent))


def with_dialect(agent: Agent, dialect: str) -> Agent:
    """The same agent, reading what the model writes in that dialect."""
    return dataclasses.replace(agent, dialect=dialect_called(dialect))


def dialect_of(settings: ModelSettings) -> str:
    """The dialect that the settings name, or the one that the model's chat template shows.

    Raises ConfigError for a name that there is not, ModelError when the model is missing or no good.
    """
    if settings.dialect != AUTO:
        return dialect_called(settings.dialect).name
    if writers(settings):
        return _dialect_of_chain(settings)
    if settings.name.startswith(SCRIPT_PREFIX):
        return PLAIN
    from edgeagent.models.gguf import check_gguf
    from edgeagent.models.store import find

    given = given_template(settings)
    return dialect_for(given.text if given else check_gguf(find(settings.name)).chat_template or "")


def _dialect_of_chain(settings: ModelSettings) -> str:
    """The dialect of the weights among several models, in which what comes from an endpoint is written too."""
    named = writers(settings)
    found = {name: dialect_of(one_of(settings, each)) for name, each in named.items() if each.name}
    if len(set(found.values())) > 1:
        told = ", ".join(f"{name} {dialect}" for name, dialect in found.items())
        raise ConfigError(f"model.order: one session has one dialect, and these have several: {told}")
    dialect = next(iter(found.values()), PLAIN)
    if dialect_called(dialect).frame.string_mark and len(found) < len(named):
        raise ConfigError(
            f"model.order: what an endpoint calls cannot be written as {dialect}; use another local model"
        )
    return dialect


def given_template(settings: ModelSettings) -> GivenTemplate | None:
    """The chat template that the settings put in place of the model file's own. Raises ConfigError."""
    from edgeagent.driver.llama.template import BUILT_IN, GivenTemplate

    named = settings.template
    if not named:
        return None
    source = f"model.template ({named})"
    if named in BUILT_IN:
        return GivenTemplate(BUILT_IN[named], source)
    file = Path(named).expanduser()
    try:
        with file.open("rb") as opened:
            content = opened.read(TEMPLATE_BYTES_MAX + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        names = ", ".join(sorted(BUILT_IN))
        raise ConfigError(f"{source}: {why}; name a file with a chat template in Jinja, or one of {names}") from error
    if not text.strip() or len(content) > TEMPLATE_BYTES_MAX:
        what = "has no text" if not text.strip() else f"has more than {TEMPLATE_BYTES_MAX} bytes"
        raise ConfigError(f"{source}: the file {what}; name a file with a chat template in Jinja")
    return GivenTemplate(text, source)


def drivers_of(
    agent: Agent, model: Driver, person: PersonDriver | None = None, tools: ToolDriver | None = None
) -> dict[type, Driver]:
    """Which driver answers which effect."""
    return {
        AskModel: model,
        CallTool: tools or ToolDriver(agent.family),
        AskUser: person or PersonDriver(),
        SetTimer: ClockDriver(),
    }


def script_of(name: str) -> list[str]:
    """The answers behind a `script:FILE` name. Raises ConfigError."""
    file = Path(name.removeprefix(SCRIPT_PREFIX))
    try:
        script = orjson.loads(file.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise ConfigError(
            f"{file}: {error}; a script is a JSON list of strings, the model's answers in order"
        ) from error
    if not isinstance(script, list) or not all(isinstance(each, str) for each in script):
        raise ConfigError(f"{file}: a script is a JSON list of strings, the model's answers in order")
    return script


def llama_model(
    agent: Agent,
    settings: ModelSettings,
    *,
    on_text: OnText | None = None,
    on_progress: OnProgress | None = None,
    verbose: bool = False,
) -> LlamaDriver:
    """Load the model for one session of this agent, which closes it. Raises ModelError or GrammarError."""
    path, options = _llama_options(settings, verbose)
    from edgeagent.driver.llama.model import LlamaDriver  # Only here: it brings numpy and llama.cpp.

    temperature = settings.temperature
    return LlamaDriver.load(path, agent, temperature=temperature, on_text=on_text, on_progress=on_progress, **options)


def shared_llama_model(settings: ModelSettings, *, verbose: bool = False) -> LlamaModel:
    """Load the model for many sessions. Raises ModelError."""
    path, options = _llama_options(settings, verbose)
    from edgeagent.driver.llama.model import LlamaModel

    if dialect_called(dialect_of(settings)).decides:
        options["sequences"] = 1  # Those beside the first are for judging texts, which no session will want.
    return LlamaModel.load(path, **options)


def _llama_options(settings: ModelSettings, verbose: bool) -> tuple[Path, Options]:
    """The model's file, and how it is loaded. Raises ModelError where that cannot be."""
    from edgeagent.models.disk import store_root
    from edgeagent.models.store import find, stored_model

    path = find(settings.name)  # A missing model is said before a second is spent on loading llama.cpp.
    stored = stored_model(path.stem) if path.parent == store_root() else None
    from edgeagent.models.cpu import check_cpu

    check_cpu()  # A CPU that lacks an instruction is said in a sentence; the next import would die of it.
    return path, {
        "n_ctx": settings.context_tokens,
        "threads": settings.threads,
        "engine": engine_named(settings.engine),
        "verbose": verbose,
        "template": given_template(settings),
        "digest": stored.sha256 if stored else None,
        "meaning": embedder(embedder_of(settings)) if settings.meaning else None,
    }


def embedder(named: str = "") -> Embedder | None:
    """What compares texts by their meaning: the one that is named, or else `e5-small` where it was pulled.

    Raises ModelError if its file is damaged, or if one that is named is not here.
    """
    from edgeagent.models.catalogue import EMBEDDER
    from edgeagent.models.disk import store_root
    from edgeagent.models.store import stored_model

    stored = stored_model(named or EMBEDDER)
    if stored is None:
        if named:
            raise ModelError(f"model.for.embed: {named} is not here: edgeagent model pull {named}")
        return None
    from edgeagent.driver.meaning.embedder import Embedder

    return Embedder(stored.path, digest=stored.sha256, folder=store_root() / VECTORS_FOLDER)


def keep_warm(model: ModelDriver, settings: ModelSettings, directory: Path, disk: Disk = DISK) -> None:
    """Give the model back the memory that this session, or this agent, has left; it leaves it again when it closes."""
    if model.warm is None or not settings.warm:
        return
    root = directory.parent.parent
    with contextlib.suppress(TraceError):  # Without a key nothing is cached, and everything still works.
        model.warm.keep_warm(directory / KV_NAME, root / KV_NAME, local_key(root), disk)


def engine_named(engine: EngineName) -> EngineName:
    """The engine that is asked for; where the settings leave it open, $EDGEAGENT_ENGINE may say."""
    named = os.environ.get("EDGEAGENT_ENGINE", "auto")
    if engine != "auto" or named == "auto":
        return engine
    if named not in get_args(EngineName):
        raise ConfigError(f"EDGEAGENT_ENGINE is {named!r}; it must be one of {', '.join(get_args(EngineName))}")
    return cast(EngineName, named)


def _split_spec(spec: str) -> tuple[Path, str]:
    file, colon, name = spec.rpartition(":")
    if colon and file.endswith(".py"):
        return Path(file), name
    return Path(spec), ""


def _run_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigError(f"{path}: no such agent file")
    spec = importlib.util.spec_from_file_location(f"edgeagent_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path}: an agent file is a Python file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Dataclasses and string annotations look their module up by name.
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # So that an agent file can import its neighbours, as a script can.
    try:
        spec.loader.exec_module(module)
    except EdgeAgentError:
        raise
    except SystemExit as error:
        raise ConfigError(
            f"{path}, line {_line_in(path, error)}: it ends the program (sys.exit): put that below "
            '`if __name__ == "__main__":`'
        ) from error
    # The file is the user's own code and may raise anything; it is their setup that is wrong.
    except Exception as error:
        what = f"{type(error).__name__}: {error}{_remedy(error)}"
        raise ConfigError(f"{path}, line {_line_in(path, error)}: {what}") from error
    return module


def _remedy(error: Exception) -> str:
    """The way out of a failed import."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return ""
    module = error.name.partition(".")[0]
    package = PACKAGES.get(module, module)
    return f"; install the package that brings it (pip install {package}), or leave out what needs it on this machine"


def _line_in(path: Path, error: BaseException) -> Any:
    if isinstance(error, SyntaxError):
        return error.lineno
    line, frame = "?", error.__traceback__
    while frame is not None:
        if Path(frame.tb_frame.f_code.co_filename).resolve() == path.resolve():
            line = str(frame.tb_lineno)
        frame = frame.tb_next
    return line
