"""Plan of an ask for a model that does not call tools by itself: the request is read here, as for a small model that
is loaded, and the server holds its model to the call that follows.

What is sent is what such a model would be shown here: the tools in the system text, results in words. A request that
forbids something, that no tool serves or that leaves an argument open is answered without the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from edgeagent.codec.conversation import AnswerShape, Call, Conversation, FromModel, FromUser, Reply
from edgeagent.codec.dialects.plain import Plain
from edgeagent.codec.subset import within
from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskModel
from edgeagent.core.reading import Calls as Read
from edgeagent.core.values import canonical_json
from edgeagent.driver.model import Weighing
from edgeagent.driver.remote.schemas import Held
from edgeagent.grammar.calls import calls_of, grammar_of
from edgeagent.request.meaning import Meaning
from edgeagent.request.more import declared, reading_on
from edgeagent.request.plan import plan
from edgeagent.request.planned import Plan, PlannedCall
from edgeagent.request.said import Spoken
from edgeagent.request.telling import before_in, or_cannot, request_in, told_in
from edgeagent.request.tools import Tools

LINE_TOKENS_MAX = 64
"""The most that is written about a result: two sentences."""

SHAPE_NAME = "call"


class Planner:
    """Reads the requests to one agent and those below it."""

    def __init__(self, agent: Agent, meaning: Meaning | None = None) -> None:
        self._agent = agent
        self._tools = {path: Tools.of(a.tools, meaning, f"{a.name} {a.system}") for path, a in agent.by_path.items()}

    def weighs(self, ask: AskModel) -> bool:
        """Whether there is something that a judge could say."""
        return ask.choice != "answer" and bool(declared(ask.tools)) and ask.messages[-1].role != "tool"

    def planned(self, ask: AskModel, weighing: Weighing | None = None) -> Plan:
        """What is to be done: calls, a text that needs no model, or neither, and the model answers in words."""
        agent, is_call = self._agent.by_path[ask.agent], ask.choice == "call"
        if ask.choice == "answer" or not (declared(ask.tools) or reading_on(request_in(ask), ask.tools)):
            return Plan()
        if ask.messages[-1].role == "tool":
            # Models without a format of their own copy the last call for ever, if they may.
            return Plan((PlannedCall(ask.tools),)) if is_call else Plan(text="" if agent.prose else told_in(ask, agent))
        tools = self._tools[ask.agent].only(declared(ask.tools))
        found = reading_on(request_in(ask), ask.tools) or plan(
            request_in(ask),
            tools,
            weighing and weighing.judge,
            fitted=weighing and weighing.fitted,
            needed=weighing and weighing.needed,
            is_open=not is_call,
            before=before_in(ask, agent),
            spoken=Spoken(agent.language, datetime.now().astimezone()),
        )
        return found if found.calls or is_call else or_cannot(found, ask, agent)


PLAIN = Plain()
"""How such a model is told of calls and writes them, whatever dialect the session has for a model that is loaded."""


def planned_conversation(base: Conversation, ask: AskModel, agent: Agent, plan: Plan, held: Held) -> Conversation:
    """The conversation in the plain dialect, held to the planned calls. Raises GrammarError."""
    chat = PLAIN.chat(ask.messages, closing=ask.closing)
    turns = tuple(
        FromModel(each["content"]) if each["role"] == "assistant" else FromUser(each["content"]) for each in chat
    )
    told = replace(base, turns=turns, system=PLAIN.system_text(agent.system, agent.tools), tools=(), choice="answer")
    if plan.calls:
        return _held(told, _calls_of(plan.calls, ask, agent), held)
    if ask.messages[-1].role == "tool":  # What a small model adds to one line is that line again.
        return replace(told, stop=("\n",), max_tokens=min(told.max_tokens, LINE_TOKENS_MAX))
    return told


def as_called(reply: Reply) -> Reply:
    """The reply with the calls that its text writes; as it is where that is no call."""
    reading = PLAIN.read(reply.text)
    if not isinstance(reading, Read):
        return reply
    calls = (Call("", each.tool, canonical_json(each.arguments)) for each in reading.calls)
    return replace(reply, text="", calls=tuple(calls))


OfOne = Sequence[tuple[str, Mapping[str, Any]]]
"""The tools that one call may be of, with the schemas of their arguments."""


def _calls_of(planned: Sequence[PlannedCall], ask: AskModel, agent: Agent) -> list[OfOne]:
    return [
        calls_of(
            [agent.by_name[name] for name in each.tools], (*ask.narrowed, *each.evidence.narrowed), each.evidence.given
        )
        for each in planned
    ]


def _held(told: Conversation, calls: list[OfOne], held: Held) -> Conversation:
    """The conversation, its answer held to these calls as the server can hold it."""
    if held.calls == "grammar" and len(calls) == 1:
        text = grammar_of(calls[0], PLAIN.frame, answer="never", engine="gbnf")
        return replace(told, extra={"grammar": text, **told.extra})
    schemas = [_schema_of(each) for each in calls]
    whole = schemas[0] if len(schemas) == 1 else _batch(schemas)
    schema = None if held.subset == "strict" and len(schemas) > 1 else within(whole, held.subset)
    sent = within(whole, "plain") if schema is None else schema
    if held.calls == "schema":
        is_strict = schema is not None and held.subset != "plain"
        return replace(told, answer=AnswerShape(SHAPE_NAME, sent or {}, is_strict))
    form = {"type": "json_object"} | ({} if held.subset == "none" else {"schema": sent})
    return replace(told, extra={"response_format": form, **told.extra})


def _schema_of(calls: OfOne) -> dict[str, Any]:
    """The JSON Schema of one call of one of the tools."""
    written = [
        {
            "type": "object",
            "properties": {"name": {"const": name}, "arguments": schema},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for name, schema in calls
    ]
    return written[0] if len(written) == 1 else {"anyOf": written}


def _batch(schemas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"type": "array", "prefixItems": list(schemas), "minItems": len(schemas), "maxItems": len(schemas)}
