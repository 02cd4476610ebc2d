"""Gemma 4 and FunctionGemma: `call:NAME{key:value}` between markers, strings between marks of their own, not JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edgeagent.codec.dialects.family import CallFrame, Family, batch, function_line, json_at, without_thoughts
from edgeagent.core.agent import Tool
from edgeagent.core.reading import Answer, Reading, Unreadable
from edgeagent.core.values import ToolCall
from edgeagent.errors import ShapeError

DEPTH_MAX = 64  # as deep as JSON is read

_NAME = re.compile(r"call:([\w.-]+)\s*(?=\{)")
_SCALAR = re.compile(r"true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_KEY = re.compile(r"\s*([^:{}\[\],<>]+?)\s*:")


@dataclass(frozen=True)
class Marks:
    """What a call and a string stand between."""

    begin: str
    end: str
    string: str


GEMMA = Marks("<|tool_call>", "<tool_call|>", '<|"|>')
FUNCTION_GEMMA = Marks("<start_function_call>", "<end_function_call>", "<escape>")


def frame_of(marks: Marks) -> CallFrame:
    """The frame of a call between these marks."""
    begin = f"{marks.begin}call:"
    return CallFrame(begin, "", marks.end, ",", ":", trigger=marks.begin, string_mark=marks.string)


GEMMA_FRAME, FUNCTION_GEMMA_FRAME = frame_of(GEMMA), frame_of(FUNCTION_GEMMA)


@dataclass(frozen=True)
class Gemma(Family):
    """`marks` are those of Gemma 4; FunctionGemma has its own. Arguments in JSON are read as well."""

    name: str = "gemma"
    frame: CallFrame = GEMMA_FRAME
    decides: bool = True
    marks: Marks = GEMMA

    def read(self, text: str) -> Reading:
        """Read the calls, or the words when there are none; thoughts are neither."""
        text = without_thoughts(text, "<|channel>", "<channel|>", self.marks.begin)
        read: list[ToolCall | Unreadable] = []
        at = text.find(self.marks.begin)
        while at >= 0:
            try:
                call, end = self._call_at(text, at + len(self.marks.begin))
            except ShapeError as error:
                return Unreadable(f"no call in {self.marks.begin}: {error}")
            read.append(call)
            at = text.find(self.marks.begin, end)
        return batch(read) if read else Answer(text.strip())

    def _call_at(self, text: str, begin: int) -> tuple[ToolCall, int]:
        named = _NAME.match(text, begin)
        if named is None:
            raise ShapeError("it begins with call:NAME{")
        if re.match(r'\{\s*"', text[named.end() :]):
            arguments, end = json_at(text, named.end())
        else:
            arguments, end = self._object(text, named.end(), 0)
        if not text.startswith(self.marks.end, end):
            raise ShapeError(f"it ends with {self.marks.end}")
        return ToolCall(named[1], arguments), end

    def _object(self, text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at += 1
        while not text.startswith("}", at := _past_space(text, at)):
            key = _KEY.match(text, at)
            if key is None or key[1] in found:
                raise ShapeError(f"a new key is missing at character {at}")
            found[key[1]], at = self._value(text, key.end(), depth)
            at = _after(text, at, "}")
        return found, at + 1

    def _array(self, text: str, at: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        at += 1
        while not text.startswith("]", at := _past_space(text, at)):
            value, at = self._value(text, at, depth)
            found.append(value)
            at = _after(text, at, "]")
        return found, at + 1

    def _value(self, text: str, at: int, depth: int) -> tuple[Any, int]:
        at = _past_space(text, at)
        if depth > DEPTH_MAX:
            raise ShapeError(f"nested deeper than {DEPTH_MAX}")
        if text.startswith(self.marks.string, at):
            begin = at + len(self.marks.string)
            end = text.find(self.marks.string, begin)
            if end < 0:
                raise ShapeError("a string does not end")
            return text[begin:end], end + len(self.marks.string)
        if text.startswith("{", at):
            return self._object(text, at, depth + 1)
        if text.startswith("[", at):
            return self._array(text, at, depth + 1)
        scalar = _SCALAR.match(text, at)
        if scalar is None:
            raise ShapeError(f"no value at character {at}")
        return json_at(scalar[0], 0)[0], scalar.end()

    def tools_text(self, tools: Sequence[Tool]) -> str:
        """The functions, and how a call is written."""
        marks = self.marks
        how = f"{marks.begin}call:<function name>{{<key>:<value>}}{marks.end}"
        text = f"Strings stand between {marks.string} and {marks.string}."
        return "\n".join([f"You may call one of these functions by writing {how}. {text}", *map(function_line, tools)])


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _after(text: str, at: int, close: str) -> int:
    """Where the next member begins, or the end of all."""
    at = _past_space(text, at)
    if text.startswith(",", at):
        return at + 1
    if text.startswith(close, at):
        return at
    raise ShapeError(f"',' or '{close}' is missing at character {at}")
