"""What it costs to begin: importing the front door, and the command's --version."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

ROUNDS = 9


def seconds(*command: str) -> float:
    """Wall seconds of one process."""
    began = time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def over_bare(*command: str) -> tuple[float, float]:
    """(median ratio to bare Python, median ms over bare Python), measured in turn."""
    seconds(*command)
    pairs = [(seconds(*command), seconds("-c", "pass")) for _ in range(ROUNDS)]
    return (
        statistics.median(one / bare for one, bare in pairs),
        1000 * statistics.median(one - bare for one, bare in pairs),
    )


def test_cold_import(record_figure: Callable[[str, float], None]) -> None:
    """`import edgeagent`, in modules and time."""
    count = "import sys; before = len(sys.modules); import edgeagent; print(len(sys.modules) - before)"
    modules = subprocess.run([sys.executable, "-c", count], check=True, capture_output=True, text=True).stdout
    record_figure("cold.modules", int(modules))
    ratio, ms = over_bare("-c", "import edgeagent")
    record_figure("cold.import_ratio", ratio)
    record_figure("cold.import_ms", ms)


def test_cold_version(record_figure: Callable[[str, float], None]) -> None:
    """`edgeagent --version`."""
    ratio, _ = over_bare("-m", "edgeagent", "--version")
    record_figure("cold.version_ratio", ratio)
