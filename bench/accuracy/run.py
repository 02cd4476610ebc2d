"""Ask engines the cases of sets, and tell with what that was done. Progress goes to stderr."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.accuracy.cases import Case
from bench.accuracy.conversation import asks
from bench.accuracy.decisions import decisions
from bench.accuracy.engines import CALL_TOKENS_MAX, WINDOW_TOKENS, Subject
from bench.accuracy.judge import CHECKERS
from bench.accuracy.packages import PACKAGES
from bench.accuracy.refusal import margins, operating_point
from bench.accuracy.tally import Result, judged, summary
from edgeagent.driver.llama.native import physical_cores
from edgeagent.request.meaning import Meaning
from edgeagent.version import __version__

Results = dict[str, list[Result]]
"""The results of one set, by engine."""

TOLD_EVERY_S = 5.0


def measure(subjects: Mapping[str, Subject], name: str, cases: Sequence[Case]) -> Results:
    """Ask every engine every case; who is asked first goes round."""
    results: Results = {engine: [] for engine in subjects}
    engines, told = list(subjects), time.monotonic()
    for place, case in enumerate(cases):
        if time.monotonic() - told >= TOLD_EVERY_S:
            told = time.monotonic()
            print(f"{name}: {place} of {len(cases)}", file=sys.stderr, flush=True)
        first = place % len(engines)
        for engine in engines[first:] + engines[:first]:
            results[engine].append(_asked(subjects[engine], case))
    return results


def _asked(subject: Subject, case: Case) -> Result:
    subject.begin(case)
    wall, cpu = time.perf_counter(), time.process_time()
    answered = subject.ask(case)
    seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
    if case.asked and case.asked.want == "call" and not answered.calls and asks(answered.text):
        answered = replace(answered, proposed=subject.agreed(case, answered.text))
    return judged(case, answered, seconds, cpu_seconds)


def summaries(name: str, results: Results) -> list[dict[str, Any]]:
    """The figures of a set, by engine."""
    told = []
    for engine, each in results.items():
        about = {"set": name, "engine": engine, "checker": CHECKERS[each[0].case.checker]}
        told.append(about | summary(each) | (decisions(each) if each[0].case.asked else {}))
    return told


def points(pairs: Sequence[str], measured: Mapping[str, Results]) -> list[dict[str, Any]]:
    """The operating points of the pairs of sets, for the engines that tell their margins."""
    told = []
    for pair in pairs:
        wanted, unwanted = (measured[name] for name in pair.split("/"))
        for engine in wanted:
            kept, refused = margins(wanted[engine]), margins(unwanted[engine])
            if kept and refused:
                told.append({"sets": pair, "engine": engine} | operating_point(kept, refused).summary())
    return told


def about(
    model: Path, sets: Sequence[str], *, part: str, threads: int | None, warm: bool, meaning: Meaning | None = None
) -> dict[str, Any]:
    """What the figures were made with: everything that may change them."""
    kinds = {name.partition(":")[0] for name in sets}
    with model.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "model": model.name,
        "model_sha256": digest,
        "model_bytes": model.stat().st_size,
        "edgeagent": __version__,
        "libraries": {name: importlib.metadata.version(name) for name in ("llama-cpp-python", "llguidance", "numpy")},
        "data": {kind: str(package) for kind, package in PACKAGES.items() if kind in kinds},
        "part": part,
        "threads": threads or physical_cores(),
        "warm": warm,
        "meaning_sha256": None if meaning is None else meaning.digest,
        "window_tokens": WINDOW_TOKENS,
        "call_tokens_max": CALL_TOKENS_MAX,
        "machine": f"{platform.machine()}, {_processor()}",
        "python": platform.python_version(),
    }


def memory_mb() -> int:
    """The most memory that this process has had, in MB; of all engines that it loaded."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _processor() -> str:
    """The processor's name as the kernel tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown")
