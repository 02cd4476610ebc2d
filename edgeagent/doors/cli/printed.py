"""Printed lines of tools: each goes to stderr, escaped, and says which tool has printed it.

What they print through Python is seen here; what they write past it, and what programs write that they start, is
overheard.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any, TextIO

from edgeagent.core.text import readable, shown
from edgeagent.doors.cli.overheard import Overheard
from edgeagent.doors.cli.terminal import Stderr, kept

TOOL_THREAD = "tool "
"""How the names of the threads begin that the driver runs tools in: `tool NAME ID`."""

LINE_CHARS_MAX = 10_000
"""A line that does not end is shown in portions of this size."""


class Printed:
    """A stream as everyone else has it; what a tool writes to it is told of line by line, on `told`."""

    def __init__(self, stream: TextIO, told: TextIO, plain: TextIO, overheard: Overheard) -> None:
        self.stream, self._told, self._plain, self.overheard = stream, told, plain, overheard
        self.around_call, self.paused, self._settle = overheard.around, overheard.paused, overheard.settle
        self._begun = threading.local()

    def __getattr__(self, name: str) -> Any:
        """All else is the stream's own; a tool gets at the one that is overheard, and gives it to its programs."""
        return getattr(self.stream if _tool_here() is None else self._plain, name)

    def close(self) -> None:
        """Stay open: others write here too."""

    def write(self, text: str) -> int:
        """Write the text; a tool's waits until its line has ended."""
        tool = _tool_here()
        if tool is None:
            is_ours = threading.current_thread() is threading.main_thread()
            self.stream.write(text if is_ours else shown(text, lines=True))  # A tool's own thread has any name.
            return len(text)
        *lines, rest = (getattr(self._begun, "text", "") + text).split("\n")
        if len(rest) > LINE_CHARS_MAX:
            lines, rest = [*lines, rest], ""
        self._begun.text = rest
        if lines:
            self._settle()  # What a program wrote before it stands before it.
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
        (self.stream if _tool_here() is None else self._told).flush()


def _tool_here() -> str | None:
    """The tool that this thread runs."""
    name = threading.current_thread().name
    return name.removeprefix(TOOL_THREAD).rpartition(" ")[0] if name.startswith(TOOL_THREAD) else None


@contextlib.contextmanager
def prints_told() -> Iterator[TextIO]:
    """Tell, while this lasts, which tool has printed what. Gives the stderr that alone is ours."""
    out, err = sys.stdout, sys.stderr
    err.flush()
    with kept(2, Stderr) as told:
        overheard = Overheard(lambda names, line: _tell_overheard(told, names, line))
        sys.stdout, sys.stderr = Printed(out, told, out, overheard), Printed(told, told, err, overheard)
        try:
            yield told
        finally:
            overheard.close()
            sys.stdout, sys.stderr = out, err


def _in_child() -> None:
    """A child that a tool has forked writes to stdout and stderr as any program that it starts."""
    if isinstance(sys.stdout, Printed):
        sys.stdout.overheard.let_go()
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__


os.register_at_fork(after_in_child=_in_child)


def unheard() -> contextlib.AbstractContextManager[None]:
    """Stdout and stderr as they are, for a while: editing a line needs the terminal itself."""
    return sys.stdout.paused() if isinstance(sys.stdout, Printed) else contextlib.nullcontext()


def _tell_overheard(told: TextIO, names: str, line: bytes) -> None:
    told.write(f"{shown(names)} printed: {shown(readable(line))}\n")
    told.flush()
