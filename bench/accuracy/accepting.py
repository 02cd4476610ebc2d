"""Are these the calls that a careful person would accept, or the opposite of them?

An argument is told by its value, or by matchers: `has` (a text with each of these words in it), `any` (one of these),
`ge` and `le` (bounds), `opt` (it may be left out; "*" for whatever stands there). Values are compared as their tool
would get them, so that PT60S is PT1M. What a row does not tell must be left out, or be the default.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from bench.accuracy.requests import Accepted, Asked, Calls
from edgeagent.core.agent import Agent
from edgeagent.core.values import ToolCall
from edgeagent.errors import EdgeAgentError


def accepted(agent: Agent, asked: Asked, calls: Sequence[ToolCall]) -> bool:
    """Whether the calls are one of the ways to be right, each once and in any order."""
    return any(_is_way(agent, way, calls) for way in asked.accept)


def opposite(agent: Agent, asked: Asked, calls: Sequence[ToolCall]) -> bool:
    """Whether some call is what was wanted turned round: the opposite tool, option, truth value or sign.

    A part of what was wanted is not its opposite.
    """
    wanted = [each for way in asked.accept for each in way]
    strange = [call for call in calls if not any(_fits(agent, each, call) for each in wanted)]
    return any(_turned(asked, each, call) for call in strange for each in wanted)


def _is_way(agent: Agent, way: Calls, calls: Sequence[ToolCall]) -> bool:
    left = list(way)
    for call in calls:
        fitting = next((each for each in left if _fits(agent, each, call)), None)
        if fitting is None:
            return False
        left.remove(fitting)
    return not left


def _fits(agent: Agent, wanted: Accepted, call: ToolCall) -> bool:
    """Whether a call is this one: what is told fits, and what is not told has its default."""
    if call.tool != wanted.tool:
        return False
    shape = agent.by_name[call.tool].parameters
    defaults = {name: each["default"] for name, each in shape.schema["properties"].items() if "default" in each}
    given = defaults | call.arguments
    literal = {name: value for name, value in wanted.arguments.items() if not isinstance(value, Mapping)}
    try:
        written, right = shape.decode(given), shape.decode(given | literal)
    except EdgeAgentError:
        return False
    return all(_same(right[name], written[name]) for name in literal) and all(
        _matches(wanted.arguments.get(name, {"opt": _MISSING}), value, defaults.get(name, _MISSING))
        for name, value in given.items()
        if name not in literal
    )


_MISSING = object()


def _matches(matchers: Mapping[str, Any], value: Any, default: Any) -> bool:
    if "opt" in matchers:
        wanted = matchers["opt"]
        if wanted == "*" or _same(value, default):
            return True
        return _matches(wanted, value, _MISSING) if isinstance(wanted, Mapping) else _same(wanted, value)
    if "has" in matchers or "any" in matchers:
        text = str(value).casefold()
        one = "any" not in matchers or _bare(value) in [_bare(each) for each in matchers["any"]]
        return value is not None and one and all(str(each).casefold() in text for each in matchers.get("has", ()))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return bool(matchers.get("ge", -math.inf) <= value <= matchers.get("le", math.inf))


def _bare(value: Any) -> Any:
    """A text without its letters' case and what stands around it."""
    return value.casefold().strip(" .!?\"'") if isinstance(value, str) else value


def _same(right: Any, written: Any) -> bool:
    if isinstance(right, bool) or isinstance(written, bool):
        return right is written
    if isinstance(right, int | float) and isinstance(written, int | float):
        return math.isclose(right, written, rel_tol=1e-6)
    if isinstance(right, list | tuple) and isinstance(written, list | tuple):
        return sorted(repr(_bare(each)) for each in right) == sorted(repr(_bare(each)) for each in written)
    return bool(_bare(right) == _bare(written))


def _turned(asked: Asked, wanted: Accepted, call: ToolCall) -> bool:
    """Whether a call is the opposite of another: of the same lamp, if it names one."""
    if wanted.tool != call.tool:
        return frozenset((wanted.tool, call.tool)) in asked.opposites
    pairs = [(value, call.arguments[name]) for name, value in wanted.arguments.items() if name in call.arguments]
    opposed = [_opposed(asked, *pair) for pair in pairs]
    alike = [not isinstance(said, str) or _matches({"opt": right}, said, _MISSING) for right, said in pairs]
    return any(opposed) and all(one or other for one, other in zip(opposed, alike, strict=True))


def _opposed(asked: Asked, right: Any, written: Any) -> bool:
    if isinstance(right, Mapping):
        right = right.get("ge", right.get("le"))
    if isinstance(right, bool) and isinstance(written, bool):
        return right is not written
    if isinstance(right, int | float) and isinstance(written, int | float):
        return right * written < 0
    both_texts = isinstance(right, str) and isinstance(written, str)
    return both_texts and right != written and frozenset((right, written)) in asked.opposites
