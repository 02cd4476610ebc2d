"""What the door of editors costs: until it says hello, and a message there and back."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.test_cold import ROUNDS

HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
TRIPS = 500


def cpu_seconds(code: str) -> float:
    """Processor seconds of one process: what it waits for on a busy machine is not its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_hello(record_figure: Callable[[str, float], None]) -> None:
    """What is imported before the first answer, over what `--version` imports."""
    version, hello = "import edgeagent.doors.cli.main", "import edgeagent.doors.cli.main, edgeagent.doors.cli.acp"
    pairs = [(cpu_seconds(hello), cpu_seconds(version)) for _ in range(ROUNDS)]
    record_figure("acp.import_ms", 1000 * statistics.median(one - other for one, other in pairs))


def test_round_trip(record_figure: Callable[[str, float], None]) -> None:
    """A request and its answer over pipes, the agent in its own process and its model loaded."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.py").write_text('from edgeagent import Agent\nagent = Agent("a")\n')
        (Path(folder) / "s.json").write_text("[]")
        command = [sys.executable, "-m", "edgeagent", "acp", "a.py", "--model", "script:s.json", "--state", folder]
        with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
            assert agent.stdin is not None
            assert agent.stdout is not None

            def trip(method: str) -> float:
                began = time.perf_counter()
                agent.stdin.write(json.dumps(HELLO | {"method": method}).encode() + b"\n")  # type: ignore[union-attr]
                agent.stdin.flush()  # type: ignore[union-attr]
                assert b'"result"' in agent.stdout.readline()  # type: ignore[union-attr]
                return time.perf_counter() - began

            trip("initialize")
            trip("session/list")  # Behind the loading of agent and model.
            record_figure("acp.round_trip_us", 1e6 * statistics.median(trip("session/list") for _ in range(TRIPS)))
            agent.stdin.close()
