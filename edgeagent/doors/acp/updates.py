"""Updates: what an editor is shown of each transition. Values in, ACP's updates out, live or of a recorded session.

Text from a tool or from the model is escaped as for a terminal: clients print it on one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from edgeagent.core.agent import Agent, Tool
from edgeagent.core.effects import AskModel, Effect, Finish, Say
from edgeagent.core.events import Cancelled, EffectLost, Event, Heard, TimerFired, ToolFailed, ToolReturned, UserSaid
from edgeagent.core.outside import PIPED
from edgeagent.core.state import AwaitingCalls, PendingCall, State, calls_out, is_held
from edgeagent.core.text import shown
from edgeagent.core.values import call_digest, read_json
from edgeagent.doors.acp.client import COMMAND, READ, WRITE
from edgeagent.runtime.spoken import Spoken

TITLE_CHARS = 200

Update = dict[str, Any]


class Updates:
    """Follows one session. `give` is called with each update, in order."""

    def __init__(self, agent: Agent, give: Callable[[Update], None]) -> None:
        self._tools, self._give = agent.family, give
        self._spoken = Spoken(None, self._speak)
        self._calls: dict[int, PendingCall] = {}
        self._plan: tuple[tuple[str, str], ...] = ()
        self._timers: dict[int, str] = {}

    def stream(self, text: str) -> None:
        """Give on words of an answer as they are written."""
        self._spoken.stream(text)

    def take(self, event: Event, state: State, effects: tuple[Effect, ...], *, echo: bool) -> None:
        """Give on what a transition shows; with `echo` what the user said too."""
        self._begin(event, echo=echo)
        self._spoken.watch(event, state, effects)
        self._follow_calls(event, state)
        self._follow_plan(state)
        for effect in effects:
            match effect:
                case Say(text=text):
                    self._spoken.end(text)
                    self._spoken = Spoken(None, self._speak)
                case Finish(reason=reason):
                    self.think(f"the session has ended: {reason}")
                case AskModel():
                    for why in _refused_before(effect):
                        self.think(f"refused: {why}")
                case _:
                    pass
        self._timers = {each.effect_id: each.note for each in state.timers}

    def think(self, text: str) -> None:
        """Give on a sentence about what goes on."""
        self._give({"sessionUpdate": "agent_thought_chunk", "content": _text(f"{text}\n")})

    def call_id(self, question_id: int) -> str:
        """The call that a question is about."""
        found = (str(call.effect_id) for call in self._calls.values() if call.question_id == question_id)
        return next(found, f"question-{question_id}")

    def running(self, tool: str, arguments: str) -> str:
        """The call of that tool with these arguments that runs now; '' if there is none."""
        found = (str(c.effect_id) for c in self._calls.values() if (c.tool, c.arguments) == (tool, arguments))
        return next(found, "")

    def described(self, tool: str, arguments: str) -> Update:
        """What is shown of a call before it runs."""
        given = read_json(arguments)
        row: Update = {"title": title_of(tool, given), "kind": kind_of(self._tools.get(tool)), "rawInput": given}
        if tool in (READ, WRITE) and isinstance(given.get("path"), str):
            row["locations"] = [{"path": shown(given["path"])}]
        if tool == WRITE:
            row["content"] = [{"type": "diff", "path": shown(given["path"]), "newText": given.get("content", "")}]
        return row

    # -- what was said ---------------------------------------------------------------------------------------------

    def _begin(self, event: Event, *, echo: bool) -> None:
        match event:
            case UserSaid(text=text) if echo:
                self._give({"sessionUpdate": "user_message_chunk", "content": _text(text)})
            case Heard(source=source, text=text) if source != PIPED:
                self.think(f"heard from {source}: {text}")
            case TimerFired(effect_id=effect_id):
                self.think(f"timer: {self._timers.get(effect_id, '')}")
            case _:
                pass

    def _speak(self, text: str) -> None:
        self._give({"sessionUpdate": "agent_message_chunk", "content": _text(text)})

    # -- calls -----------------------------------------------------------------------------------------------------

    def _follow_calls(self, event: Event, state: State) -> None:
        before, now = self._calls, {call.effect_id: call for call in calls_out(state)}
        for effect_id, call in before.items():
            if effect_id not in now:
                self._update(effect_id, _ended(event, call))
        for effect_id, call in now.items():
            status = _status(call)
            if effect_id not in before:
                row = {"sessionUpdate": "tool_call", "toolCallId": str(effect_id), "status": status}
                self._give(row | self.described(call.tool, call.arguments))
            elif status != _status(before[effect_id]):
                self._update(effect_id, {"status": status})
        self._calls = now

    def _update(self, effect_id: int, row: Update) -> None:
        self._give({"sessionUpdate": "tool_call_update", "toolCallId": str(effect_id)} | row)

    def _follow_plan(self, state: State) -> None:
        """Show several calls that were asked for at once as a plan, and how far it has come."""
        if isinstance(state.phase, AwaitingCalls) and len(state.phase.calls) > 1:
            plan = tuple((title_of(c.tool, read_json(c.arguments)), _progress(c)) for c in state.phase.calls)
        else:
            plan = tuple((title, "completed") for title, _ in self._plan)
        if plan != self._plan:
            entries = [{"content": title, "priority": "medium", "status": status} for title, status in plan]
            self._give({"sessionUpdate": "plan", "entries": entries})
        self._plan = plan if isinstance(state.phase, AwaitingCalls) else ()


def title_of(tool: str, arguments: dict[str, Any]) -> str:
    """A call as a person reads it."""
    told = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    text = shown(f"{tool}({told})")
    return text if len(text) <= TITLE_CHARS else f"{text[:TITLE_CHARS]}…"


def kind_of(tool: Tool | None) -> str:
    """What an editor draws beside the call."""
    if tool is None:
        return "other"
    if tool.name == WRITE:
        return "edit"
    if tool.agent is not None:
        return "think"
    return "read" if tool.effect == "read" else "execute"


def question_meta(tool: str, arguments: str, because: str) -> Update:
    """What ties an answer to its question."""
    return {"edgeagent": {"digest": call_digest(tool, arguments), "because": shown(because)}}


def _status(call: PendingCall) -> str:
    return "pending" if is_held(call) else "in_progress"


def _progress(call: PendingCall) -> str:
    return "completed" if call.answer is not None else _status(call)


def _ended(event: Event, call: PendingCall) -> Update:
    """How a call that was out has ended in this event."""
    match event:
        case ToolReturned(effect_id=call.effect_id, unshown=unshown) if unshown:
            return {"status": "completed", "content": _content(f"it did its work; {unshown}")}
        case ToolReturned(effect_id=call.effect_id, value=value):
            given = read_json(value)
            text = given if isinstance(given, str) else value
            if call.tool == COMMAND and isinstance(given, dict):
                text = str(given.get("output", text))
            # What was written is shown as a difference, which this would take the place of.
            content = {} if call.tool == WRITE else {"content": _content(text)}
            return {"status": "completed", "rawOutput": given} | content
        case ToolFailed(effect_id=call.effect_id, message=message):
            return {"status": "failed", "content": _content(message)}
        case EffectLost(effect_id=call.effect_id):
            return {"status": "failed", "content": _content("whether it took effect is unknown: it was interrupted")}
        case Cancelled():
            return {"status": "failed", "content": _content("cancelled")}
        case _:
            return {"status": "failed", "content": _content("it did not run")}


def _refused_before(ask: AskModel) -> list[str]:
    """Why calls that the model wrote before it is asked again did not run."""
    found: list[str] = []
    for message in reversed(ask.messages):
        if message.role != "tool":
            break
        if message.text.startswith('{"refused":'):
            try:
                found.insert(0, str(msgspec.json.decode(message.text)["refused"]))
            except (msgspec.DecodeError, KeyError):  # A tool's own result may begin so, and be cut.
                continue
    return found


def _text(text: str) -> Update:
    return {"type": "text", "text": shown(text, lines=True)}


def _content(text: str) -> list[Update]:
    return [{"type": "content", "content": _text(text)}]
