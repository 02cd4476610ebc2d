"""Tools of ours from another program's JSON Schemas: typed functions that only the world can run."""

from __future__ import annotations

import inspect
from typing import Any, Literal

from edgeagent.core.agent import Tool

_PLAIN = {"string": str, "integer": int, "number": float, "boolean": bool, "null": None, "object": dict[str, Any]}


def tool_from(described: dict[str, Any]) -> Tool:
    """Return a tool with this name, description and argument schema. Its effect comes from the labels."""
    schema = described["schema"]
    required = set(schema.get("required", ()))
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if name in required else each.get("default"),
            annotation=_type_of(each, schema.get("$defs", {})),
        )
        for name, each in schema.get("properties", {}).items()
    ]

    def run(**arguments: Any) -> None:
        raise AssertionError("only the world runs it")

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # how a signature is declared
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    description = described["description"].split("\n")[0]
    return Tool(run, described["name"], description, idempotent=False)


def _type_of(schema: dict[str, Any], defined: dict[str, Any]) -> Any:
    if "$ref" in schema:
        return _type_of(defined[schema["$ref"].rpartition("/")[2]], defined)
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    if "anyOf" in schema:
        kinds = [_type_of(each, defined) for each in schema["anyOf"]]
        first, *rest = dict.fromkeys(map(_hashable, kinds))
        for each in rest:
            first = first | each
        return first
    if schema.get("type") == "array":
        return list[_type_of(schema.get("items", {"type": "string"}), defined)]  # type: ignore[misc]  # made at run time
    return _PLAIN[schema.get("type", "object")]


def _hashable(kind: Any) -> Any:
    return type(None) if kind is None else kind
