"""What an agent offers to a client of MCP: its tools, itself, and the traces of both; loaded when first asked for.

Two sessions: one of calls that the client dictates, under all rules and each in the trace; one of the agent with its
model, which is loaded when something is said to it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from edgeagent.core.agent import Agent, Tool
from edgeagent.core.values import canonical_json
from edgeagent.doors.mcp.asked_later import AskedLater
from edgeagent.doors.mcp.client import Client, Source
from edgeagent.doors.mcp.content import BLOBS_BYTES_MAX, told_failure, told_result
from edgeagent.doors.mcp.watched import Watched
from edgeagent.driver.peer import Call
from edgeagent.errors import EdgeAgentError
from edgeagent.runtime.answer import Answer
from edgeagent.runtime.dictated import Dictation
from edgeagent.runtime.folder import TRACE_NAME, find_directory
from edgeagent.runtime.golden import story
from edgeagent.runtime.open import OpenRequest, open_session
from edgeagent.runtime.recording import load_recording, records_of
from edgeagent.runtime.rests import kept_bytes
from edgeagent.runtime.session import Session

DOOR = "mcp"

TRACE, SESSION = "edgeagent://trace/", "edgeagent://session/"
"""How the URIs of a session's trace and of what is known of it begin."""

TRACE_CHARS_MAX = 1 << 20
"""The most of a trace that is read at once: its end."""

LOOKED_UP = "the client calls {tool}"
"""What stands in the place of a user's words: nothing of the call, since none of it is a user's."""


class Offered:
    """One agent, for one client."""

    def __init__(self, source: Source) -> None:
        self._source, self.ask_name = source, source.ask_name
        self._opened: dict[str, Session] = {}
        self._dictation = Dictation()
        self._calls_door, self._talk_door = Watched(), Watched()
        self._asked_later = AskedLater()

    @cached_property
    def _calls(self) -> Session:
        asked = self._source.request()
        names = ("agent", "spec", "taken", "state", "config", "seed")
        request = OpenRequest(door=DOOR, **{name: getattr(asked, name) for name in names})
        return self._kept("calls", open_session(request, self._calls_door, self._dictation))

    @cached_property
    def _talk(self) -> Session:
        request = msgspec.structs.replace(self._source.request(), door=DOOR)
        return self._kept("words", open_session(request, self._talk_door, self._source.model))

    def _kept(self, name: str, session: Session) -> Session:
        self._opened[name] = session
        return session

    @property
    def talk(self) -> Session | None:
        """The session in which the model is asked, once there is one."""
        return self._opened.get("words")

    def close(self) -> None:
        """Close the sessions."""
        for session in self._opened.values():
            session.close()

    # -- tools -----------------------------------------------------------------------------------------------------

    def tools(self) -> list[dict[str, Any]]:
        """What the client may call."""
        agent = self._calls.agent
        return [*(_told(each) for each in _callable(agent).values()), self._told_asking(agent)]

    def call(self, call: Call, client: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Have a call made as if a model had written it."""
        session, door = self._calls, self._calls_door
        tool = _callable(session.agent).get(name)
        if tool is None:
            known = ", ".join((*_callable(session.agent), self.ask_name))
            return told_failure(f"there is no tool {name[:80]!r}; there are: {known}")
        what = canonical_json([tool.written, arguments])
        client = self._asked_later.told(client, call.params, what)
        self._dictation.dictate(tool.written, arguments)
        answer = self._said(session, door, call, client, LOOKED_UP.format(tool=tool.name))
        ran = next((each for each in answer.calls if each.tool == tool.name), None)
        if ran is None and door.left_open is not None:
            return self._asked_later.asks(door.left_open, what)
        if ran is None:
            return told_failure(self._dictation.told or answer.text or answer.outcome.detail)
        return told_result(ran, lambda digest: kept_bytes(session.directory, door.returned, digest, BLOBS_BYTES_MAX))

    def ask(self, call: Call, client: Client, arguments: dict[str, Any]) -> dict[str, Any]:
        """Say something to the agent."""
        text = arguments.get("text")
        if not isinstance(text, str) or not text.strip():
            return told_failure("text is missing: say what is to be done")
        if client.is_asked_later:  # A turn of the model cannot be made twice.
            client.asks = False
        answer = self._said(self._talk, self._talk_door, call, client, text)
        told = {"content": [{"type": "text", "text": answer.text}]}
        return told if answer.outcome.kind in ("answered", "budget") else told | {"isError": True}

    def _said(self, session: Session, door: Watched, call: Call, client: Client, text: str) -> Answer:
        def cancel() -> None:
            door.give_up()
            session.cancel("cancelled by the client")

        call.on_cancel(cancel)
        with door.serving(call, client):
            return session.ask(text, by="client", door=DOOR)

    def _told_asking(self, agent: Agent) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        return {
            "name": self.ask_name,
            "description": f"Ask the agent {agent.name} in words; it may use its tools, and answers in words.",
            "inputSchema": schema | {"additionalProperties": False},
        }

    # -- prompts ---------------------------------------------------------------------------------------------------

    def prompts(self) -> list[dict[str, Any]]:
        """What a person may begin with: something for this agent."""
        about = "Have something done by this agent."
        wanted = {"name": "text", "description": "What is to be done, in words.", "required": True}
        return [{"name": self.ask_name, "description": about, "arguments": [wanted]}]

    def prompt(self, name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """The words of a prompt; None where there is none of that name, or its argument is missing."""
        text = arguments.get("text")
        if name != self.ask_name or not isinstance(text, str):
            return None
        words = f"Use the tool {self.ask_name} to have this done, with these very words as its text:\n\n{text}"
        return {"messages": [{"role": "user", "content": {"type": "text", "text": words}}]}

    # -- resources -------------------------------------------------------------------------------------------------

    def _rows(self) -> list[dict[str, Any]]:
        """What is known of each session that may be read, the client's own first."""
        own = [{"id": each.id, "title": name, "agent": each.agent.name} for name, each in self._opened.items()]
        return own + self._source.others()

    def resources(self) -> list[dict[str, Any]]:
        """Each session that may be read, and its trace."""
        found = []
        for row in self._rows():
            name = f"{row['title'] or row['id']}"
            found.append({"uri": TRACE + row["id"], "name": f"trace of {name}", "mimeType": "text/plain"})
            found.append({"uri": SESSION + row["id"], "name": f"session {name}", "mimeType": "application/json"})
        return found

    def templates(self) -> list[dict[str, Any]]:
        """The forms of their URIs."""
        return [
            {"uriTemplate": f"{TRACE}{{session}}", "name": "trace of a session", "mimeType": "text/plain"},
            {"uriTemplate": f"{SESSION}{{session}}", "name": "session", "mimeType": "application/json"},
        ]

    def completed(self, template: str, begun: str) -> list[str]:
        """The sessions that may stand in a template, where this is how their ids begin."""
        if template not in (each["uriTemplate"] for each in self.templates()):
            return []
        return [row["id"] for row in self._rows() if row["id"].startswith(begun)]

    def read(self, uri: str) -> dict[str, Any] | None:
        """A resource; None for what is none, or not this client's."""
        rows = {row["id"]: row for row in self._rows()}
        if (row := rows.get(uri.removeprefix(SESSION))) is not None and uri.startswith(SESSION):
            return {"uri": uri, "mimeType": "application/json", "text": canonical_json(row)}
        if uri.startswith(TRACE) and (name := uri.removeprefix(TRACE)) in rows:
            return {"uri": uri, "mimeType": "text/plain", "text": self._trace(name)}
        return None

    def _trace(self, name: str) -> str:
        own = next((each for each in self._opened.values() if each.id == name), None)
        agent = own.agent if own is not None else self._source.request().agent
        if own is None and self._source.root is None:
            raise EdgeAgentError("its trace is not kept here")
        directory = own.directory if own is not None else find_directory(self._source.root, name)  # type: ignore[arg-type]
        path = directory / TRACE_NAME
        text = "".join(story(load_recording(path, agent), records_of(path)))
        cut = len(text) - TRACE_CHARS_MAX
        return text if cut <= 0 else f"... {cut} characters before this are not shown\n{text[cut:]}"


def _callable(agent: Agent) -> dict[str, Tool]:
    """The tools that a program can call: not those of agents, nor such as need the user's very words."""
    return {t.written: t for t in agent.tools if t.agent is None and not t.from_user}


def _told(tool: Tool) -> dict[str, Any]:
    hints = {"readOnlyHint": tool.effect == "read", "destructiveHint": tool.effect == "irreversible"}
    return {
        "name": tool.written,
        "description": tool.description,
        "inputSchema": tool.parameters.schema,
        "annotations": hints | {"idempotentHint": tool.idempotent},
    }
