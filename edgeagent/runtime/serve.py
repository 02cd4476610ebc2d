"""Service: many sessions of many agents in one process over one loaded model, each served by a thread of its own.

What is bounded: the sessions (`sessions_max`), the words that wait for each (`core.step.QUEUE_MAX`), the asks that wait
for the model. The model's queue is fair between sessions and tells each its place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from edgeagent.core.agent import Agent
from edgeagent.errors import ConfigError, EdgeAgentError
from edgeagent.runtime.config import Settings, state_root
from edgeagent.runtime.door import Door, QuietDoor
from edgeagent.runtime.folder import directories
from edgeagent.runtime.model import Model
from edgeagent.runtime.open import OpenRequest, open_session
from edgeagent.runtime.recording import agent_name
from edgeagent.runtime.session import Session

SESSIONS_MAX = 256
"""Sessions that are open at once; a thread and some 100 kB each."""


class Service:
    """Opens sessions and serves them until it is closed. The model stays loaded."""

    def __init__(self, model: Model, *, state: Path | str | None = None, sessions_max: int = SESSIONS_MAX) -> None:
        self.sessions: dict[str, Session] = {}
        self.failed: dict[str, EdgeAgentError] = {}
        """What ended the serving of a session: its disk takes nothing more."""
        self.model, self._sessions_max = model, sessions_max
        self._state = Path(state) if state is not None else state_root(Settings())
        self._threads: dict[str, threading.Thread] = {}
        self._opening = threading.Lock()

    def open(
        self,
        agent: Agent | str,
        door: Door | None = None,
        name: str = "",
        *,
        first: Callable[[Session], None] = lambda session: None,
        **more: Any,
    ) -> Session:
        """Start a session and serve it; a door with a `name` has a place in its trace. `more` as in `edgeagent.open`.

        `first` is called before anything is served; with `resume` it is a session that is there already, and it is
        returned when what its last process left is worked off. Raises
        ConfigError where as many are open as may be, and what `edgeagent.open` raises.
        """
        session = self._opened(OpenRequest(agent=agent, door=name, state=self._state, **more), door or QuietDoor())
        first(session)
        self._threads[session.id].start()
        session.taken_up.wait()
        return session

    def resume(self, *agents: Agent, door: Callable[[str], Door] | None = None, name: str = "") -> list[Session]:
        """Open every session of these agents again, as after a restart; `door` makes the door for a session's id."""
        by_name = {agent.name: agent for agent in agents}
        found = [directory for directory in directories(self._state) if directory.name not in self.sessions]
        opened = []
        for directory in found:
            agent = by_name.get(agent_name(directory))
            if agent is not None:
                request = OpenRequest(agent=agent, door=name, state=self._state, resume=directory.name)
                opened.append(self._opened(request, door(directory.name) if door else QuietDoor()))
        for session in opened:  # Only now: what the first takes up must not keep the last from being opened.
            self._threads[session.id].start()
        return opened

    def end(self, session: Session) -> None:
        """Serve a session no more, and close it."""
        session.close()
        self._threads.pop(session.id).join()
        self.sessions.pop(session.id, None)

    def close(self) -> None:
        """End all sessions; what is outstanding is taken up when they are opened again."""
        for session in list(self.sessions.values()):
            self.end(session)

    def __enter__(self) -> Self:
        """Leave what is below to `close` it."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the service."""
        self.close()

    def _opened(self, request: OpenRequest, door: Door) -> Session:
        with self._opening:
            if len(self.sessions) >= self._sessions_max:
                raise ConfigError(f"{len(self.sessions)} sessions are open, and sessions_max is that: end one first")
            session = open_session(request, door, self.model)
            self.sessions[session.id] = session
            thread = threading.Thread(target=self._work, args=(session, door), name=f"serve {session.id}", daemon=True)
            self._threads[session.id] = thread
        return session

    def _work(self, session: Session, door: Door) -> None:
        try:
            session.serve()
        except EdgeAgentError as error:
            self.failed[session.id] = error
            door.activity(f"session {session.id} is not served any more: {error}")
        finally:
            session.taken_up.set()
