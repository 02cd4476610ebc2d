"""The operator's settings: `edgeagent.toml`, with the command line on top. Unknown keys are refused."""

from __future__ import annotations

import difflib
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from edgeagent.errors import ConfigError

if TYPE_CHECKING:
    from edgeagent.driver.remote.endpoint import Endpoint

FILE_NAME = "edgeagent.toml"

EngineName = Literal["auto", "llguidance", "gbnf"]


ApiName = Literal["chat", "responses", "messages"]

Sent = Literal["temperature", "seed", "max_tokens"]

PRICE_MAX = 1e9
"""Of a million tokens, in any currency."""


class NamedModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model under a name of the operator's: a file or pulled model by `name`, or one behind an `endpoint`.

    `credential` is `env:NAME`, `file:PATH` or `credential:NAME`, never the key. `price` is that of a million tokens,
    `input` and `output`. `here` says whether what is sent stays on this device: by itself, to a loopback address or
    through a unix `socket`. `omit` are fields that this server refuses, `extra` are further ones. The rest as in
    docs/remote.md.
    """

    # An `Endpoint`'s fields stand here too, held to be the same by a test: every command reads settings, and few need
    # what an endpoint imports.
    name: str = ""
    endpoint: str = ""
    model: str = ""
    api: ApiName = "chat"
    credential: str = ""
    ca: str = ""
    proxy: str = ""
    socket: str = ""
    plain_http: bool = False
    here: bool | None = None
    stream: bool = True
    calls: Literal["own", "schema", "object", "grammar"] = "own"
    limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    omit: tuple[Sent, ...] = ()
    extra: dict[str, Any] = {}
    connect_s: float = 10.0
    first_event_s: float = 120.0
    idle_s: float = 60.0
    price: dict[Literal["input", "output"], Annotated[float, msgspec.Meta(ge=0, le=PRICE_MAX)]] = {}


_NO_MODEL = NamedModel()


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model, and how it runs. `context_tokens` is the window, `threads` None means one a core.

    `dialect` is how the model writes calls; `auto` goes by its chat template. `template` is a chat template in place of
    the model file's own: `chatml`, `gemma`, or a file, as seen from the folder of the settings. `temperature` 0 takes
    the most likely token each time. `warm` keeps the model's memory on the disk between runs, some 10 MB a session.
    With `meaning` requests are also compared by an embedder, where `e5-small` was pulled. `order` are named models,
    the first that can be reached answers; `chain`, those models themselves, is found for it and never written.
    """

    name: str = "smollm2"
    context_tokens: int = 2048
    threads: int | None = None
    engine: EngineName = "auto"
    dialect: str = "auto"
    template: str = ""
    temperature: float = 0.0
    warm: bool = True
    meaning: bool = True
    order: tuple[str, ...] = ()
    chain: tuple[tuple[str, NamedModel], ...] = ()


class StateSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where sessions are kept, and what the disk may hold besides their traces.

    `cache_mb` is the most that all caches may take, half of what is free if it is not said; `reserve_mb` is kept free
    for traces. A text in the place of the section is the folder.
    """

    folder: str = ""
    cache_mb: Annotated[float, msgspec.Meta(ge=0)] | None = None
    reserve_mb: Annotated[float, msgspec.Meta(ge=0)] | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings. `policy` is read by the policy layer; `models` are those with a name of the operator's."""

    model: ModelSettings = ModelSettings()
    state: StateSettings = StateSettings()
    policy: dict[str, Any] = {}
    models: dict[str, NamedModel] = {}


def read_settings(path: Path | None, *, beside: Path | None) -> Settings:
    """Read `path`, or else $EDGEAGENT_CONFIG, or else edgeagent.toml in the folder `beside`; defaults if there is none.

    Raises ConfigError naming file and key.
    """
    file = settings_file(path, beside=beside)
    if file is None:
        return Settings()
    try:
        found = tomllib.loads(file.read_text())
        _check_keys(file, "", found, Settings)
        if isinstance(found.get("model"), str | list):  # A name, or several in their order, in place of the section.
            found["model"] = {"name" if isinstance(found["model"], str) else "order": found["model"]}
        _check_models(file, found.get("models"))
        _check_keys(file, "model.", found.get("model"), ModelSettings)
        _check_keys(file, "state.", found.get("state"), StateSettings)
        if isinstance(found.get("state"), str):
            found["state"] = {"folder": found["state"]}
        return _checked(file, _beside(file, msgspec.convert(found, Settings)))
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}; give another file with --config") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(f"{file}: {error}") from error


def _check_models(file: Path, found: Any) -> None:
    """Refuse named models that are written wrongly. Raises ConfigError naming the key."""
    for name, model in found.items() if isinstance(found, dict) else ():
        if not name.replace("-", "").replace("_", "").isalnum():
            raise ConfigError(f"{file}: models.{name}: a name is letters, digits, - and _")
        _check_keys(file, f"models.{name}.", model, NamedModel)
        try:
            msgspec.convert(model, NamedModel)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{file}: models.{name}: {error}") from error


def _checked(file: Path, settings: Settings) -> Settings:
    """The settings, if its named models can be asked as they are written. Raises ConfigError naming the key."""
    for name in settings.model.order:
        if name not in settings.models:
            known = ", ".join(settings.models) or "none"
            raise ConfigError(f"{file}: model.order names {name}; there are: {known}. Write [models.{name}]")
    for name, model in settings.models.items():
        check_named(model, f"{file}: models.{name}")
    return settings


def check_named(model: NamedModel, where: str) -> None:
    """Refuse a model that cannot be asked. Raises ConfigError naming the key."""
    if bool(model.name) == bool(model.endpoint):
        raise ConfigError(f"{where}: give either a `name`, of a file or a pulled model, or an `endpoint`")
    if model.name:
        others = [k for k, v in msgspec.structs.asdict(model).items() if k != "name" and v != getattr(_NO_MODEL, k)]
        if others:
            raise ConfigError(f"{where}.{others[0]} is for models behind an endpoint, and this one has a `name`")
        return
    if not model.model:
        raise ConfigError(f"{where}.model is missing: which model of the endpoint? `edgeagent check` lists them")
    from edgeagent.driver.remote.endpoint import check_endpoint
    from edgeagent.driver.remote.secret import check_reference

    if model.credential:
        check_reference(model.credential, f"{where}.credential")
    check_endpoint(endpoint_of(model), where)


def endpoint_of(model: NamedModel) -> Endpoint:
    """Where a named model is."""
    from edgeagent.driver.remote.endpoint import Endpoint

    told = {name: value for name, value in msgspec.structs.asdict(model).items() if name in Endpoint.__struct_fields__}
    return Endpoint(url=model.endpoint, **told)


def with_chain(settings: Settings) -> ModelSettings:
    """The model's settings with the models that its name or its order means. Raises ConfigError.

    A name may be several, with commas between, or `URL MODEL CREDENTIAL` as `named_endpoint` writes it.
    """
    model = settings.model
    if "://" in model.name:
        url, name, credential = (*model.name.split(" "), "", "")[:3]
        found = NamedModel(endpoint=url, model=name, credential=credential)
        check_named(found, "--endpoint")
        return msgspec.structs.replace(model, chain=(("endpoint", found),))
    names = model.order or tuple(model.name.split(","))
    missing = [name for name in names if name not in settings.models]
    if missing and len(names) == 1:
        return model
    if missing:
        raise ConfigError(f"which model is {missing[0]}? Write [models.{missing[0]}] into edgeagent.toml")
    chain = tuple((name, settings.models[name]) for name in names)
    return msgspec.structs.replace(model, name=",".join(names), chain=chain)


def own_weights(model: ModelSettings, wants: str) -> ModelSettings:
    """The first of the models whose weights are here, for what needs them. Raises ConfigError if there is none."""
    if not model.chain:
        return model
    for _, each in model.chain:
        if each.name:
            return msgspec.structs.replace(model, name=each.name, order=(), chain=())
    raise ConfigError(f"no model behind an endpoint {wants}: name one whose weights are here with --model")


def named_endpoint(url: str, model: str, credential: str) -> str:
    """An endpoint as one name, by which a session finds it again; of the key it holds only where that is."""
    return " ".join((url, model, credential)).rstrip()


def _beside(file: Path, settings: Settings) -> Settings:
    """The settings with files as they are found from anywhere. Raises ConfigError."""
    from edgeagent.driver.llama.template import BUILT_IN

    folder = file.absolute().parent
    models = {name: _files_beside(folder, model) for name, model in settings.models.items()}
    settings = msgspec.structs.replace(settings, models=models)
    named = settings.model.template
    if not named or named in BUILT_IN:
        return settings
    template = folder / Path(named).expanduser()
    if not template.is_file():
        names = ", ".join(sorted(BUILT_IN))
        raise ConfigError(f"{file}: model.template is {named!r}: there is no file {template}, nor is it one of {names}")
    return msgspec.structs.replace(settings, model=msgspec.structs.replace(settings.model, template=str(template)))


def _files_beside(folder: Path, model: NamedModel) -> NamedModel:
    """The model with its files as they are seen from the folder of the settings."""
    changed = {k: str(folder / Path(v).expanduser()) for k in ("ca", "socket") if (v := getattr(model, k))}
    kind, _, path = model.credential.partition(":")
    if kind == "file":
        changed["credential"] = f"file:{folder / Path(path).expanduser()}"
    return msgspec.structs.replace(model, **changed)


def _check_keys(file: Path, section: str, found: Any, kind: type[msgspec.Struct]) -> None:
    """Refuse a key that there is not, with those that there are. Raises ConfigError."""
    known = [name for name in kind.__struct_fields__ if name != "chain"]  # Found, and never written.
    for key in found if isinstance(found, dict) else ():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {section}{near[0]}?" if near else "."
            raise ConfigError(f"{file}: there is no key {section}{key}{hint} There are: {', '.join(sorted(known))}")


def settings_file(path: Path | None, *, beside: Path | None) -> Path | None:
    """`path`, or else what $EDGEAGENT_CONFIG names, or else edgeagent.toml in the folder `beside`, if it is there."""
    if path is not None or os.environ.get("EDGEAGENT_CONFIG"):
        return path or Path(os.environ["EDGEAGENT_CONFIG"])
    found = beside / FILE_NAME if beside is not None else None
    return found if found is not None and found.exists() else None


def state_root(settings: Settings) -> Path:
    """The folder of all sessions: `state.folder` of the settings, $EDGEAGENT_STATE, or the XDG state folder."""
    named = settings.state.folder or os.environ.get("EDGEAGENT_STATE")
    if named:
        return Path(named).expanduser()
    base = Path(os.environ.get("XDG_STATE_HOME", ""))  # One that is not absolute is to be ignored, XDG says.
    return (base if base.is_absolute() else Path("~/.local/state").expanduser()) / "edgeagent"
