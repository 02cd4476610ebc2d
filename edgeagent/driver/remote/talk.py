"""Talk of a session as a remote model is told it, and its reply as the session's own dialect writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from edgeagent.codec.conversation import (
    Call,
    Conversation,
    FromModel,
    FromTool,
    FromUser,
    Reply,
    ToolOffer,
    Turn,
)
from edgeagent.codec.dialects.family import Family, plain_message
from edgeagent.codec.dialects.plain import Plain
from edgeagent.codec.subset import Subset, within, without_nulls
from edgeagent.core.agent import RESULT_MORE, Agent, Tool
from edgeagent.core.effects import AskModel
from edgeagent.core.names import writable
from edgeagent.core.reading import Answer, Calls
from edgeagent.core.values import Message, ToolCall
from edgeagent.driver.model import Sampling
from edgeagent.driver.remote.endpoint import Endpoint

NO_RESULT = "no result of this call is known"


def conversation_of(
    ask: AskModel, agent: Agent, endpoint: Endpoint, sampling: Sampling, subset: Subset = "full"
) -> Conversation:
    """What is sent: the agent's text, the conversation, and the tools that may be called now."""
    turns = tuple(_turns(ask.messages, agent))
    has_calls = any(isinstance(each, FromModel) and each.calls for each in turns)
    named = _known(ask, agent, turns) if has_calls else ask.tools
    offers = tuple(
        _offer(each, subset)
        for each in agent.by_name.values()
        if each.name in named and (each.name in ask.tools or ask.choice == "answer" or has_calls)
    )
    if ask.closing:
        limit = f"(The limit of {ask.closing} is reached. Answer now in one short sentence.)"
        turns = (*turns, FromUser(limit))
    omit = endpoint.omit
    return Conversation(
        model=endpoint.model,
        turns=turns,
        system=agent.system,
        tools=offers,
        choice=ask.choice if ask.tools else "answer",
        stream=endpoint.stream,
        limit_name=endpoint.limit_name,
        extra=endpoint.extra if sampling.top_p is None else {"top_p": sampling.top_p, **endpoint.extra},
        max_tokens=0 if "max_tokens" in omit else ask.max_tokens,
        temperature=None if "temperature" in omit else sampling.temperature,
        seed=None if "seed" in omit else ask.seed,
    )


def _offer(tool: Tool, subset: Subset) -> ToolOffer:
    """A tool with its schema in the subset; where it cannot be strict it is plain."""
    schema = within(tool.parameters.schema, subset)
    if schema is None:
        return _offer(tool, "plain")
    return ToolOffer(tool.written, tool.description, schema, strict=subset == "strict")


def _known(ask: AskModel, agent: Agent, turns: tuple[Turn, ...]) -> tuple[str, ...]:
    """All tools of the conversation: servers refuse calls of tools that they are not told."""
    called = {call.tool for each in turns if isinstance(each, FromModel) for call in each.calls}
    return (*agent.tool_names, *({RESULT_MORE.name} & {*ask.tools, *called}))


def _turns(messages: Sequence[Message], agent: Agent) -> Iterator[Turn]:
    """Each message as a turn; a call that has no result, since its turn was stopped, is given one that says so."""
    waiting: list[str] = []
    for place, message in enumerate(messages):
        if message.role == "tool" and waiting:
            yield FromTool(waiting.pop(0), message.text, failed=message.text.startswith(('{"error"', '{"refused"')))
            continue
        yield from (FromTool(each, NO_RESULT, failed=True) for each in waiting)
        waiting = []
        match message.role:
            case "assistant":
                said = _from_model(message.text, agent, place)
                waiting = [call.id for call in said.calls]
                yield said
            case "tool":
                named = writable(message.tool) if message.tool else "what was written"
                yield FromUser(f"Result of {named}: {message.text}")
            case _:
                yield FromUser(plain_message(message)["content"])
    yield from (FromTool(each, NO_RESULT, failed=True) for each in waiting)


def _from_model(text: str, agent: Agent, place: int) -> FromModel:
    """What the model wrote; its calls get ids by their place, since the session keeps none."""
    reading = agent.dialect.read(text) if agent.dialect is not None else Answer(text)
    if not isinstance(reading, Calls):
        return FromModel(text)
    told = (ToolCall(agent.as_declared(each).tool, each.arguments) for each in reading.calls)
    written = ((_written_name(agent, each.tool), each.arguments) for each in told)
    return FromModel(
        calls=tuple(
            Call(f"call_{place}_{n}", name, json.dumps(arguments, ensure_ascii=False))
            for n, (name, arguments) in enumerate(written)
        )
    )


def _written_name(agent: Agent, name: str) -> str:
    tool = agent.by_name.get(name)
    return tool.written if tool is not None else name


def without_strict_nulls(reply: Reply, agent: Agent) -> Reply:
    """The reply of a strict server: what was left out is null in it, and is left out again."""
    by_written = {tool.written: tool for tool in agent.by_name.values()}
    calls = (
        replace(call, arguments=without_nulls(call.arguments, by_written[call.tool].parameters.schema))
        if call.tool in by_written
        else call
        for call in reply.calls
    )
    return replace(reply, calls=tuple(calls))


def written(reply: Reply, dialect: Family, *, is_answer: bool) -> str:
    """The reply as the dialect writes it, for the step to read: calls in their frame, words as they are.

    Arguments stand as the server has sent them, and are judged where every model's are. Words that would be taken for
    a broken call, as an answer in JSON would, are set in a fence.
    """
    if reply.calls and not is_answer:
        calls = [_call(each, dialect) for each in reply.calls]
        return f"[{', '.join(calls)}]" if len(calls) > 1 and isinstance(dialect, Plain) else "\n".join(calls)
    text = reply.text or reply.refusal
    if is_answer or isinstance(dialect.read(text), Calls | Answer):
        return text
    return f"```\n{text}\n```"


def _call(call: Call, dialect: Family) -> str:
    frame = dialect.frame
    name, arguments = json.dumps(call.tool, ensure_ascii=False)[1:-1], call.arguments.strip() or "{}"
    return f"{frame.before}{name}{frame.between}{arguments}{frame.after}"
