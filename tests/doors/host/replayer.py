"""Transcripts of hosts, played to a real `edgeagent host`: `python -m tests.doors.host.replayer --rewrite` renews them.

A transcript is JSON lines. The first says what it is about and what the model answers (`script`). `{"host": …}` is
sent; `{"agent": …}` must come next, with at least these fields. `$session` stands for the session's id.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "host" / "transcripts"
VOLATILE = frozenset({"at_ms", "skew_ms", "micros", "version", "agent_digest", "now_ms", "seconds", "started_ms"})
"""Fields that are others each time; left out of what is expected."""


class Agent:
    """The agent of the corpus as a process, and its lines."""

    def __init__(self, script: list[str], state: str) -> None:
        file = Path(state) / "script.json"
        file.write_text(json.dumps(script))
        command = [sys.executable, "-m", "edgeagent", "host", str(FOLDER / "garden.py"), "--model", f"script:{file}"]
        pipe, env = subprocess.PIPE, {**os.environ, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen([*command, "--state", state], stdin=pipe, stdout=pipe, text=True, env=env)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self._session = "\0"

    def send(self, message: dict[str, Any]) -> None:
        self._in.write(json.dumps(message, ensure_ascii=False).replace("$session", self._session) + "\n")
        self._in.flush()

    def next(self) -> dict[str, Any]:
        line = self._out.readline()
        assert line, "the agent has ended"
        found = json.loads(line)
        self._session = found.get("result", {}).get("sessionId", self._session)
        replaced: dict[str, Any] = json.loads(line.replace(self._session, "$session"))
        return replaced

    def close(self) -> None:
        self._in.close()
        assert self._process.wait(60) == 0
        self._out.close()


def steps_of(file: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What a transcript is about, and its steps."""
    first, *steps = (json.loads(line) for line in file.read_text().splitlines())
    return first, steps


def play(file: Path) -> list[str]:
    """Play one transcript; return where it differs, in a sentence each."""
    first, steps = steps_of(file)
    with tempfile.TemporaryDirectory() as state:
        agent = Agent(first["script"], state)
        wrong = []
        for number, step in enumerate(steps, start=2):
            if "host" in step:
                agent.send(step["host"])
            elif not fits(step["agent"], found := agent.next()):
                wrong.append(f"{file.name}, line {number}: {json.dumps(found)} came in place of it")
                break
        agent.close()
        return wrong


def fits(expected: Any, found: Any) -> bool:
    """Whether a value has all that is expected of it."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return all(name in found and fits(value, found[name]) for name, value in expected.items())
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(fits, expected, found))
    return bool(expected == found)


def rewrite(file: Path) -> None:
    """Play what the host says, and write down what comes."""
    first, steps = steps_of(file)
    lines, awaited = [first], None
    with tempfile.TemporaryDirectory() as state:
        agent = Agent(first["script"], state)
        for step in (each for each in steps if "host" in each):
            agent.send(step["host"])
            lines.append(step)
            awaited = step["host"]["id"] if "id" in step["host"] and "method" in step["host"] else awaited
            while awaited is not None:
                found = agent.next()
                lines.append({"agent": settled(found)})
                if "method" in found and "id" in found:
                    break
                awaited = None if "method" not in found and found.get("id") == awaited else awaited
        agent.close()
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def settled(value: Any) -> Any:
    """A value without what is another each time."""
    if isinstance(value, dict):
        return {name: settled(each) for name, each in value.items() if name not in VOLATILE}
    return [settled(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    for each in sorted(FOLDER.glob("*.jsonl")):
        if "--rewrite" in sys.argv:
            rewrite(each)
        print(*(play(each) or [f"{each.name}: as written"]), sep="\n")
