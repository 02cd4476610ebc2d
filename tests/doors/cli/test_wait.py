"""A run that waits: a timer wakes it, after a restart too, and Ctrl-C ends it in good order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]


def timer(seconds):
    return json.dumps({"name": "set_timer", "arguments": {"seconds": seconds, "note": "Look again."}})


def started(tmp_path, *arguments):
    """The program, running."""
    environment = {**os.environ, "EDGEAGENT_STATE": str(tmp_path / "state"), "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "edgeagent", "run", *map(str, arguments), "--wait"]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, **pipes)


def stopped(process):
    """Its exit code and what it still said, after Ctrl-C."""
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    return process.returncode, rest


def test_a_timer_wakes_a_run_that_waits(tmp_path):
    (tmp_path / "watch.py").write_text("from edgeagent import Agent\nA = Agent('watch', 'You watch.', timers=True)\n")
    (tmp_path / "script.json").write_text(json.dumps([timer(1), "I will look again.", "I have looked."]))
    process = started(tmp_path, "watch.py", "Look again in a second.", "--model", "script:script.json")
    assert [process.stdout.readline() for _ in range(2)] == ["I will look again.\n", "I have looked.\n"]
    assert stopped(process) == (0, "")


def test_a_timer_that_was_set_before_a_kill_fires_after_the_restart(tmp_path):
    (tmp_path / "watch.py").write_text("from edgeagent import Agent\nA = Agent('watch', 'You watch.', timers=True)\n")
    (tmp_path / "script.json").write_text(json.dumps([timer(5), "I will look again.", "I have looked."]))
    process = started(tmp_path, "watch.py", "Look again soon.", "--model", "script:script.json")
    assert process.stdout.readline() == "I will look again.\n"
    process.kill()  # Long before the timer's time.
    process.communicate()
    process = started(tmp_path, "--continue")
    assert process.stdout.readline() == "I have looked.\n"
    assert stopped(process) == (0, "")
