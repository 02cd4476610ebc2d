"""A JSON Schema to one that every grammar engine can hold, with a written report of each difference.

A *relaxation* accepts more than the original; the typed decode afterwards has the last word on it. A
*restriction* accepts less: a spelling or a size that is never written. What cannot be held at all is a
`GrammarError` naming tool, field and reason.

The lowered schema is made of nothing but these, so an engine need know no more:

    {}                                           any JSON value
    {"enum": [...]}                              constants
    {"type": "null"} {"type": "boolean"}
    {"type": "integer", minimum, maximum}        both always there; multipleOf may be
    {"type": "number"}                           minimum, maximum, exclusiveMinimum, exclusiveMaximum may be
    {"type": "string"}                           minLength, maxLength, and a pattern from ^ to $ may be
    {"type": "array", items}                     prefixItems, minItems, maxItems may be; items may be false
    {"type": "object", properties, required, additionalProperties}   false, or the schema of every other member
    {"type": "object", additionalProperties}     a map; minProperties, maxProperties may be
    {"type": "object", patternProperties, additionalProperties: false}  a map whose keys are of one pattern
    {"anyOf": [...]} and {"$ref": "#/$defs/NAME"}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from edgeagent.errors import GrammarError
from edgeagent.shape.lowering.containers import anything, array, object_of
from edgeagent.shape.lowering.possible import any_of, possible_names, pruned, reached_names
from edgeagent.shape.lowering.scalars import INTEGER_MAX, constants, integer, number
from edgeagent.shape.lowering.texts import string
from edgeagent.shape.lowering.work import NEVER, Relaxation, Restriction, Work
from edgeagent.shape.merge import COMBINERS, DROPPED, Plain, alternatives, are_disjoint, is_note
from edgeagent.shape.parse import DEPTH_MAX

__all__ = ["INTEGER_MAX", "Lowered", "Relaxation", "Restriction", "lower"]

# Different places of one schema: a grammar larger than that is a mistake, and takes seconds.
PLACES_MAX = 5_000


class Lowered(Struct, frozen=True):
    """A schema that an engine can hold, and how it differs from the original."""

    schema: dict[str, Any]
    relaxations: tuple[Relaxation, ...]
    restrictions: tuple[Restriction, ...]


def lower(
    schema: Mapping[str, Any] | bool,
    *,
    where: str = "",
    string_max: int | None = None,
    narrowed: Mapping[str, Any] | None = None,
) -> Lowered:
    """Return the schema as an engine can hold it.

    `string_max` bounds every string that has no bound of its own, in characters. `narrowed` gives, by argument name
    (`a.b` for one inside another), a further schema that must hold too. Raises `GrammarError` naming `where`, the
    field and the reason.
    """
    work = _Lowering(schema, string_max)
    try:
        lowered = work.place(_narrow(schema, narrowed or {}), "")
        return work.finished(lowered)
    except GrammarError as error:
        raise GrammarError(_placed(where, work.path, str(error))) from None
    except RecursionError:
        raise GrammarError(_placed(where, "", "nested too deep to be held")) from None
    except (TypeError, AttributeError, KeyError, ValueError) as error:
        raise GrammarError(_placed(where, work.path, f"not a well-formed JSON Schema: {error}")) from None


def _placed(where: str, path: str, reason: str) -> str:
    place = ", ".join(part for part in (f"tool {where}" if where else "", f"field {path}" if path else "") if part)
    return f"{place}: {reason}" if place else reason


def _narrow(schema: Any, narrowed: Mapping[str, Any]) -> Any:
    parts = [schema]
    for name, fragment in narrowed.items():
        inner = fragment
        for key in reversed(name.split(".")):
            inner = {"properties": {key: inner}}
        parts.append(inner)
    return {"allOf": parts} if len(parts) > 1 else schema


_KEYWORDS = {
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "string": {"minLength", "maxLength", "pattern", "format"},
    "array": {
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "unevaluatedItems",
    },
    "object": {
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedProperties",
    },
}
_UNCHECKED = {
    "not": "what a schema excludes",
    "if": "conditions between members",
    "then": "",
    "else": "",
    "contains": "what some item must be",
    "dependentRequired": "conditions between members",
    "dependentSchemas": "conditions between members",
    "unevaluatedItems": "what other keywords left over",
}


class _Lowering(Work):
    """One schema on its way: which kind each place is of, and the definitions that recursion needs."""

    def __init__(self, root: Any, string_max: int | None) -> None:
        super().__init__(root, string_max)
        self._names: dict[str, str] = {}  # A reference or a whole schema -> its definition.
        self._open: set[str] = set()
        self._places = 0

    def finished(self, lowered: Any) -> Lowered:
        possible = possible_names(self.definitions)
        self.path = ""
        schema = pruned(lowered, possible)
        if schema is NEVER:
            raise GrammarError("no value fits: its parts contradict each other, or it contains itself without end")
        definitions = {name: pruned(part, possible) for name, part in self.definitions.items() if name in possible}
        reached = reached_names(schema, definitions)
        kept = {name: part for name, part in definitions.items() if name in reached}
        whole = {**schema, "$defs": kept} if kept else schema
        return Lowered(whole, tuple(self.relaxations), tuple(self.restrictions))

    # --- where to go -----------------------------------------------------------------------------------------------

    def place(self, schema: Any, path: str) -> Any:
        """Return the lowered schema of one place, or NEVER."""
        self.path = path
        self._places += 1
        if self._places > PLACES_MAX:
            raise GrammarError(f"more than {PLACES_MAX} places: too large for a grammar")
        if isinstance(schema, bool):
            return anything(self) if schema else NEVER
        if not isinstance(schema, Mapping):
            raise GrammarError(f"{schema!r} is no schema")
        told = [key for key in schema if not is_note(key)]
        if told == ["$ref"]:
            return self._definition("ref:" + schema["$ref"], schema["$ref"], self.document.at(schema["$ref"]), path)
        if told in (["anyOf"], ["oneOf"]):
            return self._options(told[0], schema[told[0]], path)
        if not COMBINERS.isdisjoint(told):
            # A merged schema may come round to itself; its text tells.
            key = "all:" + msgspec.json.encode(schema, order="sorted").decode()
            return self._definition(key, "part", schema, path, merged=True)
        return self._plain_options(schema, path)

    def _definition(self, key: str, name: str, schema: Any, path: str, merged: bool = False) -> Any:
        if key not in self._names:
            self._names[key] = unique = self._unused(name)
            self._open.add(key)
            lowered = self._plain_options(schema, path) if merged else self.place(schema, path)
            self._open.discard(key)
            if unique not in self.definitions and merged:
                self._names.pop(key)
                return lowered  # Nothing referred to it while it was open: no name needed.
            self.definitions[unique] = lowered
        elif key in self._open:
            self.definitions.setdefault(self._names[key], None)
            self.relax(path, "depth", f"a grammar does not count levels; more than {DEPTH_MAX} are refused when read")
        return {"$ref": f"#/$defs/{self._names[key]}"}

    def _unused(self, reference: str) -> str:
        words = "".join(char if char.isascii() and char.isalnum() else "-" for char in reference.split("/")[-1])
        name, count = words.strip("-") or "root", 1
        base = name
        taken = set(self._names.values())
        while name in taken:
            count += 1
            name = f"{base}-{count}"
        return name

    def _options(self, keyword: str, parts: list[Any], path: str) -> Any:
        if keyword == "oneOf" and not are_disjoint(
            [alternatives(part, self.document) for part in parts], self.document
        ):
            self.relax(path, "oneOf", "the options may overlap; what fits more than one is not kept out")
        return any_of([self.place(part, path) for part in parts])

    def _plain_options(self, schema: Any, path: str) -> Any:
        return any_of([self._plain(plain, path) for plain in alternatives(schema, self.document)])

    def _plain(self, plain: Plain, path: str) -> Any:
        for keyword, reason in plain.pop(DROPPED, ()):
            self.relax(path, keyword, reason)
        if "x-decoder" in plain:
            self.relax(path, "x-decoder", f"only the decoder checks this: {plain.pop('x-decoder')}")
        if "enum" in plain:
            return constants(self, plain, path)
        self._unchecked(plain, path)
        types = plain.get("type") or self._types_meant(plain, path)
        if types is None:
            return anything(self)
        types = [name for name in types if not (name == "integer" and "number" in types)]
        return any_of([self._typed(name, plain, path) for name in types])

    def _unchecked(self, plain: Plain, path: str) -> None:
        for keyword, what in _UNCHECKED.items():
            inside = plain.pop(keyword, None)
            if inside is None:
                continue
            self.document.check_references(inside)  # The decoder's side will follow them.
            if what:
                self.relax(path, keyword, f"a grammar cannot say {what}")
        known = {"type", *(keyword for group in _KEYWORDS.values() for keyword in group)}
        for keyword in [key for key in plain if key not in known]:
            del plain[keyword]
            self.relax(path, keyword, "not a keyword of JSON Schema 2020-12 that we know")

    def _types_meant(self, plain: Plain, path: str) -> list[str] | None:
        meant = [name for name, keywords in _KEYWORDS.items() if not keywords.isdisjoint(plain)]
        if not meant:
            return None
        self.restrict(path, "type", f"no type is given: only {' or '.join(meant)} is written")
        return meant

    def _typed(self, name: str, plain: Plain, path: str) -> Any:
        self.path = path
        if name in ("null", "boolean"):
            return {"type": name}
        if name not in _KINDS:
            raise GrammarError(f"{name!r} is no type of JSON Schema")
        return _KINDS[name](self, plain, path)


_KINDS: dict[str, Callable[[Work, Plain, str], Any]] = {
    "integer": integer,
    "number": number,
    "string": string,
    "array": array,
    "object": object_of,
}
