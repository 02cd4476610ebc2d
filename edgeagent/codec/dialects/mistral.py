"""Mistral: calls behind `[TOOL_CALLS]`, as a JSON list or, since 2025, as `NAME[ARGS]{...}`; thoughts in `[THINK]`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from edgeagent.codec.dialects.family import (
    CallFrame,
    Family,
    batch,
    call_in,
    function_line,
    json_at,
    without_thoughts,
)
from edgeagent.core.agent import Tool
from edgeagent.core.reading import Answer, Reading, Unreadable
from edgeagent.core.values import ToolCall
from edgeagent.errors import ShapeError

OPEN, ARGUMENTS = "[TOOL_CALLS]", "[ARGS]"
_NAMED = re.compile(r"\s*([\w.-]+)(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?(?=\s*\{)")

LIST = CallFrame(f'{OPEN}[{{"name": "', '", "arguments": ', "}]", trigger=OPEN)
NAMED = CallFrame(OPEN, ARGUMENTS, "", trigger=OPEN)


@dataclass(frozen=True)
class Mistral(Family):
    """Both ways are read; `frame` is the one that the model's template shows."""

    name: str = "mistral"
    frame: CallFrame = LIST

    def read(self, text: str) -> Reading:
        """Read the calls, or the words when there are none; thoughts are neither."""
        for begin, end in (("[THINK]", "[/THINK]"), ("<think>", "</think>")):
            text = without_thoughts(text, begin, end, OPEN)
        at = text.find(OPEN)
        if at < 0 or not text[at + len(OPEN) :].strip():
            return Answer(text[:at].strip() if at >= 0 else text.strip())  # Some engines stop at the marker itself.
        read: list[ToolCall | Unreadable] = []
        while at >= 0:
            try:
                calls, end_at = _calls_at(text, at + len(OPEN))
            except ShapeError as error:
                return Unreadable(f"no call follows {OPEN}: {error}")
            read += calls
            at = text.find(OPEN, end_at)
        return batch(read)

    def tools_text(self, tools: Sequence[Tool]) -> str:
        """The functions, and how a call is written."""
        listed = f'{OPEN}[{{"name": <function name>, "arguments": <object of arguments>}}]'
        how = listed if self.frame == LIST else f"{OPEN}<function name>{ARGUMENTS}<object of arguments>"
        return "\n".join([f"You may call one of these functions by writing {how}", *map(function_line, tools)])


def _calls_at(text: str, begin: int) -> tuple[list[ToolCall | Unreadable], int]:
    named = _NAMED.match(text, begin)
    value, end = json_at(text, named.end() if named else begin)
    if named:
        return [ToolCall(named[1], value)], end
    if not isinstance(value, list):
        raise ShapeError("it must be a list of calls, or a name and its arguments")
    each = ({k: v for k, v in call.items() if k != "id"} if isinstance(call, dict) else call for call in value)
    return [call_in(call) for call in each], end
