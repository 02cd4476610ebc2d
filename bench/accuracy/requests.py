"""Requests to device agents and the calls that a careful person would accept, as read from a file.

Two forms. Ours (`own/*/NAME.toml`) has the agent's Python source and a list of rows, calls written as in Python:

    source = '''...'''
    opposites = ["open_door close_door"]
    rows = [
        ["direct", "en", "Open the door", "open_door()"],
        ["text", "en", "Note that it creaks", "note(text=has('creaks'))"],
        ["followup", "en", "and shut it again", "close_door()", [["Open the door", "open_door()"]]],
    ]

`A + B` are two calls, `A | B` two ways to be right; `ask` and `none` are no call, and `ask` wants a question. The other
form is a JSON file: `{"agents": [{"agent", "source", "requests": [{"category", "lang", "text", "want", "accept"}]}]}`.

Law: a row that is not understood, or whose accepted calls its agent could not take, is an error that names it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from edgeagent.core.agent import Agent
from edgeagent.errors import EdgeAgentError
from edgeagent.runtime.wiring import load_agent

OWN = Path(__file__).parent / "own"

Half = Literal["seen", "unseen", "practice", "check"]
Want = Literal["call", "ask", "none"]

NOW = "2026-03-04T10:15:00+00:00"
"""When and in which zone all requests are made: a Wednesday. "Tomorrow" is 2026-03-05."""

MATCHERS = frozenset(("has", "any", "ge", "le", "opt"))
"""How an argument may be told when not by its value: see `bench.accuracy.accepting`."""


@dataclass(frozen=True)
class Accepted:
    """A call that is right: each argument's value, or a mapping of matchers."""

    tool: str
    arguments: Mapping[str, Any]


Calls = tuple[Accepted, ...]


@dataclass(frozen=True)
class Asked:
    """One request of a conversation. `accept` are the ways to be right; the empty one is no call.

    `before` is what was said earlier and called for it. `opposites` are pairs of tools or of options.
    """

    id: str
    category: str
    lang: str
    text: str
    want: Want
    accept: tuple[Calls, ...]
    before: tuple[tuple[str, Calls], ...] = ()
    opposites: tuple[frozenset[str], ...] = ()


def half_of(name: str) -> Half:
    """In which half an agent is: by its name alone, so that nobody chooses."""
    return "seen" if hashlib.sha256(name.encode()).digest()[0] % 2 else "unseen"


def files_of(half: Half) -> list[Path]:
    """The agents of one half of our own set."""
    return sorted((OWN / half).glob("*.toml"))


def read_file(file: Path) -> Iterator[tuple[Agent, list[Asked]]]:
    """The agents of a file with their requests. Raises ValueError naming the row that is not understood."""
    if file.suffix == ".toml":
        told = tomllib.loads(file.read_text(encoding="utf-8"))
        agent = agent_of(told["source"], file.stem)
        opposites = tuple(frozenset(pair.split()) for pair in told.get("opposites", ()))
        yield agent, [_row(agent, f"{file.stem}-{place:02}", row, opposites) for place, row in enumerate(told["rows"])]
        return
    for each in json.loads(file.read_text(encoding="utf-8"))["agents"]:
        agent = agent_of(each["source"], each["agent"])
        yield agent, [_told(agent, request, f"{each['agent']}-{n:02}") for n, request in enumerate(each["requests"])]


def agent_of(source: str, name: str) -> Agent:
    """The agent that a Python source makes. Raises EdgeAgentError."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.py"
        file.write_text(source, encoding="utf-8")
        return load_agent(str(file))


def _row(agent: Agent, id: str, row: list[Any], opposites: tuple[frozenset[str], ...]) -> Asked:
    try:
        category, lang, text, accepted, *more = row
        accept: tuple[Calls, ...] = ((),) if accepted == "ask" else tuple(map(_calls, _ways(accepted)))
        want: Want = "ask" if accepted == "ask" else "none" if () in accept else "call"
        before = tuple(
            (said, _calls(ast.parse(called, mode="eval").body)) for said, called in (more[0] if more else ())
        )
        return _checked(agent, Asked(id, category, lang, text, want, accept, before, opposites))
    except (EdgeAgentError, SyntaxError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{id}: {row!r} is not understood: {error}") from error


def _told(agent: Agent, request: Mapping[str, Any], id: str) -> Asked:
    id = request.get("id", id)
    try:
        accept = tuple(_calls_told(each) for each in request["accept"])
        earlier = request.get("before_accept") or [[]]
        before = ((request["before"], _calls_told(earlier[0])),) if "before" in request else ()
        if request["want"] not in get_args(Want):
            raise ValueError(f"want is {request['want']}")
        return _checked(
            agent,
            Asked(id, request["category"], request["lang"], request["text"], request["want"], accept, before),
        )
    except (EdgeAgentError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{id}: {request!r} is not understood: {error}") from error


def _calls_told(calls: list[Mapping[str, Any]]) -> Calls:
    return tuple(Accepted(each["name"], each["args"]) for each in calls)


def _ways(text: str) -> list[ast.expr]:
    """The ways to be right, told apart by `|`."""
    return list(_parted(ast.parse(text, mode="eval").body, ast.BitOr))


def _parted(node: ast.expr, operator: type[ast.operator]) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, operator):
        yield from _parted(node.left, operator)
        yield from _parted(node.right, operator)
    else:
        yield node


def _calls(node: ast.expr) -> Calls:
    """The calls of one way; `none` is no call."""
    if isinstance(node, ast.Name) and node.id == "none":
        return ()
    return tuple(_call(each) for each in _parted(node, ast.Add))


def _call(node: ast.expr) -> Accepted:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.args:
        raise ValueError(f"{ast.unparse(node)} is no call with named arguments")
    return Accepted(node.func.id, {word.arg or "": _value(word.value) for word in node.keywords})


def _value(node: ast.expr) -> Any:
    """A literal, or matchers: has('a', 'b'), any('a', 'b'), between(1, 5), opt(VALUE); opt() takes anything."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return ast.literal_eval(node)
    given = [_value(each) for each in node.args]
    match node.func.id, given:
        case "between", [low, high]:
            return {"ge": low, "le": high}
        case "opt", values:
            return {"opt": values[0] if values else "*"}
        case ("has" | "any") as name, [_, *_]:
            return {name: given}
    raise ValueError(f"{ast.unparse(node)} is no matcher")


def _checked(agent: Agent, asked: Asked) -> Asked:
    """The row, if the agent's tools could take each of its calls. Raises EdgeAgentError, KeyError, ValueError."""
    if not asked.accept or (asked.want == "call") is (() in asked.accept):
        raise ValueError(f"want is {asked.want} beside these calls")
    for each in (call for calls in (*asked.accept, *(calls for _, calls in asked.before)) for call in calls):
        examples = {name: _example(value) for name, value in each.arguments.items()}
        given = {name: value for name, value in examples.items() if value != "*"}
        agent.by_name[each.tool].parameters.decode(given)
    return asked


def _example(value: Any) -> Any:
    """A value that the matchers let through, which the argument's type must take; "*" for whatever it takes."""
    if not isinstance(value, Mapping):
        return value
    if value.keys() <= {"ge", "le"} and value:
        return next(iter(value.values()))
    if value.keys() == {"opt"}:
        return _example(value["opt"])
    if value.keys() <= MATCHERS and value:
        return " ".join(value["has"]) if "has" in value else value["any"][0]
    raise ValueError(f"{value} are no matchers")
