"""Subset of JSON Schema that a server accepts: a schema → one that says less, or what strict servers want.

What is left out is judged where every model's arguments are: a schema that is sent only helps the server's model. So
all of it makes a schema wider, but for `strict`: there every member must be given, and one that may be left out is
given as null, which `without_nulls` takes away again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from edgeagent.codec.json_text import read_any, write_text

Subset = Literal["full", "strict", "plain", "none"]
"""Everything; what OpenAI's strict mode takes; the words that every server knows; no schema at all."""

DEPTH_MAX = 32

_PLAIN = ("type", "description", "enum", "required")


def within(schema: Any, subset: Subset) -> dict[str, Any] | None:
    """The schema in this subset; None where it cannot be said in it."""
    if subset == "full":
        return dict(schema)
    if subset == "none":
        return {"type": "object"}
    plain = _plain(schema, schema.get("$defs", {}), DEPTH_MAX)
    return plain if subset == "plain" else _strict(plain)


def _plain(schema: Any, named: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """The schema in the words that every server knows; wider where it must be."""
    if not isinstance(schema, Mapping) or not depth:
        return {}
    if isinstance(reference := schema.get("$ref"), str):
        return _plain(named.get(reference.removeprefix("#/$defs/")), named, depth - 1)
    plain = {key: schema[key] for key in _PLAIN if key in schema}
    if "const" in schema:
        plain["enum"] = [schema["const"]]
    for key in ("anyOf", "oneOf"):
        if key in schema and "anyOf" not in plain:
            plain["anyOf"] = [_plain(each, named, depth - 1) for each in schema[key]]
    if "properties" in schema:
        plain["properties"] = {name: _plain(each, named, depth - 1) for name, each in schema["properties"].items()}
    places = [*schema.get("prefixItems", ()), *([schema["items"]] if isinstance(schema.get("items"), Mapping) else [])]
    if places:
        found = [_plain(each, named, depth - 1) for each in places]
        plain["items"] = found[0] if len(found) == 1 else {"anyOf": found}
    if schema.get("additionalProperties") is False and "patternProperties" not in schema:
        plain["additionalProperties"] = False
    return plain


def _strict(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The plain schema with every member required; None where it has a place for any value, or for any member."""
    strict = dict(schema)
    if isinstance(schema.get("type"), str) and schema["type"] == "object":
        if "properties" not in schema or "additionalProperties" not in schema:
            return None
        members = {name: _strict(each) for name, each in schema["properties"].items()}
        if None in members.values():
            return None
        must = set(schema.get("required", ()))
        strict["properties"] = {name: each if name in must else _or_null(each) for name, each in members.items()}
        strict["required"] = list(members)
    if "anyOf" in schema:
        strict["anyOf"] = [_strict(each) for each in schema["anyOf"]]
        if None in strict["anyOf"]:
            return None
    if "items" in schema:
        strict["items"] = _strict(schema["items"])
    is_said = {"type", "enum", "anyOf"} & schema.keys() and strict.get("items", 0) is not None
    return strict if is_said and not (schema.get("type") == "array" and "items" not in schema) else None


def _or_null(schema: dict[str, Any] | None) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def without_nulls(arguments: str, schema: Mapping[str, Any]) -> str:
    """Arguments without the nulls that stand for what was left out; as they are where they are no object."""
    value = read_any(arguments)
    if not isinstance(value, dict):
        return arguments
    cleaned = _without(value, schema, schema.get("$defs", {}), DEPTH_MAX)
    return arguments if cleaned == value else write_text(cleaned)


def _without(value: Any, schema: Any, named: Mapping[str, Any], depth: int) -> Any:
    if not isinstance(schema, Mapping) or not depth:
        return value
    if isinstance(reference := schema.get("$ref"), str):
        return _without(value, named.get(reference.removeprefix("#/$defs/")), named, depth - 1)
    if isinstance(value, list):
        return [_without(each, schema.get("items"), named, depth - 1) for each in value]
    members = schema.get("properties")
    if not isinstance(value, dict) or not isinstance(members, Mapping):
        return value
    must = schema.get("required", ())
    return {
        name: _without(each, members.get(name), named, depth - 1)
        for name, each in value.items()
        if each is not None or name in must or name not in members or _takes_null(members[name])
    }


def _takes_null(schema: Any) -> bool:
    """Whether null is a value of this schema, as far as its first words say."""
    if not isinstance(schema, Mapping):
        return True
    kind, choices = schema.get("type"), [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    said = kind == "null" or (isinstance(kind, list) and "null" in kind) or None in schema.get("enum", ())
    is_any = not schema.keys() & {"type", "enum", "const", "anyOf", "oneOf", "$ref"}
    return said or is_any or any(map(_takes_null, choices))
