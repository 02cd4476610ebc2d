"""OpenAI's chat completions: a conversation → the body of a request; the body of a response → deltas and a reply."""

from __future__ import annotations

from typing import Any

import msgspec

from edgeagent.codec.conversation import (
    Call,
    Conversation,
    Delta,
    Ended,
    FromModel,
    FromTool,
    FromUser,
    Kept,
    Reason,
    Reply,
    Text,
)
from edgeagent.codec.failures import Failure, malformed
from edgeagent.codec.json_text import read_object, write, write_text
from edgeagent.codec.pieces import CallPieces, Pieces, fields, merge, number, objects, word
from edgeagent.codec.sse import SseEvent
from edgeagent.codec.stream import CUT_SHORT, event_value
from edgeagent.core.values import Usage

DONE = b"[DONE]"

REASONS: dict[str, Reason] = {
    "stop": "end",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "limit",
    "content_filter": "filtered",
}

# -- a conversation → bytes ----------------------------------------------------------------------------------------


def encode(conversation: Conversation) -> bytes:
    """Return the body of the request."""
    body: dict[str, Any] = {"model": conversation.model, "messages": _messages(conversation)}
    if conversation.tools:
        body |= _tools(conversation)
    if conversation.answer is not None:
        answer = conversation.answer
        shape = {"name": answer.name, "schema": answer.schema, "strict": answer.strict}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    if conversation.max_tokens:
        body[conversation.limit_name] = conversation.max_tokens
    if conversation.temperature is not None:
        body["temperature"] = conversation.temperature
    if conversation.seed is not None:
        body["seed"] = conversation.seed
    if conversation.stop:
        body["stop"] = list(conversation.stop)
    if conversation.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return write(body | dict(conversation.extra))


def _messages(conversation: Conversation) -> list[dict[str, Any]]:
    system = [{"role": "system", "content": conversation.system}] if conversation.system else []
    return system + [_message(turn) for turn in conversation.turns]


def _message(turn: FromUser | FromModel | FromTool) -> dict[str, Any]:
    match turn:
        case FromUser():
            return {"role": "user", "content": turn.text}
        case FromTool():
            return {"role": "tool", "tool_call_id": turn.call_id, "content": turn.text}
        case FromModel():
            kept = turn.kept
            if kept is not None and kept.api == "chat" and (message := read_object(kept.body)) is not None:
                return message
            return _said(turn.text, turn.calls)


def _said(text: str, calls: tuple[Call, ...]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else "")}
    if calls:
        message["tool_calls"] = [_call(call) for call in calls]
    return message


def _call(call: Call) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": call.arguments}}


def _tools(conversation: Conversation) -> dict[str, Any]:
    offers = []
    for tool in conversation.tools:
        function: dict[str, Any] = {"name": tool.name, "description": tool.about, "parameters": tool.schema}
        if tool.strict:
            function["strict"] = True
        offers.append({"type": "function", "function": function})
    body: dict[str, Any] = {"tools": offers, "tool_choice": _choice(conversation)}
    if not conversation.parallel:
        body["parallel_tool_calls"] = False
    return body


def _choice(conversation: Conversation) -> Any:
    if conversation.only:
        return {"type": "function", "function": {"name": conversation.only}}
    return {"either": "auto", "call": "required", "answer": "none"}[conversation.choice]


# -- bytes → a reply -----------------------------------------------------------------------------------------------


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
    finish_reason: str | None = None
    index: int = 0


class _Chunk(msgspec.Struct, gc=False):
    choices: tuple[_Choice]


_usual = msgspec.json.Decoder(_Chunk).decode
"""Reads the usual chunk: one choice, and in its delta no field but these. Every other one raises, and is read slowly."""

_KNOWN = frozenset({"role", "content", "refusal", "tool_calls", "function_call"})
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
"""Names that servers give the reasoning; one reply uses one of them, and some repeat it under a second name."""


class ChatReading:
    """One reply of chat completions, as far as it has come."""

    def __init__(self) -> None:
        self.done = False
        self._is_first = True
        self._pieces = Pieces()
        self._by_index: dict[int, CallPieces] = {}
        self._fields: dict[str, Any] = {}
        self._thoughts_name = ""
        self._usage: Usage | None = None
        self._finish: str | None = None
        self._model = self._id = ""

    def take(self, events: list[SseEvent], out: list[Delta]) -> None:
        """Read events, up to the one that ends the reply."""
        add_text, add_delta, usual = self._pieces.texts.append, out.append, _usual
        for event in events:
            if self.done:
                return
            if not self._is_first and not event.name:
                try:
                    (choice,) = usual(event.data).choices
                except (msgspec.MsgspecError, ValueError, RecursionError):
                    pass
                else:
                    delta = choice.delta
                    if choice.finish_reason is None and choice.index == 0:
                        text = delta.content
                        if text and delta.tool_calls is None and delta.reasoning_content is None:
                            add_text(text)
                            add_delta(Text(text))
                        else:
                            self._take_usual(delta, out)
                        continue
            self._take_event(event, out)

    def take_whole(self, value: dict[str, Any], out: list[Delta]) -> None:
        """Read a reply that was not streamed."""
        if not objects(value.get("choices")):
            self._fail(malformed("has no choices", write(value)), out)
            return
        self._take_chunk(value, out)
        if not self.done:
            self._finished(out)

    def end(self, out: list[Delta]) -> None:
        """Read the end of the bytes: not every server sends `[DONE]`."""
        if self._finish is None:
            self._fail(CUT_SHORT, out)
        else:
            self._finished(out)

    def reply(self) -> Reply:
        """Return what has come so far, as a reply."""
        pieces = self._pieces
        text, refusal = "".join(pieces.texts), "".join(pieces.refusals)
        calls = tuple(call.call() for call in pieces.calls)
        return Reply(
            text=text,
            reasoning="".join(pieces.thoughts),
            refusal=refusal,
            calls=calls,
            usage=self._usage,
            ended=self._ended(),
            model=self._model,
            id=self._id,
            kept=Kept("chat", write_text(self._message(text, refusal, calls))),
        )

    def _message(self, text: str, refusal: str, calls: tuple[Call, ...]) -> dict[str, Any]:
        """The message as it goes back: with the vendor's fields, each at its place."""
        message = _said(text, calls)
        if refusal:
            message["refusal"] = refusal
        if self._thoughts_name:
            message[self._thoughts_name] = "".join(self._pieces.thoughts)
        for written, call in zip(message.get("tool_calls", ()), self._pieces.calls, strict=True):
            written["function"] |= call.fields.get("function", {})
            written |= {name: each for name, each in call.fields.items() if name != "function"}
        return message | self._fields

    def _take_usual(self, delta: _Delta, out: list[Delta]) -> None:
        if delta.reasoning_content:
            self._thoughts_name = self._thoughts_name or "reasoning_content"
            self._pieces.think(delta.reasoning_content, out)
        self._pieces.say(delta.content, out)
        for each in delta.tool_calls or ():
            self._take_call(each.index, each.id, each.function.name, each.function.arguments, out)

    def _take_event(self, event: SseEvent, out: list[Delta]) -> None:
        if event.data.strip() == DONE:
            self._finished(out)
            return
        value = event_value(event, out)
        if value is None:
            self.done = True
        else:
            self._take_chunk(value, out)

    def _take_chunk(self, value: dict[str, Any], out: list[Delta]) -> None:
        if self._is_first:
            self._is_first = False
            self._id, self._model = word(value.get("id")), word(value.get("model"))
        if usage := fields(value.get("usage")):
            self._usage = usage_of(usage)
        for choice in objects(value.get("choices")):
            if number(choice.get("index")) == 0:
                self._take_delta(fields(choice.get("delta") or choice.get("message")), out)
                self._finish = word(choice.get("finish_reason")) or self._finish
                if self._finish == "error":
                    self._fail(Failure("server", "the server says that it failed in the middle of its answer"), out)
                return

    def _take_delta(self, delta: dict[str, Any], out: list[Delta]) -> None:
        name = self._thoughts_name or next((each for each in _THOUGHTS if isinstance(delta.get(each), str)), "")
        if isinstance(delta.get(name), str) and delta[name]:
            self._thoughts_name = name
            self._pieces.think(delta[name], out)
        self._take_content(delta.get("content"), out)
        self._pieces.refuse(delta.get("refusal"), out)
        for each in objects(delta.get("tool_calls")):
            self._take_foreign_call(each, out)
        if old := fields(delta.get("function_call")):  # How calls were written before there were several.
            self._take_call(0, None, old.get("name"), old.get("arguments"), out)
        skipped = _KNOWN | {name} if name else _KNOWN
        merge(self._fields, {key: each for key, each in delta.items() if key not in skipped and each is not None})

    def _take_content(self, content: Any, out: list[Delta]) -> None:
        """Text; or parts, as Mistral's reasoning models write them."""
        self._pieces.say(content, out)
        for part in objects(content):
            self._pieces.say(part.get("text"), out)
            for thought in objects(part.get("thinking")):
                self._pieces.think(thought.get("text"), out)

    def _take_foreign_call(self, each: dict[str, Any], out: list[Delta]) -> None:
        function = fields(each.get("function"))
        arguments = function.get("arguments")
        if isinstance(arguments, dict):  # Ollama's own habit.
            arguments = write_text(arguments)
        index = each.get("index")
        call = self._take_call(index, each.get("id"), function.get("name"), arguments, out)
        if call is None:
            return
        merge(call.fields, {name: v for name, v in each.items() if name not in {"index", "id", "type", "function"}})
        inner = {name: v for name, v in function.items() if name not in {"name", "arguments"}}
        if inner:
            merge(call.fields.setdefault("function", {}), inner)

    def _take_call(self, index: Any, call_id: Any, tool: Any, arguments: Any, out: list[Delta]) -> CallPieces | None:
        """A piece of the call at `index`. Another id with a name is another call, whatever the index says.

        Without an index a name begins a call and anything else belongs to the last one.
        """
        call = self._by_index.get(index) if isinstance(index, int) else None
        if not isinstance(index, int) and not tool and self._pieces.calls:
            call = self._pieces.calls[-1]
        if call is not None and tool and call_id and call.id and call_id != call.id and call.begun:
            call = None
        if call is None:
            call = self._pieces.new_call()
            if call is None:
                return None
            if isinstance(index, int):
                self._by_index[index] = call
        self._pieces.name(call, call_id, tool, out)
        self._pieces.argue(call, arguments, out)
        return call

    def _ended(self) -> Ended:
        reason = REASONS.get(self._finish or "stop", "other")
        if reason == "end" and self._pieces.calls:
            reason = "calls"
        if reason == "end" and self._pieces.refusals:
            reason = "refused"
        return Ended(reason, self._finish or "")

    def _finished(self, out: list[Delta]) -> None:
        self.done = True
        self._pieces.end(out)
        if self._usage is not None:
            out.append(self._usage)
        out.append(self._ended())

    def _fail(self, failure: Failure, out: list[Delta]) -> None:
        self.done = True
        out.append(failure)


def usage_of(usage: dict[str, Any]) -> Usage:
    """Return what a call cost, as chat completions count it: the prompt includes what was in the server's memory."""
    prompt = number(usage.get("prompt_tokens"))
    cached = number(fields(usage.get("prompt_tokens_details")).get("cached_tokens"))
    return Usage(prompt, max(prompt - cached, 0), number(usage.get("completion_tokens")))
