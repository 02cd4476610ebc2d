"""A JSON Schema of any draft in the one spelling of 2020-12: what follows knows no other.

The draft is what `$schema` says. Without it every spelling is understood, as far as no two mean something else. What
would be ignored, or checked by nobody, is refused by name; so is what is not well formed. References come out as JSON
Pointers into the new spelling, and `x-whole` (ours) marks an integer of drafts 3 and 4, which 1.0 is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Never

from edgeagent.errors import ShapeError
from edgeagent.shape import pattern
from edgeagent.shape.from_user import KEYWORD as FROM_USER
from edgeagent.shape.keywords import DRAFTS, KEYWORDS, TYPES, Keyword, draft_of
from edgeagent.shape.pointer import parts_of, pointer_to

WHOLE = "x-whole"
_OURS = frozenset(("x-decoder", "x-dropped", "x-quoted", WHOLE))
_NAMES = frozenset(("$schema", "id", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"))
"""Keywords that only name a schema or say how to read it."""
_OLD = frozenset(("3", "4"))
_ALONE = frozenset(("3", "4", "6", "7"))
"""Drafts in which a `$ref` makes everything beside it nothing."""

_FORMATS = {"host-name": "hostname", "ip-address": "ipv4"}
"""What draft 3 called them."""

_SPELLED_OUT: dict[bool, dict[str, Any]] = {True: {}, False: {"enum": []}}
"""Of a member, so that whoever looks at the arguments finds an object for each."""


def renewed(schema: Any) -> Any:
    """Return the schema as 2020-12 spells it. Raises ShapeError naming the place and the keyword."""
    return _Renewal(schema).place(schema, ())


class _Renewal:
    """One document on its way; places are named by the keys and numbers that lead there."""

    def __init__(self, root: Any) -> None:
        self.root = root
        said = root.get("$schema") if isinstance(root, Mapping) else None
        self.draft = draft_of(said) if isinstance(said, str) else None
        if said is not None and self.draft is None:
            _refuse((), "$schema", f"is {said!r}; known are the drafts {', '.join(DRAFTS)}")
        self.base = root.get("$id", root.get("id")) if isinstance(root, Mapping) else None
        self.anchors: dict[str, tuple[str | int, ...]] = {}
        for path, found in _schemas(root, ()):
            for name in _anchors(found):
                self.anchors.setdefault(name, path)

    def place(self, schema: Any, path: tuple[str | int, ...]) -> Any:
        """Return the schema of one place."""
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            _refuse(path, "", f"{schema!r} is no schema")
        self._check_identity(schema, path)
        told = dict(schema)
        if "$ref" in schema and self.draft in _ALONE:
            told = {key: schema[key] for key in ("$ref", "$defs", "definitions") if key in schema}
        new: dict[str, Any] = {}
        for keyword, inside in told.items():
            known = KEYWORDS.get(keyword)
            if known is not None and keyword not in _NAMES:
                self._check(keyword, known, inside, path)
                fresh = self._keyword(keyword, known, inside, schema, path)
                for twice in fresh.keys() & (told.keys() - {keyword, keyword == "additionalItems" and "items"}):
                    _refuse(path, keyword, f"stands beside {twice}, which means the same here: write one of them")
                new |= fresh
            elif known is None and keyword not in _OURS:
                new[keyword] = _mark(inside, path) if keyword == FROM_USER else inside
        return self._older(new, schema, path)

    def _check_identity(self, schema: Mapping[str, Any], path: tuple[str | int, ...]) -> None:
        """Refuse a schema within the schema: its references would mean what is in it, and from outside its own name."""
        keyword = "id" if self.draft in _OLD else "$id" if self.draft or "$id" in schema else "id"
        name = schema.get(keyword)
        if not path or not isinstance(name, str) or name.startswith("#") or name == self.base:
            return
        if "$ref" in schema and self.draft in _ALONE:
            return
        inside = (each for _, each in _schemas(schema, ()))
        if any(not each.keys().isdisjoint(("$ref", "$dynamicRef", "$recursiveRef", "$anchor")) for each in inside):
            _refuse(path, keyword, "makes a document of its own, with references in it: put it under $defs without")

    def _check(self, keyword: str, known: Keyword, inside: Any, path: tuple[str | int, ...]) -> None:
        if known.held == "refused":
            _refuse(path, keyword, f"is not kept to here{known.says and ': '}{known.says}")
        if self.draft is not None and known.held != "note" and not known.is_of(self.draft):
            _refuse(
                path, keyword, f"is no keyword of draft {self.draft}, which $schema names: name a draft that has it"
            )
        wanted, fits = _WANTED.get(known.inside, ("", None))
        if fits is not None and not fits(inside):
            _refuse(path, keyword, f"is {inside!r}; it must be {wanted}")
        if self.draft not in (None, *_OLD) and isinstance(inside, bool) and known.inside == "bound":
            _refuse(path, keyword, f"is {inside!r}; since draft 6 it must be a number")
        if self.draft not in (None, "3") and known.inside in ("names", "types") and not _is_since_4(inside):
            _refuse(path, keyword, f"is {inside!r}, as only draft 3 has it; $schema names draft {self.draft}")
        if keyword == "pattern":
            _check_pattern(inside, path, keyword)

    def _keyword(
        self, keyword: str, known: Keyword, inside: Any, schema: Mapping[str, Any], path: tuple[str | int, ...]
    ) -> dict[str, Any]:
        below = (*path, keyword)
        match known.inside:
            case "schema":
                # Beside a list of items it says what follows; beside anything else it says nothing.
                if keyword == "additionalItems":
                    return {"items": self.place(inside, below)} if isinstance(schema.get("items"), list) else {}
                return {keyword: self.place(inside, below)}
            case "schemas" | "items" if isinstance(inside, list):
                name = {"items": "prefixItems", "extends": "allOf"}.get(keyword, keyword)
                return {name: [self.place(each, (*below, index)) for index, each in enumerate(inside)]}
            case "schemas":
                return {"allOf": [self.place(inside, below)]}
            case "items":
                return {keyword: self.place(inside, below)}
            case "map" | "patterns":
                if keyword == "patternProperties":
                    for searched in inside:
                        _check_pattern(searched, path, keyword)
                parts = {name: self.place(each, (*below, name)) for name, each in inside.items()}
                return {keyword: {k: _SPELLED_OUT[v] if isinstance(v, bool) else v for k, v in parts.items()}}
            case "dependencies":
                return self._dependencies(inside, below)
            case "bound" if isinstance(inside, bool):
                # Drafts 3 and 4: the bound beside the flag is not inside any more.
                bound = schema.get("minimum" if keyword == "exclusiveMinimum" else "maximum")
                return {keyword: bound} if inside and bound is not None else {}
            case "types":
                return self._types(inside, below)
            case "names" if isinstance(inside, bool):
                return {}  # Draft 3: the object above reads it.
        if keyword == "format" and isinstance(inside, str):
            return {keyword: _FORMATS.get(inside, inside)}
        if keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            return {"$ref": self._reference(inside, path, keyword)}
        return {keyword: inside}

    def _dependencies(self, inside: Mapping[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
        needed = {k: [v] if isinstance(v, str) else v for k, v in inside.items() if isinstance(v, str | list)}
        parts = {k: self.place(v, (*path, k)) for k, v in inside.items() if not isinstance(v, str | list)}
        new = {"dependentRequired": needed} if needed else {}
        return new | ({"dependentSchemas": parts} if parts else {})

    def _types(self, inside: Any, path: tuple[str | int, ...]) -> dict[str, Any]:
        names = inside if isinstance(inside, list) else [inside]
        whole = {WHOLE: True} if self.draft in _OLD and "integer" in names else {}
        if "any" in names:
            return {}
        schemas = [self.place(each, (*path, index)) for index, each in enumerate(names) if isinstance(each, Mapping)]
        if not schemas:
            return {"type": inside, **whole}
        plain = [each for each in names if isinstance(each, str)]
        return {"anyOf": [*([{"type": plain, **whole}] if plain else []), *schemas]}

    def _older(self, new: dict[str, Any], schema: Mapping[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
        """What older spellings say of the whole place: flags of properties, null beside a type."""
        for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if schema.get(exclusive) is True and bound in new and exclusive in new:
                del new[bound]
        inside = schema.get("properties")
        for name, each in inside.items() if isinstance(inside, Mapping) and "properties" in new else ():
            if isinstance(each, Mapping) and each.get("required") is True:
                new["required"] = [*new.get("required", ()), name]
        if self.draft is None and schema.get("nullable") is True and "type" in new:
            kinds = new["type"] if isinstance(new["type"], list) else [new["type"]]
            new["type"] = list(dict.fromkeys([*kinds, "null"]))
            if "enum" in new and None not in new["enum"]:
                new["enum"] = [*new["enum"], None]
        is_apart = self.draft == "2019-09" and "unevaluatedItems" in new  # There, contains has looked at nothing.
        if is_apart and any("contains" in each for _, each in _schemas(self.root, ())):
            _refuse(path, "unevaluatedItems", "is not kept to beside contains in draft 2019-09: name draft 2020-12")
        return new

    # --- references ------------------------------------------------------------------------------------------------

    def _reference(self, reference: str, path: tuple[str | int, ...], keyword: str) -> str:
        base, _, fragment = reference.partition("#")
        if base and base != str(self.base or "").rstrip("#"):
            _refuse(path, keyword, f"{reference!r} leaves the schema: put what it names under $defs")
        parts: tuple[str | int, ...] | None = parts_of(fragment)
        if fragment and not fragment.startswith("/"):
            parts = self.anchors.get(fragment)
            if parts is None:
                _refuse(path, keyword, f"{reference!r} points at nothing: no anchor has that name")
        assert parts is not None, "a pointer has parts, if only none"
        return pointer_to(self._new_place(parts, f"{keyword} {reference!r}", path))

    def _new_place(self, parts: tuple[str | int, ...], told: str, path: tuple[str | int, ...]) -> Iterator[str]:
        """Yield the keys that lead to the same schema in the new spelling."""
        found, kind = self.root, "schema"
        for part in parts:
            step = _step(found, part)
            if step is _NOTHING:
                _refuse(path, told, f"points at nothing: there is no {part!r}")
            if kind == "schema":
                kind, new = _way(str(part), step, found)
                if not kind:
                    _refuse(path, told, f"points into {part!r}, which holds no schema: put it under $defs")
                yield from new
            else:
                if kind == "dependencies":
                    yield "dependentSchemas"
                kind = "schema"
                yield str(part)
            found = step
        if kind != "schema" or not isinstance(found, Mapping | bool):
            _refuse(path, told, "points at no schema")


_NOTHING = object()


def _step(found: Any, part: str | int) -> Any:
    if isinstance(found, Mapping):
        return found.get(str(part), _NOTHING)
    if isinstance(found, list) and str(part).isascii() and str(part).isdigit() and int(part) < len(found):
        return found[int(part)]
    return _NOTHING


def _way(key: str, inside: Any, schema: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return what stands behind a keyword (`schema`, `list`, `map`), and how it is called now."""
    known = KEYWORDS.get(key)
    if known is None:
        return "", []
    match known.inside:
        case "schema":
            return "schema", ["items" if key == "additionalItems" else key]
        case "items" | "schemas":
            name = {"items": "prefixItems", "extends": "allOf"}.get(key, key)
            if isinstance(inside, list):
                return "list", [name]
            return "schema", ["items"] if key == "items" else ["allOf", "0"]
        case "map" | "patterns":
            return "map", [key]
        case "dependencies":
            return "dependencies", []
    return "", []


def _schemas(schema: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """Yield every schema inside, and where it stands; values such as constants are none."""
    if not isinstance(schema, Mapping):
        return
    yield path, schema
    for key, inside in schema.items():
        kind, _ = _way(key, inside, schema)
        if kind == "schema":
            yield from _schemas(inside, (*path, key))
        elif kind == "list" and isinstance(inside, list):
            for index, each in enumerate(inside):
                yield from _schemas(each, (*path, key, index))
        elif kind in ("map", "dependencies") and isinstance(inside, Mapping):
            for name, each in inside.items():
                yield from _schemas(each, (*path, key, name))


def _anchors(schema: Mapping[str, Any]) -> Iterator[str]:
    for keyword in ("$anchor", "$dynamicAnchor"):
        if isinstance(schema.get(keyword), str):
            yield schema[keyword]
    for keyword in ("$id", "id"):
        if isinstance(schema.get(keyword), str) and schema[keyword].startswith("#") and len(schema[keyword]) > 1:
            yield schema[keyword][1:]


# --- what is well formed -------------------------------------------------------------------------------------------


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_type(value: Any) -> bool:
    return isinstance(value, str) and value in (*TYPES, "any")


def _are_types(value: Any) -> bool:
    if not isinstance(value, list):
        return _is_type(value)
    return bool(value) and all(_is_type(each) or isinstance(each, Mapping) for each in value)


def _is_since_4(value: Any) -> bool:
    """Return whether this is no flag of a property, no type `any` and no schema among the types."""
    return not isinstance(value, bool) and "any" not in value and not any(isinstance(each, Mapping) for each in value)


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping)


_WANTED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "text": ("a text", lambda value: isinstance(value, str)),
    "pattern": ("a text", lambda value: isinstance(value, str)),
    "flag": ("true or false", lambda value: isinstance(value, bool)),
    "count": ("a whole number, 0 or more", _is_count),
    "number": ("a number", _is_number),
    "bound": ("a number", lambda value: isinstance(value, bool) or _is_number(value)),
    "step": ("a number above 0", lambda value: _is_number(value) and value > 0),
    "types": (f"one of {', '.join(TYPES)}, or a list of them", _are_types),
    "values": ("a list", lambda value: isinstance(value, list)),
    "names": ("a list of names", lambda value: isinstance(value, bool) or _are_texts(value)),
    "needs": (
        "an object of lists of names",
        lambda value: _is_map(value) and all(_are_texts(each) for each in value.values()),
    ),
    "schemas": (
        "a list of at least one schema",
        lambda value: (isinstance(value, list) and bool(value)) or _is_map(value),
    ),
    "map": ("an object", _is_map),
    "patterns": ("an object", _is_map),
    "dependencies": ("an object", _is_map),
}


def _check_pattern(searched: str, path: tuple[str | int, ...], keyword: str) -> None:
    try:
        pattern.parse(searched)
    except pattern.PatternError as error:
        _refuse(path, keyword, f"{searched}: {error}")


def _mark(inside: Any, path: tuple[str | int, ...]) -> dict[str, bool]:
    """The mark of arguments that must be the user's own words, whole."""
    marks = {"units": False, "thousands": False}
    given = inside if isinstance(inside, Mapping) else {} if inside is True else None
    if given is None or not given.keys() <= marks.keys() or not all(isinstance(v, bool) for v in given.values()):
        _refuse(path, FROM_USER, f"is {inside!r}; it must be true, or an object of units and thousands")
    return marks | dict(given)


def _refuse(path: tuple[str | int, ...], keyword: str, reason: str) -> Never:
    steps = (str(part) for part in path if part not in ("properties", "items"))
    place = f"field {'.'.join(steps)}: " if path else ""
    raise ShapeError(f"{place}{keyword} {reason}" if keyword else f"{place}{reason}")
