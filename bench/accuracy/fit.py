"""Fit what `edgeagent/driver/llama/fitted.json` ships: what evidence counts for a call being meant. Even rows only.

    python -m bench.accuracy.fit [--model NAME|FILE] [--rows N] [--threads N] [--keep FILE] [--write]

For each request the model driver says what speaks for a call and against it (`LlamaDriver.evidence`). A logistic sum of
that is fitted over all sets together, each standardised and held small (ridge). The threshold that is shipped, for
agents without a calibration, refuses a tenth of the rows of `bfcl:simple_python`. `--keep` notes the evidence in a file
and goes on from it; give one outside of the repository. Without `--write` nothing is changed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from bench.accuracy.cases import Case, cases_of
from bench.accuracy.engines import WINDOW_TOKENS, file_of
from edgeagent.codec.dialect import Plain
from edgeagent.driver.llama.choose import SEQUENCES
from edgeagent.driver.llama.constraint import Grammars
from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.fitted import FILE, Fitted, Sum
from edgeagent.driver.llama.model import LlamaDriver
from edgeagent.driver.llama.template import Template, builtin_template

SETS = (
    "bfcl:simple_python",
    "bfcl:irrelevance",
    "bfcl:live_simple",
    "bfcl:live_irrelevance",
    "bfcl:multiple",
    "bfcl:live_multiple",
    "gateway",
)
"""What is fitted on; of needle nothing, since trials had seen all of it."""

THRESHOLD_SET, WRONGLY_REFUSED = "bfcl:simple_python", 0.10

RIDGE = 2.0

Row = dict[str, Any]
"""One request: its `set` and `id`, whether a call is `wanted`, and the `evidence`."""


def rows_of(model: str, sets: Sequence[str], count: int, threads: int | None, known: set[str]) -> Iterator[Row]:
    """The evidence of each row that is not known yet."""
    file = file_of(model)
    engine = Engine.load(file, n_ctx=WINDOW_TOKENS, threads=threads, sequences=SEQUENCES)
    template = Template(engine.template or builtin_template(""))
    grammars = Grammars(engine)
    for name in sets:
        for case in cases_of(name, "fit", count):
            if case.agent.tools and f"{name} {case.id}" not in known:
                yield {"set": name, "id": case.id} | _row(case, engine, template, grammars)
    template.close()
    engine.close()


def _row(case: Case, engine: Engine, template: Template, grammars: Grammars) -> Row:
    engine.forget()
    agent = dataclasses.replace(case.agent, dialect=Plain())
    driver = LlamaDriver(engine, template, grammars, agent)
    driver.stop()
    return {"wanted": case.right is not None, "evidence": driver.evidence(case.request)}


def fitted(rows: Sequence[Row], names: Sequence[str]) -> Sum:
    """The sum that tells the rows that want a call from the others."""
    evidence = np.array([[row["evidence"].get(name, 0.0) for name in names] for row in rows])
    wanted = np.array([float(row["wanted"]) for row in rows])
    means, spreads = evidence.mean(axis=0), evidence.std(axis=0) + 1e-9
    bias, *weights = _logistic((evidence - means) / spreads, wanted)
    each = zip(names, weights / spreads, means, strict=True)
    return Sum(round(float(bias), 4), {name: (round(float(w), 5), round(float(m), 4)) for name, w, m in each})


def _logistic(evidence: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Newton's method on the ridge-penalised likelihood; both classes weigh the same."""
    given = np.column_stack([np.ones(len(evidence)), evidence])
    share = np.where(wanted == 1, 0.5 / wanted.mean(), 0.5 / (1 - wanted.mean()))
    ridge = np.diag([0.0] + [RIDGE] * evidence.shape[1])
    weights = np.zeros(given.shape[1])
    for _ in range(50):
        held = 1 / (1 + np.exp(-given @ weights))
        slope = given.T @ (share * (held - wanted)) + ridge @ weights
        weights = weights - np.linalg.solve((given.T * (share * held * (1 - held))) @ given + ridge, slope)
    return weights


def threshold_at(odds: Sequence[float], share: float) -> float:
    """The log-odds below which this share lies."""
    return sorted(odds)[min(len(odds) - 1, math.floor(share * len(odds)))]


def main() -> int:
    """Fit, tell, and with --write ship."""
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy.fit", description=__doc__)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    rows = (
        [json.loads(line) for line in given.keep.read_text().splitlines()] if given.keep and given.keep.exists() else []
    )
    known = {f"{row['set']} {row['id']}" for row in rows}
    for row in rows_of(given.model, given.sets.split(","), given.rows, given.threads, known):
        rows.append(row)
        if given.keep:
            with given.keep.open("a") as kept:
                kept.write(json.dumps(row) + "\n")
        print(len(rows), row["set"], row["id"], file=sys.stderr, flush=True)
    return _ship(given.model, rows, write=given.write)


def _ship(model: str, rows: Sequence[Row], *, write: bool) -> int:
    names = list(dict.fromkeys(name for row in rows for name in row["evidence"]))
    call = fitted(rows, names)
    odds: dict[str, list[float]] = {name: [] for name in dict.fromkeys(row["set"] for row in rows)}
    for row in rows:
        odds[row["set"]].append(call.weights.log_odds(row["evidence"]))
    needed = round(threshold_at(odds[THRESHOLD_SET], WRONGLY_REFUSED), 3)
    for name, each in odds.items():
        print(f"{name}: {len(each)} rows, {sum(o < needed for o in each)} below {needed}")
    print(call)
    if write:
        file = file_of(model)
        sets = {name: len(each) for name, each in odds.items()}
        about = {"sets": sets, "part": "fit"}
        shipped = msgspec.json.decode(FILE.read_bytes(), type=list[Fitted])
        digest = Engine.load(file, n_ctx=256, threads=1).model_digest
        old = next((each for each in shipped if each.sha256 == digest), None)
        right = old.right if old else Sum(0.0, {})
        new = Fitted(file.stem, digest, about, call, needed, right)
        kept = [each for each in shipped if each.sha256 != digest]
        FILE.write_bytes(msgspec.json.format(msgspec.json.encode([new, *kept]), indent=1) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
