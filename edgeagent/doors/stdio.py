"""Stdio of a program that speaks a protocol: stdin and stdout belong to the other side alone, whatever tools do.

What tools print becomes stderr, and what they read from stdin is empty. So is what a child of theirs inherits.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator

from edgeagent.doors.cli.terminal import stdout_kept

OUT_OF_REACH = 900
"""From here on our descriptor lies: tools that close what they may have inherited begin at 3."""


@contextlib.contextmanager
def stdio_kept() -> Iterator[tuple[int, Callable[[memoryview], int | None]]]:
    """Give the descriptor that is read, and what writes some bytes and says how many, as `driver.peer` wants them."""
    with stdout_kept() as out, contextlib.ExitStack() as undo:
        try:
            incoming = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, OUT_OF_REACH)
        except OSError:  # Few descriptors are allowed here, or stdin is closed.
            incoming = os.dup(0) if _is_open(0) else os.open(os.devnull, os.O_RDONLY)
        undo.callback(os.close, incoming)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        if nothing:
            os.close(nothing)
        raw = out.buffer.raw  # type: ignore[attr-defined]  # a BufferedWriter over a file has it
        yield incoming, raw.write


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
