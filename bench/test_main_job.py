"""The main job on the real model: peak memory, and prompt tokens that are evaluated again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

GREENHOUSE = Path(__file__).parents[1] / "examples" / "greenhouse.py"
REQUESTS = (
    "Open the north valve for 30 seconds.",
    "Read the soil moisture sensor 5 times.",
    "Tell the operator that the mist valve is stuck.",
    "Set channel 3 to 21.5 degrees.",
    "Send the line 'version'.",
)
# Peak memory as the kernel has seen it for this address space; ru_maxrss would count the parent's too, before exec.
CHILD = """
import sys
from edgeagent.doors.cli.main import cli
cli.main(sys.argv[1:], standalone_mode=False)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print("peak_kb", peak.split()[1], file=sys.stderr)
"""


def rows_and_peak(folder: Path, *arguments: str, stdin: str = "") -> tuple[list[dict[str, Any]], int]:
    """The rows that a command prints with --json, and the peak memory of its process in kB."""
    environment = {**os.environ, "EDGEAGENT_STATE": str(folder), "EDGEAGENT_GREENHOUSE": str(folder)}
    command = [sys.executable, "-c", CHILD, *arguments, "--json"]
    done = subprocess.run(command, input=stdin, text=True, capture_output=True, env=environment, check=True)
    peak = next(line for line in done.stderr.splitlines() if line.startswith("peak_kb"))
    return [json.loads(line) for line in done.stdout.splitlines()], int(peak.split()[1])


@pytest.fixture(scope="module")
def five_requests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[dict[str, Any]], int]]:
    """Five requests in one session."""
    yield rows_and_peak(tmp_path_factory.mktemp("five"), "chat", str(GREENHOUSE), stdin="\n".join(REQUESTS))


def test_main_job_memory(
    five_requests: tuple[list[dict[str, Any]], int],
    tmp_path: Path,
    record_figure: Callable[[str, float], None],
) -> None:
    """Peak memory with SmolLM2 and a window of 2,048 tokens: one request, and five in one session."""
    record_figure("memory.main_job_mb", rows_and_peak(tmp_path, "run", str(GREENHOUSE), REQUESTS[0])[1] / 1024)
    record_figure("memory.five_turns_mb", five_requests[1] / 1024)


def test_main_job_prefix(
    five_requests: tuple[list[dict[str, Any]], int], record_figure: Callable[[str, float], None]
) -> None:
    """Tokens evaluated although they stood, unchanged, in the prompt before.

    What an ask does not need waits for the next one: the end of a prompt whose call is forced from end to end, and all
    of one that is answered without the model.
    """
    usages = [row["usage"] for row in five_requests[0] if row.get("event") == "ModelAnswered"]
    assert len(usages) >= len(REQUESTS)
    again, waiting, before = 0, 0, 0
    for usage in usages:
        waiting += usage["prompt"] - before
        again += max(0, usage["evaluated"] - waiting)
        waiting, before = max(0, waiting - usage["evaluated"]), usage["prompt"]
    record_figure("prefix.tokens_again", again)
