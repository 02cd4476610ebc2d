"""An agent behind MCP beside a server of the protocol's own SDK: start, memory, and messages there and back over stdio.

    python -m bench.mcp [--page docs/mcp.md]

Both offer one tool that returns a small table, are started in turn, and are asked by the same lines. The agent has no
model: a program's calls need none.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROUNDS, TRIPS = 7, 200

AGENT = """
from edgeagent import Agent, tool

@tool(idempotent=True, effect="read")
def read_sensor(sensor: str) -> dict:
    "Read a sensor."
    return {"sensor": sensor, "percent": 41}

agent = Agent("garden", "You water a garden.", (read_sensor,))
"""

PEER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("garden")

@server.tool()
def read_sensor(sensor: str) -> dict:
    "Read a sensor."
    return {"sensor": sensor, "percent": 41}

server.run("stdio")
"""

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
CALL = {"name": "read_sensor", "arguments": {"sensor": "soil"}}

ROWS = {
    "start_ms": ("start to the greeting", "{:.0f} ms"),
    "greeted_mb": ("memory when it has greeted", "{:.0f} MB"),
    "called_mb": ("memory after 200 calls", "{:.0f} MB"),
    "ping_us": ("a `ping` there and back", "{:.0f} µs"),
    "call_us": ("a call there and back", "{:.0f} µs"),
}


class Client:
    """A server that runs, and a plain client of it."""

    def __init__(self, *command: str, folder: Path) -> None:
        self._began = time.perf_counter()
        self._running = subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._next = 0

    def ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Ask, and wait for the answer."""
        self._next += 1
        said = {"jsonrpc": "2.0", "id": self._next, "method": method} | ({} if params is None else {"params": params})
        self._send(said)
        assert self._running.stdout is not None
        while True:
            answer = json.loads(self._running.stdout.readline())
            if answer.get("id") == self._next:
                return answer["result"]

    def _send(self, said: dict[str, Any]) -> None:
        assert self._running.stdin is not None
        self._running.stdin.write(json.dumps(said).encode() + b"\n")
        self._running.stdin.flush()

    def greet(self) -> float:
        """Begin; return after how many ms."""
        self.ask("initialize", HELLO)
        ms = 1000 * (time.perf_counter() - self._began)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return ms

    def trip_us(self, method: str, params: dict[str, Any] | None = None) -> float:
        """A message there and back: the median."""

        def one() -> float:
            began = time.perf_counter()
            self.ask(method, params)
            return time.perf_counter() - began

        return 1e6 * statistics.median(one() for _ in range(TRIPS))

    def mb(self) -> float:
        """Resident memory."""
        status = Path(f"/proc/{self._running.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def __enter__(self) -> Self:
        """End what is below."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Close its stdin, at which it ends."""
        self._running.communicate(timeout=60)


def ours(folder: Path) -> Client:
    """`edgeagent mcp`."""
    (folder / "garden.py").write_text(AGENT)
    return Client("-m", "edgeagent", "mcp", "garden.py", "--state", str(folder / "state"), folder=folder)


def theirs(folder: Path) -> Client:
    """A server by the SDK."""
    (folder / "peer.py").write_text(PEER)
    return Client("peer.py", folder=folder)


def measured(client: Client) -> dict[str, float]:
    """The figures of one server."""
    with client:
        found = {"start_ms": client.greet()}
        found["greeted_mb"] = client.mb()
        client.ask("tools/list")
        assert "41" in json.dumps(client.ask("tools/call", CALL))
        found |= {"ping_us": client.trip_us("ping"), "call_us": client.trip_us("tools/call", CALL)}
        return found | {"called_mb": client.mb()}


def compared() -> dict[str, tuple[float, float]]:
    """Each figure of ours and of theirs: medians over rounds in turn."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        measured(ours(where)), measured(theirs(where))  # What is cached on the disk is so for both.
        rounds = [(measured(ours(where)), measured(theirs(where))) for _ in range(ROUNDS)]
    return {
        name: (statistics.median(one[name] for one, _ in rounds), statistics.median(two[name] for _, two in rounds))
        for name in ROWS
    }


def main() -> None:
    """Print the table, or put it into a page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--page", type=Path)
    page = parser.parse_args().page
    rows = ["| | `edgeagent mcp` | the SDK's server | ratio |", "|---|---|---|---|"]
    for name, (one, other) in compared().items():
        title, form = ROWS[name]
        rows.append(f"| {title} | {form.format(one)} | {form.format(other)} | {one / other:.2f} |")
    made = "\n".join(rows)
    print(made)
    if page is not None:
        begin, end = "<!-- bench: begin -->", "<!-- bench: end -->"
        head, _, rest = page.read_text().partition(begin)
        page.write_text(f"{head}{begin}\n{made}\n{end}{rest.partition(end)[2]}")


if __name__ == "__main__":
    main()
