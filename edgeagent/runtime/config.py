"""The operator's settings: `edgeagent.toml`, with the command line on top. Unknown keys are refused."""

from __future__ import annotations

import difflib
import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from edgeagent.errors import ConfigError

FILE_NAME = "edgeagent.toml"

EngineName = Literal["auto", "llguidance", "gbnf"]


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which model, and how it runs. `context_tokens` is the window, `threads` None means one a core.

    `dialect` is how the model writes calls; `auto` goes by its chat template. `template` is a chat template in place of
    the model file's own: `chatml`, `gemma`, or a file, as seen from the folder of the settings. `temperature` 0 takes
    the most likely token each time. `warm` keeps the model's memory on the disk between runs, some 10 MB a session.
    With `meaning` requests are also compared by an embedder, where `e5-small` was pulled.
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


class StateSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where sessions are kept, and what the disk may hold besides their traces.

    `cache_mb` is the most that all caches may take, half of what is free if it is not said; `reserve_mb` is kept free
    for traces. A text in the place of the section is the folder.
    """

    folder: str = ""
    cache_mb: Annotated[float, msgspec.Meta(ge=0)] | None = None
    reserve_mb: Annotated[float, msgspec.Meta(ge=0)] | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings. `policy` is read by the policy layer."""

    model: ModelSettings = ModelSettings()
    state: StateSettings = StateSettings()
    policy: dict[str, Any] = {}


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
        _check_keys(file, "model.", found.get("model"), ModelSettings)
        _check_keys(file, "state.", found.get("state"), StateSettings)
        if isinstance(found.get("state"), str):
            found["state"] = {"folder": found["state"]}
        return _beside(file, msgspec.convert(found, Settings))
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}; give another file with --config") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(f"{file}: {error}") from error


def _beside(file: Path, settings: Settings) -> Settings:
    """The settings with a template's file as it is found from anywhere. Raises ConfigError."""
    from edgeagent.driver.llama.template import BUILT_IN

    named = settings.model.template
    if not named or named in BUILT_IN:
        return settings
    template = file.absolute().parent / Path(named).expanduser()
    if not template.is_file():
        names = ", ".join(sorted(BUILT_IN))
        raise ConfigError(f"{file}: model.template is {named!r}: there is no file {template}, nor is it one of {names}")
    return msgspec.structs.replace(settings, model=msgspec.structs.replace(settings.model, template=str(template)))


def _check_keys(file: Path, section: str, found: Any, kind: type[msgspec.Struct]) -> None:
    """Refuse a key that there is not, with those that there are. Raises ConfigError."""
    known = kind.__struct_fields__
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
