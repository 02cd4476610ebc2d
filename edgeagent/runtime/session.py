"""One session: its directory, its lock, its trace, and a loop with drivers around one agent."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from edgeagent.core.agent import Agent
from edgeagent.core.events import Cancelled, SessionStarted, UserSaid
from edgeagent.core.replay import Step
from edgeagent.core.state import State
from edgeagent.driver.base import Driver
from edgeagent.runtime.folder import TRACE_NAME, About, Limits, Lock, lock, make_durable, new_directory, write_about
from edgeagent.runtime.loop import Loop, Watch
from edgeagent.runtime.recording import parts_of
from edgeagent.runtime.snapshot import write_snapshot
from edgeagent.trace.disk import DISK, Disk
from edgeagent.trace.file import Durability, TraceFile
from edgeagent.version import __version__

SNAPSHOT_EVERY = 256
"""Records after which a resting session keeps a snapshot: folding that many takes a few milliseconds."""

ROTATE_AT_BYTES = 8 << 20
"""From this size on a resting session goes on in a new trace file: some 80,000 records, read in a second."""


class Session:
    """A running session. `say` returns when the turn has ended; `cancel` may be called from another thread."""

    def __init__(
        self,
        agent: Agent,
        directory: Path,
        held: Lock,
        trace: TraceFile,
        loop: Loop,
        drivers: Mapping[type, Driver],
        disk: Disk = DISK,
    ) -> None:
        self.directory = directory
        self.trace_path = directory / TRACE_NAME
        self._agent, self._held, self._trace, self._loop, self._drivers = agent, held, trace, loop, drivers
        self._disk = disk
        self._snapshot_seq = trace.seq

    @property
    def state(self) -> State:
        """The state after the last event."""
        return self._loop.state

    def say(self, text: str) -> State:
        """Let the user say `text`, work until the turn has ended, return the state."""
        self._loop.post(UserSaid(0, readable(text)))
        return self.resume_turn()

    def resume_turn(self) -> State:
        """Go on working after an interruption of `say`."""
        state = self._loop.run()
        self._trace.settle()
        if self._trace.grown_bytes >= ROTATE_AT_BYTES:
            self._trace.rotate(state)
        if self._trace.seq - self._snapshot_seq >= SNAPSHOT_EVERY:
            self._keep_snapshot()
        return state

    def cancel(self, reason: str = "interrupted") -> None:
        """Ask for the running turn to be stopped."""
        self._loop.post(Cancelled(0, reason))

    def close(self) -> None:
        """Let go of drivers, trace and lock; everything recorded is on the disk then. Raises TraceError if not."""
        for driver in {id(d): d for d in self._drivers.values()}.values():
            driver.close()
        try:
            self._trace.close()
            self._keep_snapshot()
        finally:
            self._held.release()

    def _keep_snapshot(self) -> None:
        # After a failed append the trace may be one record ahead of the state.
        if not self._trace.failed and self._trace.seq > self._snapshot_seq:
            self._snapshot_seq = self._trace.seq
            write_snapshot(self.directory, self._agent, self.state, self._trace.seq, self._trace.head, self._disk)


def new_session(
    agent: Agent,
    step: Step,
    drivers: Mapping[type, Driver],
    *,
    root: Path,
    agent_spec: str,
    model: str,
    seed: int,
    context_tokens: int,
    watch: Watch | None = None,
    clock_ms: Callable[[], int] | None = None,
    durability: Durability = "effects",
    limits: Limits = Limits(),  # noqa: B008 # immutable
    policy: Mapping[str, Any] | None = None,
    disk: Disk = DISK,
) -> Session:
    """Make a session directory under `root` and start the session in it. `policy` are the operator's rules in `agent`.

    Raises ConfigError if it cannot be made and TraceError if it cannot be written.
    """
    clock = clock_ms or wall_clock_ms
    assert agent.dialect is not None, "the wiring gives every running agent its dialect"
    directory = new_directory(root, clock())
    held = lock(directory)
    about = About(
        id=directory.name,
        agent=agent.name,
        agent_spec=absolute_spec(agent_spec),
        agent_digest=agent.digest,
        model=model,
        dialect=agent.dialect.name,
        created_ms=clock(),
        seed=seed,
        context_tokens=context_tokens,
        durability=durability,
        limits=limits,
        parts=parts_of(agent),
        policy=dict(policy or {}),
    )
    try:
        write_about(directory, about, disk)
        make_durable(directory, disk)
        trace = TraceFile.create(directory / TRACE_NAME, durability=durability, disk=disk)
        loop = Loop(agent, step, trace, drivers, clock, watch=watch)
        session = Session(agent, directory, held, trace, loop, drivers, disk)
        loop.post(started_event(agent, seed, context_tokens))
        session.resume_turn()
    except BaseException:
        held.release()
        raise
    return session


def started_event(agent: Agent, seed: int, context_tokens: int) -> SessionStarted:
    """The first event of a session."""
    assert agent.dialect is not None, "the wiring gives every running agent its dialect"
    return SessionStarted(0, agent.name, agent.digest, seed, agent.dialect.name, context_tokens, __version__)


def readable(text: str) -> str:
    """The text with what is no Unicode replaced: a command line may hold any bytes, a record may not."""
    return text.encode("utf-8", "surrogateescape" if _only_escapes(text) else "replace").decode("utf-8", "replace")


def _only_escapes(text: str) -> bool:
    return all("\udc80" <= c <= "\udcff" for c in text if "\ud800" <= c <= "\udfff")


def absolute_spec(spec: str) -> str:
    """The agent spec with an absolute path, so that it is found again from elsewhere."""
    return str(Path(spec).absolute())


def wall_clock_ms() -> int:
    """Unix time in milliseconds."""
    return time.time_ns() // 1_000_000
