"""How models write calls, and how the conversation is put to them. Pure text; no template, no tokens.

The plain envelope is one JSON object, `{"name": ..., "arguments": {...}}`, or words that do not begin with `{`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edgeagent.core.agent import Answer, Calls, Reading, Tool, Unreadable
from edgeagent.core.values import Message, ToolCall, canonical_json
from edgeagent.errors import ConfigError, ShapeError
from edgeagent.shape.parse import parse


@dataclass(frozen=True)
class CallFrame:
    """The fixed text around a call: `before` NAME `between` ARGUMENTS `after`; separators as the model writes them."""

    before: str
    between: str
    after: str
    item_separator: str = ", "
    key_separator: str = ": "


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

    def chat(self, messages: Sequence[Message]) -> list[dict[str, str]]:
        """The conversation in the two roles that every chat template has."""
        return [_chat_message(m) for m in messages]


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


def _tool_line(tool: Tool) -> str:
    return canonical_json({"name": tool.name, "description": tool.description, "parameters": tool.parameters.schema})


def _chat_message(message: Message) -> dict[str, str]:
    if message.role == "tool":
        return {"role": "user", "content": f"Result of {message.tool or 'the call'}: {message.text}"}
    return {"role": message.role, "content": message.text}
