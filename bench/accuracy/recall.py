"""How often is the right tool among the k of which a request's words speak most? No model.

    python -m bench.accuracy.recall [--part report|fit] [--tools 40]

Once with each row's own tools (`bfcl:live_multiple`, mean 4), once with rows of `bfcl:multiple` merged to agents of so
many tools. The chooser lets the model compare the best `COMPARED_MAX`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from bench.accuracy.cases import Case, cases_of
from edgeagent.core.agent import Tool
from edgeagent.driver.llama.choose import COMPARED_MAX
from edgeagent.grammar.lexical import Lexicon

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


def main() -> int:
    """Tell both."""
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy.recall", description=__doc__)
    parser.add_argument("--part", choices=("report", "fit"), default="report")
    parser.add_argument("--tools", type=int, default=40)
    given = parser.parse_args()
    live = list(own_tools(cases_of("bfcl:live_multiple", given.part, 10_000)))
    merged = list(merged_tools(cases_of("bfcl:multiple", given.part, 10_000), given.tools))
    for name, rows in (("live_multiple, own tools", live), (f"multiple, merged to {given.tools} tools", merged)):
        places = [place_of(each) for each in rows]
        shares = ", ".join(f"{sum(place < k for place in places)} in the best {k}" for k in KEPT)
        tools = sum(len(each[1]) for each in rows) / len(rows)
        print(f"{name}: {len(rows)} rows, {tools:.1f} tools each; right tool {shares}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
