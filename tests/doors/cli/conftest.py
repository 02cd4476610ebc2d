"""Run the program itself, as a user would."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import subprocess
import sys
import termios
import time

import pytest

from tests.doors.cli.forked import ROOT, Forks


def runner(folder, forks):
    """A function that runs the command in this folder and returns the finished process.

    What is about the start itself (`before` the command, Python's own environment) is started; all else is forked.
    """
    environment = {
        **os.environ,
        "EDGEAGENT_STATE": str(folder / "state"),
        "EDGEAGENT_GREENHOUSE": str(folder),
        "PYTHONPATH": str(ROOT),
        "NO_COLOR": "1",
    }

    def run(*arguments, stdin="", stdin_file=None, timeout=120, before=(), **more):
        given, env = [*map(str, arguments)], {**environment, **more}
        if not before and not any(name.startswith(("PYTHON", "LC_", "LANG")) for name in more):
            return forks.run(given, folder, env, stdin if stdin_file is None else stdin_file, timeout)
        command = [*before, sys.executable, "-m", "edgeagent", *given]
        source = {"input": stdin} if stdin_file is None else {"stdin": stdin_file}
        return subprocess.run(
            command, **source, capture_output=True, text=True, timeout=timeout, cwd=folder, env=env, check=False
        )

    return run


@pytest.fixture(scope="session")
def forks():
    """The process that forks the command."""
    made = Forks()
    yield made
    made.close()


def write_script(folder, *answers):
    """Write a model script and return the model's name."""
    file = folder / "script.json"
    file.write_text(json.dumps([a if isinstance(a, str) else json.dumps(a) for a in answers]))
    return f"script:{file}"


@pytest.fixture
def edgeagent(tmp_path, forks):
    """A function that runs the command in a folder of its own and returns the finished process."""
    return runner(tmp_path, forks)


class Terminal:
    """The command on a terminal of its own: what it writes there, and what is typed."""

    def __init__(self, folder, *arguments):
        self._ours, theirs = pty.openpty()
        environment = {**os.environ, "EDGEAGENT_STATE": str(folder / "state"), "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
        command = [sys.executable, "-m", "edgeagent", *map(str, arguments)]
        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env=environment,
            start_new_session=True,
            # So that Ctrl-C is a signal there; this process has one thread when it forks.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )
        os.close(theirs)
        self.written = b""

    def type(self, text):
        os.write(self._ours, text.encode())

    def wait_for(self, text, timeout=60):
        """Read until this has been written, and return all that was written before and with it."""
        until = time.monotonic() + timeout
        while text.encode() not in self.written:
            assert time.monotonic() < until, f"{text!r} is not in {self.written!r}"
            if not self._read(0.2):
                break
        assert text.encode() in self.written, self.written
        return self.written

    def end(self, timeout=60):
        """Read to the end; return the exit code."""
        until = time.monotonic() + timeout
        while self._read(0.2):
            assert time.monotonic() < until, self.written
        os.close(self._ours)
        return self.process.wait(timeout)

    def _read(self, seconds):
        if not select.select([self._ours], [], [], seconds)[0]:
            return True
        try:
            more = os.read(self._ours, 65_536)
        except OSError:  # The other end is closed: how Linux says that a terminal has ended.
            return False
        self.written += more
        return bool(more)


@pytest.fixture
def terminal(tmp_path):
    """A function that runs the command on a terminal in a folder of its own."""
    begun = []

    def run(*arguments):
        begun.append(Terminal(tmp_path, *arguments))
        return begun[-1]

    yield run
    for each in begun:
        each.process.kill()
        each.process.wait()


@pytest.fixture
def script(tmp_path):
    """A function that writes a model script and returns the model's name."""
    return lambda *answers: write_script(tmp_path, *answers)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory, forks):
    """The state folder after a session of the greenhouse that has ended well; to be copied, not changed."""
    folder = tmp_path_factory.mktemp("recorded")
    read = {"name": "read_sensor", "arguments": {"sensor": "soil_moisture"}}
    model = write_script(folder, read, "It is dry.", "Still dry.")
    ended = runner(folder, forks)("run", ROOT / "examples" / "greenhouse.py", "How dry is it?", "--model", model)
    assert ended.returncode == 0, ended.stderr
    return folder / "state"
