"""Arrays, objects with known keys, and maps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from edgeagent.shape import pattern
from edgeagent.shape.admits import admits, member_schemas
from edgeagent.shape.decode import below, matches
from edgeagent.shape.lowering.possible import closed
from edgeagent.shape.lowering.work import NEVER, Work, length_keywords
from edgeagent.shape.merge import Plain, both
from edgeagent.shape.parse import DEPTH_MAX


def anything(work: Work) -> Any:
    """Return any JSON value; with bounded strings it has to be written out."""
    work.relax(work.path, "depth", f"a grammar does not count levels; more than {DEPTH_MAX} are refused when read")
    if work.string_max is None:
        return {}
    name = "any-json"
    if name not in work.definitions:
        work.definitions[name] = None
        here = {"$ref": f"#/$defs/{name}"}
        work.definitions[name] = {
            "anyOf": [
                {"type": "null"},
                {"type": "boolean"},
                {"type": "number"},
                {"type": "string", "maxLength": work.string_max},
                {"type": "array", "items": here},
                _map(work, here, {}, ""),
            ]
        }
    return {"$ref": f"#/$defs/{name}"}


def array(work: Work, plain: Plain, path: str) -> Any:
    """Return an array with its first places, the rest, and its lengths."""
    least, most = plain.get("minItems", 0), plain.get("maxItems")
    places = plain.get("prefixItems", [])
    if most is not None and most <= len(places):
        places, rest = places[:most], NEVER
    else:
        rest = plain.get("items", True)
    if plain.get("uniqueItems") and (most is None or most > 1):
        work.relax(path, "uniqueItems", "a grammar does not compare items")
    lowered: dict[str, Any] = {"type": "array"}
    if places:
        lowered["prefixItems"] = [work.place(part, f"{path}[{index}]") for index, part in enumerate(places)]
    lowered["items"] = work.place(rest, f"{path}[]")
    return {**lowered, **length_keywords(least, most, "Items")}


def object_of(work: Work, plain: Plain, path: str) -> Any:
    """Return an object whose keys are declared, or a map."""
    properties = dict(plain.get("properties", {}))
    required = list(dict.fromkeys(plain.get("required", ())))
    others = plain.get("additionalProperties", plain.get("unevaluatedProperties"))
    most = plain.get("maxProperties", math.inf)
    if max(len(required), plain.get("minProperties", 0)) > most:
        return NEVER
    patterns = plain.get("patternProperties", {})
    if not properties and not required and not patterns:
        return _map_of(work, plain, path, True if others is None else others)
    for key in required:
        properties.setdefault(key, True)
    for key in properties:
        parts = [part for searched, part in patterns.items() if _matches(work, searched, key, path)]
        if key in plain.get("properties", {}):
            parts.append(plain["properties"][key])
        elif not parts:
            parts = member_schemas({**plain, "additionalProperties": True if others is None else others}, key)
        properties[key] = _all(parts)
    if not properties:
        return _patterned(work, patterns, others, plain, path)
    if patterns:
        work.restrict(path, "patternProperties", "only the declared keys are written")
    elif others is None:
        work.restrict(path, "additionalProperties", "only the declared keys are written")
    return _members(work, properties, required, False if patterns or others is None else others, plain, path)


def _matches(work: Work, searched: str, key: str, path: str) -> bool:
    try:
        return matches(searched, key)
    except pattern.PatternError as error:
        raise work.refuse(path, f"the pattern {searched}: {error}") from None


def _members(work: Work, properties: dict[str, Any], required: list[str], others: Any, plain: Plain, path: str) -> Any:
    if "propertyNames" in plain:
        for key in properties:
            if not admits(plain["propertyNames"], key, work.document):
                properties[key] = NEVER
        if others is not False:
            work.relax(path, "propertyNames", "the keys that are not declared are not checked")
    members = {key: work.place(part, below(path, key)) for key, part in properties.items()}
    lowered_others = NEVER if others is False else work.place(others, f"{path}.*")
    if plain.get("minProperties", 0) > len(required):
        work.relax(path, "minProperties", "a grammar does not count the optional keys")
    most = plain.get("maxProperties")
    if most is not None and (most < len(properties) or others is not False):
        work.relax(path, "maxProperties", "a grammar does not count the optional keys")
    if len(properties) > 1:
        work.restrict("", "properties", "keys are written in the order in which they are declared")
    ordered = [key for key in properties if key in required]
    return {"type": "object", "properties": members, "required": ordered, "additionalProperties": lowered_others}


def _map_of(work: Work, plain: Plain, path: str, others: Any) -> Any:
    limits = length_keywords(plain.get("minProperties", 0), plain.get("maxProperties"), "Properties")
    value = work.place(others, f"{path}.*") if others is not False else NEVER
    names = plain.get("propertyNames", True)
    work.relax(path, "keys", "a grammar does not compare keys; a duplicate is refused when the text is read")
    if names is True or names == {}:
        return _map(work, value, limits, path)
    allowed = work.place(both({"type": "string"}, names), f"{path} (key)")
    return _map_with_names(work, allowed, value, limits, path)


def _map(work: Work, value: Any, limits: dict[str, int], path: str) -> Any:
    if value is NEVER:
        return NEVER if limits.get("minProperties") else closed()
    if work.string_max is None:
        return {"type": "object", "additionalProperties": value, **limits}
    work.restrict(path, "keys", f"keys of at most {work.string_max} characters")
    key = pattern.anchored_regex(pattern.Repeat(pattern.ANY_CHAR, 0, work.string_max))
    return {"type": "object", "patternProperties": {key: value}, "additionalProperties": False, **limits}


def _map_with_names(work: Work, allowed: Any, value: Any, limits: dict[str, int], path: str) -> Any:
    if allowed is NEVER or value is NEVER:
        return NEVER if limits.get("minProperties") else closed()
    if "enum" in allowed:
        if limits.get("minProperties") or limits.get("maxProperties", len(allowed["enum"])) < len(allowed["enum"]):
            work.relax(path, "minProperties", "a grammar does not count the optional keys")
        if len(allowed["enum"]) > 1:
            work.restrict("", "properties", "keys are written in the order in which they are declared")
        members = dict.fromkeys(allowed["enum"], value)
        return {"type": "object", "properties": members, "required": [], "additionalProperties": False}
    if allowed.get("type") == "string":
        return _map_with_pattern(work, allowed, value, limits, path)
    work.relax(path, "propertyNames", "the keys are one of several kinds, which a grammar does not tell apart")
    return _map(work, value, limits, path)


def _map_with_pattern(work: Work, allowed: Any, value: Any, limits: dict[str, int], path: str) -> Any:
    searched = allowed.get("pattern")
    if searched is not None and ("minLength" in allowed or "maxLength" in allowed):
        work.relax(path, "propertyNames", "the pattern of the keys is held, their length is not")
    if searched is None:
        least, most = allowed.get("minLength", 0), allowed.get("maxLength")
        searched = pattern.anchored_regex(pattern.Repeat(pattern.ANY_CHAR, least, most))
    return {"type": "object", "patternProperties": {searched: value}, "additionalProperties": False, **limits}


def _patterned(work: Work, patterns: Mapping[str, Any], others: Any, plain: Plain, path: str) -> Any:
    """A map whose keys choose among patterns; one of them can be held."""
    work.relax(path, "keys", "a grammar does not compare keys; a duplicate is refused when the text is read")
    (searched, part), *more = patterns.items()
    if more:
        work.restrict(path, "patternProperties", f"only keys of the first pattern are written: {searched}")
        for other, _ in more:
            work.relax(path, "patternProperties", f"a key may match {other} too, which is not looked at")
    if others is not False:
        work.restrict(path, "additionalProperties", "only keys of the pattern are written")
    limits = length_keywords(plain.get("minProperties", 0), plain.get("maxProperties"), "Properties")
    key = {"type": "string", "pattern": searched}
    names = plain.get("propertyNames", True)
    value = work.place(part, f"{path}.*")
    return _map_with_names(work, work.place(both(key, names), f"{path} (key)"), value, limits, path)


def _all(parts: list[Any]) -> Any:
    schema: Any = True
    for part in parts:
        schema = both(schema, part)
    return schema
