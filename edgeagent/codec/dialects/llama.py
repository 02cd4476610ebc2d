"""Llama 3: the call is the whole text, `{"name": ..., "parameters": {...}}`, at times behind `<|python_tag|>`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgeagent.codec.dialects.family import CallFrame, Family, batch, call_in, function_line, json_at
from edgeagent.core.agent import Tool
from edgeagent.core.reading import Answer, Reading, Unreadable
from edgeagent.core.values import ToolCall
from edgeagent.errors import ShapeError

TAG = "<|python_tag|>"

FRAME = CallFrame('{"name": "', '", "parameters": ', "}")


@dataclass(frozen=True)
class Llama(Family):
    """Llama 3.1, 3.2 and 3.3 with custom tools. Llama 4's Python-like calls are not read."""

    name: str = "llama"
    frame: CallFrame = FRAME

    def read(self, text: str) -> Reading:
        """Read one object or several with `;` between; an object that names no function is words."""
        words, tag, behind = text.partition(TAG)
        text = (behind if tag else words).strip()
        if not text.startswith("{"):
            return Answer(text) if not tag else Unreadable(f"no JSON object follows {TAG}")
        read: list[ToolCall | Unreadable] = []
        at = 0
        while at < len(text):
            try:
                value, at = json_at(text, at)
            except ShapeError as error:
                return Unreadable(f"not one JSON call: {error}")
            if not read and not tag and isinstance(value, dict) and "name" not in value:
                return Answer(text)
            read.append(call_in(value, ("parameters", "arguments")))
            at += len(text[at:]) - len(text[at:].lstrip("; \n"))
        return batch(read)

    def tools_text(self, tools: Sequence[Tool]) -> str:
        """The functions, and how a call is written."""
        how = 'To call one, answer with {"name": <function name>, "parameters": <its arguments>} and nothing else.'
        return "\n".join(["You may call one of these functions.", how, *map(function_line, tools)])
