"""What came of the cases of a set: counts, their 95 % intervals, and what a case cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.accuracy.cases import Case
from bench.accuracy.judge import is_right, is_right_tool
from edgeagent.core.values import ToolCall

SURE = 0.6
"""From this confidence on a call counts as one that would run without a question (`confirm_below(0.6)`)."""


@dataclass(frozen=True)
class Answered:
    """What an engine made of a request: calls, or words, or the reason why neither came (`failed`).

    `margin` is by how much a call was meant (nats over what was needed; minus infinity where a rule forbade it), None
    where the engine does not tell. `best` is the tool that it holds the likeliest, whether it calls it or not, if it
    tells. `confidence` is for each call how probable it is that it is right, if that is told. `proposed` are the calls
    that a yes to the words leads to, where they were a question and a call was wanted.
    """

    calls: tuple[ToolCall, ...]
    text: str
    failed: str = ""
    margin: float | None = None
    best: str = ""
    confidence: tuple[float, ...] = ()
    tokens: int = 0
    prompt_tokens: int = 0
    proposed: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class Result:
    """One case and what an engine made of it, judged.

    `seconds` are those of the clock, `cpu_seconds` those of all threads of this process.
    """

    case: Case
    answered: Answered
    right_tool: bool
    right: bool
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def called(self) -> bool:
        """Whether a call was made."""
        return bool(self.answered.calls)

    @property
    def best_is_right(self) -> bool:
        """Whether the tool that it held the likeliest is (one of) the wanted."""
        return self.answered.best in {each.tool for each in self.case.wanted}

    @property
    def harmful(self) -> bool:
        """Whether a wrong call was made where that does harm."""
        return self.case.critical and self.called and not self.right

    @property
    def sure(self) -> bool:
        """Whether each of its calls would run without a question; an engine that does not tell asks none."""
        return self.called and min(self.answered.confidence, default=1.0) >= SURE


def judged(case: Case, answered: Answered, seconds: float = 0.0, cpu_seconds: float = 0.0) -> Result:
    """The case with its judgement."""
    calls = answered.calls
    right_tool = bool(calls) and is_right_tool(case, *calls)
    return Result(case, answered, right_tool, is_right(case, *calls), seconds, cpu_seconds)


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """Counts with their intervals. `results` must not be empty."""
    should = [each for each in results if each.case.wanted]
    should_not = [each for each in results if not each.case.wanted]
    critical = [each for each in results if each.case.critical]
    told: dict[str, Any] = {"rows": len(results), "failed": sum(bool(each.answered.failed) for each in results)}
    told["right"] = _share([each.right for each in results])
    if should:
        told["right_tool"] = _share([each.right_tool for each in should])
        if any(each.answered.best for each in should):
            told["right_tool_best"] = _share([each.best_is_right for each in should])
        told["right_call"] = _share([each.right for each in should])
        told["wrongly_refused"] = _share([not each.called for each in should])
    if should_not:
        told["wrongly_called"] = _share([each.called for each in should_not])
    if critical:
        told["critical_wrong"] = _share([each.harmful for each in critical])
        told["critical_wrong_unasked"] = _share([each.harmful and each.sure for each in critical])
    return told | _confidence(results) | _groups(results) | _costs(results)


def _share(these: Sequence[bool]) -> dict[str, Any]:
    count, of = sum(these), len(these)
    low, high = wilson(count, of)
    return {"count": count, "of": of, "low": round(low, 3), "high": round(high, 3)}


def _groups(results: Sequence[Result]) -> dict[str, Any]:
    names = dict.fromkeys(each.case.group for each in results if each.case.group and not each.case.asked)
    if not names:
        return {}
    return {"groups": {name: _share([each.right for each in results if each.case.group == name]) for name in names}}


def _confidence(results: Sequence[Result]) -> dict[str, Any]:
    """Of the calls that came with a probability: what it promised, what was right, and the mean squared difference."""
    told = [(min(each.answered.confidence), each.right) for each in results if each.called and each.answered.confidence]
    if not told:
        return {}
    promised, brier = (
        sum(sure for sure, _ in told) / len(told),
        sum((sure - right) ** 2 for sure, right in told) / len(told),
    )
    return {
        "confidence": {
            "promised": round(promised, 3),
            "right": _share([right for _, right in told]),
            "brier": round(brier, 3),
            "right_when_sure": _share([right for sure, right in told if sure >= SURE]),
            "right_when_unsure": _share([right for sure, right in told if sure < SURE]),
        }
    }


def _costs(results: Sequence[Result]) -> dict[str, Any]:
    rows = len(results)
    return {
        "seconds_a_case": round(sum(each.seconds for each in results) / rows, 3),
        "cpu_seconds_a_case": round(sum(each.cpu_seconds for each in results) / rows, 3),
        "tokens_a_case": round(sum(each.answered.tokens for each in results) / rows, 1),
        "prompt_tokens_a_case": round(sum(each.answered.prompt_tokens for each in results) / rows, 1),
    }


def wilson(count: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson's)."""
    if not of:
        return 0.0, 1.0
    z, share = 1.959964, count / of
    middle = share + z * z / (2 * of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    whole = 1 + z * z / of
    return max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole)
