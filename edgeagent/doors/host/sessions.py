"""Sessions of one host: an editor's, with tools of the host's own, and with records, budgets and replay to look at."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import msgspec

from edgeagent.codec.jsonrpc import INVALID_PARAMS
from edgeagent.core.agent import Agent, Tool
from edgeagent.core.effects import Effect
from edgeagent.core.events import Event
from edgeagent.core.state import State as SessionState
from edgeagent.core.text import shown
from edgeagent.doors.acp.client import Client
from edgeagent.doors.acp.session import EditorDoor
from edgeagent.doors.acp.sessions import Sessions
from edgeagent.doors.host.messages import (
    CALL_TOOL,
    PREFIX,
    RECORD,
    TOOLS_MAX,
    Budgets,
    Declare,
    Declared,
    Events,
    HostTool,
    Record,
    Recorded,
    Replayed,
    State,
)
from edgeagent.doors.http.feed import fields_of, record_row, state_row
from edgeagent.driver.peer import Call, Peer, Refused
from edgeagent.errors import ConfigError, ShapeError, TraceDisagrees
from edgeagent.runtime.recording import effects_of, load_recording, records_of

RECORDS_MAX = 256
"""Records of one answer."""


class FollowedDoor(EditorDoor):
    """The door of a session that a host has; who follows it is told each record, in order and once."""

    def __init__(self, peer: Peer, client: Client, agent: Agent, name: str, *, shows: bool) -> None:
        super().__init__(peer, client, agent, name, shows=shows)
        self._changing = threading.Lock()
        self._held: list[dict[str, Any]] | None = None
        """Records that wait for those before them to be told."""
        self._is_followed = False

    @property
    def is_watched(self) -> bool:
        """Whether the host follows it."""
        return self._is_followed

    def watch(self, event: Event, state: SessionState, effects: tuple[Effect, ...]) -> None:
        """Show a transition, and its record."""
        super().watch(event, state, effects)
        if self._is_followed and self.session is not None:
            row = record_row(self.session.seq - 1, event, state, effects)
            with self._changing:
                if self._held is not None:
                    self._held.append(row)
                else:
                    self._tell_record(row)

    def records(self, since: int, *, follow: bool) -> Recorded:
        """Records from this number on; with `follow`, if these are all, the next ones are told from now on."""
        assert self.session is not None, "a door that is kept has its session"
        with self._changing:
            self._is_followed, self._held = follow, []
        found: list[dict[str, Any]] = []
        for each in self.session.records(since):
            if len(found) == RECORDS_MAX:
                self._is_followed, self._held = False, None
                return Recorded(tuple(found), since + len(found), True)
            found.append(record_row(*each))
        return Recorded(tuple(found), found[-1]["seq"] + 1 if found else since)

    def go_on_telling(self, next_record: int) -> None:
        """Tell what was written meanwhile, and from here on each as it comes."""
        with self._changing:
            held, self._held = self._held or [], None
            for row in held:
                if row["seq"] >= next_record and self._is_followed:
                    self._tell_record(row)

    def _tell_record(self, row: dict[str, Any]) -> None:
        self._peer.tell(RECORD, msgspec.to_builtins(Record(self.name, row)))


class HostSessions(Sessions):
    """The sessions of one host."""

    _door_type = FollowedDoor
    _declared: tuple[HostTool, ...] = ()

    def take(self, call: Call, params: Any) -> None:
        """Answer a request. Raises Refused, and what is wrong with the session."""
        if not call.method.startswith(PREFIX):
            return super().take(call, params)
        if isinstance(params, Events):
            door = cast(FollowedDoor, self._door(params.session_id))
            found = door.records(max(0, params.since), follow=params.follow)
            call.answer(msgspec.to_builtins(found))
            return door.go_on_telling(found.next)
        return call.answer(msgspec.to_builtins(self._looked_at(call.method, params)))

    def _looked_at(self, method: str, params: Any) -> Any:
        if isinstance(params, Declare):
            return self._declare(params.tools)
        door = self._door(params.session_id)
        session = door.session
        assert session is not None, "a door that is kept has its session"
        match method.removeprefix(PREFIX):
            case "state":
                return State(state_row(session.state), session.seq)
            case "budgets":
                whole, spent = session.agent.session_budget, session.state
                return Budgets(
                    fields_of(session.agent.budget),
                    None if whole is None else fields_of(whole),
                    fields_of(spent.turn_spent),
                    fields_of(spent.session_spent),
                )
            case _:
                return _replayed(door)

    def _declare(self, tools: tuple[HostTool, ...]) -> Declared:
        if len(tools) > TOOLS_MAX:
            raise Refused(INVALID_PARAMS, f"params.tools: {len(tools)} tools; {TOOLS_MAX} are the most")
        names = [each.name for each in tools]
        own = {tool.name for tool in self._agent.tools}
        for place, each in enumerate(tools):
            try:
                _tool_of(each, lambda arguments: None)
                if each.name in own or names.count(each.name) > 1:
                    raise ConfigError(f"there is a tool called {each.name} already")
            except (ConfigError, ShapeError) as error:
                raise Refused(INVALID_PARAMS, f"params.tools[{place}]: {shown(str(error))}") from None
        self._declared = tools
        return Declared(tuple(names))

    def _more_tools(self, client: Client) -> tuple[Tool, ...]:
        return tuple(_tool_of(each, partial(_call, each, client)) for each in self._declared)


def _tool_of(declared: HostTool, call: Callable[[dict[str, Any]], Any]) -> Tool:
    """A tool as the host has declared it. Raises ConfigError and ShapeError for what no tool can be."""
    return Tool.of_schema(
        declared.name,
        declared.description,
        declared.input_schema,
        call,
        idempotent=declared.idempotent,
        effect=declared.effect,
        confirm=declared.confirm,
        sensitive=declared.sensitive,
        trusted=declared.trusted,
        timeout_s=declared.timeout_seconds,
    )


def _call(declared: HostTool, client: Client, arguments: dict[str, Any]) -> Any:
    asked = {"tool": declared.name, "arguments": arguments}
    return client.asked_for(CALL_TOOL, asked, declared.timeout_seconds)


def _replayed(door: EditorDoor) -> Replayed:
    """Fold the trace once more, as it is now."""
    assert door.session is not None, "a door that is kept has its session"
    found = records_of(door.session.trace_path)
    try:
        for _ in effects_of(load_recording(door.session.trace_path, door.agent), found):
            pass
    except TraceDisagrees as error:
        return Replayed(len(found.records), False, error.record, shown(str(error)))
    return Replayed(len(found.records), True)
