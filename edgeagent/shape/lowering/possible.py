"""Parts of a lowered schema that no finite value can have, taken out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgeagent.shape.lowering.work import NEVER, length_keywords


def any_of(options: list[Any]) -> Any:
    """Return the schema of any one of the options."""
    flat: list[Any] = []
    for option in options:
        for part in option["anyOf"] if isinstance(option, dict) and option.keys() == {"anyOf"} else [option]:
            if part is not NEVER and part not in flat:
                flat.append(part)
    if {} in flat:
        return {}
    return NEVER if not flat else flat[0] if len(flat) == 1 else {"anyOf": flat}


def possible_names(definitions: Mapping[str, Any]) -> set[str]:
    """Return the definitions of which some finite value exists, by going round until nothing is added."""
    possible: set[str] = set()
    while True:
        found = {name for name, schema in definitions.items() if name in possible or _is_possible(schema, possible)}
        if found == possible:
            return possible
        possible = found


def _is_possible(schema: Any, possible: set[str]) -> bool:
    return pruned(schema, possible) is not NEVER


def pruned(schema: Any, possible: set[str]) -> Any:
    """Return the schema without the parts that no finite value can have; NEVER if nothing is left."""
    if not isinstance(schema, dict) or not schema:
        return schema
    if "$ref" in schema:
        return schema if schema["$ref"].removeprefix("#/$defs/") in possible else NEVER
    if "anyOf" in schema:
        return any_of([pruned(option, possible) for option in schema["anyOf"]])
    if schema.get("type") == "array":
        return _pruned_array(schema, possible)
    if schema.get("type") == "object":
        return _pruned_object(schema, possible)
    return schema


def _pruned_array(schema: dict[str, Any], possible: set[str]) -> Any:
    places: list[Any] = []
    rest = pruned(schema["items"], possible)
    for part in schema.get("prefixItems", ()):
        place = pruned(part, possible)
        if place is NEVER:
            rest = NEVER
            break
        places.append(place)
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    if rest is NEVER:
        most = len(places)
    if most is not None and least > most:
        return NEVER
    kept: dict[str, Any] = {"type": "array", **({"prefixItems": places} if places else {}), "items": rest}
    if rest is not NEVER or most != len(places):
        return {**kept, **length_keywords(least, most, "Items")}
    return {**kept, **length_keywords(least, None, "Items")}


def _pruned_object(schema: dict[str, Any], possible: set[str]) -> Any:
    others = pruned(schema["additionalProperties"], possible)
    if "patternProperties" in schema:
        ((searched, part),) = schema["patternProperties"].items()
        value = pruned(part, possible)
        if value is NEVER:
            return NEVER if schema.get("minProperties") else closed()
        return {**schema, "patternProperties": {searched: value}}
    if "properties" not in schema:
        if others is NEVER:
            return NEVER if schema.get("minProperties") else closed()
        return {**schema, "additionalProperties": others}
    members: dict[str, Any] = {}
    for key, part in schema["properties"].items():
        member = pruned(part, possible)
        if member is NEVER and key in schema["required"]:
            return NEVER
        if member is not NEVER or others is not NEVER:
            members[key] = member  # A key that must not appear has to be known where others may.
    return {**schema, "properties": members, "additionalProperties": others}


def reached_names(schema: Any, definitions: Mapping[str, Any]) -> set[str]:
    """Return the definitions that a schema refers to, by way of others too."""
    reached: set[str] = set()
    todo: list[Any] = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo.extend(node)
        elif isinstance(node, dict):
            name = str(node.get("$ref", "")).removeprefix("#/$defs/") if isinstance(node.get("$ref"), str) else ""
            if name in definitions and name not in reached:
                reached.add(name)
                todo.append(definitions[name])
            todo.extend(value for key, value in node.items() if key != "enum")
    return reached


def closed() -> dict[str, Any]:
    """Return the schema of the empty object."""
    return {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
