"""One session: its directory, its trace, and a loop with drivers around one agent."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import orjson

from edgeagent.core.agent import Agent
from edgeagent.core.events import Cancelled, Event, SessionStarted, UserSaid
from edgeagent.core.replay import Step
from edgeagent.core.state import State
from edgeagent.driver.base import Driver
from edgeagent.errors import ConfigError
from edgeagent.runtime.loop import Loop, Watch
from edgeagent.trace.file import TraceFile
from edgeagent.version import __version__

TRACE_NAME = "trace.cbor"
ABOUT_NAME = "session.json"


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a session was started with; kept beside its trace so that it can be replayed and resumed."""

    id: str
    agent: str
    agent_spec: str
    agent_digest: str
    model: str
    dialect: str
    created_ms: int
    version: str = __version__


class Session:
    """A running session. `say` returns when the turn has ended; `cancel` may be called from another thread."""

    def __init__(self, directory: Path, trace: TraceFile, loop: Loop, drivers: Mapping[type, Driver]) -> None:
        self.directory = directory
        self.trace_path = directory / TRACE_NAME
        self._trace, self._loop, self._drivers = trace, loop, drivers

    @property
    def state(self) -> State:
        """The state after the last event."""
        return self._loop.state

    def say(self, text: str) -> State:
        """Let the user say `text`, work until the turn has ended, return the state."""
        self._loop.post(UserSaid(0, text))
        return self._loop.run()

    def resume_turn(self) -> State:
        """Go on working after an interruption of `say`."""
        return self._loop.run()

    def cancel(self, reason: str = "interrupted") -> None:
        """Ask for the running turn to be stopped."""
        self._loop.post(Cancelled(0, reason))

    def close(self) -> None:
        """Let go of drivers and trace; everything recorded is on the disk afterwards."""
        for driver in {id(d): d for d in self._drivers.values()}.values():
            driver.close()
        self._trace.close()


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
) -> Session:
    """Make a session directory under `root` and start the session in it. Raises ConfigError if it cannot be written."""
    clock = clock_ms or wall_clock_ms
    assert agent.dialect is not None, "the wiring gives every running agent its dialect"
    directory = _new_directory(root, clock())
    about = About(
        id=directory.name,
        agent=agent.name,
        agent_spec=agent_spec,
        agent_digest=agent.digest,
        model=model,
        dialect=agent.dialect.name,
        created_ms=clock(),
    )
    write_about(directory, about)
    trace = TraceFile.create(directory / TRACE_NAME)
    loop = Loop(agent, step, trace, drivers, clock, watch=watch)
    session = Session(directory, trace, loop, drivers)
    first: Event = SessionStarted(
        0, agent.name, agent.digest, seed, agent.dialect.name, context_tokens, __version__
    )
    loop.post(first)
    loop.run()
    return session


def sessions_folder(root: Path) -> Path:
    """Where all session directories of this state folder are."""
    return root / "sessions"


def write_about(directory: Path, about: About) -> None:
    """Write session.json, whole or not at all."""
    part = directory / f"{ABOUT_NAME}.part"
    part.write_bytes(orjson.dumps(msgspec.to_builtins(about), option=orjson.OPT_INDENT_2) + b"\n")
    part.replace(directory / ABOUT_NAME)


def read_about(directory: Path) -> About:
    """Read session.json. Raises ConfigError when it is missing or not ours."""
    file = directory / ABOUT_NAME
    try:
        return msgspec.json.decode(file.read_bytes(), type=About)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{file}: {error}; is {directory} a session directory?") from error


def wall_clock_ms() -> int:
    """Unix time in milliseconds."""
    return time.time_ns() // 1_000_000


def _new_directory(root: Path, now_ms: int) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now_ms / 1000))
    folder = sessions_folder(root)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        while True:
            directory = folder / f"{stamp}-{secrets.token_hex(2)}"
            with contextlib.suppress(FileExistsError):
                directory.mkdir(mode=0o700)
                return directory
    except OSError as error:
        remedy = "set another place with --state DIR or $EDGEAGENT_STATE"
        raise ConfigError(f"cannot write sessions under {folder}: {os.strerror(error.errno or 0)}; {remedy}") from error
