"""What is every dialect made of? The frame of a call, the system text, the conversation, and reading what was written.

A dialect is a value without state. It knows neither templates nor tokens: markup that a template needs is the driver's.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgeagent.core.agent import Tool
from edgeagent.core.names import writable
from edgeagent.core.reading import Calls, Reading, Unreadable
from edgeagent.core.values import Message, ToolCall
from edgeagent.errors import ShapeError
from edgeagent.shape.parse import parse

SHOWN_KEYWORDS = frozenset(("type", "enum", "const", "minimum", "maximum", "items", "properties", "anyOf", "$ref"))
"""What the model is told of an argument's schema. The grammar holds it to the rest, and every token costs time."""


@dataclass(frozen=True)
class CallFrame:
    """The fixed text around a call: `before` NAME `between` ARGUMENTS `after`; separators as the model writes them.

    `trigger` ends free text and begins a call; without one a call begins with the text. `string_mark` says that the
    arguments are not JSON but Gemma's notation, with its strings between two of these.
    """

    before: str
    between: str
    after: str
    item_separator: str = ", "
    key_separator: str = ": "
    trigger: str = ""
    string_mark: str = ""


@dataclass(frozen=True)
class Family(ABC):
    """A dialect. `decides` says that the model itself may choose, token by token, between words and a call.

    A model without a format of its own chooses words nearly always; for it the driver compares the odds beforehand.
    """

    name: str
    frame: CallFrame
    decides: bool = True

    @abstractmethod
    def read(self, text: str) -> Reading:
        """Read what the model wrote, without judging names or arguments. All of a batch is readable, or none."""

    @abstractmethod
    def tools_text(self, tools: Sequence[Tool]) -> str:
        """Tell the model its tools, and how to call them."""

    def system_text(self, system: str, tools: Sequence[Tool]) -> str:
        """The system message: who the agent is, then its tools. It never changes within a session."""
        return "\n".join([system, self.tools_text(tools)]).strip() if tools else system

    def chat(self, messages: Sequence[Message], *, closing: str = "") -> list[dict[str, str]]:
        """The conversation in the two roles that every chat template has, one for each message.

        With `closing`, the last one says that the answer must be given now, and why.
        """
        chat = [self.message(m) for m in messages]
        if closing and chat:
            chat[-1]["content"] += f"\n(The limit of {closing} is reached. Answer now in one short sentence.)"
        return chat

    def message(self, message: Message) -> dict[str, str]:
        """One message as the template gets it."""
        if message.role == "tool":
            named = writable(message.tool) if message.tool else "the call"
            return {"role": "user", "content": f"Result of {named}: {in_words(message.text)}."}
        return plain_message(message)


def plain_message(message: Message) -> dict[str, str]:
    """A message that every family is shown alike; what nobody asked for says whose it is."""
    match message.role:
        case "heard":
            source = f"Message from {message.tool}" if message.tool else "Note"
            return {"role": "user", "content": f"{source} (not from the user): {message.text}"}
        case "note":
            return {"role": "user", "content": f"Your timer has fired: {message.text}"}
        case _:
            return {"role": message.role, "content": message.text}


def in_words(result: str) -> str:
    """An object as `key value, key value`: shown JSON, a small model describes JSON instead of what it says."""
    try:
        value = json.loads(result)
    except ValueError:
        return result
    if not isinstance(value, dict):
        return result
    return ", ".join(f"{key} {each if isinstance(each, str) else json.dumps(each)}" for key, each in value.items())


# -- telling the tools ---------------------------------------------------------------------------------------------


def tool_line(tool: Tool) -> str:
    """A tool on one line: name, description, and what helps to choose its arguments."""
    schema = tool.parameters.schema
    shown = {"name": tool.written, "description": tool.description, "parameters": _shown(schema.get("properties", {}))}
    if "$defs" in schema:
        shown["$defs"] = _shown(schema["$defs"])
    return json.dumps(shown, ensure_ascii=False)  # With spaces after , and :, as models have mostly read it.


def function_line(tool: Tool) -> str:
    """A tool as a function with a JSON Schema, as the families with a format of their own were taught it."""
    schema = tool.parameters.schema
    parameters = {"type": "object", "properties": _shown(schema.get("properties", {}))}
    if schema.get("required"):
        parameters["required"] = schema["required"]
    if "$defs" in schema:
        parameters["$defs"] = _shown(schema["$defs"])
    function = {"name": tool.written, "description": tool.description, "parameters": parameters}
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False)


def _shown(schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Named schemas, each with the keywords that help to choose a value."""
    return {name: _essence(schema) for name, schema in schemas.items()}


def _essence(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    kept = {key: value for key, value in schema.items() if key in SHOWN_KEYWORDS}
    if "properties" in kept:
        kept["properties"] = _shown(kept["properties"])
    if "items" in kept:
        kept["items"] = _essence(kept["items"])
    if "anyOf" in kept:
        kept["anyOf"] = [_essence(each) for each in kept["anyOf"]]
    return kept


# -- reading -------------------------------------------------------------------------------------------------------


def call_in(value: Any, arguments: Sequence[str] = ("arguments",)) -> ToolCall | Unreadable:
    """Read one call object; its arguments stand under one of the keys."""
    key = next((k for k in arguments if isinstance(value, dict) and k in value), arguments[0])
    if not isinstance(value, dict) or set(value) != {"name", key}:
        return Unreadable(f'a call is {{"name": ..., "{arguments[0]}": {{...}}}} and no other key')
    if not isinstance(value["name"], str) or not isinstance(value[key], dict):
        return Unreadable(f"name must be a string and {key} an object")
    return ToolCall(value["name"], value[key])


def batch(read: Sequence[ToolCall | Unreadable]) -> Reading:
    """All calls, or why there are none: what was cut off behind the first may have changed what the first means."""
    wrong = next((r for r in read if isinstance(r, Unreadable)), None)
    return wrong or Calls(tuple(r for r in read if isinstance(r, ToolCall)))


def json_at(text: str, begin: int) -> tuple[Any, int]:
    """Return the JSON value that begins there (after white space) and where it ends. Raises ShapeError.

    Markers of a dialect inside its strings are text like any other.
    """
    begin += len(text[begin:]) - len(text[begin:].lstrip())
    try:
        _, end = _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError) as error:
        raise ShapeError(f"not JSON: {error}") from None
    return parse(text[begin:end]), end  # Strictly: no key twice, no NaN.


_DECODER = json.JSONDecoder()


def without_thoughts(text: str, begin: str, end: str, trigger: str) -> str:
    """Return what stands behind the model's thoughts; nothing if it never came to an end of them.

    Some templates open the thoughts for the model, so only their end is in the text.
    """
    opened = text.lstrip().startswith(begin)
    close = text.find(end)
    if close >= 0 and (opened or not 0 <= text.find(trigger) < close):
        return text[close + len(end) :]
    return "" if opened else text
