"""What became of requests to device agents: acts, wrong acts, questions and what they led to, and what must never be.

Of requests that want a call each is acted on, asked about, or declined. An act is wrong when a careful person would not
accept it; the opposite of what was asked is counted apart, as are acts against a prohibition. A question that was asked
back proposes the right call when a plain yes leads to it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.accuracy.accepting import opposite
from bench.accuracy.conversation import asks
from bench.accuracy.judge import is_right
from bench.accuracy.tally import Result, wilson

Summary = Mapping[str, Any]

NEGATIONS = ("negation", "prohibition", "except")
TALK = ("smalltalk", "unrelated")
QUESTIONS = ("question", "nowrite")


def decisions(results: Sequence[Result]) -> dict[str, Any]:
    """Counts of what came of requests whose cases have `asked`."""
    wanted = [each for each in results if each.case.asked and each.case.asked.want == "call"]
    acts = [each for each in results if each.called]
    asked = [each for each in wanted if _asked(each)]
    told: dict[str, Any] = {
        "right call": _share(wanted, lambda each: each.right),
        "wrong acts, of acts": _share(acts, lambda each: not each.right),
        "wrong writes, of acts": _share(acts, lambda each: not each.right and _writes(each)),
        "opposites, of acts": _share(acts, _opposite),
        "asked where a call was wanted": _share(wanted, _asked),
        "of these a yes leads to the right call": _share(asked, _proposed_right),
        "declined where a call was wanted": _share(wanted, lambda each: not each.called and not _asked(each)),
        "wrong acts on negations": _share(_of(results, *NEGATIONS), _wrong_act),
        "acts on talk": _share(_of(results, *TALK), lambda each: each.called),
        "wrong writes on questions": _share(_of(results, *QUESTIONS), lambda each: not each.right and _writes(each)),
        "acts on a value out of bounds": _share(_of(results, "bounds"), lambda each: each.called),
        "missing value asked for": _share(_of(results, "missing"), _asked),
        "AUROC of confidence": auroc(acts),
        "seconds, median": round(statistics.median(each.seconds for each in results), 3),
    }
    return {"decisions": told, "categories": _categories(results)}


def auroc(acts: Sequence[Result]) -> float | None:
    """How often a right act is surer than a wrong one, halves for ties; None where there is no such pair."""
    sure = [(min(each.answered.confidence), each.right) for each in acts if each.answered.confidence]
    right, wrong = [s for s, is_right in sure if is_right], [s for s, is_right in sure if not is_right]
    if not right or not wrong:
        return None
    above = sum((good > bad) + (good == bad) / 2 for good in right for bad in wrong)
    return round(above / (len(right) * len(wrong)), 3)


def _categories(results: Sequence[Result]) -> dict[str, dict[str, int]]:
    told = {}
    for name in sorted({each.case.group for each in results}):
        these = _of(results, name)
        told[name] = {
            "rows": len(these),
            "right": sum(each.right for each in these),
            "acts": sum(each.called for each in these),
            "wrong acts": sum(_wrong_act(each) for each in these),
            "asked": sum(_asked(each) for each in these),
        }
    return told


def _of(results: Sequence[Result], *categories: str) -> list[Result]:
    return [each for each in results if each.case.group in categories]


def _asked(result: Result) -> bool:
    return not result.called and asks(result.answered.text)


def _wrong_act(result: Result) -> bool:
    return result.called and not result.right


def _writes(result: Result) -> bool:
    """Whether one of its calls changes something; a tool that does not exist changes nothing."""
    tools = result.case.agent.by_name
    return any(tools[call.tool].effect != "read" for call in result.answered.calls if call.tool in tools)


def _opposite(result: Result) -> bool:
    case = result.case
    return case.asked is not None and opposite(case.agent, case.asked, result.answered.calls)


def _proposed_right(result: Result) -> bool:
    return is_right(result.case, *result.answered.proposed)


def _share(these: Sequence[Result], holds: Callable[[Result], bool]) -> dict[str, Any]:
    count = sum(map(holds, these))
    low, high = wilson(count, len(these))
    return {"count": count, "of": len(these), "low": round(low, 3), "high": round(high, 3)}
