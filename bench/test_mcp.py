"""What the door of MCP costs: until it greets, and a message there and back. `bench.mcp` is beside the SDK."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.mcp import ours
from bench.test_acp import cpu_seconds
from bench.test_cold import ROUNDS


def test_greeting(record_figure: Callable[[str, float], None]) -> None:
    """What is imported before the first answer, over what `--version` imports."""
    version = "import edgeagent.doors.cli.main"
    greeting = f"{version}, edgeagent.doors.cli.mcp, edgeagent.doors.mcp.door"
    pairs = [(cpu_seconds(greeting), cpu_seconds(version)) for _ in range(ROUNDS)]
    record_figure("mcp.import_ms", 1000 * statistics.median(one - other for one, other in pairs))


def test_round_trip(record_figure: Callable[[str, float], None]) -> None:
    """A request and its answer over pipes, the agent loaded."""
    with tempfile.TemporaryDirectory() as folder, ours(Path(folder)) as client:
        client.greet()
        client.ask("tools/list")
        record_figure("mcp.round_trip_us", client.trip_us("ping"))
