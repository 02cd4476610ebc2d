"""The command as a process of its own, without the second that Python needs to start and import it.

One process has imported what most verbs need and forks itself for each run: each has its own memory, descriptors,
folder, environment and exit code, as a started one has. Run as a program, this file is that process.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[3]
IMPORTED = ("edgeagent.doors.cli.main", "edgeagent.doors.cli.run", "edgeagent.doors.cli.trace", "edgeagent.testing")
"""Nothing of these loads llama.cpp or begins a thread."""


class Forks:
    """Runs the command by forks of one process. For one thread."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen([sys.executable, __file__], stdin=theirs, env=_environment({}))

    def run(
        self,
        arguments: list[str],
        folder: Path,
        environment: dict[str, str],
        stdin: str | int | IO[Any],
        timeout: float,
    ) -> subprocess.CompletedProcess[str]:
        """Run the command in this folder, to its end; `stdin` is a text, or an open file or its number.

        Raises TimeoutExpired, after it was killed.
        """
        with _source(stdin) as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            asked = {"arguments": arguments, "folder": str(folder), "environment": _environment(environment)}
            socket.send_fds(self._ours, [json.dumps(asked).encode()], [given, out.fileno(), err.fileno()])
            pid = int(self._ours.recv(64))
            self._ours.settimeout(timeout)
            try:
                code = int(self._ours.recv(64))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self._ours.settimeout(None)
                self._ours.recv(64)
                raise subprocess.TimeoutExpired(arguments, timeout) from None
            self._ours.settimeout(None)
            written = [_text(each) for each in (out, err)]
        return subprocess.CompletedProcess(arguments, code, *written)

    def close(self) -> None:
        """End the process."""
        self._ours.close()
        self._process.wait(60)


def _environment(more: dict[str, str]) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **more}


@contextlib.contextmanager
def _source(content: str | int | IO[Any]) -> Iterator[int]:
    if not isinstance(content, str):
        yield content if isinstance(content, int) else content.fileno()
        return
    with tempfile.TemporaryFile() as file:
        file.write(content.encode())
        file.seek(0)
        yield file.fileno()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def _serve(channel: socket.socket) -> None:
    while True:
        asked, fds, _, _ = socket.recv_fds(channel, 1 << 20, 3)
        if not asked:
            return
        pid = os.fork()
        if pid == 0:
            channel.close()
            _run(fds, **json.loads(asked))
        for fd in fds:
            os.close(fd)
        channel.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        channel.send(str(os.waitstatus_to_exitcode(status)).encode())


def _run(fds: list[int], arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Be the command, and end."""
    os.setsid()
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, "r" if n == 0 else "w", encoding="utf-8") for n in range(3))
    sys.argv = ["edgeagent", *arguments]
    code: Any = 0
    try:
        runpy.run_module("edgeagent", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in IMPORTED:
        __import__(name)
    with socket.socket(fileno=os.dup(0)) as given:
        _serve(given)
