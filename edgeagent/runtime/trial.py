"""Trial of an agent on requests: which of them lead to the right call, a wrong one or a question, and what would help.

Nothing runs: each request is asked once, by itself, and only what the model's driver answers is looked at.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskModel
from edgeagent.core.events import CALL_ODDS, CALL_ODDS_NEEDED, ModelAnswered
from edgeagent.core.reading import Answer, Calls
from edgeagent.core.values import Message
from edgeagent.driver.llama.model import LlamaDriver
from edgeagent.errors import ConfigError
from edgeagent.request.lexical import stems, words_of
from edgeagent.request.said import said_of
from edgeagent.request.tools import Tools

Outcome = Literal["right", "wrong", "asked", "none"]
"""The call that was wanted, another one, a question, or words and no call."""

CALL_TOKENS = 200
"""More than any call of a request takes."""

ARROW = "=>"


class Wanted(msgspec.Struct, frozen=True):
    """A request, and what it should lead to: a tool ('' for no call), and of its arguments those that are told."""

    request: str
    tool: str | None = None
    arguments: dict[str, Any] = {}


class Tried(msgspec.Struct, frozen=True):
    """What a request led to: the outcome (None where nobody said what is wanted), the calls, the words."""

    request: str
    wanted: str | None
    outcome: Outcome | None
    calls: list[tuple[str, dict[str, Any]]]
    said: str
    leading: str = ""


class Trial(msgspec.Struct, frozen=True):
    """All of it. `confused` are pairs of tools (wanted, leading); `helpful` words by the tool whose text lacks them."""

    tried: list[Tried]
    counts: dict[str, int]
    confused: list[tuple[str, str, int]]
    helpful: dict[str, list[str]]


def wanted_in(text: str, agent: Agent, file: str) -> list[Wanted]:
    """The requests of a file, one a line: `REQUEST`, `REQUEST => tool(argument=value)`, or `REQUEST => none`."""
    rows = enumerate((line.strip() for line in text.splitlines()), 1)
    return [_wanted(line, agent, f"{file}, line {number}") for number, line in rows if line and line[0] != "#"]


def examples_of(agent: Agent) -> list[Wanted]:
    """The examples of the tools, each of which wants its tool. Raises ConfigError where there is none."""
    found = [Wanted(example, tool.name) for tool in agent.tools for example in tool.examples]
    if not found:
        raise ConfigError(
            f'agent {agent.name} has no examples to try: give its tools some, @tool(examples=["..."]), or name a file'
        )
    return found


def try_all(
    driver: LlamaDriver, agent: Agent, rows: Sequence[Wanted], on_progress: Callable[[int, int], None] | None = None
) -> Trial:
    """Ask every request once. The driver must be the agent's."""
    tried = []
    for number, row in enumerate(rows, 1):
        ask = AskModel(number, (Message("user", row.request),), agent.tool_names, "either", CALL_TOKENS, 0, 1)
        event = driver.answer(ask)
        tried.append(_tried(row, event, agent))
        if on_progress is not None:
            on_progress(number, len(rows))
    wrong = Counter((t.wanted, t.leading) for t in tried if t.wanted and t.leading and t.leading != t.wanted)
    counts = Counter(str(each.outcome or "unjudged") for each in tried)
    confused = [(str(one), other, count) for (one, other), count in wrong.most_common()]
    return Trial(tried, dict(counts), confused, _helpful(tried, agent))


def _wanted(line: str, agent: Agent, where: str) -> Wanted:
    request, arrow, told = (each.strip() for each in line.partition(ARROW))
    if not arrow:
        return Wanted(request)
    if told in ("none", "ask"):
        return Wanted(request, "")
    try:
        name, given = _call_in(told)
    except (SyntaxError, ValueError):
        raise ConfigError(f"{where}: {told!r} is no call; write {ARROW} tool(argument=value), or none") from None
    if name not in agent.tool_names:
        raise ConfigError(f"{where}: agent {agent.name} has no tool {name}; it has {', '.join(agent.tool_names)}")
    return Wanted(request, name, given)


def _call_in(text: str) -> tuple[str, dict[str, Any]]:
    """Read `tool(argument=value)`. Raises SyntaxError or ValueError."""
    match ast.parse(text, mode="eval").body:
        case ast.Call(func=ast.Name(id=name), args=[], keywords=given):
            return name, {str(each.arg): ast.literal_eval(each.value) for each in given}
    raise ValueError(text)


def _tried(row: Wanted, event: object, agent: Agent) -> Tried:
    if not isinstance(event, ModelAnswered):
        return Tried(row.request, row.tool, None if row.tool is None else "none", [], str(event))
    reading = agent.dialect.read(event.text) if agent.dialect is not None else Answer(event.text)
    calls = [(each.tool, each.arguments) for each in reading.calls] if isinstance(reading, Calls) else []
    scores = [(score, name) for name, score in event.scores if name not in (CALL_ODDS, CALL_ODDS_NEEDED)]
    said = "" if calls else event.text.strip()
    leading = calls[0][0] if calls else max(scores)[1] if scores else ""
    return Tried(row.request, row.tool, _outcome(row, calls, said), calls, said, leading)


def _outcome(row: Wanted, calls: Sequence[tuple[str, dict[str, Any]]], said: str) -> Outcome | None:
    if row.tool is None:
        return None
    if not calls:
        is_question = said.endswith("?")
        return "right" if not row.tool else "asked" if is_question else "none"
    is_it = len(calls) == 1 and calls[0][0] == row.tool
    return "right" if is_it and row.arguments.items() <= calls[0][1].items() else "wrong"


def _helpful(tried: Sequence[Tried], agent: Agent) -> dict[str, list[str]]:
    """Words of requests that were not served by the tool they want and that no tool has: a docstring could."""
    tools, found = Tools.of(agent.tools), dict[str, Counter[str]]()
    for each in tried:
        if each.wanted and each.outcome != "right":
            said = said_of(each.request, agent.language, tools.spells)
            unknown = (w for w in words_of(said) if stems(w) and w.isalpha() and len(w) > 2)
            missing = [w for w in unknown if not any(tools.has(name, w) for name in agent.tool_names)]
            found.setdefault(each.wanted, Counter()).update(missing)
    return {name: [word for word, _ in words.most_common(8)] for name, words in found.items() if words}
