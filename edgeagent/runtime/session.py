"""One session: its directory, its lock, its trace, and a loop with drivers around one agent."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import asdict, replace

from edgeagent.core.agent import Agent
from edgeagent.core.events import Cancelled, SessionStarted, UserSaid
from edgeagent.core.replay import Step
from edgeagent.core.state import State
from edgeagent.driver.base import Driver
from edgeagent.runtime.folder import (
    TRACE_NAME,
    About,
    Beginning,
    Lock,
    durability_of,
    lock,
    make_durable,
    new_directory,
    sessions_folder,
    write_about,
)
from edgeagent.runtime.loop import Loop, Watch
from edgeagent.runtime.recording import parts_of
from edgeagent.runtime.snapshot import write_snapshot
from edgeagent.trace.disk import DISK, Disk
from edgeagent.trace.file import TraceFile
from edgeagent.version import __version__


def wall_clock_ms() -> int:
    """Unix time in milliseconds."""
    return time.time_ns() // 1_000_000


SNAPSHOT_EVERY = 256
"""Records after which a resting session keeps a snapshot: folding that many takes a few milliseconds."""

ROTATE_AT_BYTES = 8 << 20
"""From this size on a resting session goes on in a new trace file: some 80,000 records, read in a second."""


@dataclass(frozen=True)
class Outside:
    """What a session touches besides its drivers: whoever watches, the clock, the disk."""

    watch: Watch | None = None
    clock_ms: Callable[[], int] = wall_clock_ms
    disk: Disk = DISK


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
        self._loop.post(UserSaid(0, text))
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
    root: Path,
    beginning: Beginning,
    outside: Outside = Outside(),  # immutable
) -> Session:
    """Make a session directory under `root` and start the session in it.

    Raises ConfigError if it cannot be made and TraceError if it cannot be written.
    """
    disk = outside.disk
    about = _about(agent, beginning, new_directory(root, outside.clock_ms()).name, outside.clock_ms())
    directory = sessions_folder(root) / about.id
    held = lock(directory)
    try:
        write_about(directory, about, disk)
        make_durable(directory, disk)
        trace = TraceFile.create(directory / TRACE_NAME, durability=durability_of(about), disk=disk)
        loop = Loop(agent, step, trace, drivers, outside.clock_ms, watch=outside.watch)
        session = Session(agent, directory, held, trace, loop, drivers, disk)
        loop.post(started_event(agent, beginning.seed, beginning.context_tokens))
        session.resume_turn()
    except BaseException:
        held.release()
        raise
    return session


def _about(agent: Agent, beginning: Beginning, name: str, now_ms: int) -> About:
    assert agent.dialect is not None, "the wiring gives every running agent its dialect"
    spec = beginning.agent_spec
    chosen = replace(beginning, agent_spec=str(Path(spec).absolute()) if spec else "")
    return About(
        id=name,
        agent=agent.name,
        agent_digest=agent.digest,
        dialect=agent.dialect.name,
        created_ms=now_ms,
        parts=parts_of(agent),
        **asdict(chosen),
    )


def started_event(agent: Agent, seed: int, context_tokens: int) -> SessionStarted:
    """The first event of a session."""
    assert agent.dialect is not None, "the wiring gives every running agent its dialect"
    return SessionStarted(0, agent.name, agent.digest, seed, agent.dialect.name, context_tokens, __version__)
