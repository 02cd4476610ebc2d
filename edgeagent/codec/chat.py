"""OpenAI's chat completions: a conversation → the body of a request; what comes back → a reply."""

from __future__ import annotations

from typing import Any

import msgspec

from edgeagent.codec.conversation import (
    Call,
    Conversation,
    FromModel,
    FromTool,
    FromUser,
    Text,
    ToolOffer,
    Turn,
    kept_of,
)
from edgeagent.codec.failures import Failure
from edgeagent.codec.json_text import write_body
from edgeagent.codec.reading import (
    Broken,
    CallPieces,
    Reading,
    fields,
    joined,
    lacking,
    merge,
    number,
    objects,
    usage_of,
    word,
)

# -- a conversation → bytes ------------------------------------------------------------------------------------------


def encode(conversation: Conversation) -> bytes:
    """Return the body of the request."""
    answer, tools, stream = conversation.answer, conversation.tools, conversation.stream
    shape = answer and {"name": answer.name, "schema": answer.schema, "strict": answer.strict}
    fields = {
        "model": conversation.model,
        "messages": _messages(conversation),
        "tools": [_tool(tool) for tool in tools] or None,
        "tool_choice": _choice(conversation) if tools else None,
        "parallel_tool_calls": False if tools and not conversation.parallel else None,
        "response_format": shape and {"type": "json_schema", "json_schema": shape},
        conversation.limit_name: conversation.max_tokens or None,
        "temperature": conversation.temperature,
        "seed": conversation.seed,
        "stop": list(conversation.stop) or None,
        "stream": stream or None,
        "stream_options": {"include_usage": True} if stream else None,
    }
    return write_body(fields, conversation.extra)


def _messages(conversation: Conversation) -> list[dict[str, Any]]:
    system = [{"role": "system", "content": conversation.system}] if conversation.system else []
    return system + [_message(turn) for turn in conversation.turns]


def _message(turn: Turn) -> Any:
    match turn:
        case FromUser():
            return {"role": "user", "content": turn.text}
        case FromTool():
            return {"role": "tool", "tool_call_id": turn.call_id, "content": turn.text}
        case FromModel():
            return kept_of(turn, "chat") or _said(turn.text, turn.calls)


def _said(text: str, calls: tuple[Call, ...]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else "")}
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": call.arguments}}
            for call in calls
        ]
    return message


def _tool(tool: ToolOffer) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.about, "parameters": tool.schema}
    return {"type": "function", "function": function | ({"strict": True} if tool.strict else {})}


def _choice(conversation: Conversation) -> Any:
    if conversation.only:
        return {"type": "function", "function": {"name": conversation.only}}
    return {"either": "auto", "call": "required", "answer": "none"}[conversation.choice]


# -- bytes → a reply -------------------------------------------------------------------------------------------------


class _Function(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: str | None = None
    arguments: str | None = None


class _CallDelta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    index: int
    function: _Function
    id: str | None = None
    type: str | None = None


class _Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    content: str | None = None
    role: str | None = None
    tool_calls: list[_CallDelta] | None = None
    reasoning_content: str | None = None
    refusal: None = None
    function_call: None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta
    finish_reason: None = None
    index: int = 0


class _Chunk(msgspec.Struct, gc=False):
    choices: tuple[_Choice]
    usage: None = None
    error: None = None


_usual = msgspec.json.Decoder(_Chunk).decode
"""Reads the usual chunk: one choice, and in its delta no field but these. Any other raises, and is read slowly."""

_KNOWN = frozenset({"role", "content", "refusal", "tool_calls", "function_call"})
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
"""Names that servers give the reasoning; one reply uses one of them, and some repeat it under a second name."""


class ChatReading(Reading):
    """One reply of chat completions, as far as it has come."""

    api = "chat"

    def __init__(self) -> None:
        super().__init__()
        self._is_first = True
        self._at: dict[int, CallPieces] = {}
        self._fields: dict[str, Any] = {}
        self._thoughts_name = ""

    def take_usual(self, data: bytes) -> bool:
        """Read a piece of the answer or of a call. The first chunk says who answers, and is never read here."""
        if self._is_first:
            return False
        try:
            (choice,) = _usual(data).choices
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return False
        if choice.index:
            return False
        if thought := choice.delta.reasoning_content:
            if self._thoughts_name != "reasoning_content":
                return False
            self.think(thought)
        if text := choice.delta.content:
            self.texts.append(text)
            self.out.append(Text(text))
        for each in choice.delta.tool_calls or ():
            self._take_call(each.index, each.id, each.function.name, each.function.arguments)
        return True

    def take_value(self, value: dict[str, Any]) -> None:
        """Read any chunk."""
        if self._is_first:
            self._is_first = False
            self.id, self.model = word(value.get("id")), word(value.get("model"))
        if usage := fields(value.get("usage")):
            self.usage = usage_of(usage)
        for choice in objects(value.get("choices")):
            if number(choice.get("index")) == 0:
                self._take_delta(fields(choice.get("delta") or choice.get("message")))
                self.finish = word(choice.get("finish_reason")) or self.finish
                if self.finish == "error":
                    raise Broken(Failure("server", "the server says that it failed in the middle of its answer"))

    def take_body(self, value: dict[str, Any]) -> None:
        """Read a reply that was not streamed."""
        if not objects(value.get("choices")):
            raise lacking("choices", value)
        self.take_value(value)
        self.finish = self.finish or "stop"

    def kept(self) -> dict[str, Any]:
        """Return the message as it goes back: with the vendor's fields, each at its place."""
        message = _said("".join(self.texts), tuple(call.call() for call in self.calls))
        if self.refusals:
            message["refusal"] = "".join(self.refusals)
        if self._thoughts_name:
            message[self._thoughts_name] = "".join(self.thoughts)
        for sent, call in zip(message.get("tool_calls", ()), self.calls, strict=True):
            vendors = joined(call.fields)
            sent["function"].update(vendors.pop("function", {}))
            sent.update(vendors)
        message.update(joined(self._fields))
        return message

    def _take_delta(self, delta: dict[str, Any]) -> None:
        name = self._thoughts_name or next((each for each in _THOUGHTS if isinstance(delta.get(each), str)), "")
        if name and delta.get(name):
            self._thoughts_name = name
            self.think(delta[name])
        content = delta.get("content")
        self.say(content)
        for part in objects(content):  # Mistral's reasoning models write parts.
            self.say(part.get("text"))
            for thought in objects(part.get("thinking")):
                self.think(thought.get("text"))
        self.refuse(delta.get("refusal"))
        for each in objects(delta.get("tool_calls")):
            self._take_foreign_call(each)
        if old := fields(delta.get("function_call")):  # How calls were written before there were several.
            self._take_call(0, None, old.get("name"), old.get("arguments"))
        merge(self._fields, {n: v for n, v in delta.items() if n not in _KNOWN and n != name and v is not None})

    def _take_foreign_call(self, each: dict[str, Any]) -> None:
        function = fields(each.get("function"))
        call = self._take_call(each.get("index"), each.get("id"), function.get("name"), function.get("arguments"))
        vendors = {name: v for name, v in each.items() if name not in {"index", "id", "type", "function"}}
        inner = {name: v for name, v in function.items() if name not in {"name", "arguments"}}
        merge(call.fields, vendors | ({"function": inner} if inner else {}))

    def _take_call(self, index: Any, call_id: Any, tool: Any, arguments: Any) -> CallPieces:
        """A piece of the call at `index`. Another id with a name is another call, whatever the index says.

        Without an index a name begins a call and anything else belongs to the last one.
        """
        call = self._at.get(index) if isinstance(index, int) else None
        if not isinstance(index, int) and not tool and self.calls:
            call = self.calls[-1]
        if call is not None and call.begun and tool and call_id and call_id != call.id:
            call = None
        if call is None:
            call = self.new_call()
            if isinstance(index, int):
                self._at[index] = call
        self.name(call, call_id, tool)
        self.argue(call, arguments)
        return call
