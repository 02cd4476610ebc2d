"""`edgeagent serve` under load, at rest, and beside llama.cpp's own server: `python -m bench.serve_http [--page FILE]`.

Fifty clients ask an agent at once, each as often as `--rounds`; one that is told to come again waits as long as it is
told (20 s at most). Every request must be answered, or refused with 429 and a time to wait. Then the bare model writes
for 1, 4 and 16 clients, as llama.cpp's server does with the same file and threads, in 4 slots of the same window.
Prints a table; `--page` puts it into a page between its marks.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import pty
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from edgeagent.models.store import find

BEGIN, END = "<!-- load: begin -->", "<!-- load: end -->"
"""Between these a page has the table."""

CLIENTS = 50
WAIT_MAX_S = 20.0
TOKENS = 32
LOADED_MB = 120.0
"""A process with less has not loaded the model yet, whose file has 98 MB."""
AT_ONCE = (1, 4, 16)
OVER_RUN_MB_MAX = 12.0
AGENT = '''
from typing import Literal
from edgeagent import Agent, tool

@tool(idempotent=True, effect="read", trusted=True, examples=["How wet is the south bed?"])
def moisture(bed: str) -> str:
    """Measure how wet the soil of a bed is."""
    return f"{bed}: 31 %"

@tool(idempotent=True, effect="read", trusted=True, examples=["What time is it?"])
def clock() -> str:
    """Look at the clock."""
    return "12:00"

@tool(idempotent=False, effect="write", confirm=True, examples=["Open the north valve."])
def open_valve(valve: Literal["north", "south"]) -> str:
    """Open a valve."""
    return f"{valve} is open"

agent = Agent("garden", "You look after a garden.", (moisture, clock, open_valve))
'''
OPEN = "Open the north valve."
"""What leads to a question, at which `run` waits with everything loaded."""

ASKED = ("How wet is the south bed?", "What time is it?", "How wet is the north bed?", "Hello!")
THEIRS = """
import sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port, params.model_alias = sys.argv[1], int(sys.argv[2]), {"bare"}
params.n_ctx, params.n_parallel = 2048 * 4, 4
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(sys.argv[3])
server = xllamacpp.Server(params)
time.sleep(3600)
"""


@dataclass
class Told:
    """What the clients saw. Times in seconds."""

    answered: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    """From the request to the first event that holds words, of those that were answered."""
    events: list[float] = field(default_factory=list)
    """And to the first thing of a stream at all: words, or that the server is at it."""
    tokens: int = 0
    seconds: float = 0.0


async def ask(port: int, model: str, text: str, told: Told, more: dict[str, object]) -> float:
    """One streamed request; returns after how long to come again, 0 where it was answered."""
    body = {"model": model, "messages": [{"role": "user", "content": text}], "stream": True, **more}
    body["stream_options"] = {"include_usage": True}
    content = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n"
    began, got, is_first, is_silent = time.monotonic(), b"", True, True
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{head}Content-Type: application/json\r\nConnection: close\r\n\r\n".encode() + content)
    while piece := await reader.read(65_536):
        got += piece
        if is_silent and b"\r\n\r\n" in got and not got.endswith(b"\r\n\r\n") and b" 200 " in got[:20]:
            is_silent = False
            told.events.append(time.monotonic() - began)
        if is_first and b'"delta":{"content":' in got:
            is_first = False
            told.firsts.append(time.monotonic() - began)
    writer.close()
    status = got.split(b" ", 2)[1] if got else b"none"
    if status == b"200" and b"data: [DONE]" in got:
        told.answered += 1
        told.tokens += int((re.findall(rb'"completion_tokens":(\d+)', got) or [b"0"])[-1])
        return 0.0
    told.refused += 1
    wait = re.search(rb"Retry-After: (\d+)", got)
    if status != b"429" or wait is None:
        told.wrong.append(got[:300].decode("utf-8", "replace"))
        return 0.0
    return float(wait[1])


async def client(
    number: int, port: int, model: str, rounds: int, told: Told, more: dict[str, object], text: str
) -> None:
    """Ask so often, and as often again as it is told to."""
    for turn in range(rounds):
        own = f"Tell me a story about garden number {number}." if more else ASKED[(number + turn) % len(ASKED)]
        while wait := await ask(port, model, text or own, told, more):
            await asyncio.sleep(min(wait, WAIT_MAX_S))


def crowd(
    port: int, model: str, clients: int, rounds: int, more: dict[str, object] | None = None, text: str = ""
) -> Told:
    """So many clients at once; `text` is what each says, or else a request of its own."""
    told, began = Told(), time.monotonic()

    async def all_of_them() -> None:
        await asyncio.gather(
            *(client(number, port, model, rounds, told, more or {}, text) for number in range(clients))
        )

    asyncio.run(all_of_them())
    told.seconds = time.monotonic() - began
    return told


# -- processes -----------------------------------------------------------------------------------------------------


def memory_mb(process: subprocess.Popen[str], what: str) -> float:
    """`VmRSS`: what a process has now; `VmHWM`: the most it had."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(rf"{what}:\s+(\d+) kB", status)
    assert found is not None, status
    return int(found[1]) / 1024


@contextlib.contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that is ended when the block ends."""
    with subprocess.Popen(command, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


def at_a_terminal_mb(command: list[str]) -> float:
    """The memory of a process that waits at a terminal for what is typed."""
    outer, inner = pty.openpty()
    threading.Thread(target=_drained, args=(outer,), daemon=True).start()
    with subprocess.Popen(command, text=True, stdin=inner, stdout=inner, stderr=inner) as process:
        os.close(inner)
        try:
            return settled_mb(process)
        finally:
            process.kill()
            os.close(outer)


def _drained(outer: int) -> None:
    with contextlib.suppress(OSError):
        while os.read(outer, 4096):
            pass


def settled_mb(process: subprocess.Popen[str]) -> float:
    """What it has once that changes no more."""
    last, until = 0.0, time.monotonic() + 60
    while time.monotonic() < until:
        time.sleep(2.0)
        now = memory_mb(process, "VmRSS")
        if now > LOADED_MB and abs(now - last) < 0.1:
            return now
        last = now
    return last


def ours(folder: str, *verb: str) -> list[str]:
    return [sys.executable, "-m", "edgeagent", *verb, f"{folder}/garden.py", "--state", f"{folder}/{verb[0]}"]


@contextlib.contextmanager
def served(folder: str) -> Iterator[tuple[subprocess.Popen[str], int, float]]:
    """Our server: its process, its port, and after how many seconds it was ready."""
    began = time.monotonic()
    with running([*ours(folder, "serve"), "--port", "0"]) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if line.startswith("serving on "))
        yield process, int(line.rsplit(":", 1)[1]), time.monotonic() - began


@contextlib.contextmanager
def llama_server(threads: int) -> Iterator[tuple[subprocess.Popen[str], int, float]]:
    """llama.cpp's."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    began = time.monotonic()
    with running([sys.executable, "-c", THEIRS, str(find("smollm2")), str(port), str(threads)]) as process:
        while time.monotonic() < began + 120:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
                break
            time.sleep(0.05)
        yield process, port, time.monotonic() - began


# -- what is measured ----------------------------------------------------------------------------------------------

Row = tuple[str, str, str]


def written(port: int, model: str) -> list[str]:
    """Tokens a second for each number of clients."""
    found = []
    for clients in AT_ONCE:
        told = crowd(port, model, clients, 1, {"max_tokens": TOKENS, "temperature": 0})
        assert not told.wrong, told.wrong
        found.append(f"{told.tokens / told.seconds:.1f}")
    return found


def measure(clients: int, rounds: int) -> tuple[list[Row], list[str]]:
    """The rows of the table, and what is wrong."""
    threads = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "garden.py").write_text(AGENT)
        run_mb = at_a_terminal_mb([*ours(folder, "run"), OPEN])
        with served(folder) as (process, port, ready_s):
            idle_mb = settled_mb(process)
            asked = crowd(port, "garden", 1, 1, text=OPEN)
            asked_mb = settled_mb(process)
            alone = written(port, "garden:model")
            told = crowd(port, "garden", clients, rounds)
            told.wrong += asked.wrong
            peak_mb = memory_mb(process, "VmHWM")
    with llama_server(threads) as (process, port, their_ready_s):
        their_idle_mb = settled_mb(process)
        theirs = written(port, "bare")
        their_peak_mb = memory_mb(process, "VmHWM")
    rows: list[Row] = [
        ("start to ready", f"{ready_s:.1f} s", f"{their_ready_s:.1f} s"),
        ("memory at rest", f"{idle_mb:.0f} MB", f"{their_idle_mb:.0f} MB"),
        (
            "at its first question; `edgeagent run` at the same",
            f"{asked_mb:.1f} MB; {run_mb:.1f} MB: {asked_mb - run_mb:+.1f} MB",
            "–",
        ),
        ("the most memory", f"{peak_mb:.0f} MB", f"{their_peak_mb:.0f} MB"),
        *(
            (f"tokens a second, {n} at once", mine, other)
            for n, mine, other in zip(AT_ONCE, alone, theirs, strict=True)
        ),
        (
            f"{clients} clients, {rounds} turns each",
            f"{told.answered} answered in {told.seconds:.0f} s",
            "–",
        ),
        ("told to come again (429)", str(told.refused), "–"),
        ("to the first event: median, p95", _spread(told.events), "–"),
        ("to the first words: median, p95", _spread(told.firsts), "–"),
    ]
    wrong = list(told.wrong)
    if asked_mb - run_mb > OVER_RUN_MB_MAX:
        wrong.append(f"{asked_mb - run_mb:.1f} MB over `edgeagent run`; {OVER_RUN_MB_MAX:g} are the most")
    if told.answered != clients * rounds:
        wrong.append(f"{told.answered} answers of {clients * rounds}")
    return rows, wrong


def _spread(seconds: list[float]) -> str:
    p95 = statistics.quantiles(seconds, n=20)[-1] if len(seconds) > 1 else 0.0
    return f"{statistics.median(seconds or [0.0]):.1f} s, {p95:.1f} s"


def main() -> None:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--page", type=Path, help="a page to put the table into, as docs/serve.md")
    given = parser.parse_args()
    rows, wrong = measure(given.clients, given.rounds)
    head = "| | `edgeagent serve` | llama.cpp's server |\n|---|---|---|"
    text = "\n".join([head, *(f"| {' | '.join(row)} |" for row in rows)])
    print(text)
    if given.page:
        before, _, rest = given.page.read_text().partition(BEGIN)
        given.page.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
