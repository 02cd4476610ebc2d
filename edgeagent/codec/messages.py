"""Anthropic's messages: a conversation → the body of a request; the body of a response → deltas and a reply."""

from __future__ import annotations

from typing import Any

from edgeagent.codec.conversation import Conversation, Delta, Ended, FromModel, FromTool, FromUser, Kept, Reason, Reply
from edgeagent.codec.failures import Failure, malformed
from edgeagent.codec.json_text import read_any, read_object, write, write_text
from edgeagent.codec.pieces import CallPieces, Pieces, fields, merge, number, objects, word
from edgeagent.codec.sse import SseEvent
from edgeagent.codec.stream import CUT_SHORT, event_value
from edgeagent.core.values import Usage

MAX_TOKENS = 4096
"""This API must be told a limit; where nobody has set one, it is this."""

REASONS: dict[str, Reason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "calls",
    "max_tokens": "limit",
    "model_context_window_exceeded": "limit",
    "refusal": "refused",
}

# -- a conversation → bytes ----------------------------------------------------------------------------------------


def encode(conversation: Conversation) -> bytes:
    """Return the body of the request. A seed is left out: this API has none."""
    body: dict[str, Any] = {
        "model": conversation.model,
        "max_tokens": conversation.max_tokens or MAX_TOKENS,
        "messages": _messages(conversation.turns),
    }
    if conversation.system:
        body["system"] = conversation.system
    if conversation.tools:
        body["tools"] = [_tool(tool) for tool in conversation.tools]
        body["tool_choice"] = _choice(conversation)
    if conversation.answer is not None:
        body["output_config"] = {"format": {"type": "json_schema", "schema": conversation.answer.schema}}
    if conversation.temperature is not None:
        body["temperature"] = conversation.temperature
    if conversation.stop:
        body["stop_sequences"] = list(conversation.stop)
    if conversation.stream:
        body["stream"] = True
    return write(body | dict(conversation.extra))


def _messages(turns: tuple[FromUser | FromModel | FromTool, ...]) -> list[dict[str, Any]]:
    """The results of calls that were made together stand in one message: apart they are refused."""
    messages: list[dict[str, Any]] = []
    after_result = False
    for turn in turns:
        is_result = isinstance(turn, FromTool)
        content = _blocks(turn)
        if is_result and after_result:
            messages[-1]["content"] += content
        elif content:
            messages.append({"role": "assistant" if isinstance(turn, FromModel) else "user", "content": content})
        after_result = is_result
    return messages


def _blocks(turn: FromUser | FromModel | FromTool) -> Any:
    match turn:
        case FromUser():
            return turn.text
        case FromTool():
            result: dict[str, Any] = {"type": "tool_result", "tool_use_id": turn.call_id, "content": turn.text}
            return [result | ({"is_error": True} if turn.failed else {})]
        case FromModel():
            kept = turn.kept
            if kept is not None and kept.api == "messages" and isinstance(content := read_any(kept.body), list):
                return content
            # An empty block of text is refused, so it is left out.
            said: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
            return said + [
                {"type": "tool_use", "id": call.id, "name": call.tool, "input": _input(call.arguments)}
                for call in turn.calls
            ]


def _input(arguments: str) -> dict[str, Any]:
    """Arguments as the object that this API wants; what is no object goes back under a name of its own."""
    value = read_object(arguments)
    return {"unreadable": arguments} if value is None else value


def _tool(tool: Any) -> dict[str, Any]:
    offer = {"name": tool.name, "description": tool.about, "input_schema": tool.schema}
    return offer | ({"strict": True} if tool.strict else {})


def _choice(conversation: Conversation) -> dict[str, Any]:
    kind = {"either": "auto", "call": "any", "answer": "none"}[conversation.choice]
    choice: dict[str, Any] = {"type": "tool", "name": conversation.only} if conversation.only else {"type": kind}
    if not conversation.parallel and choice["type"] != "none":
        choice["disable_parallel_tool_use"] = True
    return choice


# -- bytes → a reply -----------------------------------------------------------------------------------------------


class MessagesReading:
    """One reply of messages, as far as it has come."""

    def __init__(self) -> None:
        self.done = False
        self._pieces = Pieces()
        self._blocks: dict[int, dict[str, Any]] = {}
        self._calls: dict[int, CallPieces] = {}
        self._usage: dict[str, Any] = {}
        self._finish = ""
        self._model = self._id = ""

    def take(self, events: list[SseEvent], out: list[Delta]) -> None:
        """Read events, up to the one that ends the reply."""
        for event in events:
            if self.done:
                return
            if event.data == b"[DONE]":  # Some gateways add the other API's end.
                self.end(out)
                return
            value = event_value(event, out)
            if value is None:
                self.done = True
            else:
                self._take_event(value, out)

    def take_whole(self, value: dict[str, Any], out: list[Delta]) -> None:
        """Read a reply that was not streamed."""
        if not isinstance(value.get("content"), list):
            self._fail(malformed("has no content", write(value)), out)
            return
        self._begin(value)
        for index, block in enumerate(objects(value["content"])):
            self._begin_block(index, block, out)
        self._finish = word(value.get("stop_reason"))
        self._finished(out)

    def end(self, out: list[Delta]) -> None:
        """Read the end of the bytes; a reply whose reason has come is whole without its last event."""
        if self._finish:
            self._finished(out)
        else:
            self._fail(CUT_SHORT, out)

    def reply(self) -> Reply:
        """Return what has come so far, as a reply."""
        pieces = self._pieces
        return Reply(
            text="".join(pieces.texts),
            reasoning="".join(pieces.thoughts),
            calls=tuple(call.call() for call in pieces.calls),
            usage=self._used(),
            ended=self._ended(),
            model=self._model,
            id=self._id,
            kept=Kept("messages", write_text([self._whole(index) for index in sorted(self._blocks)])),
        )

    def _take_event(self, value: dict[str, Any], out: list[Delta]) -> None:
        index = number(value.get("index"))
        match value.get("type"):
            case "content_block_delta":
                self._take_delta(index, fields(value.get("delta")), out)
            case "content_block_start":
                self._begin_block(index, fields(value.get("content_block")), out)
            case "message_start":
                self._begin(fields(value.get("message")))
            case "message_delta":
                self._usage |= _told(value.get("usage"))
                self._finish = word(fields(value.get("delta")).get("stop_reason")) or self._finish
            case "message_stop":
                self._finished(out)
            case _:
                pass  # A ping, the end of a block, or what comes to be added.

    def _begin(self, message: dict[str, Any]) -> None:
        self._id, self._model = word(message.get("id")), word(message.get("model"))
        self._usage |= _told(message.get("usage"))

    def _begin_block(self, index: int, block: dict[str, Any], out: list[Delta]) -> None:
        self._blocks[index] = dict(block)
        match block.get("type"):
            case "text":
                self._pieces.say(block.get("text"), out)
            case "thinking":
                self._pieces.think(block.get("thinking"), out)
            case "tool_use" if (call := self._pieces.new_call()) is not None:
                self._calls[index] = call
                self._pieces.name(call, block.get("id"), block.get("name"), out)
                if block.get("input"):
                    self._pieces.argue(call, write_text(block["input"]), out)
            case _:
                pass

    def _take_delta(self, index: int, delta: dict[str, Any], out: list[Delta]) -> None:
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        match delta.get("type"):
            case "text_delta":
                self._grow(block, "text", delta)
                self._pieces.say(delta.get("text"), out)
            case "thinking_delta":
                self._grow(block, "thinking", delta)
                self._pieces.think(delta.get("thinking"), out)
            case "signature_delta":
                self._grow(block, "signature", delta)
            case "input_json_delta":
                if index in self._calls:
                    self._pieces.argue(self._calls[index], delta.get("partial_json"), out)
                else:  # A tool of the server's own: its block goes back, and nobody here makes the call.
                    self._grow(block, "partial_json", delta)
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
            case _:
                merge(block, {name: each for name, each in delta.items() if name != "type"})

    def _grow(self, block: dict[str, Any], name: str, delta: dict[str, Any]) -> None:
        """Texts are collected as lists and joined once."""
        piece = delta.get(name)
        if isinstance(piece, str):
            if not isinstance(block.get(name), list):
                block[name] = [block[name]] if isinstance(block.get(name), str) else []
            block[name].append(piece)

    def _whole(self, index: int) -> dict[str, Any]:
        block = dict(self._blocks[index])
        for name in ("text", "thinking", "signature", "partial_json"):
            if isinstance(block.get(name), list):
                block[name] = "".join(block[name])
        if "partial_json" in block:
            block["input"] = _input(block.pop("partial_json") or "{}")
        if index in self._calls:
            block["input"] = _input(self._calls[index].call().arguments)
        return block

    def _used(self) -> Usage | None:
        """This API counts what it has read from or put into its memory beside the prompt's other tokens."""
        if not self._usage:
            return None
        fresh = number(self._usage.get("input_tokens")) + number(self._usage.get("cache_creation_input_tokens"))
        prompt = fresh + number(self._usage.get("cache_read_input_tokens"))
        return Usage(prompt, fresh, number(self._usage.get("output_tokens")))

    def _ended(self) -> Ended:
        return Ended(REASONS.get(self._finish or "end_turn", "other"), self._finish)

    def _finished(self, out: list[Delta]) -> None:
        self.done = True
        self._pieces.end(out)
        if (used := self._used()) is not None:
            out.append(used)
        out.append(self._ended())

    def _fail(self, failure: Failure, out: list[Delta]) -> None:
        self.done = True
        out.append(failure)


def _told(usage: Any) -> dict[str, Any]:
    """The counts that are named: what a later event leaves open holds."""
    return {name: each for name, each in fields(usage).items() if each is not None}
