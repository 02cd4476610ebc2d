"""`make accuracy`: the whole table of docs/models.md, from nothing.

    python -m bench.accuracy.full [--out FOLDER] [--at-once N] [--rows N] [--only WORD] [--tables] [--page FILE]

Runs the jobs below as commands of `bench.accuracy`, one thread each and so many at once, longest first. Each leaves its
figures as JSON in the folder, in the place of those that a run before left. `--tables` runs nothing and prints what is
there; `--page` puts it into a page, between two marks. With `--rows` no job asks more than that of a set, for a look
that takes minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.accuracy.report import text_of
from edgeagent.errors import ExitCode

ROOT = Path(__file__).parents[2]

BEGIN, END = "<!-- figures begin -->", "<!-- figures end -->"
"""Between these a page has what `--page` writes."""

COMPARED = ("ours", "llama-cpp-python")
LOADED, COLD = "the agent loaded and asked something else before", "each from an empty memory, tools to be read first"
SIDE_BY_SIDE = ("bfcl:simple_python", "bfcl:multiple", "bfcl:live_multiple", "bfcl:irrelevance", "greenhouse")


@dataclass(frozen=True)
class Job:
    """One command: which model is asked what. `rows` as in `bench.accuracy`: 0 is every row of the part."""

    name: str
    model: str
    sets: tuple[str, ...]
    rows: int = 0
    part: str = "report"
    engines: tuple[str, ...] = ("ours",)
    refusal: str = ""
    warm: bool = False

    def command(self, rows_max: int) -> list[str]:
        """The command line, with at most so many rows if that is not 0."""
        rows = min(self.rows or rows_max, rows_max) if rows_max else self.rows
        line = [sys.executable, "-m", "bench.accuracy", "--json", "--threads", "1", "--model", self.model]
        line += ["--set", ",".join(self.sets), "--rows", str(rows), "--part", self.part]
        line += [word for engine in self.engines for word in ("--engine", engine)]
        line += ["--warm"] if self.warm else []
        return line + (["--refusal", self.refusal] if self.refusal else [])


def _jobs(model: str, live: int, rows: int, beside: int) -> tuple[Job, ...]:
    """All of one model: so many rows of the large sets and of the others, and of those where engines are compared."""
    plain, of_live = "bfcl:simple_python/bfcl:irrelevance", "bfcl:live_simple/bfcl:live_irrelevance"
    return (
        Job(f"{model}-live-multiple", model, ("bfcl:live_multiple",), live),
        Job(f"{model}-live", model, ("bfcl:live_simple", "bfcl:live_irrelevance"), live, refusal=of_live),
        Job(f"{model}-engines", model, SIDE_BY_SIDE, beside, engines=COMPARED),
        Job(f"{model}-loaded", model, SIDE_BY_SIDE, beside, engines=COMPARED, warm=True),
        Job(f"{model}-plain", model, ("bfcl:simple_python", "bfcl:irrelevance"), rows, refusal=plain),
        Job(f"{model}-several", model, ("bfcl:multiple", "bfcl:parallel", "greenhouse"), rows),
        Job(f"{model}-needle", model, ("needle",), rows, part="all"),
    )


JOBS = _jobs("smollm2", live=0, rows=0, beside=24) + _jobs("gemma3-270m", live=40, rows=40, beside=8)
"""SmolLM2: every row that was not fitted on (of needle, all 192). Gemma, a base model: enough to see what it can do."""


def run(job: Job, folder: Path, rows_max: int) -> bool:
    """Run a job and keep its figures; whether that went well."""
    began = time.monotonic()
    with (folder / f"{job.name}.log").open("w") as log:
        done = subprocess.run(job.command(rows_max), cwd=ROOT, stdout=subprocess.PIPE, stderr=log, check=False)
    if not done.returncode:
        (folder / f"{job.name}.json").write_bytes(done.stdout)
    how = "done" if not done.returncode else f"FAILED, see {log.name}"
    print(f"{job.name}: {how} after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return not done.returncode


def tables(jobs: Sequence[Job], folder: Path) -> str:
    """What the folder has, by model, for a page: whole sets first, engines side by side behind them."""
    told = []
    for model in dict.fromkeys(job.model for job in jobs):
        files = {job: folder / f"{job.name}.json" for job in jobs if job.model == model}
        read = {job: json.loads(file.read_text()) for job, file in files.items() if file.exists()}
        alone = [each for job, each in read.items() if len(job.engines) == 1]
        beside = {job: each for job, each in read.items() if len(job.engines) > 1}
        told += [f"### {model}", _made_with(alone) if alone else "", _table_of(alone)]
        for job, each in beside.items():
            told += [f"Engines on the same rows, {LOADED if job.warm else COLD}:", _table_of([each])]
    return "\n\n".join(each for each in told if each)


def _made_with(figures: Sequence[dict[str, Any]]) -> str:
    """The model and the machine in a sentence."""
    about, memory = figures[0], max(each["memory_mb"] for each in figures)
    data = {kind: told for each in figures for kind, told in each["data"].items()}
    versions = ", ".join(f"{name} {version}" for name, version in about["libraries"].items())
    return (
        f"`{about['model']}`, {about['model_bytes'] / 1e6:.0f} MB; at most {memory} MB of memory with a window of "
        f"{about['window_tokens']} tokens; {about['threads']} thread of {about['machine']}; "
        f"edgeagent {about['edgeagent']}, {versions}, {', '.join(data.values())}."
    )


def put_into(page: str, text: str) -> str:
    """The page with this text between its marks. Raises ValueError when it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def _table_of(figures: Sequence[dict[str, Any]]) -> str:
    results = [each for one in figures for each in one["results"]]
    return text_of(results, [each for one in figures for each in one["refusal"]]) if results else ""


def main() -> int:
    """Run, and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.accuracy.full", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "accuracy")
    parser.add_argument("--at-once", type=int, default=2, help="jobs at a time: one for each core")
    parser.add_argument("--rows", type=int, default=0, help="at most so many rows of a set")
    parser.add_argument("--only", default="", metavar="WORD", help="only jobs whose name contains WORD")
    parser.add_argument("--tables", action="store_true", help="run nothing")
    parser.add_argument("--page", type=Path, help="a page to put the tables into, as docs/models.md")
    given = parser.parse_args()
    jobs = [job for job in JOBS if given.only in job.name]
    given.out.mkdir(parents=True, exist_ok=True)
    well = True
    if not given.tables:
        with ThreadPoolExecutor(given.at_once) as pool:
            well = all(list(pool.map(lambda job: run(job, given.out, given.rows), jobs)))
    text = tables(jobs, given.out)
    print(text)
    if given.page:
        given.page.write_text(put_into(given.page.read_text(encoding="utf-8"), text), encoding="utf-8")
    return int(ExitCode.DONE if well else ExitCode.ERROR)


if __name__ == "__main__":
    sys.exit(main())
