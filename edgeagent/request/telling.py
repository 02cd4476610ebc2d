"""Request in an ask, and what is told of it in plain words: what its calls have brought, or that no tool fits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskModel
from edgeagent.core.reading import Calls
from edgeagent.core.results import with_words_for_more
from edgeagent.core.values import Message
from edgeagent.request.answers import cannot, told
from edgeagent.request.followup import Earlier
from edgeagent.request.language import SentenceTable
from edgeagent.request.plan import Before
from edgeagent.request.planned import Plan
from edgeagent.request.said import said_of


def told_in(ask: AskModel, agent: Agent) -> str:
    """What is said of the results at the end of the conversation."""
    place = len(ask.messages)
    while place and ask.messages[place - 1].role == "tool":
        place -= 1
    results, sentences = ask.messages[place:], _sentences(ask, agent)
    arguments = _arguments_of(ask.messages[place - 1] if place else None, agent, len(results))
    by_name = {tool.name: tool for tool in agent.tools}
    lines = [
        told(by_name.get(each.tool), each.tool, given, with_words_for_more(each.text, sentences.read_on), sentences)
        for each, given in zip(results, arguments, strict=True)
    ]
    return "\n".join(lines)


def or_cannot(planned: Plan, ask: AskModel, agent: Agent) -> Plan:
    """The plan; or, for a person's request that no tool serves, what is said to it: the nearest tools first."""
    if planned.calls or planned.text or agent.prose or ask.messages[-1].role != "user":
        return planned
    near = dict(planned.scores)
    tools = [tool for tool in agent.tools if tool.name in ask.tools]
    nearest = sorted(tools, key=lambda each: -near.get(each.name, 0.0))
    return replace(planned, text=cannot(nearest, _sentences(ask, agent)))


def before_in(ask: AskModel, agent: Agent) -> Before:
    """What the user said before, and what was answered, if that was the last thing that happened; and the last call."""
    roles, call = [message.role for message in ask.messages[-3:]], _last_call(ask, agent)
    if roles != ["user", "assistant", "user"]:
        return Before(call=call)
    return Before(ask.messages[-3].text, ask.messages[-2].text, call)


def _last_call(ask: AskModel, agent: Agent) -> Earlier | None:
    """The last call before what the user said, if it stood alone and worked."""
    if agent.dialect is None:
        return None
    said = max((place for place, each in enumerate(ask.messages) if each.role == "user"), default=0)
    for place in range(said - 1, -1, -1):
        message = ask.messages[place]
        reading = agent.dialect.read(message.text) if message.role == "assistant" else None
        if isinstance(reading, Calls):
            results = [each.text for each in ask.messages[place + 1 : said] if each.role == "tool"]
            is_one = len(reading.calls) == len(results) == 1
            if not is_one or results[0].startswith(('{"error":', '{"refused":')):
                return None
            return Earlier(reading.calls[0].tool, reading.calls[0].arguments)
    return None


def request_in(ask: AskModel) -> str:
    """What the user said last, or what came from outside after that."""
    return next((m.text for m in reversed(ask.messages) if m.role in ("user", "heard", "note")), "")


def _sentences(ask: AskModel, agent: Agent) -> SentenceTable:
    return said_of(request_in(ask), agent.language).tongue.sentences


def _arguments_of(message: Message | None, agent: Agent, count: int) -> list[dict[str, Any]]:
    """The arguments of the calls that the model wrote; none where that is not known."""
    reading = agent.dialect.read(message.text) if message is not None and agent.dialect is not None else None
    if isinstance(reading, Calls) and len(reading.calls) == count:
        return [each.arguments for each in reading.calls]
    return [{}] * count
