"""SIGHUP: whether the terminal has gone, whatever stands in the places of its descriptors."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

CODE = """
import os, sys
from edgeagent.runtime.hangup import Terminal

terminal = Terminal()
own, (read, write) = os.dup(2), os.pipe()
os.dup2(write, 1), os.dup2(write, 2)  # As while a tool runs.
sys.exit(3 if terminal.has_gone else 0)
"""


def test_a_terminal_is_there_while_a_pipe_stands_in_its_place() -> None:
    ours, theirs = pty.openpty()
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    ran = subprocess.run(
        [sys.executable, "-c", CODE],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        check=False,
    )
    os.close(theirs)
    os.close(ours)
    assert ran.returncode == 0
