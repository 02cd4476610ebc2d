"""The program itself, as a user starts it, killed from outside at any moment and started again with --continue."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from edgeagent.errors import ExitCode
from tests.crash.bytes_cases import Case

ROOT = Path(__file__).parents[2]

AGENT = '''
import os, time
from pathlib import Path
from edgeagent import Agent, Budget, tool

@tool(idempotent=False, effect="irreversible")
def pay(bill: int) -> str:
    """Pay a bill."""
    time.sleep(0.02)
    with Path(os.environ["COUNTER"]).open("a") as counter:
        counter.write(f"{bill}\\n")
    time.sleep(0.02)
    return f"paid {bill}"

# A model call that was lost counts, so there is room for some.
agent = Agent("payer", "You pay bills.", [pay], budget=Budget(steps=30, tool_calls=30))
'''
BILLS = 6


def program(room: Path, every: int = 1) -> Iterator[Case]:
    """Killed after each of many delays; then continued, killed again, continued to the end."""
    whole_ms = _how_long(room)
    for number in range(0, 48, every):
        delay_ms = whole_ms * (0.3 + 0.7 * number / 48)
        yield f"killed from outside after {delay_ms:.0f} ms", _killed_at(room, delay_ms, twice=number % 3 == 0)


def _killed_at(room: Path, delay_ms: float, *, twice: bool) -> str:
    home = _home(room)
    _run_for(home, delay_ms, _first())
    if twice:
        _run_for(home, delay_ms * 0.8, ["--continue"])
    ended = _start(home, ["--continue", "--json"]) if any((home / "state").glob("sessions/*/trace.cbor")) else None
    if ended is not None:
        out, error = ended.communicate(timeout=60)
        # A payment whose result was lost is said, with an exit code of its own; anything else is ours.
        if ended.returncode not in (0, ExitCode.UNKNOWN) or (ended.returncode and b"pay {" not in out):
            return f"--continue ended with {ended.returncode}: {error.decode()[-300:]}"
    paid = (home / "counter").read_text().split() if (home / "counter").exists() else []
    twice_paid = sorted({bill for bill in paid if paid.count(bill) > 1})
    shutil.rmtree(home)
    return f"paid twice: {twice_paid}" if twice_paid else ""


def _how_long(room: Path) -> float:
    home = _home(room)
    began = time.monotonic()
    process = _start(home, _first())
    process.communicate(timeout=60)
    assert process.returncode == 0, "the program works when nobody kills it"
    shutil.rmtree(home)
    return (time.monotonic() - began) * 1000


def _run_for(home: Path, delay_ms: float, arguments: list[str]) -> None:
    process = _start(home, arguments)
    try:
        process.communicate(timeout=delay_ms / 1000)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()


def _first() -> list[str]:
    return ["agent.py", "Pay all bills.", "--model", "script:script.json"]


def _home(room: Path) -> Path:
    home = Path(tempfile.mkdtemp(dir=room))
    (home / "agent.py").write_text(AGENT)
    calls = [json.dumps({"name": "pay", "arguments": {"bill": n}}) for n in range(BILLS)]
    (home / "script.json").write_text(json.dumps([*calls, "All bills are paid."]))
    return home


def _start(home: Path, arguments: list[str]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "EDGEAGENT_STATE": str(home / "state"), "COUNTER": str(home / "counter")}
    return subprocess.Popen(
        [sys.executable, "-m", "edgeagent", "run", *arguments],
        cwd=home,
        env={**environment, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
