"""Open a session as the command line asks for it: agent, settings, model, screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from edgeagent.core.agent import Agent
from edgeagent.core.events import ModelAnswered, ModelFailed
from edgeagent.doors.cli.options import root_named, settings_from, with_limits
from edgeagent.doors.cli.screen import Screen
from edgeagent.driver.model import ModelDriver
from edgeagent.runtime.calibration import use_calibration
from edgeagent.runtime.config import ModelSettings, state_root
from edgeagent.runtime.folder import TRACE_NAME, Limits, find_directory, last_directory, locked
from edgeagent.runtime.operator import operator_policy, recorded_rules, with_rules
from edgeagent.runtime.recording import changes, load_recording, resolved_spec
from edgeagent.runtime.resume import resume_session
from edgeagent.runtime.session import Session, new_session
from edgeagent.runtime.wiring import (
    SCRIPT_PREFIX,
    agent_path,
    dialect_of,
    drivers_of,
    keep_warm,
    llama_model,
    load_agent,
    scripted_model,
    step_of,
    with_dialect,
)
from edgeagent.trace.file import examine_file
from edgeagent.trace.recover import Examined, Torn
from edgeagent.version import __version__


def open_session(agent_spec: str | None, screen: Screen, options: dict[str, Any]) -> Session:
    """Load everything, in the order in which it is cheapest to fail, and start or resume a session."""
    if options.get("resume") or options.get("last"):
        return reopen_session(_named_directory(options), agent_spec, screen, options)
    if agent_spec is None:
        raise click.UsageError("say which AGENT: FILE.py or FILE.py:NAME")
    settings = settings_from(agent_spec, **options)
    limits = (options.get("max_steps"), options.get("max_tokens"), options.get("timeout"))
    policy, rules = operator_policy(options.get("config"), beside=agent_path(agent_spec).parent)
    agent = with_dialect(with_limits(with_rules(load_agent(agent_spec), rules), *limits), dialect_of(settings.model))
    root, verbose = state_root(settings), options.get("verbose", False)
    model = open_model(agent, settings.model, screen, root, verbose=verbose)
    session = new_session(
        agent,
        step_of(agent),
        drivers_of(agent, model, screen.decide),
        root=root,
        agent_spec=agent_spec,
        model=settings.model.name,
        seed=options.get("seed", 0),
        context_tokens=settings.model.context_tokens,
        durability=options.get("durability") or "effects",
        limits=Limits(steps=limits[0], completion_tokens=limits[1], seconds=limits[2]),
        policy=policy,
        watch=screen.watch,
    )
    keep_warm(model, settings.model, session.directory)
    return session


def _named_directory(options: dict[str, Any]) -> Path:
    root = root_named(options.get("state"))
    return find_directory(root, options["resume"]) if options.get("resume") else last_directory(root)


def reopen_session(directory: Path, agent_spec: str | None, screen: Screen, options: dict[str, Any]) -> Session:
    """Resume a session with the agent, limits and model it was started with; say what has changed before it runs."""
    with locked(directory):
        pass  # Someone else may have it; that is found out before a model is loaded.
    for name in ("max_steps", "max_tokens", "timeout", "context_tokens"):
        if options.get(name) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{flag} was fixed when the session began; fork it and start a new one to change it")
    trace = directory / TRACE_NAME
    recording = load_recording(trace, agent_spec)
    about, agent = recording.about, recording.agent
    assert about is not None, "a session directory has its session.json"
    if about.version != __version__:
        screen.activity(f"this session was begun by edgeagent {about.version}, and this is {__version__}")
    for change in changes(about, agent):
        screen.activity(f"the agent has changed since this session began: {change}")
    now = operator_policy(options.get("config"), beside=agent_path(resolved_spec(about, directory)).parent)[1]
    if now != recorded_rules(about.policy):
        screen.activity("the rules in edgeagent.toml have changed; this session stays under those it began with")
    found = examine_file(trace, events=False) if trace.exists() else None
    if found is not None and isinstance(found.verdict, Torn):
        screen.activity(f"the last write did not arrive whole; {found.verdict.size} bytes are put aside")
    given = {**options, "model": options.get("model") or about.model, "context_tokens": about.context_tokens}
    settings = settings_from(resolved_spec(about, directory), **given)
    root, verbose = directory.parent.parent, options.get("verbose", False)
    model = open_model(agent, settings.model, screen, root, verbose=verbose, found=found)
    session = resume_session(
        directory,
        agent,
        step_of(agent),
        drivers_of(agent, model, screen.decide),
        durability=options.get("durability"),
        watch=screen.watch,
    )
    keep_warm(model, settings.model, directory)
    return session


def answers_in(found: Examined | None) -> int:
    """How often the model has answered in a trace: a script goes on behind that."""
    records = found.records if found else ()
    return sum(isinstance(r.event, ModelAnswered | ModelFailed) for r in records)


def open_model(
    agent: Agent, settings: ModelSettings, screen: Screen, root: Path, *, verbose: bool, found: Examined | None = None
) -> ModelDriver:
    """The scripted model, or llama.cpp with the file's weights and the agent's calibration, if it has one."""
    if settings.name.startswith(SCRIPT_PREFIX):
        return scripted_model(settings.name, answered=answers_in(found))
    model = llama_model(agent, settings, on_progress=screen.progress, on_text=screen.stream, verbose=verbose)
    unused = use_calibration(root, model, agent)
    if unused:
        screen.activity(unused)
    return model
