"""OpenAI's responses: a conversation → the body of a request; what comes back → a reply."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from edgeagent.codec.conversation import Conversation, FromModel, FromTool, FromUser, ToolOffer, Turn, kept_of
from edgeagent.codec.failures import failure_in
from edgeagent.codec.json_text import write_body
from edgeagent.codec.reading import (
    Broken,
    CallPieces,
    Reading,
    array_of,
    fields,
    lacking,
    objects,
    runs_of,
    usage_of,
    word,
)

# -- a conversation → bytes ------------------------------------------------------------------------------------------


def encode(conversation: Conversation) -> bytes:
    """Return the body of the request. A seed and stops are left out: this API has none.

    `store` is false, so that the server keeps nothing of it.
    """
    answer, tools = conversation.answer, conversation.tools
    shape = answer and {"name": answer.name, "schema": answer.schema, "strict": answer.strict}
    fields = {
        "model": conversation.model,
        "instructions": conversation.system or None,
        "input": [item for turn in conversation.turns for item in _items(turn)],
        "tools": [_tool(tool) for tool in tools] or None,
        "tool_choice": _choice(conversation) if tools else None,
        "parallel_tool_calls": False if tools and not conversation.parallel else None,
        "text": shape and {"format": {"type": "json_schema"} | shape},
        "max_output_tokens": conversation.max_tokens or None,
        "temperature": conversation.temperature,
        "store": False,
        "stream": conversation.stream or None,
    }
    return write_body(fields, conversation.extra)


def _items(turn: Turn) -> list[Any]:
    match turn:
        case FromUser():
            return [{"role": "user", "content": turn.text}]
        case FromTool():
            return [{"type": "function_call_output", "call_id": turn.call_id, "output": turn.text}]
        case FromModel():
            kept: list[Any] | None = kept_of(turn, "responses")
            if kept is not None:
                return kept
            # OpenAI takes a plain text here as well; llama.cpp's server takes nothing but parts.
            parts = [{"type": "output_text", "text": turn.text}]
            said: list[Any] = [{"type": "message", "role": "assistant", "content": parts}] if turn.text else []
            return said + [
                {"type": "function_call", "call_id": call.id, "name": call.tool, "arguments": call.arguments}
                for call in turn.calls
            ]


def _tool(tool: ToolOffer) -> dict[str, Any]:
    offer = {"type": "function", "name": tool.name, "description": tool.about, "parameters": tool.schema}
    return offer | {"strict": tool.strict}  # Left out, this API takes it for true.


def _choice(conversation: Conversation) -> Any:
    if conversation.only:
        return {"type": "function", "name": conversation.only}
    return {"either": "auto", "call": "required", "answer": "none"}[conversation.choice]


# -- bytes → a reply -------------------------------------------------------------------------------------------------


class _Piece(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal[
        "response.output_text.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.delta",
        "response.function_call_arguments.delta",
    ]
    delta: str
    output_index: int | None = None
    item_id: str | None = None
    content_index: int | None = None
    summary_index: int | None = None
    sequence_number: int | None = None
    logprobs: tuple[()] | None = None
    obfuscation: str | None = None


_pieces = msgspec.json.Decoder(list[_Piece]).decode
"""Reads the usual events, of which nearly all bytes are; any other raises, and is read slowly."""


class ResponsesReading(Reading):
    """One reply of responses, as far as it has come.

    Items are told apart by their place in the output or, where a server leaves it out, by their id. What was streamed
    of an item is not told again when the item comes whole, and what was not streamed is told then.
    """

    api = "responses"

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[str, CallPieces] = {}
        self._told: set[tuple[str, str]] = set()
        self._items: dict[str, dict[str, Any]] = {}

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
        texts = [piece.delta for piece in pieces]
        if not all(texts):
            return False
        at = 0
        for run in runs_of(pieces, lambda piece: (piece.type, piece.output_index, piece.item_id)):
            self._take_run(run[0], texts[at : at + len(run)])
            at += len(run)
        return True

    def _take_run(self, first: _Piece, texts: list[str]) -> None:
        """The texts of pieces that follow each other in one item."""
        key = _key({"output_index": first.output_index, "item_id": first.item_id}, {})
        match first.type:
            case "response.output_text.delta":
                self._told.add((key, "text"))
                self.say_all(texts)
            case "response.function_call_arguments.delta":
                self._told.add((key, "arguments"))
                self.argue_all(self._call(key), texts)
            case _:
                self._told.add((key, "reasoning"))
                self.think_all(texts)

    def take_value(self, value: dict[str, Any]) -> None:
        """Read one event."""
        item = fields(value.get("item"))
        key, piece = _key(value, item), value.get("delta")
        match value.get("type"):
            case "response.output_text.delta":
                self._told.add((key, "text"))
                self.say(piece)
            case "response.refusal.delta":
                self._told.add((key, "refusal"))
                self.refuse(piece)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._told.add((key, "reasoning"))
                self.think(piece)
            case "response.function_call_arguments.delta":
                self._told.add((key, "arguments"))
                self.argue(self._call(key), piece)
            case "response.output_item.added":
                if item.get("type") == "function_call":
                    self.name(self._call(key), item.get("call_id"), item.get("name"))
            case "response.output_item.done":
                self._take_item(key, item)
            case "response.created":
                self._take_response(fields(value.get("response")))
            case "response.completed" | "response.incomplete" | "response.failed":
                self.take_body(fields(value.get("response")))
                self.finished()
            case _:
                pass  # Progress, parts that begin and end, tools of the server's own, and what comes to be added.

    def take_body(self, value: dict[str, Any]) -> None:
        """Read a whole response: all of it where nothing was streamed."""
        self._take_response(value)
        if value.get("status") == "failed":
            raise Broken(failure_in(fields(value.get("error")) or {"message": "it failed and says not why"}))
        if not isinstance(value.get("output"), list) and not self._items:
            raise lacking("output", value)
        why = word(fields(value.get("incomplete_details")).get("reason"))
        self.finish = why if value.get("status") == "incomplete" else "completed"
        if not self._items:  # Items that came whole are not looked for again under another key.
            for place, item in enumerate(objects(value.get("output"))):
                keys = (str(place), word(item.get("id")), word(item.get("call_id")))
                self._take_item(next((key for key in keys if self._knows(key)), keys[0]), item)

    def kept(self) -> list[dict[str, Any]]:
        """Return the items as they go back."""
        return list(self._items.values())

    def _take_response(self, response: dict[str, Any]) -> None:
        self.id, self.model = word(response.get("id")) or self.id, word(response.get("model")) or self.model
        if usage := fields(response.get("usage")):
            self.usage = usage_of(usage)

    def _knows(self, key: str) -> bool:
        return key in self._calls or any(told == key for told, _ in self._told)

    def _call(self, key: str) -> CallPieces:
        if key not in self._calls:
            self._calls[key] = self.new_call()
        return self._calls[key]

    def _take_item(self, key: str, item: dict[str, Any]) -> None:
        """What of a whole item has not been told."""
        self._items[key] = item
        match item.get("type"):
            case "message":
                for part in objects(item.get("content")):
                    if (key, "text") not in self._told:
                        self.say(part.get("text"))
                    if (key, "refusal") not in self._told:
                        self.refuse(part.get("refusal"))
            case "reasoning" if (key, "reasoning") not in self._told:
                for part in (*objects(item.get("summary")), *objects(item.get("content"))):
                    self.think(part.get("text"))
            case "function_call":
                self.name(self._call(key), item.get("call_id"), item.get("name"))
                if (key, "arguments") not in self._told:
                    self.argue(self._call(key), item.get("arguments"))
            case _:
                pass
        self._told |= {(key, what) for what in ("text", "refusal", "reasoning", "arguments")}


def _key(value: dict[str, Any], item: dict[str, Any]) -> str:
    place = value.get("output_index")
    if isinstance(place, int):
        return str(place)
    return word(value.get("item_id")) or word(item.get("id")) or word(item.get("call_id"))
