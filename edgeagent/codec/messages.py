"""Anthropic's messages: a conversation → the body of a request; what comes back → a reply."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from edgeagent.codec.conversation import Conversation, FromModel, FromTool, FromUser, ToolOffer, Turn, kept_of
from edgeagent.codec.json_text import read_object, write_body
from edgeagent.codec.reading import (
    CallPieces,
    Reading,
    array_of,
    fields,
    grow,
    joined,
    lacking,
    merge,
    number,
    objects,
    runs_of,
    usage_of,
    word,
)

MAX_TOKENS = 4096
"""This API must be told a limit; where nobody has set one, it is this."""

# -- a conversation → bytes ------------------------------------------------------------------------------------------


def encode(conversation: Conversation) -> bytes:
    """Return the body of the request. A seed is left out: this API has none."""
    answer, tools = conversation.answer, conversation.tools
    fields = {
        "model": conversation.model,
        "max_tokens": conversation.max_tokens or MAX_TOKENS,
        "system": conversation.system or None,
        "messages": _messages(conversation.turns),
        "tools": [_tool(tool) for tool in tools] or None,
        "tool_choice": _choice(conversation) if tools else None,
        "output_config": answer and {"format": {"type": "json_schema", "schema": answer.schema}},
        "temperature": conversation.temperature,
        "stop_sequences": list(conversation.stop) or None,
        "stream": conversation.stream or None,
    }
    return write_body(fields, conversation.extra)


def _messages(turns: tuple[Turn, ...]) -> list[dict[str, Any]]:
    """The results of calls that were made together stand in one message: apart they are refused."""
    messages: list[dict[str, Any]] = []
    after_result = False
    for turn in turns:
        is_result = isinstance(turn, FromTool)
        content = _content(turn)
        if is_result and after_result:
            messages[-1]["content"] += content
        elif content:
            messages.append({"role": "assistant" if isinstance(turn, FromModel) else "user", "content": content})
        after_result = is_result
    return messages


def _content(turn: Turn) -> Any:
    match turn:
        case FromUser():
            return turn.text
        case FromTool():
            result: dict[str, Any] = {"type": "tool_result", "tool_use_id": turn.call_id, "content": turn.text}
            return [result | ({"is_error": True} if turn.failed else {})]
        case FromModel():
            if (kept := kept_of(turn, "messages")) is not None:
                return kept
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


def _tool(tool: ToolOffer) -> dict[str, Any]:
    offer = {"name": tool.name, "description": tool.about, "input_schema": tool.schema}
    return offer | ({"strict": True} if tool.strict else {})


def _choice(conversation: Conversation) -> dict[str, Any]:
    kind = {"either": "auto", "call": "any", "answer": "none"}[conversation.choice]
    choice: dict[str, Any] = {"type": "tool", "name": conversation.only} if conversation.only else {"type": kind}
    if not conversation.parallel and choice["type"] != "none":
        choice["disable_parallel_tool_use"] = True
    return choice


# -- bytes → a reply -------------------------------------------------------------------------------------------------


class _Said(msgspec.Struct, tag_field="type", tag="text_delta", forbid_unknown_fields=True, gc=False):
    text: str


class _Thought(msgspec.Struct, tag_field="type", tag="thinking_delta", forbid_unknown_fields=True, gc=False):
    text: str = msgspec.field(name="thinking")


class _Argued(msgspec.Struct, tag_field="type", tag="input_json_delta", forbid_unknown_fields=True, gc=False):
    text: str = msgspec.field(name="partial_json")


class _Piece(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["content_block_delta"]
    index: Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
    delta: _Said | _Thought | _Argued


_pieces = msgspec.json.Decoder(list[_Piece]).decode
"""Reads the usual events, of which nearly all bytes are; any other raises, and is read slowly."""


class MessagesReading(Reading):
    """One reply of messages, as far as it has come: blocks of content, each with its index."""

    api = "messages"

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, dict[str, Any]] = {}
        self._calls: dict[int, CallPieces] = {}
        self._counts: dict[str, Any] = {}

    def take_usual(self, data: bytes) -> bool:
        """Read a piece of a text, of a thought or of arguments."""
        return self.take_run([data])

    def take_run(self, datas: list[bytes]) -> bool:
        """Read many pieces."""
        try:
            pieces = _pieces(array_of(datas))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return False
        if len(pieces) != len(datas):
            return False
        texts = [piece.delta.text for piece in pieces]
        if not all(texts):
            return False
        at = 0
        for run in runs_of(pieces, lambda piece: (piece.index, piece.delta.__class__)):
            self._take_run(run[0], texts[at : at + len(run)])
            at += len(run)
        return True

    def _take_run(self, first: _Piece, texts: list[str]) -> None:
        """The texts of pieces that follow each other in one block."""
        block = self._blocks.setdefault(first.index, {"type": "text"})
        match first.delta:
            case _Said():
                grow(block, "text", texts)
                self.say_all(texts)
            case _Thought():
                grow(block, "thinking", texts)
                self.think_all(texts)
            case _Argued():
                grow(block, "partial_json", texts)
                if first.index in self._calls:
                    self.argue_all(self._calls[first.index], texts)

    def take_value(self, value: dict[str, Any]) -> None:
        """Read one event."""
        index = number(value.get("index"))
        match value.get("type"):
            case "content_block_delta":
                self._take_delta(index, fields(value.get("delta")))
            case "content_block_start":
                self._take_block(index, fields(value.get("content_block")))
            case "message_start":
                self._take_message(fields(value.get("message")))
            case "message_delta":
                self._take_message(fields(value.get("delta")) | {"usage": value.get("usage")})
            case "message_stop":
                self.finish = self.finish or "end_turn"
                self.finished()
            case _:
                pass  # A ping, the end of a block, or what comes to be added.

    def take_body(self, value: dict[str, Any]) -> None:
        """Read a reply that was not streamed."""
        if not isinstance(value.get("content"), list):
            raise lacking("content", value)
        for index, block in enumerate(objects(value["content"])):
            self._take_block(index, block)
        self._take_message(value)
        self.finish = self.finish or "end_turn"

    def kept(self) -> list[dict[str, Any]]:
        """Return the content as it goes back."""
        return [_whole(self._blocks[index]) for index in sorted(self._blocks)]

    def _take_message(self, message: dict[str, Any]) -> None:
        """The fields of a message that are told twice: the later ones hold, where they say something."""
        self.id, self.model = word(message.get("id")) or self.id, word(message.get("model")) or self.model
        self.finish = word(message.get("stop_reason")) or self.finish
        self._counts |= {name: count for name, count in fields(message.get("usage")).items() if count is not None}
        self.usage = usage_of(self._counts) if self._counts else None

    def _take_block(self, index: int, block: dict[str, Any]) -> None:
        self._blocks[index] = dict(block)
        self._tell(block)
        if block.get("type") == "tool_use":
            self._calls[index] = self.new_call()
            self.name(self._calls[index], block.get("id"), block.get("name"))
            self.argue(self._calls[index], block.get("input") or "")

    def _take_delta(self, index: int, delta: dict[str, Any]) -> None:
        grown = {name: value for name, value in delta.items() if name != "type"}
        if "citation" in grown:
            grown["citations"] = [grown.pop("citation")]
        merge(self._blocks.setdefault(index, {"type": "text"}), grown)
        self._tell(delta)
        if index in self._calls:
            self.argue(self._calls[index], delta.get("partial_json"))

    def _tell(self, piece: dict[str, Any]) -> None:
        """A block or a delta of one. Blocks of the server's own tools go back, and nobody here makes their calls."""
        match piece.get("type"):
            case "text" | "text_delta":
                self.say(piece.get("text"))
            case "thinking" | "thinking_delta":
                self.think(piece.get("thinking"))
            case _:
                pass


def _whole(block: dict[str, Any]) -> dict[str, Any]:
    """A block with its texts in one piece. The input of a tool comes as text, and goes back as an object."""
    whole: dict[str, Any] = joined(block)
    partial = whole.pop("partial_json", "")
    if isinstance(partial, str) and partial:
        whole["input"] = _input(partial)
    elif str(whole.get("type")).endswith("tool_use"):
        whole.setdefault("input", {})
    return whole
