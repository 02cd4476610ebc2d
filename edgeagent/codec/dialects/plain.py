"""Our own envelope: one JSON object, `{"name": ..., "arguments": {...}}`, or words that do not begin with `{`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgeagent.codec.dialects.family import CallFrame, Family, batch, call_in, tool_line
from edgeagent.core.agent import Tool
from edgeagent.core.reading import Answer, Reading, Unreadable
from edgeagent.errors import ShapeError
from edgeagent.shape.parse import parse

CALL_HINT = (
    'To act, reply with one JSON tool call such as {"name": "tool", "arguments": {}} and nothing else. '
    "After a result, answer the user in one short sentence."
)

FRAME = CallFrame('{"name": "', '", "arguments": ', "}")


@dataclass(frozen=True)
class Plain(Family):
    """For models that have no format of their own."""

    name: str = "plain"
    frame: CallFrame = FRAME
    decides: bool = False

    def read(self, text: str) -> Reading:
        """Read one call object, a list of them, or words."""
        text = text.strip()
        if not text.startswith(("{", "[{")):
            return Answer(text)
        try:
            value = parse(text)
        except ShapeError as error:
            return Unreadable(f"not one JSON call: {error}")
        return batch([call_in(each) for each in (value if isinstance(value, list) else [value])])

    def tools_text(self, tools: Sequence[Tool]) -> str:
        """Each tool on a line."""
        return "\n".join([CALL_HINT, "Tools:", *map(tool_line, tools)])
