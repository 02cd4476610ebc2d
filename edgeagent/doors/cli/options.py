"""The options that `run`, `chat` and `check` share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from edgeagent.runtime.config import Settings
    from edgeagent.runtime.open import OpenRequest

SEED = click.IntRange(0, 2**63 - 1)
"""What a record holds."""


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --model, --engine, --dialect, --template, --context-tokens, --threads, --config and --verbose."""
    for option in reversed(
        (
            click.option(
                "--model", metavar="NAME|FILE", help="A pulled model's name, a GGUF file, or one by its name."
            ),
            click.option("--endpoint", metavar="URL", help="Ask --model of this server: https://host/v1."),
            click.option("--credential", metavar="REF", help="Where its key is: env:NAME, file:PATH, credential:NAME."),
            click.option(
                "--engine",
                type=click.Choice(["auto", "llguidance", "gbnf"]),
                help="What holds the model to the grammar.",
            ),
            click.option(
                "--dialect", metavar="NAME", help="How the model writes calls. Default: by its chat template."
            ),
            click.option(
                "--template", metavar="NAME|FILE", help="A chat template for the model: chatml, gemma, or a file."
            ),
            click.option("--context-tokens", type=click.IntRange(min=256), help="Size of the model's window."),
            click.option("--threads", type=click.IntRange(min=1), help="Default: one a core."),
            click.option("--config", type=click.Path(path_type=Path), help="Default: edgeagent.toml beside AGENT."),
            click.option("--verbose", is_flag=True, help="Show llama.cpp's own log."),
        )
    ):
        command = option(command)
    return command


def session_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --seed, the limits, --state, --durability, --resume and --continue."""
    for option in reversed(
        (
            click.option(
                "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Chance is an input."
            ),
            click.option("--max-steps", type=click.IntRange(min=1), help="Model calls a turn may take."),
            click.option("--max-tokens", type=click.IntRange(min=1), help="Tokens a turn may write."),
            click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Wall time of a turn."),
            click.option("--max-cost", type=click.FloatRange(min=0), metavar="SUM", help="What a turn may cost."),
            click.option("--state", type=click.Path(path_type=Path), help="Where sessions are kept."),
            click.option(
                "--durability",
                type=click.Choice(["strict", "effects", "relaxed"]),
                help="What a power cut may lose; in every mode nothing that led to an effect. Default: effects.",
            ),
            click.option("--resume", metavar="ID", help="Carry on with this session."),
            click.option("--continue", "last", is_flag=True, help="Carry on with the last session."),
        )
    ):
        command = option(command)
    return command


state_option = click.option("--state", type=click.Path(path_type=Path), help="Where sessions are kept.")


def root_named(state: Path | None) -> Path:
    """The state folder that --state, the environment or the default names."""
    from edgeagent.runtime.config import Settings, StateSettings, state_root

    return state_root(Settings(state=StateSettings(folder=str(state or ""))))


def find_trace_named(named: str | None, state: Path | None) -> Path:
    """The trace that the command line means: a file, a directory, a session's id, or the last session's."""
    from edgeagent.runtime.recording import find_trace

    return find_trace(named, root_named(state))


def settings_from(agent_spec: str, **options: Any) -> Settings:
    """The operator's settings with the command line's on top."""
    from edgeagent.runtime.open import settings_of

    return settings_of(request_from(agent_spec, options))


def request_from(agent_spec: str | None, options: dict[str, Any]) -> OpenRequest:
    """What the command line asks to be opened. Raises a usage error for what a resumed session has fixed."""
    from edgeagent.runtime.open import FIXED, OpenRequest

    resumed = options.get("resume") or options.get("last")
    for name in FIXED if resumed else ():
        if options.get(name) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{flag} was fixed when the session began; fork it and start a new one to change it")
    return OpenRequest(agent=agent_spec, **{k: v for k, v in options.items() if k in OpenRequest.__struct_fields__})
