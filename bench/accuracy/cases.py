"""Which requests are asked, with which tools, and what is right? From BFCL, from needle's environments, and our own.

The split: rows with an even place in their file are for fitting (thresholds, weights), those with an odd place are for
reporting. Our greenhouse list is only ever reported; the gateway list is only ever fitted on.

Law: a row that cannot be made a case is an error that names it. None is left out.
"""

from __future__ import annotations

import json
import re
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args
from unittest import mock

from msgspec import Meta

from bench.accuracy.home_assistant import LANGUAGES, house, sentences
from bench.accuracy.packages import rows_in, text_in
from bench.accuracy.requests import Asked, Half, files_of, read_file
from bench.accuracy.turned import Turn, turned
from edgeagent.core.agent import Agent, Tool, tool
from edgeagent.errors import EdgeAgentError
from edgeagent.runtime.wiring import load_agent
from edgeagent.shape.nodes import Foreign
from edgeagent.shape.types import Shape

HERE = Path(__file__).parent
NEEDLES = ("data_capture", "kitchen_appliance", "media_player", "productivity", "smart_home", "wearable")

BFCLS = ("simple_python", "multiple", "parallel", "live_simple", "live_multiple", "irrelevance", "live_irrelevance")

OWN = {name: f"{HERE.parents[1] / 'examples' / name}.py={HERE / name}.json" for name in ("greenhouse", "gateway")}
"""Our own lists by name, as AGENT.py=REQUESTS.json."""

Part = Literal["fit", "report", "all"]

Checker = Literal["bfcl", "needle", "ours", "accepted"]


@dataclass(frozen=True)
class Wanted:
    """A call that is right: its tool and, by argument, the values that are right.

    An empty text among an argument's values says that it may be left out.
    """

    tool: str
    arguments: Mapping[str, list[Any]]


@dataclass(frozen=True)
class Case:
    """One request. `wanted` are the calls that it asks for, all of them; where there is none, no call is right.

    `row` is BFCL's own, for its checker. `critical` says that to act on a wrong call would do harm. `asked` is there
    where several calls may be accepted (`checker` is "accepted"); `wanted` is then the first way to be right.
    """

    id: str
    request: str
    agent: Agent
    wanted: tuple[Wanted, ...] = ()
    checker: Checker = "ours"
    row: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""
    critical: bool = False
    asked: Asked | None = None


def is_set(name: str) -> bool:
    """Whether there is a set of that name."""
    if "=" in name:
        return Path(name.partition("=")[2]).is_file()
    if name.endswith(".json"):
        return Path(name).is_file()
    kind, colon, category = name.partition(":")
    if kind == "own":
        return bool(_OWN_SET.fullmatch(name))
    of_kind = {"bfcl": BFCLS, "needle": NEEDLES, "ha": LANGUAGES}
    return category in of_kind.get(kind, ()) if colon else kind in ("needle", *OWN)


def cases_of(name: str, part: Part, rows: int = 0) -> list[Case]:
    """So many cases of a set's part, evenly spread over it; all of them for 0.

    Raises ValueError naming the row that is not understood, EdgeAgentError for an agent, and DataMissing.
    """
    assert is_set(name), f"there is no set {name}"
    name = OWN.get(name, name)
    if "=" in name:
        agent, _, file = name.partition("=")
        return _spread(list(_listed(agent, Path(file))), rows)
    if name.endswith(".json"):
        return _spread(list(accepted_cases([Path(name)])), rows)
    kind, _, category = name.partition(":")
    if kind == "own":
        which, _, half = category.partition(":")
        return _spread(_own(which, cast(Half, half or "seen")), rows)
    if kind == "ha":
        home = house(category)
        found = [_accepted(home, asked) for asked in sentences(category)]
    elif kind == "bfcl":
        found = list(_bfcl(category))
    else:
        found = [case for each in ([category] if category else NEEDLES) for case in _needle(each)]
    return _spread(found[_FIRST[part] :: 1 if part == "all" else 2], rows)


_OWN_SET = re.compile(rf"own:(all|other|en|de|es|fr|{'|'.join(get_args(Turn))})(:seen|:unseen|:practice|:check)?")

_FIRST: Mapping[Part, int] = {"fit": 0, "report": 1, "all": 0}


def _spread(cases: list[Case], rows: int) -> list[Case]:
    """So many of them, evenly spread."""
    if not rows or rows >= len(cases):
        return cases
    return [cases[place * len(cases) // rows] for place in range(rows)]


def accepted_cases(files: Iterable[Path]) -> Iterator[Case]:
    """The requests to the device agents of some files. Raises ValueError naming the row that is not understood."""
    for agent, requests in (each for file in files for each in read_file(file)):
        yield from (_accepted(agent, asked) for asked in requests)


def _own(which: str, half: Half) -> list[Case]:
    """Our own requests: those in a language, or those that are made of them."""
    told = [each for file in files_of(half) for each in read_file(file)]
    if which in get_args(Turn):
        return [_accepted(agent, asked) for agent, asked in turned(cast(Turn, which), told)]
    return [_accepted(agent, asked) for agent, rows in told for asked in rows if _is_in(asked.lang, which)]


def _is_in(lang: str, which: str) -> bool:
    return which in (lang, "all") or (which == "other" and lang != "en")


def _accepted(agent: Agent, asked: Asked) -> Case:
    wanted = tuple(Wanted(call.tool, call.arguments) for call in asked.accept[0])
    return Case(asked.id, asked.text, agent, wanted, "accepted", group=asked.category, asked=asked)


def _listed(spec: str, file: Path) -> Iterator[Case]:
    """The requests of a list for an agent, as a spec names it. Raises ValueError for one that the agent cannot take."""
    agent = load_agent(spec)
    for place, row in enumerate(json.loads(file.read_text(encoding="utf-8"))):
        try:
            wanted = tuple(Wanted(tool, arguments) for tool, arguments in (row["call"] or {}).items())
            for each in wanted:
                values = {name: right[0] for name, right in each.arguments.items()}
                agent.by_name[each.tool].parameters.decode(values)
            yield Case(f"{file.stem}_{place}", row["request"], agent, wanted)
        except (EdgeAgentError, AttributeError, IndexError, KeyError, TypeError) as error:
            raise ValueError(f"{file}: request {place} is not understood: {error!r}") from error


def _bfcl(category: str) -> Iterator[Case]:
    rows = rows_in("bfcl", f"bfcl_eval/data/BFCL_v4_{category}.json")
    answers: dict[str, list[dict[str, Any]]] = {row["id"]: [] for row in rows}
    if "irrelevance" not in category:
        told = rows_in("bfcl", f"bfcl_eval/data/possible_answer/BFCL_v4_{category}.json")
        answers = {row["id"]: row["ground_truth"] for row in told}
    for row in rows:
        try:
            yield bfcl_case(row, answers[row["id"]])
        except (EdgeAgentError, KeyError, TypeError) as error:
            raise ValueError(f"bfcl:{category}: row {row.get('id')} is not understood: {error!r}") from error


def bfcl_case(row: Mapping[str, Any], answers: list[dict[str, Any]]) -> Case:
    """A row of BFCL with its right calls; none, where no call is right.

    What its system messages say is told behind our own line. Of a conversation what the user said is one request.
    """
    said = row["question"][0]
    system = ["You call functions.", *(m["content"] for m in said if m["role"] == "system")]
    request = "\n".join(m["content"] for m in said if m["role"] == "user")
    agent = Agent(name="bfcl", system="\n".join(system), tools=[_tool(each) for each in row["function"]])
    wanted = tuple(Wanted(own_name(name), values) for each in answers for name, values in each.items())
    return Case(row["id"], request, agent, wanted, "bfcl", row)


def own_name(name: str) -> str:
    """A function's name as a tool may have it: BFCL's have dots, and a few begin with underscores."""
    return "".join(char if char.isalnum() or char in "_-" else "_" for char in name).lstrip("_-")[:64]


def _tool(function: Mapping[str, Any]) -> Tool:
    """A function of BFCL as a tool: its parameters come as a schema, in their own words."""

    def run(**_: Any) -> None:
        """Nothing is run here."""

    told = function["description"] or function["name"]
    made = Tool(run, own_name(function["name"]), told, idempotent=True, effect="read")  # They compute and look up.
    schema = json_schema(function["parameters"])
    schema |= {"additionalProperties": False}
    # Where a tool's shape is kept once it has been worked out: this one comes from no Python type.
    vars(made)["parameters"] = Shape(run, schema, Foreign(schema, lambda *_: ""), {})
    return made


_TYPES = {"dict": "object", "float": "number", "tuple": "array", "bool": "boolean", "any": None}
_KEPT = frozenset(("description", "enum", "required", "properties", "items", "minItems", "maxItems"))


def json_schema(said: Mapping[str, Any]) -> dict[str, Any]:
    """BFCL's way to write a schema as JSON Schema."""
    schema: dict[str, Any] = {key: value for key, value in said.items() if key in _KEPT}
    kind = _TYPES.get(said.get("type", "any"), said.get("type"))
    if kind is not None:
        schema["type"] = kind
    if "properties" in schema:
        schema["properties"] = {key: json_schema(each) for key, each in schema["properties"].items()}
    if "items" in schema:
        schema["items"] = json_schema(schema["items"])
    if "enum" in schema and kind not in (None, "string", "integer", "number", "boolean"):
        del schema["enum"]  # A few rows put the options of the items here.
    return schema


def _needle(name: str) -> Iterator[Case]:
    """One of needle's environments: its tools declared as ours, without its model."""
    module = needle_module(name)
    tools = [replace(each, description=each.description.partition("Args:")[0].strip()) for each in module.TOOLS]
    agent = Agent(name="needle", system=module.SYSTEM, tools=tools)
    for place, row in enumerate(module.TEST_CASES):
        wanted = tuple(Wanted(call["name"], {k: [v] for k, v in call["arguments"].items()}) for call in row["calls"])
        about: dict[str, Any] = {"group": row["category"], "critical": row.get("critical", False)}
        yield Case(f"{name}_{place}", row["query"], agent, wanted, "needle", **about)


def needle_module(name: str) -> Any:
    """A module of needle's environments, run from the wheel's source with our `tool` in the place of its own."""
    source = text_in("needle", f"needle/environments/{name}.py")
    module = types.ModuleType("needle_environment")
    stub, environments = types.ModuleType("needle"), types.ModuleType("needle.environments")
    vars(stub).update(tool=tool(idempotent=True), Field=_meta)
    vars(environments).update(_harness=None)
    known = {"needle": stub, "needle.environments": environments, module.__name__: module}
    with mock.patch.dict(sys.modules, known):
        exec(compile(source, f"{name}.py", "exec"), vars(module))
    return module


def _meta(**limits: Any) -> Meta:
    """Needle's limits on a value as ours; what we cannot say is left out."""
    return Meta(**{key: value for key, value in limits.items() if key not in ("format", "description")})
