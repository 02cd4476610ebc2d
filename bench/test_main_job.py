"""The main job on the real model: peak memory, and prompt tokens that are evaluated again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
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
from edgeagent.cli.main import cli
cli.main(sys.argv[1:], standalone_mode=False)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print("peak_kb", peak.split()[1], file=sys.stderr)
"""


@pytest.fixture(scope="module")
def five_requests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[dict[str, Any]], int]]:
    """The rows that five requests in one session print with --json, and the peak memory of the process in kB."""
    folder = tmp_path_factory.mktemp("main-job")
    command = [sys.executable, "-c", CHILD, "chat", str(GREENHOUSE), "--json"]
    environment = {**os.environ, "EDGEAGENT_STATE": str(folder), "EDGEAGENT_GREENHOUSE": str(folder)}
    done = subprocess.run(
        command, input="\n".join(REQUESTS), text=True, capture_output=True, env=environment, check=True
    )
    peak = next(line for line in done.stderr.splitlines() if line.startswith("peak_kb"))
    yield [json.loads(line) for line in done.stdout.splitlines()], int(peak.split()[1])


def test_main_job_memory(
    five_requests: tuple[list[dict[str, Any]], int], record_figure: Callable[[str, float], None]
) -> None:
    """Peak memory with SmolLM2 and a window of 2,048 tokens."""
    record_figure("memory.main_job_mb", five_requests[1] / 1024)


def test_main_job_prefix(
    five_requests: tuple[list[dict[str, Any]], int], record_figure: Callable[[str, float], None]
) -> None:
    """Tokens evaluated although they stood, unchanged, in the prompt before."""
    usages = [row["usage"] for row in five_requests[0] if row.get("event") == "ModelAnswered"]
    assert len(usages) >= len(REQUESTS)
    again = [max(0, new["evaluated"] - (new["prompt"] - old["prompt"])) for old, new in pairwise(usages)]
    record_figure("prefix.tokens_again", sum(again))
