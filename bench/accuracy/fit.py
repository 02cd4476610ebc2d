"""Fit what `edgeagent/request/calibration_weights.json` ships: what evidence counts. Even rows only.

    python -m bench.accuracy.fit [--model NAME|FILE] [--rows N] [--threads N] [--keep FILE] [--write]

For each request the model driver says what speaks for a call and against it (`LlamaDriver.signs`), and, of the calls
that it then makes, what says how sure they are (`LlamaDriver.sureness`). Of each a logistic sum is fitted over all sets
together, every piece standardised and held small (ridge). The threshold that is shipped, for agents without a
calibration, refuses a tenth of the rows that want a call, with the same say for each set. `--keep` notes the evidence
in a file and goes on from it; give one outside of the repository. Without `--write` nothing is changed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from bench.accuracy.cases import Case, cases_of
from bench.accuracy.engines import CALL_TOKENS_MAX, WINDOW_TOKENS, answered, file_of
from bench.accuracy.tally import judged
from edgeagent.codec.dialect import Plain
from edgeagent.core.effects import AskModel
from edgeagent.core.values import Message
from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.model import LlamaDriver, LlamaModel
from edgeagent.request.calibration_weights import FILE, Fitted, Sum
from edgeagent.request.call_odds import probability

SETS = (
    "bfcl:simple_python",
    "bfcl:irrelevance",
    "bfcl:live_simple",
    "bfcl:live_irrelevance",
    "bfcl:multiple",
    "bfcl:live_multiple",
    "gateway",
)
"""What it is fitted on that a call is meant; of needle nothing, since trials had seen all of it."""

CALLED_SETS = dict.fromkeys(SETS, 60)
"""Where calls are made, right and wrong ones, to see how sure they are, with the number of rows."""

WRONGLY_REFUSED = 0.10

RIDGE = 2.0

Row = dict[str, Any]
"""One request: `set`, `id`, `evidence`, and whether a call is `wanted`, or whether the one that was made is `right`."""


def rows_of(model: str, count: int, threads: int | None, known: set[str]) -> Iterator[Row]:
    """The evidence of each row that is not known yet."""
    for name, case, driver in _drivers(model, dict.fromkeys(SETS, count), threads, known, ""):
        yield {"set": name, "id": case.id, "wanted": bool(case.wanted), "evidence": driver.signs(case.request)}
    for name, case, driver in _drivers(model, CALLED_SETS, threads, known, "right "):
        message = Message("user", case.request)
        event = driver.answer(AskModel(1, (message,), case.agent.tool_names, "either", CALL_TOKENS_MAX, 0, 1))
        told = judged(case, answered(event, Plain()))
        if told.called and len(driver.sureness) == 1:
            sure = dict(driver.sureness[0])
            yield {"set": f"right {name}", "id": case.id, "right": told.right, "evidence": sure}


def _drivers(
    model: str, sets: Mapping[str, int], threads: int | None, known: set[str], kind: str
) -> Iterator[tuple[str, Case, LlamaDriver]]:
    """Each case that is not known yet, with a driver for its agent."""
    file = file_of(model)
    loaded = LlamaModel.load(file, n_ctx=WINDOW_TOKENS, threads=threads)
    for name, count in sets.items():
        for case in cases_of(name, "fit", count):
            if case.agent.tools and f"{kind}{name} {case.id}" not in known:
                loaded.forget()
                loaded.grammars.forget()
                yield name, case, LlamaDriver(loaded, dataclasses.replace(case.agent, dialect=Plain()))
    loaded.close()


def fitted(rows: Sequence[Row], said: str, *, balanced: bool) -> Sum:
    """The sum that tells the rows of which something is said from the others; `balanced` if both weigh the same."""
    names = list(dict.fromkeys(name for row in rows for name in row["evidence"]))
    means_of = {name: np.mean([row["evidence"][name] for row in rows if name in row["evidence"]]) for name in names}
    evidence = np.array([[row["evidence"].get(name, means_of[name]) for name in names] for row in rows])
    wanted = np.array([float(row[said]) for row in rows])
    means, spreads = evidence.mean(axis=0), evidence.std(axis=0) + 1e-9
    bias, *weights = _logistic((evidence - means) / spreads, wanted, balanced=balanced)
    each = zip(names, weights / spreads, means, strict=True)
    return Sum(round(float(bias), 4), {name: (round(float(w), 5), round(float(m), 4)) for name, w, m in each})


def _logistic(evidence: NDArray[np.float64], wanted: NDArray[np.float64], *, balanced: bool) -> NDArray[np.float64]:
    """Newton's method on the ridge-penalised likelihood."""
    given = np.column_stack([np.ones(len(evidence)), evidence])
    share = np.where(wanted == 1, 0.5 / wanted.mean(), 0.5 / (1 - wanted.mean())) if balanced else np.ones(len(wanted))
    ridge = np.diag([0.0] + [RIDGE] * evidence.shape[1])
    weights = np.zeros(given.shape[1])
    for _ in range(50):
        held = 1 / (1 + np.exp(-given @ weights))
        slope = given.T @ (share * (held - wanted)) + ridge @ weights
        weights = weights - np.linalg.solve((given.T * (share * held * (1 - held))) @ given + ridge, slope)
    return weights


def threshold_at(share: float, odds: Mapping[str, Sequence[float]]) -> float:
    """The highest log-odds below which at most this share lies, with the same say for each set."""
    below = 0.0
    ordered = sorted((each, 1 / len(of) / len(odds)) for of in odds.values() for each in of)
    for each, weight in ordered:
        below += weight
        if below > share + 1e-9:
            return each
    return ordered[-1][0]


def main() -> int:
    """Fit, tell, and with --write ship."""
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy.fit", description=__doc__)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    rows = (
        [json.loads(line) for line in given.keep.read_text().splitlines()] if given.keep and given.keep.exists() else []
    )
    known = {f"{row['set']} {row['id']}" for row in rows}
    for row in rows_of(given.model, given.rows, given.threads, known):
        rows.append(row)
        if given.keep:
            with given.keep.open("a") as kept:
                kept.write(json.dumps(row) + "\n")
        print(len(rows), row["set"], row["id"], file=sys.stderr, flush=True)
    return _ship(given.model, rows, write=given.write)


def _ship(model: str, rows: Sequence[Row], *, write: bool) -> int:
    asked, made = ([row for row in rows if said in row] for said in ("wanted", "right"))
    call, right = fitted(asked, "wanted", balanced=True), fitted(made, "right", balanced=False)
    odds: dict[str, list[float]] = defaultdict(list)
    for row in asked:
        odds[f"{row['set']} {'yes' if row['wanted'] else 'no'}"].append(call.weights.log_odds(row["evidence"]))
    needed = round(threshold_at(WRONGLY_REFUSED, {name: each for name, each in odds.items() if name[-3:] == "yes"}), 3)
    for name, each in odds.items():
        print(f"{name}: {len(each)} rows, {sum(o < needed for o in each)} below {needed}")
    print(call, right)
    _tell_confidence(right, made)
    if write:
        file = file_of(model)
        sets = Counter(row["set"] for row in rows)
        about = {"part": "fit", "sets": dict(sets)}
        shipped = msgspec.json.decode(FILE.read_bytes(), type=list[Fitted])
        digest = Engine.load(file, n_ctx=256, threads=1).model_digest
        new = Fitted(file.stem, digest, about, call, needed, right)
        kept = [each for each in shipped if each.sha256 != digest]
        FILE.write_bytes(msgspec.json.format(msgspec.json.encode([new, *kept]), indent=1) + b"\n")
    return 0


def _tell_confidence(right: Sum, made: Sequence[Row]) -> None:
    """How often the calls of each fifth of confidence were right."""
    told = sorted((probability(right.weights.log_odds(row["evidence"])), row["right"]) for row in made)
    for fifth in np.array_split(np.array(told, dtype=float), 5):
        print(f"confidence {fifth[:, 0].mean():.2f}: right {fifth[:, 1].mean():.2f} of {len(fifth)}")


if __name__ == "__main__":
    sys.exit(main())
