"""Sessions of one editor: begun, loaded, listed, prompted, put down. One thread calls `take`, a request at a time.

A session is opened when it is wanted, and put down when it rests and its place is needed; the editor need not know.
"""

from __future__ import annotations

import dataclasses
import posixpath
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, assert_never

from msgspec.structs import replace

from edgeagent.codec.jsonrpc import INVALID_PARAMS
from edgeagent.core.agent import Tool
from edgeagent.core.outside import PIPED
from edgeagent.core.state import is_resting
from edgeagent.core.text import shown
from edgeagent.core.values import Outcome
from edgeagent.doors.acp.client import OFFERS, Client, offered
from edgeagent.doors.acp.house import House
from edgeagent.doors.acp.messages import (
    NO_SUCH_SESSION,
    ClientCapabilities,
    KnownSession,
    ListSessions,
    NewSession,
    OfSession,
    Prompt,
    SetMode,
    words_of,
)
from edgeagent.doors.acp.session import DOOR, MODES, EditorDoor
from edgeagent.driver.peer import BUSY, Call, Peer, Refused
from edgeagent.errors import ConfigError, TraceError
from edgeagent.runtime.answer import TOO_MANY, Answer
from edgeagent.runtime.folder import find_directory, read_about
from edgeagent.runtime.owner import EDITOR_NAME, OWNER_NAME, Owner, owners, write_owner
from edgeagent.runtime.session import Session

OPEN_MAX = 32
"""Sessions that are open at once; each has a thread. Those above are put down when they rest."""

PAGE = 50
TITLE_CHARS = 80
FOLDERS_MAX = 32


class Sessions:
    """The sessions of one editor, over one loaded model."""

    _door_type = EditorDoor

    def __init__(self, house: House, capabilities: ClientCapabilities, peer: Peer, tell: Callable[[str], None]) -> None:
        """Load agent and model, if no other client has. Raises ConfigError, ShapeError, GrammarError and ModelError."""
        loaded, opening = house.loaded(), house.opening
        self._opening, self._peer, self._tell = opening, peer, tell
        self._root, self._agent, self._service = loaded.root, loaded.agent, loaded.service
        self._tools = offered(capabilities, opening.offers)
        if twice := set(OFFERS.values()) & {tool.name for tool in self._agent.tools}:
            name = min(twice)
            raise ConfigError(f"agent {self._agent.name} has a tool called {name}, as the editor's is: rename it")
        self._owners = owners(self._root, EDITOR_NAME)
        self._doors: dict[str, EditorDoor] = {}
        """Those that are open, the one that was wanted last at the end."""
        self._told_of_servers = False

    def take(self, call: Call, params: Any) -> None:
        """Answer a request, now or when its turn has ended. Raises Refused, and what is wrong with the session."""
        if call.method in ("session/load", "session/resume"):
            return self._take_up(call, params, replays=call.method == "session/load")
        match params:
            case Prompt():
                return self._prompt(call, params)
            case SetMode():
                return call.answer(self._set_mode(params))
            case OfSession(session_id=name):
                self._owner(name)
                self._put_down(name)
                return call.answer({})
            case NewSession():
                return self._begin(call, params)
            case ListSessions():
                return call.answer(self._list(params))
            case _:
                assert_never(params)

    def cancel(self, name: str) -> None:
        """Stop the turn that runs in a session, if it is open. From any thread."""
        if (door := self._doors.get(name)) is not None:
            door.cancel()

    def close(self) -> None:
        """Put all down; what is outstanding is taken up when its session is loaded again."""
        for name in list(self._doors):
            self._put_down(name)

    # -- begun and loaded ------------------------------------------------------------------------------------------

    def _begin(self, call: Call, asked: NewSession) -> None:
        folders = self._folders(asked)

        def first(session: Session) -> None:
            door.serves(session, replays=False)
            self._keep(session.id, Owner(key="", agent=self._agent.name, begun_ms=_now_ms(), folders=folders))
            call.answer({"sessionId": session.id, "modes": door.modes})

        door = self._door_of("", folders, self._tools, shows=False)
        self._open(door, first)

    def _take_up(self, call: Call, asked: KnownSession, *, replays: bool) -> None:
        """Load a session and show all of it, or resume it and show what its door has not had."""
        name, folders = asked.session_id, self._folders(asked)
        directory = self._directory(name)
        self._put_down(name)
        known = self._owners.get(name) or Owner(key="", agent=self._agent.name)

        def first(session: Session) -> None:
            door.serves(session, replays=replays)
            self._keep(session.id, replace(known, folders=folders))
            call.answer({"modes": door.modes})

        door = self._door_of(name, folders, _tools_begun_with(directory), shows=not replays)
        self._open(door, first, resume=name)

    def _directory(self, name: str) -> Path:
        """Where a session of this agent is that may be loaded here. Raises Refused, the same for all others."""
        gone = Refused(NO_SUCH_SESSION, f"this agent has no session {shown(name[:80])!r}")
        try:
            directory = find_directory(self._root, name)
            about = read_about(directory)
        except ConfigError:
            raise gone from None
        is_served = (directory / OWNER_NAME).exists()  # Some key's, on the network.
        if directory.name != name or about.agent != self._agent.name or is_served:
            raise gone
        return directory

    def _door_of(self, name: str, folders: tuple[str, ...], tools: tuple[str, ...], *, shows: bool) -> EditorDoor:
        client = Client(self._peer, lambda: door.name, folders)
        more = (*client.tools(tools), *self._more_tools(client))
        agent = dataclasses.replace(self._agent, tools=(*self._agent.tools, *more))
        door = self._door_type(self._peer, client, agent, name, shows=shows)
        return door

    def _more_tools(self, client: Client) -> tuple[Tool, ...]:
        """What a session's agent is given beside its own tools and the editor's."""
        return ()

    def _open(self, door: EditorDoor, first: Callable[[Session], None], **more: Any) -> None:
        self._make_room()

        def begin(session: Session) -> None:
            self._doors[session.id] = door
            first(session)

        spec, config = str(Path(self._opening.agent).absolute()), self._opening.options.get("config")
        self._service.open(door.agent, door, DOOR, first=begin, spec=spec, config=config, **more)

    def _folders(self, asked: NewSession) -> tuple[str, ...]:
        """The folders of a session. Raises Refused."""
        folders = (asked.cwd, *(asked.additional_directories or ()))
        if len(folders) > FOLDERS_MAX:
            raise Refused(INVALID_PARAMS, f"params.additionalDirectories: {FOLDERS_MAX - 1} are the most")
        for each in folders:
            if not posixpath.isabs(each) or "\0" in each:
                raise Refused(INVALID_PARAMS, f"params.cwd: {shown(each[:80])!r} is no absolute path")
        if asked.mcp_servers and not self._told_of_servers:
            self._told_of_servers = True
            self._tell("the editor's MCP servers are left out: an agent's tools are those that its operator lists")
        return tuple(posixpath.normpath(each) for each in folders)

    # -- worked with -----------------------------------------------------------------------------------------------

    def _prompt(self, call: Call, asked: Prompt) -> None:
        words, beside = words_of(asked.prompt)
        door = self._door(asked.session_id)
        session = door.session
        assert session is not None, "a door that is kept has its session"
        if call.is_cancelled:
            return call.answer({"stopReason": "cancelled"})
        if beside:
            session.post_heard(PIPED, beside)
        try:
            word = session.post_words(words, door=DOOR)
        except ConfigError as error:
            raise Refused(INVALID_PARAMS, f"prompt: {error}") from None
        word.answered.add_done_callback(partial(_answer, call))
        call.on_cancel(door.cancel)
        owner = self._owners[session.id]
        if not owner.title:
            self._keep(session.id, replace(owner, title=shown(" ".join(words.split())[:TITLE_CHARS])))
        return None

    def _set_mode(self, asked: SetMode) -> dict[str, Any]:
        known = [mode["id"] for mode in MODES]
        if asked.mode_id not in known:
            raise Refused(
                INVALID_PARAMS, f"no mode {shown(asked.mode_id[:80])!r}; there are: {', '.join(map(str, known))}"
            )
        self._door(asked.session_id).mode = asked.mode_id
        return {}

    def _list(self, asked: ListSessions) -> dict[str, Any]:
        mine = [
            (name, owner)
            for name, owner in sorted(self._owners.items(), reverse=True)
            if owner.agent == self._agent.name
            and (asked.cwd is None or owner.folders[:1] == (posixpath.normpath(asked.cwd),))
            and (asked.cursor is None or name < asked.cursor)
        ]
        rows = [
            {"sessionId": name, "cwd": owner.folders[0], "title": owner.title or None}
            for name, owner in mine[:PAGE]
            if owner.folders
        ]
        return {"sessions": rows} | ({"nextCursor": mine[PAGE - 1][0]} if len(mine) > PAGE else {})

    def _owner(self, name: str) -> Owner:
        owner = self._owners.get(name)
        if owner is None or owner.agent != self._agent.name:
            raise Refused(NO_SUCH_SESSION, f"this agent has no session {shown(name[:80])!r}: begin or load it first")
        return owner

    def _door(self, name: str) -> EditorDoor:
        """The door of a session, opened if it was put down. Raises Refused."""
        owner = self._owner(name)
        if name in self._service.failed:
            self._put_down(name)  # Its disk took nothing more; perhaps it does now.
        if name not in self._doors:
            tools = _tools_begun_with(self._directory(name))
            door = self._door_of(name, owner.folders, tools, shows=False)
            self._open(door, partial(door.serves, replays=False), resume=name)
        door = self._doors[name] = self._doors.pop(name)
        return door

    def _make_room(self) -> None:
        if len(self._doors) < OPEN_MAX:
            return None
        for name, door in self._doors.items():
            state = None if door.session is None else door.session.state
            if state is not None and is_resting(state) and not state.timers and not door.is_watched:
                return self._put_down(name)
        raise Refused(BUSY, f"{OPEN_MAX} sessions are open and at work; close one, or wait")

    def _put_down(self, name: str) -> None:
        door = self._doors.pop(name, None)
        if door is not None and door.session is not None:
            self._service.failed.pop(name, None)
            self._service.end(door.session)
            door.let_go()

    def _keep(self, name: str, owner: Owner) -> None:
        if self._owners.get(name) != owner:
            self._owners[name] = owner
            write_owner(self._root / "sessions" / name, owner, EDITOR_NAME)


def _tools_begun_with(directory: Path) -> tuple[str, ...]:
    """The editor's tools that a session began with: it keeps them, whatever this editor can."""
    try:
        parts = read_about(directory).parts
    except (ConfigError, TraceError):
        return ()
    return tuple(tool for tool in OFFERS.values() if f"tool {tool}" in parts)


def _answer(call: Call, answered: Future[Answer]) -> None:
    """Answer a prompt with how its turn ended."""
    error = answered.exception()
    if error is not None:
        return call.fail(error)
    outcome = answered.result().outcome
    if outcome is TOO_MANY:
        return call.refuse(BUSY, TOO_MANY.detail)
    meta = {"edgeagent": {"outcome": outcome.kind, "detail": shown(outcome.detail)}}
    return call.answer({"stopReason": stop_reason(outcome), "_meta": meta})


def stop_reason(outcome: Outcome) -> str:
    """ACP's word for how a turn ended. What was refused or failed is said in the answer: such a turn is like any."""
    if outcome.kind == "cancelled":
        return "cancelled"
    if outcome.kind != "budget":
        return "end_turn"
    return "max_tokens" if "token" in outcome.detail else "max_turn_requests"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
