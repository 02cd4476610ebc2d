"""OpenAI's responses: a conversation → the body of a request; the body of a response → deltas and a reply."""

from __future__ import annotations

from typing import Any

from edgeagent.codec.conversation import Conversation, Delta, Ended, FromModel, FromTool, FromUser, Kept, Reply
from edgeagent.codec.failures import Failure, failure_in, malformed
from edgeagent.codec.json_text import read_any, write, write_text
from edgeagent.codec.pieces import CallPieces, Pieces, fields, number, objects, word
from edgeagent.codec.sse import SseEvent
from edgeagent.codec.stream import CUT_SHORT, event_value
from edgeagent.core.values import Usage

# -- a conversation → bytes ----------------------------------------------------------------------------------------


def encode(conversation: Conversation) -> bytes:
    """Return the body of the request. A seed and stops are left out: this API has none.

    `store` is false, so that the server keeps nothing; what it would have kept comes back encrypted where it can.
    """
    body: dict[str, Any] = {"model": conversation.model, "input": _items(conversation.turns), "store": False}
    if conversation.system:
        body["instructions"] = conversation.system
    if conversation.tools:
        body["tools"] = [_tool(tool) for tool in conversation.tools]
        body["tool_choice"] = _choice(conversation)
        if not conversation.parallel:
            body["parallel_tool_calls"] = False
    if conversation.answer is not None:
        answer = conversation.answer
        shape = {"type": "json_schema", "name": answer.name, "schema": answer.schema, "strict": answer.strict}
        body["text"] = {"format": shape}
    if conversation.max_tokens:
        body["max_output_tokens"] = conversation.max_tokens
    if conversation.temperature is not None:
        body["temperature"] = conversation.temperature
    if conversation.stream:
        body["stream"] = True
    return write(body | dict(conversation.extra))


def _items(turns: tuple[FromUser | FromModel | FromTool, ...]) -> list[Any]:
    return [item for turn in turns for item in _items_of(turn)]


def _items_of(turn: FromUser | FromModel | FromTool) -> list[Any]:
    match turn:
        case FromUser():
            return [{"role": "user", "content": turn.text}]
        case FromTool():
            return [{"type": "function_call_output", "call_id": turn.call_id, "output": turn.text}]
        case FromModel():
            kept = turn.kept
            if kept is not None and kept.api == "responses" and isinstance(items := read_any(kept.body), list):
                return items
            said: list[Any] = [{"role": "assistant", "content": turn.text}] if turn.text else []
            return said + [
                {"type": "function_call", "call_id": call.id, "name": call.tool, "arguments": call.arguments}
                for call in turn.calls
            ]


def _tool(tool: Any) -> dict[str, Any]:
    offer = {"type": "function", "name": tool.name, "description": tool.about, "parameters": tool.schema}
    return offer | {"strict": tool.strict}  # Left out, this API takes it for true.


def _choice(conversation: Conversation) -> Any:
    if conversation.only:
        return {"type": "function", "name": conversation.only}
    return {"either": "auto", "call": "required", "answer": "none"}[conversation.choice]


# -- bytes → a reply -----------------------------------------------------------------------------------------------


class ResponsesReading:
    """One reply of responses, as far as it has come.

    Items are told apart by their place in the output or, where a server leaves it out, by their id. What was streamed
    of an item is not told again when the item comes whole, and what was not streamed is told then.
    """

    def __init__(self) -> None:
        self.done = False
        self._pieces = Pieces()
        self._calls: dict[str, CallPieces] = {}
        self._told: set[tuple[str, str]] = set()
        self._items: dict[str, dict[str, Any]] = {}
        self._response: dict[str, Any] = {}
        self._model = self._id = ""

    def take(self, events: list[SseEvent], out: list[Delta]) -> None:
        """Read events, up to the one that ends the reply."""
        for event in events:
            if self.done:
                return
            if event.data == b"[DONE]":  # llama.cpp's server adds the other API's end.
                self.end(out)
                return
            value = event_value(event, out)
            if value is None:
                self.done = True
            else:
                self._take_event(value, out)

    def take_whole(self, value: dict[str, Any], out: list[Delta]) -> None:
        """Read a reply that was not streamed."""
        if not isinstance(value.get("output"), list):
            self._fail(malformed("has no output", write(value)), out)
        else:
            self._finished(value, out)

    def end(self, out: list[Delta]) -> None:
        """Read the end of the bytes: only its last event makes a reply whole."""
        self._fail(CUT_SHORT, out)

    def reply(self) -> Reply:
        """Return what has come so far, as a reply."""
        pieces = self._pieces
        items = self._response.get("output") or list(self._items.values())
        return Reply(
            text="".join(pieces.texts),
            reasoning="".join(pieces.thoughts),
            refusal="".join(pieces.refusals),
            calls=tuple(call.call() for call in pieces.calls),
            usage=_usage(self._response),
            ended=self._ended(),
            model=self._model,
            id=self._id,
            kept=Kept("responses", write_text(items)),
        )

    def _take_event(self, value: dict[str, Any], out: list[Delta]) -> None:
        key, kind = _key(value), value.get("type")
        match kind:
            case "response.output_text.delta":
                self._told.add((key, "text"))
                self._pieces.say(value.get("delta"), out)
            case "response.refusal.delta":
                self._told.add((key, "refusal"))
                self._pieces.refuse(value.get("delta"), out)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._told.add((key, "reasoning"))
                self._pieces.think(value.get("delta"), out)
            case "response.function_call_arguments.delta":
                self._told.add((key, "arguments"))
                if (call := self._call(key)) is not None:
                    self._pieces.argue(call, value.get("delta"), out)
            case "response.output_item.added":
                item = fields(value.get("item"))
                if item.get("type") == "function_call" and (call := self._call(_key(value, item))) is not None:
                    self._pieces.name(call, item.get("call_id"), item.get("name"), out)
            case "response.output_item.done":
                item = fields(value.get("item"))
                self._items[_key(value, item)] = item
                self._take_item(_key(value, item), item, out)
            case "response.created":
                response = fields(value.get("response"))
                self._id, self._model = word(response.get("id")), word(response.get("model"))
            case "response.completed" | "response.incomplete" | "response.failed":
                self._finished(fields(value.get("response")), out)
            case _:
                pass  # Progress, parts that begin and end, tools of the server's own, and what comes to be added.

    def _call(self, key: str) -> CallPieces | None:
        if key not in self._calls and (call := self._pieces.new_call()) is not None:
            self._calls[key] = call
        return self._calls.get(key)

    def _take_item(self, key: str, item: dict[str, Any], out: list[Delta]) -> None:
        """What of a whole item has not been told."""
        match item.get("type"):
            case "message":
                for part in objects(item.get("content")):
                    if (key, "text") not in self._told:
                        self._pieces.say(part.get("text"), out)
                    if (key, "refusal") not in self._told:
                        self._pieces.refuse(part.get("refusal"), out)
            case "reasoning" if (key, "reasoning") not in self._told:
                for part in (*objects(item.get("summary")), *objects(item.get("content"))):
                    self._pieces.think(part.get("text"), out)
            case "function_call" if (call := self._call(key)) is not None:
                self._pieces.name(call, item.get("call_id"), item.get("name"), out)
                if (key, "arguments") not in self._told:
                    self._pieces.argue(call, item.get("arguments"), out)
            case _:
                pass
        self._told |= {(key, what) for what in ("text", "refusal", "reasoning", "arguments")}

    def _finished(self, response: dict[str, Any], out: list[Delta]) -> None:
        self._response = response
        self._id, self._model = word(response.get("id")) or self._id, word(response.get("model")) or self._model
        if response.get("status") == "failed":
            error = fields(response.get("error")) or {"message": "it failed and says not why"}
            self._fail(failure_in(error), out)
            return
        if not self._items:  # Items that came whole are not looked for again under another key.
            for place, item in enumerate(objects(response.get("output"))):
                keys = (str(place), word(item.get("id")))
                known = next((key for key in keys if key in self._calls or (key, "text") in self._told), keys[0])
                self._take_item(known, item, out)
        self.done = True
        self._pieces.end(out)
        if (usage := _usage(response)) is not None:
            out.append(usage)
        out.append(self._ended())

    def _ended(self) -> Ended:
        if self._response.get("status") == "incomplete":
            why = word(fields(self._response.get("incomplete_details")).get("reason"))
            return Ended({"max_output_tokens": "limit", "content_filter": "filtered"}.get(why, "other"), why)  # type: ignore[arg-type] # mypy takes the table's values for any texts
        if self._pieces.calls:
            return Ended("calls", "completed")
        return Ended("refused" if self._pieces.refusals else "end", "completed")

    def _fail(self, failure: Failure, out: list[Delta]) -> None:
        self.done = True
        out.append(failure)


def _key(value: dict[str, Any], item: dict[str, Any] | None = None) -> str:
    place = value.get("output_index")
    if isinstance(place, int):
        return str(place)
    return word(value.get("item_id")) or word((item or {}).get("id")) or word((item or {}).get("call_id"))


def _usage(response: dict[str, Any]) -> Usage | None:
    usage = fields(response.get("usage"))
    if not usage:
        return None
    prompt = number(usage.get("input_tokens"))
    cached = number(fields(usage.get("input_tokens_details")).get("cached_tokens"))
    return Usage(prompt, max(prompt - cached, 0), number(usage.get("output_tokens")))
