"""How often is the right tool among the k of which a request's words speak most, and how often is it the one chosen?

    python -m bench.accuracy.recall [--part report|fit] [--tools 40] [--model NAME|FILE]

With each row's own tools (`bfcl:multiple`, mean 3, and `bfcl:live_multiple`, mean 4), and with rows of `bfcl:multiple`
merged to agents of so many tools. The chooser lets the model compare the best `COMPARED_MAX`; with `--model` it does,
and its choice is told too. Nothing is written, so that whole sets take minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from bench.accuracy.cases import Case, cases_of
from bench.accuracy.engines import WINDOW_TOKENS, file_of
from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Tool
from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.judge import SEQUENCES, ModelJudge, TextScorer
from edgeagent.driver.llama.template import Template, builtin_template
from edgeagent.request.choose import COMPARED_MAX, choose
from edgeagent.request.lexical import Lexicon
from edgeagent.request.tools import Tools

KEPT = (1, 2, 4, 8, COMPARED_MAX)

Asked = tuple[str, Sequence[Tool], str]
"""A request, the tools that there are, and the right one."""


def own_tools(cases: Sequence[Case]) -> Iterator[Asked]:
    """Each request with its row's tools."""
    for case in cases:
        for wanted in case.wanted[:1]:
            yield case.request, case.agent.tools, wanted.tool


def merged_tools(cases: Sequence[Case], size: int) -> Iterator[Asked]:
    """Each request among the tools of its neighbours, so many in all; the first of a name counts."""
    group: dict[str, Tool] = {}
    asked: list[Case] = []
    for case in cases:
        others = {tool.name: tool for tool in case.agent.tools}
        if len(group | others) > size:
            yield from ((each.request, tuple(group.values()), each.wanted[0].tool) for each in asked)
            group, asked = {}, []
        group = others | group
        asked.append(case)


def place_of(asked: Asked) -> int:
    """How many tools the words put before the right one, those that fit as well counted too."""
    request, tools, right = asked
    scores = dict(Lexicon.of(tools).scores(request, [tool.name for tool in tools]))
    return sum(score >= scores[right] for name, score in scores.items() if name != right)


def chosen_right(rows: Sequence[Asked], engine: Engine, template: Template) -> int:
    """In how many of the rows the chooser's tool is the right one."""
    count = 0
    for place, (request, tools, right) in enumerate(rows):
        if place % 20 == 19:
            print(f"{place} of {len(rows)}, {count} right", file=sys.stderr, flush=True)
        engine.forget()
        known = Tools.of(tools)
        judge = ModelJudge(TextScorer(engine, template, Plain().frame, known.texts(known.by_name)))
        count += choose(request, known, judge).tools == (right,)
    return count


def main() -> int:
    """Tell all three."""
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy.recall", description=__doc__)
    parser.add_argument("--part", choices=("report", "fit"), default="report")
    parser.add_argument("--tools", type=int, default=40)
    parser.add_argument("--model", help="a name in the store, or a .gguf file")
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    several, live = (cases_of(f"bfcl:{name}", given.part, 0) for name in ("multiple", "live_multiple"))
    of = {"multiple, own tools": own_tools(several), "live_multiple, own tools": own_tools(live)}
    of[f"multiple, merged to {given.tools} tools"] = merged_tools(several, given.tools)
    for name, asked in of.items():
        rows = list(asked)
        places = [place_of(each) for each in rows]
        shares = ", ".join(f"{sum(place < k for place in places)} in the best {k}" for k in KEPT)
        tools = sum(len(each[1]) for each in rows) / len(rows)
        print(f"{name}: {len(rows)} rows, {tools:.1f} tools each; right tool {shares}", flush=True)
        if given.model:
            engine = Engine.load(file_of(given.model), n_ctx=WINDOW_TOKENS, threads=given.threads, sequences=SEQUENCES)
            template = Template(engine.template or builtin_template(""))
            print(f"    chosen, with {engine.path.name}: {chosen_right(rows, engine, template)}", flush=True)
            template.close()
            engine.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
