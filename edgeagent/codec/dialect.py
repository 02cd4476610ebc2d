"""How models write calls, and how the conversation is put to them. Pure text; no template, no tokens.

The plain envelope is one JSON object, `{"name": ..., "arguments": {...}}`, or words that do not begin with `{`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgeagent.core.agent import Answer, Calls, Reading, Tool, Unreadable
from edgeagent.core.values import Message, ToolCall
from edgeagent.errors import ConfigError, ShapeError
from edgeagent.shape.parse import parse


@dataclass(frozen=True)
class CallFrame:
    """The fixed text around a call: `before` NAME `between` ARGUMENTS `after`; separators as the model writes them.

    `trigger` ends free text and begins a call; without one a call begins with the text.
    """

    before: str
    between: str
    after: str
    item_separator: str = ", "
    key_separator: str = ": "
    trigger: str = ""


@dataclass(frozen=True)
class Plain:
    """Our own envelope, for models that have no format of their own."""

    name: str = "plain"
    frame: CallFrame = CallFrame('{"name": "', '", "arguments": ', "}")

    def read(self, text: str) -> Reading:
        """Read one call object, a list of them, or words."""
        text = text.strip()
        if not text.startswith(("{", "[{")):
            return Answer(text)
        try:
            value = parse(text)
        except ShapeError as error:
            return Unreadable(f"not one JSON call: {error}")
        calls = value if isinstance(value, list) else [value]
        read = [_call_in(each) for each in calls]
        wrong = next((r for r in read if isinstance(r, Unreadable)), None)
        return wrong or Calls(tuple(r for r in read if isinstance(r, ToolCall)))

    def system_text(self, system: str, tools: Sequence[Tool]) -> str:
        """The system message: who the agent is, then each tool on a line. It never changes within a session."""
        if not tools:
            return system
        lines = [_tool_line(t) for t in tools]
        return "\n".join([system, CALL_HINT, "Tools:", *lines]).strip()

    def chat(self, messages: Sequence[Message], *, closing: str = "") -> list[dict[str, str]]:
        """The conversation in the two roles that every chat template has, one for each message.

        With `closing`, the last one says that the answer must be given now, and why.
        """
        chat = [_chat_message(m) for m in messages]
        if closing and chat:
            chat[-1]["content"] += f"\n(The limit of {closing} is reached. Answer now in one short sentence.)"
        return chat


CALL_HINT = (
    'To act, reply with one JSON tool call such as {"name": "tool", "arguments": {}} and nothing else. '
    "After a result, answer the user in one short sentence."
)


def dialect_called(name: str) -> Plain:
    """Return the dialect of that name. Raises ConfigError."""
    if name != "plain":
        raise ConfigError(f"no dialect is called {name!r}; there is: plain")
    return Plain()


def _call_in(value: Any) -> ToolCall | Unreadable:
    if not isinstance(value, dict) or set(value) != {"name", "arguments"}:
        return Unreadable('a call is {"name": ..., "arguments": {...}} and no other key')
    if not isinstance(value["name"], str) or not isinstance(value["arguments"], dict):
        return Unreadable("name must be a string and arguments an object")
    return ToolCall(value["name"], value["arguments"])


SHOWN_KEYWORDS = frozenset(("type", "enum", "const", "minimum", "maximum", "items", "properties", "anyOf", "$ref"))
"""What the model is told of an argument's schema. The grammar holds it to the rest, and every token costs time."""


def _tool_line(tool: Tool) -> str:
    schema = tool.parameters.schema
    shown = {"name": tool.name, "description": tool.description, "parameters": _shown(schema.get("properties", {}))}
    if "$defs" in schema:
        shown["$defs"] = _shown(schema["$defs"])
    return json.dumps(shown, ensure_ascii=False)  # With spaces after , and :, as models have mostly read it.


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


def _chat_message(message: Message) -> dict[str, str]:
    if message.role == "tool":
        return {"role": "user", "content": f"Result of {message.tool or 'the call'}: {_in_words(message.text)}."}
    return {"role": message.role, "content": message.text}


def _in_words(result: str) -> str:
    """An object as `key value, key value`: shown JSON, a small model describes JSON instead of what it says."""
    try:
        value = json.loads(result)
    except ValueError:
        return result
    if not isinstance(value, dict):
        return result
    return ", ".join(f"{key} {each if isinstance(each, str) else json.dumps(each)}" for key, each in value.items())
