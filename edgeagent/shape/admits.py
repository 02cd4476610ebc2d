"""Whether a JSON Schema lets a JSON value through, keyword by keyword: for constants and for foreign schemas.

Schemas that come from types have a decoder; this is for the values inside a schema (`enum`, `const`) and for
schemas that came from elsewhere, renewed by `drafts.py`. It follows 2020-12 with formats checked, and reads nothing
but the document it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from edgeagent.shape import formats, pattern
from edgeagent.shape.decode import below, fits, is_multiple, matches, same_json, shown
from edgeagent.shape.pointer import Document

Seen = set[str | int]
"""Keys and places of a value that some schema has looked at: what `unevaluated…` leaves alone."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value) and value == int(value),
    "number": _is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def admits(schema: Any, value: Any, document: Document) -> bool:
    """Return whether the schema lets the value through; references are looked up in the document."""
    return not why_not(schema, value, document)


def why_not(schema: Any, value: Any, document: Document, path: str = "") -> str:
    """Return where (below `path`) and why the schema keeps the value out, or nothing.

    A schema that asks itself about the same value (`{"not": {"$ref": "#"}}`) has no answer: nothing gets through.
    """
    try:
        return _Judge(document).why_not(schema, value, path, None)
    except RecursionError:
        return "its schema asks itself about the same value without end"


class _Judge:
    """One value before one document. `path` is for the reasons; `seen` collects for a schema around that asks."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def why_not(self, schema: Any, value: Any, path: str, seen: Seen | None) -> str:
        if isinstance(schema, bool):
            return "" if schema else f"{path or 'it'}: nothing may stand here"
        asks = isinstance(value, dict) and "unevaluatedProperties" in schema
        asks = asks or (isinstance(value, list) and "unevaluatedItems" in schema)
        own: Seen | None = set() if asks or seen is not None else None
        for reason in self._reasons(schema, value, path, own):
            return reason
        if seen is not None and own is not None:
            seen |= own
        return ""

    def _reasons(self, schema: Mapping[str, Any], value: Any, path: str, own: Seen | None) -> Iterator[str]:
        """Yield what is wrong, the cheap and the telling first; what is left over comes last."""
        yield from _of_any_type(schema, value, path)
        if isinstance(value, list):
            yield from self._array(schema, value, path, own)
        elif isinstance(value, dict):
            yield from self._object(schema, value, path, own)
        yield from self._parts(schema, value, path, own)
        if own is not None and isinstance(value, list) and "unevaluatedItems" in schema:
            left = (index for index in range(len(value)) if index not in own)
            yield from self._members(((f"{path}[{i}]", i, value[i], schema["unevaluatedItems"]) for i in left), own)
        if own is not None and isinstance(value, dict) and "unevaluatedProperties" in schema:
            keys = [key for key in value if key not in own]
            part = schema["unevaluatedProperties"]
            yield from self._members(((below(path, key), key, value[key], part) for key in keys), own)

    def _members(self, members: Any, own: Seen | None) -> Iterator[str]:
        for place, key, item, part in members:
            reason = self.why_not(part, item, place, None)
            if reason:
                yield reason
            if own is not None:
                own.add(key)

    def _parts(self, schema: Mapping[str, Any], value: Any, path: str, own: Seen | None) -> Iterator[str]:
        """Schemas about the same value."""
        if "$ref" in schema:
            yield from self._told(self.why_not(self.document.at(schema["$ref"]), value, path, own))
        for part in schema.get("allOf", ()):
            yield from self._told(self.why_not(part, value, path, own))
        if "anyOf" in schema and not self._fitting(schema["anyOf"], value, path, own, 1):
            yield self._nothing(schema["anyOf"], value, path)
        if "oneOf" in schema:
            count = self._fitting(schema["oneOf"], value, path, own, 2)
            if count != 1:
                many = f"{_at(path)}{shown(value)} fits more than one of what it must be exactly one of"
                yield many if count else self._nothing(schema["oneOf"], value, path)
        if "not" in schema and not self.why_not(schema["not"], value, path, None):
            yield f"{_at(path)}{shown(value)} is what the schema excludes"
        if "if" in schema:
            branch = "else" if self.why_not(schema["if"], value, path, own) else "then"
            yield from self._told(self.why_not(schema.get(branch, True), value, path, own))
        if isinstance(value, dict):
            for key, part in schema.get("dependentSchemas", {}).items():
                if key in value:
                    yield from self._told(self.why_not(part, value, path, own))

    def _told(self, reason: str) -> Iterator[str]:
        if reason:
            yield reason

    def _fitting(self, options: list[Any], value: Any, path: str, own: Seen | None, enough: int) -> int:
        """Return how many options fit; no more than `enough` are looked for, unless somebody asks what they saw."""
        count = 0
        for option in options:
            count += not self.why_not(option, value, path, own)
            if count >= enough and own is None:
                break
        return count

    def _nothing(self, options: list[Any], value: Any, path: str) -> str:
        reasons = (self.why_not(option, value, path, None) for option in options)
        return f"{_at(path)}nothing fits: {'; '.join(dict.fromkeys(reason for reason in reasons if reason))}"

    def _array(self, schema: Mapping[str, Any], value: list[Any], path: str, own: Seen | None) -> Iterator[str]:
        yield from _counted(schema, len(value), "Items", path)
        if schema.get("uniqueItems"):
            twice = next((a for i, a in enumerate(value) if any(same_json(a, b) for b in value[:i])), None)
            if twice is not None or value.count(None) > 1:
                yield f"{_at(path)}{shown(twice)} appears twice"
        places = schema.get("prefixItems", ())
        told = value if "items" in schema else value[: len(places)]
        rest = schema.get("items", True)
        parts = ((f"{path}[{i}]", i, each, places[i] if i < len(places) else rest) for i, each in enumerate(told))
        yield from self._members(parts, own)
        if "contains" in schema:
            found = [i for i, each in enumerate(value) if not self.why_not(schema["contains"], each, path, None)]
            least, most = schema.get("minContains", 1), schema.get("maxContains", len(value))
            if not least <= len(found) <= most:
                yield f"{_at(path)}{len(found)} items are what some must be; {least} to {most} are to be"
            if own is not None:
                own.update(found)

    def _object(self, schema: Mapping[str, Any], value: dict[str, Any], path: str, own: Seen | None) -> Iterator[str]:
        yield from _counted(schema, len(value), "Properties", path)
        for key in schema.get("required", ()):
            if key not in value:
                yield f"{below(path, key)}: missing"
        for key, needed in schema.get("dependentRequired", {}).items():
            for other in needed if key in value else ():
                if other not in value:
                    yield f"{below(path, other)}: missing; {key} is given"
        for key in value if "propertyNames" in schema else ():
            yield from self._told(self.why_not(schema["propertyNames"], key, f"{path} (key)".strip(), None))
        for key, item in value.items():
            place, parts = below(path, key), _declared(schema, key)
            if not parts and "additionalProperties" in schema:
                if schema["additionalProperties"] is False:
                    yield f"{place}: unknown key; the keys are: {', '.join(schema.get('properties', ())) or 'none'}"
                parts = [schema["additionalProperties"]]
            for part in parts:
                yield from self._told(self.why_not(part, item, place, None))
            if parts and own is not None:
                own.add(key)


def _at(path: str) -> str:
    return f"{path}: " if path else ""


def _of_any_type(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    types = schema.get("type")
    names = [types] if isinstance(types, str) else types
    # Drafts 3 and 4: 1.0 is a number only.
    is_whole = isinstance(value, float) and "x-whole" in schema
    if names and not any(_TYPES[name](value) and not (is_whole and name == "integer") for name in names):
        yield f"{_at(path)}{shown(value)} is no {' or '.join(names)}"
    if "const" in schema and not same_json(schema["const"], value):
        yield f"{_at(path)}{shown(value)} is not {shown(schema['const'])}"
    if "enum" in schema and not any(same_json(option, value) for option in schema["enum"]):
        yield f"{_at(path)}{shown(value)} is not one of {', '.join(map(shown, schema['enum'][:20]))}"
    if _is_number(value):
        yield from _number(schema, value, path)
    elif isinstance(value, str):
        yield from _string(schema, value, path)


_BOUNDS: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
    ("minimum", "below the minimum", lambda value, bound: value < bound),
    ("maximum", "above the maximum", lambda value, bound: value > bound),
    ("exclusiveMinimum", "not above the minimum", lambda value, bound: value <= bound),
    ("exclusiveMaximum", "not below the maximum", lambda value, bound: value >= bound),
    ("multipleOf", "not a multiple of", lambda value, step: not is_multiple(value, step)),
)


def _number(schema: Mapping[str, Any], value: float, path: str) -> Iterator[str]:
    for keyword, words, breaks in _BOUNDS:
        if keyword in schema and breaks(value, schema[keyword]):
            yield f"{_at(path)}{shown(value)} is {words} {schema[keyword]}"


def _string(schema: Mapping[str, Any], value: str, path: str) -> Iterator[str]:
    yield from _counted(schema, len(value), "Length", path)
    if "pattern" in schema:
        try:
            if not matches(schema["pattern"], value):
                yield f"{_at(path)}{shown(value)} does not match the pattern {schema['pattern']}"
        except pattern.PatternError as error:
            yield f"{_at(path)}the pattern {schema['pattern']}: {error}"  # Not readable: fail closed.
    name = schema.get("format")
    known = formats.PATTERNS.get(name) if isinstance(name, str) else None
    if known is not None and not fits(known, value):
        yield f"{_at(path)}{shown(value)} is not of the format {name}"


def member_schemas(schema: Mapping[str, Any], key: str) -> list[Any]:
    """Return every schema that the member of that key must fit."""
    return _declared(schema, key) or [schema.get("additionalProperties", True)]


def _declared(schema: Mapping[str, Any], key: str) -> list[Any]:
    parts = [schema["properties"][key]] if key in schema.get("properties", {}) else []
    return parts + [part for searched, part in schema.get("patternProperties", {}).items() if matches(searched, key)]


_COUNTED = {"Length": "characters", "Items": "items", "Properties": "keys"}


def _counted(schema: Mapping[str, Any], count: int, what: str, path: str) -> Iterator[str]:
    least, most = schema.get(f"min{what}", 0), schema.get(f"max{what}", count)
    if count < least:
        yield f"{_at(path)}{count} {_COUNTED[what]}, {least} is the least"
    if count > most:
        yield f"{_at(path)}{count} {_COUNTED[what]}, {most} is the most"
