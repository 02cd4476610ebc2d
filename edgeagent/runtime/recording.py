"""Which agent made a trace, and how is it folded again? Finds traces, loads their agents, names what changed since."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from edgeagent.core.agent import Agent
from edgeagent.core.budget import budget_described
from edgeagent.core.effects import Effect
from edgeagent.core.events import SessionStarted
from edgeagent.core.state import State
from edgeagent.core.values import canonical_json
from edgeagent.errors import ConfigError, TraceError
from edgeagent.runtime.folder import ABOUT_NAME, TRACE_NAME, About, Limits, find_directory, last_directory, read_about
from edgeagent.runtime.operator import recorded_rules, with_rules
from edgeagent.runtime.servers import agent_with, read_records
from edgeagent.runtime.vouched import examine_session
from edgeagent.runtime.wiring import agent_path, load_agent, step_of, with_dialect
from edgeagent.trace.check import GuardStep, fold
from edgeagent.trace.file import damaged, examine_file
from edgeagent.trace.record import Record
from edgeagent.trace.recover import Damaged, Examined
from edgeagent.trace.rotate import archives_of
from edgeagent.trace.snapshot import decode_state


@dataclass(frozen=True)
class Recording:
    """A trace with the agent that made it. `about` is None for a trace that stands alone."""

    trace: Path
    about: About | None
    agent: Agent

    @property
    def step(self) -> GuardStep:
        """The guarded step of the agent."""
        return partial(step_of(self.agent), self.agent)


def find_trace(named: str | None, root: Path) -> Path:
    """Return the trace that a file, a directory, a session's id or nothing (the last session) means."""
    if named is None:
        return last_directory(root) / TRACE_NAME
    path = Path(named)
    if len(path.name.encode(errors="replace")) > 255:
        raise ConfigError(f"{named[:80]!r}... is no trace: give a trace.cbor, a session directory or a session's id")
    if path.is_file():
        return path
    if (path / TRACE_NAME).is_file():
        return path / TRACE_NAME
    if path.suffix or path.is_dir():
        raise ConfigError(f"{path} is no trace: give a trace.cbor, a session directory or a session's id")
    return find_directory(root, named) / TRACE_NAME


def about_of(trace: Path) -> About | None:
    """What session.json beside the trace says, or None if there is none."""
    try:
        return read_about(trace.parent)
    except ConfigError:
        return None


def started_of(trace: Path) -> SessionStarted | None:
    """The first event of a session, in its trace or the oldest archive; None if it is not kept any more."""
    for path in (*archives_of(trace), trace):
        records = examine_file(path).records
        if records and isinstance(records[0].event, SessionStarted):
            return records[0].event
    return None


def agent_name(directory: Path) -> str:
    """The name of a session's agent, by session.json, or else by its first record; empty if neither says."""
    about = about_of(directory / TRACE_NAME)
    if about is not None:
        return about.agent
    with contextlib.suppress(TraceError):
        started = started_of(directory / TRACE_NAME)
        return started.agent if started else ""
    return ""


def load_recording(trace: Path, given: Agent | str | None = None, *, runs_beside: bool = False) -> Recording:
    """Load a trace's agent as it was when it was recorded, or the one given. Raises ConfigError and more.

    `runs_beside` lets an agent run that lies beside the session, as those of golden recordings do; else whoever hands
    over a session would hand over code with it.
    """
    about = about_of(trace)
    if given is None and about is None:
        raise ConfigError(
            f"{trace} has no readable {ABOUT_NAME} beside it: say which agent made it, as in `edgeagent replay {trace} "
            "AGENT.py`"
        )
    named = given or resolved_spec(about, trace.parent, runs_beside=runs_beside)
    agent = load_agent(named) if isinstance(named, str) else named
    if about is not None:
        agent = agent_with(agent, read_records(about.servers))
        agent = with_rules(with_recorded_limits(agent, about.limits), recorded_rules(about.policy))
        return Recording(trace, about, with_dialect(agent, about.dialect))
    started = started_of(trace)
    return Recording(trace, None, with_dialect(agent, started.dialect if started else "plain"))


def resolved_spec(about: About | None, directory: Path, *, runs_beside: bool = False) -> str:
    """The agent spec of session.json. With `runs_beside` a relative file is sought beside it, and else refused."""
    assert about is not None, "the caller has checked"
    if not about.agent_spec:
        raise ConfigError(
            f"session {about.id} was opened from Python: say which agent it is, as FILE.py or FILE.py:NAME"
        )
    path = agent_path(about.agent_spec)
    if not runs_beside and (not path.is_absolute() or path.resolve().is_relative_to(directory.resolve())):
        raise ConfigError(
            f"{directory / ABOUT_NAME} names {about.agent_spec!r}, which came with the session: code that lies with "
            "a session is not run unless you name it; give AGENT.py yourself"
        )
    return str(directory / about.agent_spec)


def with_recorded_limits(agent: Agent, limits: Limits) -> Agent:
    """The agent with the limits that the session was started with."""
    given = {k: v for k, v in msgspec.structs.asdict(limits).items() if v is not None}
    return dataclasses.replace(agent, budget=replace(agent.budget, **given)) if given else agent


def start_of(found: Examined) -> State:
    """The state that the first record meets: empty, or the verified one that a rotation left."""
    if found.header is None or found.header.state is None:
        return State()
    return decode_state(found.header.state)


def records_of(trace: Path) -> Examined:
    """All right records; a torn end is left out. Raises TraceDamaged for damage, and if there were more."""
    found = examine_session(trace)
    if isinstance(found.verdict, Damaged):
        raise damaged(trace, found.verdict)
    return found


def effects_of(recording: Recording, found: Examined) -> Iterator[tuple[Record, State, tuple[Effect, ...]]]:
    """Fold again; yield each record with the state after it and its effects. Raises TraceDisagrees."""
    state = start_of(found)
    for record in found.records:
        state, effects = fold(recording.step, (record,), state)
        yield record, state, effects


def parts_of(agent: Agent) -> dict[str, str]:
    """Digests of everything that decides what the agent does, by name."""
    parts = {f"tool {t.name}": canonical_json(t.described()) for t in agent.tools}
    parts["system text"] = agent.system
    parts["policies"] = canonical_json([repr(p) for p in agent.policies])
    if agent.hears:
        parts["what it hears"] = canonical_json(list(agent.hears))
    parts["budget"] = canonical_json(budget_described(agent.budget))
    parts["session budget"] = canonical_json(budget_described(agent.session_budget))
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in parts.items()}


def changes(about: About, agent: Agent) -> list[str]:
    """What differs between the agent that began a session and this one, in words; empty if nothing does."""
    if about.agent_digest == agent.digest or not about.parts:
        return []  # Without its parts it was rebuilt, and that has been said.
    then, now = about.parts, parts_of(agent)
    lines = [f"{name} is new" for name in now if name not in then]
    lines += [f"{name} is gone" for name in then if name not in now]
    lines += [f"{name} changed" for name in now if name in then and now[name] != then[name]]
    return lines or ["the agent's declaration changed"]
