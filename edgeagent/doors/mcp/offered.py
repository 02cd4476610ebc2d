"""What an agent offers to a client of MCP: its tools, itself, and the traces of both; loaded when first asked for.

Two sessions: one of calls that the client dictates, under all rules and each in the trace; one of the agent with its
model, which is loaded when something is said to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from edgeagent.core.agent import Agent, Tool
from edgeagent.core.names import writable
from edgeagent.core.values import canonical_json
from edgeagent.driver.peer import Call
from edgeagent.runtime.answer import Answer, Called
from edgeagent.runtime.dictated import Dictation
from edgeagent.runtime.door import Door
from edgeagent.runtime.golden import story
from edgeagent.runtime.open import OpenRequest, open_session
from edgeagent.runtime.recording import load_recording, records_of
from edgeagent.runtime.session import Session
from edgeagent.runtime.wiring import agent_path

DOOR = "mcp"

TRACE = "edgeagent://trace/"
"""How the URI of a session's trace begins."""

LOOKED_UP = "the client calls {tool}"
"""What stands in the place of a user's words: nothing of the call, since none of it is a user's."""


class Offered:
    """One agent, for one client."""

    def __init__(self, agent: str, options: Mapping[str, Any], door: Door, tell: Callable[[str], None]) -> None:
        self._spec, self._options, self._door, self._tell = agent, options, door, tell
        self._opened: dict[str, Session] = {}
        self._dictation = Dictation()

    @property
    def ask_name(self) -> str:
        """The tool by which something is said to the agent; named after its file, so that nothing must be loaded."""
        return writable(f"ask_{agent_path(self._spec).stem}")

    @cached_property
    def _calls(self) -> Session:
        options = {key: each for key, each in self._options.items() if key in ("state", "config", "seed")}
        asked = OpenRequest(agent=self._spec, door=DOOR, **options)
        return self._kept("calls", open_session(asked, self._door, self._dictation))

    @cached_property
    def _talk(self) -> Session:
        asked = OpenRequest(agent=self._spec, door=DOOR, **self._options)
        return self._kept("words", open_session(asked, self._door))

    def _kept(self, name: str, session: Session) -> Session:
        self._opened[name] = session
        return session

    def close(self) -> None:
        """Close the sessions."""
        for session in self._opened.values():
            session.close()

    # -- tools -----------------------------------------------------------------------------------------------------

    def tools(self) -> list[dict[str, Any]]:
        """What the client may call."""
        agent = self._calls.agent
        return [*(_told(each) for each in _callable(agent).values()), self._told_asking(agent)]

    def call(self, call: Call, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Have a call made as if a model had written it."""
        session = self._calls
        tool = _callable(session.agent).get(name)
        if tool is None:
            known = ", ".join((*_callable(session.agent), self.ask_name))
            return _failed(f"there is no tool {name[:80]!r}; there are: {known}")
        self._dictation.dictate(tool.written, arguments)
        answer = self._said(session, call, LOOKED_UP.format(tool=tool.name))
        ran = next((each for each in answer.calls if each.tool == tool.name), None)
        return _failed(self._dictation.told or answer.text or answer.outcome.detail) if ran is None else _ran(ran)

    def ask(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        """Say something to the agent."""
        text = arguments.get("text")
        if not isinstance(text, str) or not text.strip():
            return _failed("text is missing: say what is to be done")
        answer = self._said(self._talk, call, text)
        told = {"content": [{"type": "text", "text": answer.text}]}
        return told if answer.outcome.kind in ("answered", "budget") else told | {"isError": True}

    def _said(self, session: Session, call: Call, text: str) -> Answer:
        call.on_cancel(lambda: session.cancel("cancelled by the client"))
        return session.ask(text, by="client", door=DOOR)

    def _told_asking(self, agent: Agent) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        about = f"Ask the agent {agent.name} in words; it may use its tools, and answers in words."
        return {"name": self.ask_name, "description": about, "inputSchema": schema | {"additionalProperties": False}}

    # -- resources -------------------------------------------------------------------------------------------------

    def resources(self) -> list[dict[str, Any]]:
        """The traces of what this client has done here."""
        return [
            {"uri": TRACE + session.id, "name": f"trace of {name}", "mimeType": "text/plain"}
            for name, session in self._opened.items()
        ]

    def read(self, uri: str) -> str | None:
        """A trace, as lines; None for what is none of them."""
        session = next((each for each in self._opened.values() if TRACE + each.id == uri), None)
        if session is None:
            return None
        recording = load_recording(session.trace_path, session.agent)
        return "".join(story(recording, records_of(session.trace_path)))


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


def _ran(called: Called) -> dict[str, Any]:
    if called.error:
        return _failed(called.error)
    result = called.result
    text = result if isinstance(result, str) else canonical_json(result)
    told: dict[str, Any] = {"content": [{"type": "text", "text": called.unshown or text}]}
    return told | {"structuredContent": result} if isinstance(result, dict) else told


def _failed(why: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": why}], "isError": True}
