"""One schema as alternatives without `allOf`, `anyOf`, `oneOf` and `$ref`: what must hold together is merged.

`{"anyOf": [A, B], "properties": P}` becomes `A and P`, `B and P`. Nothing is dropped in silence: a keyword of
which two meet and only one can be kept is listed under `x-dropped` of the alternative, for the report. A keyword
that `lower` does not know stays where it is. No alternative at all means that nothing fits.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from edgeagent.errors import GrammarError
from edgeagent.shape.admits import admits, member_schemas
from edgeagent.shape.decode import same_json
from edgeagent.shape.keywords import KEYWORDS
from edgeagent.shape.pointer import Document

Plain = dict[str, Any]

# Alternatives that one place may be multiplied out to: more would make a grammar nobody can hold.
ALTERNATIVES_MAX = 256
DROPPED = "x-dropped"

COMBINERS = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
# OpenAPI's own words, which restrict nothing.
NOTES = frozenset(("discriminator", "xml", "externalDocs", "example", "strict", "nullable"))


def is_note(keyword: str) -> bool:
    """Return whether a keyword restricts nothing."""
    known = KEYWORDS.get(keyword)
    if known is not None:
        return known.held == "note" or keyword in ("$anchor", "$dynamicAnchor")
    return keyword in NOTES or (keyword.startswith("x-") and keyword not in ("x-decoder", DROPPED))


def normal(schema: Mapping[str, Any]) -> Plain:
    """Return the schema's own keywords in one spelling: types as a list, constants as `enum`."""
    plain = {key: value for key, value in schema.items() if key not in COMBINERS and not is_note(key)}
    if isinstance(plain.get("type"), str):
        plain["type"] = [plain["type"]]
    if "const" in plain:
        constant = plain.pop("const")
        options = plain.get("enum", [constant])
        plain["enum"] = [constant] if any(same_json(constant, option) for option in options) else []
    return plain


def drop(plain: Plain, keyword: str, reason: str) -> None:
    """Note that a keyword no longer restricts this alternative."""
    plain[DROPPED] = [*plain.get(DROPPED, []), (keyword, reason)]


def alternatives(schema: Any, document: Document, seen: tuple[str, ...] = ()) -> list[Plain]:
    """Return the alternatives of a schema; raise `GrammarError` for a `$ref` that only leads back to itself."""
    if isinstance(schema, bool):
        return [{}] if schema else []
    found = [normal(schema)]
    if "$ref" in schema:
        reference = schema["$ref"]
        if reference in seen:
            raise GrammarError(f"$ref {reference!r} leads only back to itself")
        found = _product(found, alternatives(document.at(reference), document, (*seen, reference)), document)
    for part in schema.get("allOf", ()):
        found = _product(found, alternatives(part, document, seen), document)
    if "anyOf" in schema:
        options = [option for part in schema["anyOf"] for option in alternatives(part, document, seen)]
        found = _product(found, options, document)
    if "oneOf" in schema:
        groups = [alternatives(part, document, seen) for part in schema["oneOf"]]
        options = [dict(option) for group in groups for option in group]
        if not are_disjoint(groups, document):
            for option in options:
                drop(option, "oneOf", "the options may overlap; what fits more than one is not kept out")
        found = _product(found, options, document)
    return found


def _product(left: list[Plain], right: list[Plain], document: Document) -> list[Plain]:
    if len(left) * len(right) > ALTERNATIVES_MAX:
        raise GrammarError(f"allOf and anyOf multiply to more than {ALTERNATIVES_MAX} alternatives: write them out")
    merged = [merge(one, other, document) for one in left for other in right]
    return [plain for plain in merged if plain is not None]


def are_disjoint(groups: list[list[Plain]], document: Document) -> bool:
    """Return whether no value can fit two of the groups, as far as types, constants, bounds and tags can prove it."""
    return not any(
        _may_meet(one, other, document, 3)
        for index, group in enumerate(groups)
        for later in groups[index + 1 :]
        for one in group
        for other in later
    )


def _may_meet(one: Plain, other: Plain, document: Document, depth: int) -> bool:
    merged = merge(one, other, document)
    if merged is None or merged.get("type") == [] or merged.get("enum") == []:
        return False
    if merged.get("minimum", -math.inf) > merged.get("maximum", math.inf):
        return False
    if depth and merged.get("type") == ["object"]:
        for key in merged.get("required", ()):
            member = merged.get("properties", {}).get(key, True)
            if not _possible(member, document, depth - 1):
                return False
    return True


def _possible(schema: Any, document: Document, depth: int) -> bool:
    try:
        options = alternatives(schema, document)
    except GrammarError:
        return True
    return any(_may_meet(option, {}, document, depth) for option in options)


# --- two that must hold together -----------------------------------------------------------------------------------

_GREATER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_LESSER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
_OBJECT = ("properties", "additionalProperties", "patternProperties", "unevaluatedProperties")
_ARRAY = ("prefixItems", "items", "unevaluatedItems")


def merge(one: Plain, other: Plain, document: Document) -> Plain | None:
    """Return what fits both, or None if nothing does."""
    if not one or not other:
        return dict(one or other)
    merged: Plain = {}
    for key in {**one, **other}:
        if key in _OBJECT or key in _ARRAY:
            continue
        if key in one and key in other:
            _merge_keyword(key, one[key], other[key], merged)
        else:
            merged[key] = one[key] if key in one else other[key]
    _merge_objects(one, other, merged)
    _merge_arrays(one, other, merged)
    if merged.get("type") == []:
        return None
    if "enum" in merged:
        rest = {key: value for key, value in merged.items() if key != "enum"}
        merged["enum"] = [value for value in merged["enum"] if admits(rest, value, document)]
        if not merged["enum"]:
            return None
    return merged


def _merge_keyword(key: str, one: Any, other: Any, merged: Plain) -> None:
    if key in _BOTH:
        merged[key] = _BOTH[key](one, other)
    elif one == other:
        merged[key] = one
    elif key == "multipleOf" and isinstance(one, int) and isinstance(other, int):
        merged[key] = math.lcm(one, other)
    else:
        merged[key] = one
        drop(merged, key, f"{one!r} and {other!r} must both hold; only the first is kept")


def _common_types(one: list[str], other: list[str]) -> list[str]:
    common = []
    for name in dict.fromkeys([*one, *other]):
        if all(name in names or (name == "integer" and "number" in names) for names in (one, other)):
            common.append(name)
    return common


def _common_constants(one: list[Any], other: list[Any]) -> list[Any]:
    return [value for value in one if any(same_json(value, option) for option in other)]


def _either_list(one: list[Any], other: list[Any]) -> list[Any]:
    return [*one, *(each for each in other if each not in one)]


_BOTH: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(_GREATER, max),
    **dict.fromkeys(_LESSER, min),
    "type": _common_types,
    "enum": _common_constants,
    "required": _either_list,
    "uniqueItems": operator.or_,
    DROPPED: _either_list,
}
"""Keywords of which two that meet can be said as one."""


def both(one: Any, other: Any) -> Any:
    """Return a schema for what fits both."""
    if one is False or other is False:
        return False
    if one is True or one == {}:
        return other
    if other is True or other == {} or one == other:
        return one
    return {"allOf": [one, other]}


def _merge_objects(one: Plain, other: Plain, merged: Plain) -> None:
    if not any(key in plain for plain in (one, other) for key in _OBJECT):
        return
    keys = list(dict.fromkeys([*one.get("properties", {}), *other.get("properties", {})]))
    if keys:
        merged["properties"] = {key: both(_member(one, key), _member(other, key)) for key in keys}
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if keyword in one or keyword in other:
            merged[keyword] = both(one.get(keyword, True), other.get(keyword, True))
    patterns = one.get("patternProperties", {}), other.get("patternProperties", {})
    if any(patterns):
        names = list(dict.fromkeys([*patterns[0], *patterns[1]]))
        merged["patternProperties"] = {n: both(patterns[0].get(n, True), patterns[1].get(n, True)) for n in names}
        if False in (one.get("additionalProperties"), other.get("additionalProperties")) and not all(patterns):
            drop(
                merged,
                "additionalProperties",
                "patternProperties of one part and a closed other part are not told apart",
            )


def _member(plain: Plain, key: str) -> Any:
    schema: Any = True
    for part in member_schemas(plain, key):
        schema = both(schema, part)
    return schema


def _merge_arrays(one: Plain, other: Plain, merged: Plain) -> None:
    if not any(key in plain for plain in (one, other) for key in _ARRAY):
        return
    count = max(len(one.get("prefixItems", ())), len(other.get("prefixItems", ())))
    if count:
        merged["prefixItems"] = [both(_place(one, index), _place(other, index)) for index in range(count)]
    for keyword in ("items", "unevaluatedItems"):
        if keyword in one or keyword in other:
            merged[keyword] = both(one.get(keyword, True), other.get(keyword, True))


def _place(plain: Plain, index: int) -> Any:
    places = plain.get("prefixItems", ())
    return places[index] if index < len(places) else plain.get("items", True)
