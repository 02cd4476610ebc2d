"""Open a session as the command line asks for it: agent, settings, model, screen."""

from __future__ import annotations

from typing import Any

from edgeagent.cli.options import settings_from, with_limits
from edgeagent.cli.screen import Screen, ask_on_terminal
from edgeagent.core.agent import Agent
from edgeagent.driver.base import Driver
from edgeagent.runtime.config import ModelSettings, state_root
from edgeagent.runtime.folder import Limits
from edgeagent.runtime.session import Session, new_session
from edgeagent.runtime.wiring import (
    SCRIPT_PREFIX,
    drivers_of,
    llama_model,
    load_agent,
    scripted_model,
    step_of,
    with_dialect,
)

DIALECT_START = "plain"
"""The dialect of models that have not been measured."""


def open_session(agent_spec: str, screen: Screen, options: dict[str, Any]) -> Session:
    """Load everything, in the order in which it is cheapest to fail, and start a new session."""
    settings = settings_from(agent_spec, **options)
    limits = (options.get("max_steps"), options.get("max_tokens"), options.get("timeout"))
    agent = with_dialect(with_limits(load_agent(agent_spec), *limits), DIALECT_START)
    model = open_model(agent, settings.model, screen, verbose=options.get("verbose", False))
    return new_session(
        agent,
        step_of(agent),
        drivers_of(agent, model, ask_on_terminal),
        root=state_root(settings),
        agent_spec=agent_spec,
        model=settings.model.name,
        seed=options.get("seed", 0),
        context_tokens=settings.model.context_tokens,
        limits=Limits(steps=limits[0], completion_tokens=limits[1], seconds=limits[2]),
        watch=screen.watch,
    )


def open_model(agent: Agent, settings: ModelSettings, screen: Screen, *, verbose: bool) -> Driver:
    """The scripted model, or llama.cpp with the file's weights."""
    if settings.name.startswith(SCRIPT_PREFIX):
        return scripted_model(settings.name)
    return llama_model(agent, settings, on_progress=screen.progress, on_text=screen.stream, verbose=verbose)
