"""Rebuild a session.json that is missing or damaged, from the trace's first record and the agent's own file.

The record holds the agent's digest, seed, dialect, window and version; the agent's file and edgeagent.toml hold tools
and rules, and the digest tells whether they are still the same. What stood nowhere else is chosen anew, and said.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from edgeagent.core.agent import Agent
from edgeagent.core.state import State
from edgeagent.errors import ConfigError, TraceError
from edgeagent.runtime.folder import ABOUT_NAME, TRACE_NAME, About, Beginning, locked, root_of, write_about
from edgeagent.runtime.keys import HEAD_KEY_NAME, key_there
from edgeagent.runtime.recording import parts_of, start_of, started_of
from edgeagent.runtime.vouched import seal_id
from edgeagent.trace.disk import DISK, Disk
from edgeagent.trace.file import examine_file


def is_lost(directory: Path) -> bool:
    """Whether session.json is missing or holds no JSON; one of another shape is another version's, and is kept."""
    try:
        msgspec.json.decode((directory / ABOUT_NAME).read_bytes())
    except (FileNotFoundError, msgspec.DecodeError):
        return (directory / TRACE_NAME).exists()
    except OSError:
        return False
    return False


def rebuild_about(directory: Path, agent: Agent, beginning: Beginning, dialect: str, disk: Disk = DISK) -> list[str]:
    """Write session.json anew; return what is not known any more, in words. Raises ConfigError and TraceError.

    `beginning` is as the session would begin now, `dialect` that of its model, if no record says.
    """
    trace = directory / TRACE_NAME
    started, state = started_of(trace), start_of(examine_file(trace))
    if started is None and state == State():
        raise ConfigError(f"{directory} holds no session: nothing was recorded. `edgeagent sessions prune` removes it")
    digest = started.agent_digest if started else state.agent_digest
    session = (started.session if started else state.session) or directory.name
    secret = key_there(root_of(directory), HEAD_KEY_NAME)
    about = About(
        id=directory.name,
        agent=agent.name,
        agent_spec=beginning.agent_spec,
        agent_digest=digest,
        model=beginning.model,
        dialect=started.dialect if started else dialect,
        created_ms=started.at_ms if started else state.now_ms,
        seed=started.seed if started else state.seed,
        context_tokens=started.context_tokens if started else state.context_tokens,
        durability=beginning.durability,
        parts=parts_of(agent) if digest == agent.digest else {},
        forked_from=session if session != directory.name else "",
        version=started.version if started else "",
        policy=beginning.policy,
        sealed_by=seal_id(secret) if secret else "",  # Whoever took session.json may have taken more.
    )
    with locked(directory):
        _put_aside(directory / ABOUT_NAME)
        write_about(directory, about, disk)
    return _said(about, agent)


def _said(about: About, agent: Agent) -> list[str]:
    said = [f"{ABOUT_NAME} was lost and is rebuilt from the trace's first record and the agent"]
    if about.agent_digest != agent.digest:
        said.append("agent, rules or limits differ from those it began with, and which of them is not known any more")
    said.append(f"which model and durability it had is not recorded: {about.model}, {about.durability}")
    if about.forked_from:
        said.append(f"its records begin as those of session {about.forked_from}: it is taken for a fork")
    return said


def _put_aside(file: Path) -> None:
    """Keep what a damaged file still holds; one of zeros, or an empty one, holds nothing."""
    try:
        if file.exists() and file.read_bytes().strip(b"\0"):
            file.replace(file.with_name(f"{file.name}.damaged"))
    except OSError as error:
        raise TraceError(f"cannot put {file} aside: {error.strerror or error}") from None
