"""The options that `run`, `chat` and `check` share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as with_fields
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from edgeagent.core.agent import Agent
from edgeagent.runtime.config import Settings, read_settings, state_root
from edgeagent.runtime.recording import find_trace
from edgeagent.runtime.wiring import agent_path


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --model, --engine, --dialect, --context-tokens, --threads, --config and --verbose."""
    for option in reversed(
        (
            click.option("--model", metavar="NAME|FILE", help="A pulled model's name, or a GGUF file."),
            click.option(
                "--engine",
                type=click.Choice(["auto", "llguidance", "gbnf"]),
                help="What holds the model to the grammar.",
            ),
            click.option(
                "--dialect", metavar="NAME", help="How the model writes calls. Default: by its chat template."
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
            click.option("--seed", type=int, default=0, show_default=True, help="Chance is an input."),
            click.option("--max-steps", type=click.IntRange(min=1), help="Model calls a turn may take."),
            click.option("--max-tokens", type=click.IntRange(min=1), help="Tokens a turn may write."),
            click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Wall time of a turn."),
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
    return state_root(Settings(state=str(state or "")))


def find_trace_named(named: str | None, state: Path | None) -> Path:
    """The trace that the command line means: a file, a directory, a session's id, or the last session's."""
    return find_trace(named, root_named(state))


def settings_from(agent_spec: str, config: Path | None, **given: Any) -> Settings:
    """The operator's settings with the command line's on top."""
    settings = read_settings(config, beside=agent_path(agent_spec).parent)
    same = ("engine", "dialect", "context_tokens", "threads")
    changed = {k: given[k] for k in same if given.get(k) is not None}
    changed |= {"name": given["model"]} if given.get("model") is not None else {}
    return replace(settings, model=replace(settings.model, **changed), state=str(given.get("state") or settings.state))


def with_limits(agent: Agent, max_steps: int | None, max_tokens: int | None, timeout: float | None) -> Agent:
    """The agent with tighter or wider limits for this run."""
    given = {"steps": max_steps, "completion_tokens": max_tokens, "seconds": timeout}
    return with_fields(agent, budget=replace(agent.budget, **{k: v for k, v in given.items() if v is not None}))
