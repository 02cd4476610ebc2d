"""Words to a person and to a program: what is told is escaped, and a question is put only to who has seen it.

No byte of outside text reaches a terminal as anything but text. A program on a pipe gets answers as they are.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import resource
import select
import sys
import termios
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import click

from edgeagent.core.effects import AskUser
from edgeagent.core.text import shown
from edgeagent.errors import ConfigError, DriverUnavailable
from edgeagent.runtime.door import Decision

LOOK_EVERY_S = 0.2
"""How often a waiting question looks whether it is still open: it may have expired, or been cancelled with its turn."""

YES, NO = {"y", "yes"}, {"", "n", "no"}


def tell(text: str, *, err: bool = False, lines: bool = False) -> None:
    """Write a line for a person, escaped; with `lines` its line feeds stay, and it may be several."""
    click.echo(shown(text, lines=lines), err=err)


def tell_all(sentences: Iterable[str]) -> None:
    """Tell a person sentences about the program, a line each."""
    for each in sentences:
        tell(f"edgeagent: {each}", err=True, lines=True)


def pass_on(text: str) -> None:
    """Write a text that is wanted byte for byte, such as a grammar; only a terminal gets it escaped."""
    click.echo(fit_for(sys.stdout, text), nl=False)


def tell_row(row: Any, out: TextIO | None = None) -> None:
    """Write one JSON object a line. What would move or hide something on a terminal is written as a JSON escape."""
    text = json.dumps(row, ensure_ascii=False)
    print(text if shown(text) == text else json.dumps(row), file=out or sys.stdout, flush=True)


def fit_for(stream: TextIO, text: str) -> str:
    """The text as this stream may have it: escaped for a terminal, and else as it is."""
    return shown(text, lines=True) if stream.isatty() else text


def arguments_text(arguments: str) -> str:
    """A call's arguments as a person reads them."""
    try:
        named = json.loads(arguments).items()
    except (ValueError, AttributeError):
        return shown(arguments)  # A trace from elsewhere may hold anything.
    return shown(", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in named))


def can_ask() -> bool:
    """Whether a person can be asked: they read stderr and type on stdin."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: AskUser, is_open: Callable[[], bool]) -> Decision:
    """Put the question on the terminal; only what is typed after all of it was written can be a yes."""
    because = shown(question.because)
    _write_all(f"\n{because}.\n  {shown(question.tool)}({arguments_text(question.arguments)})\n")
    said = ask_line("Run exactly this? ", "[y/N] ", is_open)
    if said is None:
        return Decision(False, "no answer", question.digest)
    answer = said.strip().lower()
    if answer not in YES | NO:
        _write_all(f"{shown(answer)!r} is not a yes, so it is not run. Only y or yes is one.\n")
    return Decision(answer in YES, "" if answer in YES | NO else answer, question.digest)


def ask_line(question: str, prompt: str, is_open: Callable[[], bool] = lambda: True) -> str | None:
    """Return the line that is typed after `question` was written; None at Ctrl-D, or once it is not waited for.

    Whatever was typed before is thrown away: it cannot have been meant for a question that was not there. `prompt`
    comes last, so that who has seen it knows that a line counts.
    """
    _write_all(question)
    termios.tcdrain(sys.stderr.fileno())
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    _write_all(prompt)
    typed = b""
    while is_open():
        if not select.select([sys.stdin.fileno()], [], [], LOOK_EVERY_S)[0]:
            continue
        more = os.read(sys.stdin.fileno(), 4096)  # Past Python's buffer, which may hold what was typed before.
        typed += more
        if not more or b"\n" in typed:
            return typed.decode(errors="replace").partition("\n")[0] if more else None
    _write_all("(not waiting for this answer any more)\n")
    return None


def _write_all(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _file_behind(descriptor: int) -> tuple[int, int] | None:
    from edgeagent.runtime.folder import file_behind  # It brings the trace along, which `--version` need not wait for.

    return file_behind(descriptor)


class _Kept(io.FileIO):
    """A descriptor that tools were not given. One that closes too many is noticed before its own file is written to."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._identity = _file_behind(descriptor)
        _KEPT.add(self)

    def write(self, block: Any) -> int:
        """Write some of the block. Raises DriverUnavailable if a tool has closed the descriptor."""
        if _file_behind(self.fileno()) != self._identity:
            raise DriverUnavailable("a tool has closed the descriptor that answers are written to; the trace has them")
        return super().write(block)

    def let_go(self) -> None:
        """Close the descriptor, unless a tool has done so already."""
        _KEPT.discard(self)
        if _file_behind(self.fileno()) == self._identity:
            os.close(self.fileno())


class Stderr(_Kept):
    """A copy of stderr; where a tool has closed it, stderr itself is written to."""

    def write(self, block: Any) -> int:
        """Write some of the block."""
        try:
            return super().write(block)
        except DriverUnavailable:
            return os.write(2, block)


_KEPT: weakref.WeakSet[_Kept] = weakref.WeakSet()
"""Those of this process. Whoever reads our answers must not wait for a child that a tool has left behind."""


def _let_go_in_child() -> None:
    for each in list(_KEPT):
        each.let_go()


os.register_at_fork(after_in_child=_let_go_in_child)


OUT_OF_REACH = 16_000
"""The number from which on our own descriptors lie: tools that close what they may have inherited begin at 3, and most
end at a few thousand. A table of descriptors of this length takes 128 kB."""


def far_copy(descriptor: int) -> int:
    """A copy of the descriptor that lies out of the reach of tools, as far as the system lets numbers go."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = OUT_OF_REACH + 8 if hard == resource.RLIM_INFINITY else min(OUT_OF_REACH + 8, hard)
    is_near = soft != resource.RLIM_INFINITY and soft < most
    if is_near:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))  # It is asked only when a number is given.
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max(3, most - 16))
    finally:
        if is_near:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def kept(descriptor: int, kind: type[_Kept] = _Kept) -> Iterator[TextIO]:
    """Write to a copy of the descriptor that lies out of the reach of tools."""
    copy = kind(far_copy(descriptor))
    text = io.TextIOWrapper(io.BufferedWriter(copy), "utf-8", "backslashreplace", line_buffering=True)
    try:
        yield text
        text.flush()
    finally:
        copy.let_go()


@contextlib.contextmanager
def stdout_kept() -> Iterator[TextIO]:
    """Give what alone writes to stdout from now on. What tools print must not mix with it, so theirs becomes stderr."""
    sys.stdout.flush()
    with kept(1) as answers:
        os.dup2(2, 1)
        yield answers


@contextlib.contextmanager
def private_file(path: Path, *, is_new: bool = False) -> Iterator[BinaryIO]:
    """A file that only its owner may read, as sessions are; `is_new`: one that was not there. Raises ConfigError."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if is_new else os.O_TRUNC)
    try:
        descriptor = os.open(path, flags, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)
            yield file
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from None
