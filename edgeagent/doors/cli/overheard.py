"""Words of programs and libraries that tools run: what these write to stdout and stderr is told line by line.

While calls run, a pipe stands in the place of both descriptors. It stays open for programs that a call leaves behind;
where we end before them `cat` reads on, or their next word would kill them.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections.abc import Callable, Iterator

from edgeagent.doors.cli.terminal import far_copy
from edgeagent.runtime.folder import file_behind

LINE_BYTES_MAX = 40_000
"""A line that does not end is told in portions of this size."""

MARK_BYTES = 32

Tell = Callable[[str, bytes], None]
"""Takes whose words they may be, and a line of them."""


class Overheard:
    """Listens while calls run. Any thread may call."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._lock = threading.RLock()
        self._running: list[str] = []
        self._pipes: list[_Pipe] = []

    @contextlib.contextmanager
    def around(self, tool: str) -> Iterator[None]:
        """Listen while a call of this tool runs."""
        with self._lock:
            pipe = self._pipes[-1] if self._running else self._begun()
            if pipe is not None:
                self._running.append(tool)
                pipe.owners = _names(self._running)
        try:
            yield
        finally:
            if pipe is not None:
                self._end(pipe, tool)

    def settle(self) -> None:
        """Wait until all that programs have written so far is told."""
        with self._lock:
            pipe = self._pipes[-1] if self._running else None
        if pipe is not None:
            pipe.settle()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Give stdout and stderr back for a while: a call that was given up may still run."""
        with self._lock:
            pipe = self._pipes[-1] if self._running else None
            if pipe is not None:
                pipe.stand_aside()
        try:
            yield
        finally:
            with self._lock:
                if pipe is not None and self._running:
                    pipe.stand_in()

    def _begun(self) -> _Pipe | None:
        self._pipes = [each for each in self._pipes if not each.is_done()]
        try:
            self._pipes.append(_Pipe(self._tell))
        except OSError:  # No descriptors are left; the call matters more.
            return None
        return self._pipes[-1]

    def _end(self, pipe: _Pipe, tool: str) -> None:
        pipe.settle()
        with self._lock:
            self._running.remove(tool)
            pipe.owners = _names(self._running) or pipe.owners
            if not self._running:
                pipe.end()

    def close(self) -> None:
        """Tell what has been said so far, and leave a reader to programs that still run."""
        with self._lock:
            for pipe in self._pipes:
                pipe.leave()

    def let_go(self) -> None:
        """Close what leads to us, in a child that a tool has forked: stdout and stderr it has from its parent."""
        for pipe in self._pipes:
            pipe.let_go()


def _names(running: list[str]) -> str:
    return " or ".join(dict.fromkeys(running))


class _Pipe:
    """One pipe, and the thread that reads it."""

    def __init__(self, tell: Tell) -> None:
        self.owners = ""
        self._tell = tell
        self._mark, self._told = os.urandom(MARK_BYTES // 2).hex().encode(), threading.Semaphore(0)
        self._own = {number: far_copy(number) for number in (1, 2)}
        read, write = os.pipe2(os.O_CLOEXEC)
        self._read, self._write = far_copy(read), far_copy(write)
        os.close(read)
        os.close(write)
        self._ends = (*self._own.values(), self._write)
        self._files = {ours: file_behind(ours) for ours in (*self._ends, self._read)}
        self._thread = threading.Thread(target=self._listen, name="overheard", daemon=True)
        self._thread.start()
        self.stand_in()

    def stand_in(self) -> None:
        """Take the place of stdout and stderr."""
        for number in self._own:
            self._put(self._write, number)

    def stand_aside(self) -> None:
        """Give them their places back."""
        for number, own in self._own.items():
            self._put(own, number)

    def settle(self) -> None:
        """Wait until all that has been written is told."""
        if not self._is_ours(self._write):
            return
        with contextlib.suppress(OSError):
            os.write(self._write, self._mark)
            while self._thread.is_alive() and not self._told.acquire(timeout=1):
                pass

    def end(self) -> None:
        """Step back for good: no call writes any more, but a program that one has left behind may."""
        self.stand_aside()
        for ours in self._ends:
            self._close(ours)

    def is_done(self) -> bool:
        """Whether nobody is left who could write."""
        if self._thread.is_alive():
            return False
        self._close(self._read)
        return True

    def let_go(self) -> None:
        """Close all that is ours."""
        for ours in list(self._files):
            self._close(ours)

    def leave(self) -> None:
        """Let another program read on, where someone is left who could write."""
        self.settle()
        self.end()
        if not self._is_ours(self._read):
            return
        with contextlib.suppress(OSError):
            waiting = select.poll()
            waiting.register(self._read, 0)
            if not waiting.poll(0):  # Someone may still write: nobody has hung up.
                files = [(os.POSIX_SPAWN_DUP2, self._read, 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
                os.posix_spawnp("cat", ["cat", "-v"], os.environ, file_actions=files)

    def _put(self, ours: int, number: int) -> None:
        if self._is_ours(ours):
            os.dup2(ours, number)

    def _close(self, ours: int) -> None:
        if self._is_ours(ours):
            os.close(ours)
            del self._files[ours]

    def _is_ours(self, number: int) -> bool:
        """Whether it is open, and no tool has closed it and got its number."""
        return number in self._files and file_behind(number) == self._files[number]

    def _listen(self) -> None:
        begun = b""
        with contextlib.suppress(OSError, ValueError):  # A tool may close what is not its own.
            while more := os.read(self._read, 65_536):
                begun = self._tell_lines(begun + more)
            self._tell_lines(begun + b"\n" if begun else b"")

    def _tell_lines(self, text: bytes) -> bytes:
        """Tell all whole lines, and what stands before a mark; return what has begun."""
        *before, text = text.split(self._mark)
        for part in before:
            *lines, rest = part.split(b"\n")
            for line in (*lines, rest) if rest else lines:
                self._tell(self.owners, line)
            self._told.release()
        *lines, rest = text.split(b"\n")
        if len(rest) > LINE_BYTES_MAX:
            lines, rest = [*lines, rest[:-MARK_BYTES]], rest[-MARK_BYTES:]  # Which may be the beginning of a mark.
        for line in lines:
            self._tell(self.owners, line)
        return rest
