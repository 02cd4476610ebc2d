"""How often does a model make the right call? One request, one ask, no conversation; nothing is cached.

    python -m bench.accuracy [--model NAME|FILE] [--set greenhouse,bfcl:multiple,...] [--rows N] [--part report|fit]
                             [--engine ours|spelling] [--threads N] [--warm] [--json]

`ours` chooses the tool and reads the request as the model driver does; `spelling` has the same grammars and prompts,
and the model spells the tool's name. Shares come with their 95 % intervals. Rows of one set share tools, so that they
are not independent and the true intervals are somewhat wider.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.accuracy.cases import Case, cases_of, provenance
from bench.accuracy.judge import checker_of, is_right, wilson
from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Calls
from edgeagent.core.effects import AskModel
from edgeagent.core.events import Event, ModelAnswered
from edgeagent.core.values import Message, ToolCall
from edgeagent.driver.llama.constraint import Grammars
from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.model import LlamaDriver
from edgeagent.driver.llama.store import find
from edgeagent.driver.llama.template import Template, builtin_template
from edgeagent.errors import EdgeAgentError

WINDOW_TOKENS = 4096
CALL_TOKENS_MAX = 200


@dataclass
class Tally:
    """What came of the cases of one set."""

    name: str
    checker: str = ""
    should_call: int = 0
    right_tool: int = 0
    right_call: int = 0
    wrongly_refused: int = 0
    should_not: int = 0
    wrongly_called: int = 0
    failed: int = 0
    seconds: float = 0.0
    tokens: int = 0
    wrong: list[dict[str, Any]] = field(default_factory=list)

    def add(self, case: Case, event: Event, seconds: float) -> None:
        """Count one case."""
        call = _call_in(event)
        self.seconds += seconds
        self.tokens += event.usage.completion if isinstance(event, ModelAnswered) else 0
        self.failed += not isinstance(event, ModelAnswered)
        self.checker = checker_of(case)
        if case.right is None:
            self.should_not += 1
            self.wrongly_called += call is not None
            right = call is None
        else:
            self.should_call += 1
            self.wrongly_refused += call is None
            self.right_tool += call is not None and call.tool in case.right
            right = call is not None and is_right(case, call)
            self.right_call += right
        if not right:
            wrote = getattr(event, "text", "") or getattr(event, "message", "")
            self.wrong.append({"id": case.id, "request": case.request[:200], "wrote": wrote[:300]})

    def summary(self) -> dict[str, Any]:
        """The counts with their intervals."""
        shares = {
            "right_tool": (self.right_tool, self.should_call),
            "right_call": (self.right_call, self.should_call),
            "wrongly_refused": (self.wrongly_refused, self.should_call),
            "wrongly_called": (self.wrongly_called, self.should_not),
        }
        rows = self.should_call + self.should_not
        told: dict[str, Any] = {"set": self.name, "rows": rows, "checker": self.checker, "failed": self.failed}
        for name, (count, of) in shares.items():
            if of:
                low, high = wilson(count, of)
                told[name] = {"count": count, "of": of, "low": round(low, 3), "high": round(high, 3)}
        return told | {"seconds_a_case": round(self.seconds / rows, 2), "tokens_a_case": round(self.tokens / rows, 1)}


class Subject:
    """One loaded model that is asked for one agent after another."""

    def __init__(self, model: str, *, threads: int | None, chooses: bool, warm: bool = False) -> None:
        self.path = Path(model) if model.endswith(".gguf") else find(model)
        self._engine = Engine.load(self.path, n_ctx=WINDOW_TOKENS, threads=threads, sequences=2)
        self._template = Template(self._engine.template or builtin_template(""))
        self._grammars = Grammars(self._engine)
        self._chooses, self._warm = chooses, warm

    def ask(self, case: Case) -> tuple[Event, float]:
        """What is answered to the request, and in how many seconds."""
        agent = dataclasses.replace(case.agent, dialect=Plain())
        if not self._warm:
            self._engine.forget()
        began = time.perf_counter()
        driver = LlamaDriver(self._engine, self._template, self._grammars, agent, chooses=self._chooses)
        driver.stop()
        message = Message("user", case.request)
        event = driver.answer(AskModel(1, (message,), agent.tool_names, "either", CALL_TOKENS_MAX, 0, 1))
        return event, time.perf_counter() - began

    def close(self) -> None:
        """Free the model."""
        self._template.close()
        self._engine.close()


def _call_in(event: Event) -> ToolCall | None:
    if not isinstance(event, ModelAnswered):
        return None
    reading = Plain().read(event.text)
    return reading.calls[0] if isinstance(reading, Calls) else None


def measure(subject: Subject, sets: list[str], part: Any, rows: int) -> Iterator[Tally]:
    """The tally of each set."""
    for name in sets:
        tally = Tally(name)
        for case in cases_of(name, part, rows):
            tally.add(case, *subject.ask(case))
        yield tally


def _line(told: dict[str, Any]) -> str:
    shares = []
    for name in ("right_tool", "right_call", "wrongly_refused", "wrongly_called"):
        if name in told:
            each = told[name]
            interval = f"{100 * each['low']:.0f}-{100 * each['high']:.0f} %"
            shares.append(f"{name.replace('_', ' ')} {each['count']}/{each['of']} ({interval})")
    failed = f", {told['failed']} failed" if told["failed"] else ""
    return f"{told['set']}: {', '.join(shares)}{failed}; {told['seconds_a_case']} s a case ({told['checker']})"


def main() -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy", description=__doc__)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--set", dest="sets", default="greenhouse")
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--part", choices=("report", "fit"), default="report")
    parser.add_argument("--engine", choices=("ours", "spelling"), default="ours")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--warm", action="store_true", help="keep the system text in memory, as a running agent does")
    parser.add_argument("--wrong", action="store_true", help="show what was wrong")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    try:
        subject = Subject(given.model, threads=given.threads, chooses=given.engine == "ours", warm=given.warm)
    except EdgeAgentError as error:
        print(error, file=sys.stderr)
        return 5
    sets = given.sets.split(",")
    about: dict[str, Any] = {"warm": given.warm, "model": subject.path.name, "engine": given.engine, "part": given.part}
    about |= {kind: provenance(kind) for kind in {s.partition(":")[0] for s in sets} & {"bfcl", "needle"}}
    if not given.json:
        print(", ".join(f"{key} {value}" for key, value in about.items()), flush=True)
    results = []
    for tally in measure(subject, sets, given.part, given.rows):
        results.append(tally.summary() | {"wrong": tally.wrong})
        if not given.json:
            print(_line(results[-1]), flush=True)
            for wrong in tally.wrong if given.wrong else ():
                print(f"    {wrong['request']}\n        {wrong['wrote']}")
    if given.json:
        print(json.dumps(about | {"results": results}, ensure_ascii=False))
    subject.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
