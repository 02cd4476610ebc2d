"""Hermes and Qwen: `<tool_call>` around one JSON object, thoughts in `<think>`, results in `<tool_response>`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgeagent.codec.dialects.family import (
    CallFrame,
    Family,
    batch,
    call_in,
    function_line,
    json_at,
    plain_message,
    without_thoughts,
)
from edgeagent.core.agent import Tool
from edgeagent.core.reading import Answer, Reading, Unreadable
from edgeagent.core.values import Message, ToolCall
from edgeagent.errors import ShapeError

OPEN, CLOSE = "<tool_call>", "</tool_call>"
THOUGHT, THOUGHT_END = "<think>", "</think>"

FRAME = CallFrame(f'{OPEN}\n{{"name": "', '", "arguments": ', f"}}\n{CLOSE}", trigger=OPEN)


@dataclass(frozen=True)
class Hermes(Family):
    """ChatML models that were taught tools: Hermes 2 Pro and 3, Qwen 2.5 and 3, SmolLM3."""

    name: str = "hermes"
    frame: CallFrame = FRAME

    def read(self, text: str) -> Reading:
        """Read the calls, or the words when there are none; thoughts are neither."""
        text = without_thoughts(text, THOUGHT, THOUGHT_END, OPEN)
        read: list[ToolCall | Unreadable] = []
        at = text.find(OPEN)
        while at >= 0:
            try:
                value, end = json_at(text, at + len(OPEN))
            except ShapeError as error:
                return Unreadable(f"no call in {OPEN}: {error}")
            if not text[end:].lstrip().startswith(CLOSE):
                return Unreadable(f"a call ends with {CLOSE}")
            read.append(call_in(value))
            at = text.find(OPEN, end)
        return batch(read) if read else Answer(text.strip())

    def tools_text(self, tools: Sequence[Tool]) -> str:
        """The functions in `<tools>`, and how a call is written."""
        lines = ["# Tools", "You may call one of these functions:", "<tools>", *map(function_line, tools), "</tools>"]
        how = f'{OPEN}\n{{"name": <function name>, "arguments": <JSON object of arguments>}}\n{CLOSE}'
        return "\n".join([*lines, "A call is a JSON object with the function's name and its arguments:", how])

    def message(self, message: Message) -> dict[str, str]:
        """A result in its tags; of what the model wrote, not the thoughts, which templates of this family take out."""
        if message.role == "tool":
            return {"role": "user", "content": f"<tool_response>\n{message.text}\n</tool_response>"}
        if message.role == "assistant":
            text = without_thoughts(message.text, THOUGHT, THOUGHT_END, OPEN)
            return {"role": "assistant", "content": text if text == message.text else text.strip()}
        return plain_message(message)
