"""The operator's settings: `edgeagent.toml`, with the command line on top. Unknown keys are refused."""

from __future__ import annotations

import difflib
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args

import msgspec

from edgeagent.driver.mcp.settings import ServerSettings, check_server
from edgeagent.errors import ConfigError

if TYPE_CHECKING:
    from edgeagent.driver.remote.endpoint import Endpoint

FILE_NAME = "edgeagent.toml"

EngineName = Literal["auto", "llguidance", "gbnf"]


ApiName = Literal["chat", "responses", "messages"]

Sent = Literal["temperature", "seed", "max_tokens"]

Use = Literal["answer", "choose", "judge", "embed"]
"""What a model is for: words; choosing calls; weighing what a request means, where calls are planned here for a model
behind an endpoint; and comparing texts by their meaning."""

MB_MAX = 1e9
"""A petabyte."""

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
    schemas: Literal["full", "strict", "plain", "none"] = "full"
    limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    omit: tuple[Sent, ...] = ()
    extra: dict[str, Any] = {}
    connect_s: float = 10.0
    first_event_s: float = 120.0
    idle_s: float = 60.0
    price: dict[Literal["input", "output"], Annotated[float, msgspec.Meta(ge=0, le=PRICE_MAX)]] = {}


Elsewhere = TypeVar("Elsewhere", NamedModel, ServerSettings)
"""What is asked over a network, with a key."""

_NO_MODEL = NamedModel()


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model, and how it runs. `context_tokens` is the window, `threads` None means one a core.

    `dialect` is how the model writes calls; `auto` goes by its chat template. `template` is a chat template in place of
    the model file's own: `chatml`, `gemma`, or a file, as seen from the folder of the settings. `temperature` 0 takes
    the most likely token each time. `warm` keeps the model's memory on the disk between runs, some 10 MB a session.
    With `meaning` requests are also compared by an embedder, where `e5-small` was pulled. `order` are named models,
    the first that can be reached answers; `for` are others for one use. `chain` and `tiers`, those models themselves,
    are found for them and never written.
    """

    name: str = "smollm2"
    context_tokens: Annotated[int, msgspec.Meta(ge=256, le=1 << 24)] = 2048
    threads: Annotated[int, msgspec.Meta(ge=1, le=1024)] | None = None
    engine: EngineName = "auto"
    dialect: str = "auto"
    template: str = ""
    temperature: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.0
    warm: bool = True
    meaning: bool = True
    order: tuple[str, ...] = ()
    uses: dict[Use, str | tuple[str, ...]] = msgspec.field(default_factory=dict, name="for")
    chain: tuple[tuple[str, NamedModel], ...] = ()
    tiers: tuple[tuple[Use, tuple[tuple[str, NamedModel], ...]], ...] = ()


class StateSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where sessions are kept, and what the disk may hold besides their traces.

    `cache_mb` is the most that all caches may take, half of what is free if it is not said; `reserve_mb` is kept free
    for traces. A text in the place of the section is the folder.
    """

    folder: str = ""
    cache_mb: Annotated[float, msgspec.Meta(ge=0, le=MB_MAX)] | None = None
    reserve_mb: Annotated[float, msgspec.Meta(ge=0, le=MB_MAX)] | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings. `policy` is read by the policy layer; `models` and `mcp` have names of the operator's."""

    model: ModelSettings = ModelSettings()
    state: StateSettings = StateSettings()
    policy: dict[str, Any] = {}
    models: dict[str, NamedModel] = {}
    mcp: dict[str, ServerSettings] = {}


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
        _check_named(file, "models", found.get("models"), NamedModel)
        _check_named(file, "mcp", found.get("mcp"), ServerSettings)
        _check_keys(file, "model.", found.get("model"), ModelSettings)
        _check_uses(file, found.get("model"))
        _check_keys(file, "state.", found.get("state"), StateSettings)
        if isinstance(found.get("state"), str):
            found["state"] = {"folder": found["state"]}
        return _checked(file, _beside(file, msgspec.convert(found, Settings)))
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}; give another file with --config") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(f"{file}: {error}") from error


def _check_named(file: Path, section: str, found: Any, kind: type[msgspec.Struct]) -> None:
    """Refuse named models, or servers, that are written wrongly. Raises ConfigError naming the key."""
    for name, each in found.items() if isinstance(found, dict) else ():
        if not name.replace("-", "").replace("_", "").isalnum():
            raise ConfigError(f"{file}: {section}.{name}: a name is letters, digits, - and _")
        _check_keys(file, f"{section}.{name}.", each, kind)
        try:
            msgspec.convert(each, kind)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{file}: {section}.{name}: {error}") from error


def _check_uses(file: Path, model: Any) -> None:
    """Refuse a use that there is not. Raises ConfigError naming the key."""
    uses = model.get("for", {}) if isinstance(model, dict) else {}
    if not isinstance(uses, dict):
        raise ConfigError(f"{file}: model.for is a section: [model.for], and in it {', '.join(get_args(Use))}")
    for use in uses:
        if use not in get_args(Use):
            near = difflib.get_close_matches(use, get_args(Use), n=1)
            hint = f"; did you mean model.for.{near[0]}?" if near else "."
            raise ConfigError(f"{file}: there is no use model.for.{use}{hint} There are: {', '.join(get_args(Use))}")


def _checked(file: Path, settings: Settings) -> Settings:
    """The settings, if its named models can be asked as they are written. Raises ConfigError naming the key."""
    known = ", ".join(settings.models) or "none"
    named = {"order": settings.model.order} | {f"for.{use}": each for use, each in names_for(settings.model).items()}
    for key, names in named.items():
        for name in names:
            if name not in settings.models and not (key == "for.embed" and is_embedder(name)):
                raise ConfigError(f"{file}: model.{key} names {name}; there are: {known}. Write [models.{name}]")
    for use in settings.model.uses:
        _check_use(file, use, settings)
    for name, model in settings.models.items():
        check_named(model, f"{file}: models.{name}")
    for name, server in settings.mcp.items():
        check_server(name, server, f"{file}: mcp.{name}")
    return settings


def names_for(model: ModelSettings) -> dict[Use, tuple[str, ...]]:
    """The names of the models for each use."""
    return {use: (each,) if isinstance(each, str) else each for use, each in model.uses.items()}


def is_embedder(name: str) -> bool:
    """Whether a model of this name can be pulled that compares texts."""
    from edgeagent.models.catalogue import KNOWN

    return name in KNOWN and KNOWN[name].kind == "embedder"


def _check_use(file: Path, use: Use, settings: Settings) -> None:
    """Refuse models that cannot be used so. Raises ConfigError naming the key."""
    key, names, models = f"{file}: model.for.{use}", names_for(settings.model)[use], settings.models
    if not names:
        raise ConfigError(f"{key} names no model; there are: {', '.join(models) or 'none'}")
    if use in ("choose", "answer"):
        return
    first = models.get(names[0], NamedModel(name=names[0]))
    if len(names) > 1:
        raise ConfigError(f"{key} is one model, and here are {len(names)}")
    if not first.name or (use == "judge" and first.name.startswith("script:")):
        what = "a script" if first.name else "behind an endpoint"
        why = "weigh texts without writing them" if use == "judge" else "compare texts before any rule has judged them"
        raise ConfigError(f"{key} names {names[0]}, which is {what}: only weights that are here {why}")
    choosing = names_for(settings.model).get("choose", settings.model.order)
    if use == "judge" and not any(models[name].endpoint and models[name].calls != "own" for name in choosing):
        raise ConfigError(
            f"{key}: no model would ask a judge. It weighs what is planned here for a model behind an endpoint, whose "
            '`calls` are "schema", "object" or "grammar"; weights that are here weigh for themselves'
        )


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


def _beside(file: Path, settings: Settings) -> Settings:
    """The settings with files as they are found from anywhere. Raises ConfigError."""
    from edgeagent.driver.llama.template import BUILT_IN

    folder = file.absolute().parent
    models = {name: _files_beside(folder, model) for name, model in settings.models.items()}
    servers = {name: _folders_beside(folder, server) for name, server in settings.mcp.items()}
    settings = msgspec.structs.replace(settings, models=models, mcp=servers)
    named = settings.model.template
    if not named or named in BUILT_IN:
        return settings
    template = folder / Path(named).expanduser()
    if not template.is_file():
        names = ", ".join(sorted(BUILT_IN))
        raise ConfigError(f"{file}: model.template is {named!r}: there is no file {template}, nor is it one of {names}")
    return msgspec.structs.replace(settings, model=msgspec.structs.replace(settings.model, template=str(template)))


def _files_beside(folder: Path, asked: Elsewhere) -> Elsewhere:
    """What is asked elsewhere, with its files as they are seen from the folder of the settings."""
    changed = {k: str(folder / Path(v).expanduser()) for k in ("ca", "socket") if (v := getattr(asked, k))}
    kind, _, path = asked.credential.partition(":")
    if kind == "file":
        changed["credential"] = f"file:{folder / Path(path).expanduser()}"
    return msgspec.structs.replace(asked, **changed)


def _folders_beside(folder: Path, server: ServerSettings) -> ServerSettings:
    """The server with its folders as they are seen from that of the settings, in which it runs."""
    roots = tuple(str(folder / Path(root).expanduser()) for root in server.roots)
    server = _files_beside(folder, server)
    return msgspec.structs.replace(server, folder=str(folder / Path(server.folder).expanduser()), roots=roots)


def _check_keys(file: Path, section: str, found: Any, kind: type[msgspec.Struct]) -> None:
    """Refuse a key that there is not, with those that there are. Raises ConfigError."""
    known = [name for name in kind.__struct_encode_fields__ if name not in ("chain", "tiers")]  # Never written.
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
