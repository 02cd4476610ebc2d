"""Printed lines of tools: each goes to stderr, escaped, and says which tool has printed it."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any, TextIO

from edgeagent.core.text import shown

TOOL_THREAD = "tool "
"""How the names of the threads begin that the driver runs tools in: `tool NAME ID`."""

LINE_CHARS_MAX = 10_000
"""A line that does not end is shown in portions of this size."""


class Printed:
    """A stream as everyone else has it; what a tool writes to it is told of line by line, on `told`."""

    def __init__(self, stream: TextIO, told: TextIO) -> None:
        self._stream, self._told = stream, told
        self._begun = threading.local()

    def __getattr__(self, name: str) -> Any:
        """All else is the stream's own."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write the text; a tool's waits until its line has ended."""
        tool = _tool_here()
        if tool is None:
            is_ours = threading.current_thread() is threading.main_thread()
            self._stream.write(text if is_ours else shown(text, lines=True))  # A tool's own thread has any name.
            return len(text)
        *lines, rest = (getattr(self._begun, "text", "") + text).split("\n")
        if len(rest) > LINE_CHARS_MAX:
            lines, rest = [*lines, rest], ""
        self._begun.text = rest
        for line in lines:
            self._told.write(f"{shown(tool)} printed: {shown(line)}\n")
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write them all."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Let out what a tool has begun, and what the stream holds back."""
        if getattr(self._begun, "text", ""):
            self.write("\n")
        (self._stream if _tool_here() is None else self._told).flush()


def _tool_here() -> str | None:
    """The tool that this thread runs."""
    name = threading.current_thread().name
    return name.removeprefix(TOOL_THREAD).rpartition(" ")[0] if name.startswith(TOOL_THREAD) else None


@contextlib.contextmanager
def prints_told() -> Iterator[None]:
    """Tell, while this lasts, which tool has printed what."""
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = Printed(out, err), Printed(err, err)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err
