"""Exit codes of `edgeagent ask`: those of `run`, each from a real turn. 5 and 6 cannot come: no model, no check."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doors.http.serving import serving

ROOT = Path(__file__).parents[3]
AGENT = '''
import time
from pathlib import Path
from edgeagent import Agent, Budget, tool

HERE = Path(__file__).parent

@tool(idempotent=False)
def pay(bill: int) -> str:
    """Pay a bill."""
    (HERE / "paying").touch()
    while not (HERE / "paid").exists():
        time.sleep(0.01)
    return "paid"

@tool(idempotent=True, timeout_s=0.2)
def wait() -> str:
    """Wait for ever."""
    while not (HERE / "paid").exists():
        time.sleep(0.01)
    return "over"

@tool(idempotent=True)
def fail() -> str:
    """Fail."""
    raise ValueError("it is broken")

@tool(idempotent=True)
def look(place: str) -> str:
    """Look."""
    return "seen"

agent = Agent("payer", "You pay.", (pay, wait, fail, look), budget=Budget(tool_calls=1, seconds=None))
'''


def call(tool, **arguments):
    return json.dumps({"name": tool, "arguments": arguments})


def asked(edgeagent, server, *more):
    return edgeagent("ask", "--at", f"http://127.0.0.1:{server.port}", *more, "Do it.")


@pytest.mark.parametrize(
    ("answers", "code", "kind"),
    [
        (("Good day.",), 0, "answered"),
        ((call("fail"), "It is done."), 1, "failed"),
        ((call("look", place="a"), call("look", place="b"), "I stop."), 4, "budget"),
        ((call("wait"), "It is done."), 124, "failed"),
    ],
    ids=["answered", "failed", "budget", "timed out"],
)
def test_a_turn_ends_with_the_code_of_its_outcome(edgeagent, tmp_path, answers, code, kind):
    root = tmp_path / "served"
    with serving(root, answers, keys=None, agent=AGENT) as server:
        done = asked(edgeagent, server, "--json")
        (root / "paid").touch()
    assert json.loads(done.stdout.splitlines()[-1])["outcome"]["kind"] == kind
    assert done.returncode == code, done.stderr


def test_a_call_of_which_nobody_knows_whether_it_happened_ends_with_seven_and_is_named(tmp_path):
    root, socket = tmp_path / "served", tmp_path / "door"
    served = {"keys": None, "unix": socket, "agent": AGENT, "answers": (call("pay", bill=7), "All is well.")}
    command = [sys.executable, "-m", "edgeagent", "ask", "--at", f"unix:{socket}", "--yes", "pay", "Pay."]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with serving(root, **served):
        asking = subprocess.Popen(command, text=True, env=environment, cwd=tmp_path, **pipes)
        while "→ pay(bill=7)" not in asking.stderr.readline():
            assert asking.poll() is None
    with serving(root, **served):
        out, err = asking.communicate(timeout=120)
        (root / "paid").touch()
    assert (asking.returncode, out) == (7, "All is well.\n"), err
    assert "unknown: pay(bill=7) was interrupted; it may have happened or not" in err
