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

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

import msgspec
from msgspec import Struct

from edgeagent.errors import GrammarError
from edgeagent.shape import formats, pattern
from edgeagent.shape.admits import admits, member_schemas
from edgeagent.shape.decode import matches, same_json
from edgeagent.shape.merge import COMBINERS, DROPPED, Plain, alternatives, are_disjoint, both, is_note
from edgeagent.shape.parse import DEPTH_MAX
from edgeagent.shape.pointer import Document

# What a bound may be: llguidance reads bounds as doubles, and this is the last double below 2^63.
INTEGER_MAX = 2**63 - 1024
# llguidance reads decimals by multiplying with powers of ten: exact only for so many digits and places.
DIGITS_EXACT = 15
PLACES_EXACT = 20
# Beyond it llguidance cannot make a range of floats.
FLOAT_MAX = 1e18
# Different places of one schema: a grammar larger than that is a mistake, and takes seconds.
PLACES_MAX = 5_000
# Multiples between two bounds that are written out one by one.
MULTIPLES_MAX = 1_024
# Lengths up to which it is worked out whether a pattern has a text of that length.
LENGTHS_TRIED_MAX = 2_000

NEVER: Any = False


class Relaxation(Struct, frozen=True, order=True):
    """Where the lowered schema accepts more than the original."""

    path: str
    keyword: str
    reason: str


class Restriction(Struct, frozen=True, order=True):
    """Where the lowered schema accepts less than the original."""

    path: str
    keyword: str
    reason: str


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
    work = _Lowering(schema, where, string_max)
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
    "string": {"minLength", "maxLength", "pattern", "format", "contentEncoding"},
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


class _Lowering:
    """One schema on its way: the report so far, and the definitions that recursion needs."""

    def __init__(self, root: Any, where: str, string_max: int | None) -> None:
        self.document = Document(root)
        self.where = where
        self.string_max = string_max
        self.path = ""  # Where an error is, should one come.
        self.definitions: dict[str, Any] = {}
        self._names: dict[str, str] = {}  # A reference or a whole schema -> its definition.
        self._open: set[str] = set()
        self._relaxations: dict[Relaxation, None] = {}
        self._restrictions: dict[Restriction, None] = {}
        self._places = 0

    def relax(self, path: str, keyword: str, reason: str) -> None:
        self._relaxations[Relaxation(path, keyword, reason)] = None

    def restrict(self, path: str, keyword: str, reason: str) -> None:
        self._restrictions[Restriction(path, keyword, reason)] = None

    def refuse(self, path: str, reason: str) -> GrammarError:
        self.path = path
        return GrammarError(reason)

    def finished(self, lowered: Any) -> Lowered:
        possible = _possible_names(self.definitions)
        self.path = ""
        schema = _pruned(lowered, possible)
        if schema is NEVER:
            raise GrammarError("no value fits: its parts contradict each other, or it contains itself without end")
        definitions = {name: _pruned(part, possible) for name, part in self.definitions.items() if name in possible}
        reached = _reached(schema, definitions)
        kept = {name: part for name, part in definitions.items() if name in reached}
        whole = {**schema, "$defs": kept} if kept else schema
        return Lowered(whole, tuple(self._relaxations), tuple(self._restrictions))

    # --- where to go -----------------------------------------------------------------------------------------------

    def place(self, schema: Any, path: str) -> Any:
        """Return the lowered schema of one place, or NEVER."""
        self.path = path
        self._places += 1
        if self._places > PLACES_MAX:
            raise GrammarError(f"more than {PLACES_MAX} places: too large for a grammar")
        if isinstance(schema, bool):
            return self._anything() if schema else NEVER
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
        return _any_of([self.place(part, path) for part in parts])

    def _plain_options(self, schema: Any, path: str) -> Any:
        return _any_of([self._plain(plain, path) for plain in alternatives(schema, self.document)])

    def _plain(self, plain: Plain, path: str) -> Any:
        for keyword, reason in plain.pop(DROPPED, ()):
            self.relax(path, keyword, reason)
        if "x-decoder" in plain:
            self.relax(path, "x-decoder", f"only the decoder checks this: {plain.pop('x-decoder')}")
        if "enum" in plain:
            return self._constants(plain, path)
        self._unchecked(plain, path)
        types = plain.get("type") or self._types_meant(plain, path)
        if types is None:
            return self._anything()
        types = [name for name in types if not (name == "integer" and "number" in types)]
        return _any_of([self._typed(name, plain, path) for name in types])

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
        match name:
            case "null" | "boolean":
                return {"type": name}
            case "integer":
                return self._integer(plain, path)
            case "number":
                return self._number(plain, path)
            case "string":
                return self._string(plain, path)
            case "array":
                return self._array(plain, path)
            case "object":
                return self._object(plain, path)
        raise GrammarError(f"{name!r} is no type of JSON Schema")

    # --- scalars ---------------------------------------------------------------------------------------------------

    def _constants(self, plain: Plain, path: str) -> Any:
        rest = {key: value for key, value in plain.items() if key != "enum"}
        options: list[Any] = []
        texts: set[str] = set()  # Words of a user are up to 2,000 constants: too many to compare each with each.
        for value in plain["enum"]:
            known = value in texts if isinstance(value, str) else any(same_json(value, option) for option in options)
            if not known and admits(rest, value, self.document):
                options.append(self._constant(value, path))
                texts.update((value,) if isinstance(value, str) else ())
        return {"enum": options} if options else NEVER

    def _constant(self, value: Any, path: str) -> Any:
        if isinstance(value, float) and value.is_integer():
            return self._constant(int(value), path)
        if (
            isinstance(value, int)
            and not isinstance(value, bool)
            and (abs(value) > INTEGER_MAX or float(value) != value)
        ):
            raise self.refuse(path, f"the constant {value} has more digits than a double: write it as a string")
        if isinstance(value, float) and _inward(value, ROUND_CEILING) != value:
            raise self.refuse(path, f"the constant {value} has more digits than engines read: write it as a string")
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError:
                raise self.refuse(path, f"the constant {value!a} holds half of a surrogate pair") from None
        if isinstance(value, list):
            return [self._constant(item, path) for item in value]
        if isinstance(value, dict):
            return {key: self._constant(item, path) for key, item in value.items()}
        return value

    def _integer(self, plain: Plain, path: str) -> Any:
        low, high = plain.get("minimum", -math.inf), plain.get("maximum", math.inf)
        low = math.ceil(low) if math.isfinite(low) else low
        high = math.floor(high) if math.isfinite(high) else high
        if "exclusiveMinimum" in plain:
            low = max(low, math.floor(plain["exclusiveMinimum"]) + 1)
        if "exclusiveMaximum" in plain:
            high = min(high, math.ceil(plain["exclusiveMaximum"]) - 1)
        least, most = _as_double(max(low, -INTEGER_MAX), up=True), _as_double(min(high, INTEGER_MAX), up=False)
        if (least, most) != (low, high):
            self.restrict(path, "integer", f"only {least} to {most} is written")
        step = None if "multipleOf" not in plain else Fraction(Decimal(repr(plain["multipleOf"]))).numerator
        if least > most or (step and -(-least // step) * step > most):
            return NEVER
        return {
            "type": "integer",
            "minimum": least,
            "maximum": most,
            **({"multipleOf": step} if step not in (None, 1) else {}),
        }

    def _number(self, plain: Plain, path: str) -> Any:
        step = plain.get("multipleOf")
        if step is not None and step == int(step):
            return self._integer(plain, path)  # Its multiples are whole; they are written so.
        if step is not None:
            multiples = _multiples(plain, step)
            if multiples is not None:
                return self._constants({**plain, "enum": multiples}, path)
            self.relax(path, "multipleOf", f"a grammar does not count in steps of {step}")
        bounds = {key: plain[key] for key in _KEYWORDS["number"] if key in plain and key != "multipleOf"}
        for key in [key for key, bound in bounds.items() if abs(bound) > FLOAT_MAX]:
            del bounds[key]
            self.relax(path, key, f"bounds beyond {FLOAT_MAX:g} are left to the decoder")
        for key, bound in bounds.items():
            bounds[key] = _inward(bound, ROUND_CEILING if "inimum" in key else ROUND_FLOOR)
            if bounds[key] != bound:
                self.restrict(
                    path, key, f"held as {bounds[key]}: engines read 15 digits, and 20 places after the point"
                )
        sharper = _sharper(bounds)
        if sharper is None:
            return NEVER
        if sharper:
            self.restrict(path, "number", "written without an exponent")
            for key in sharper.keys() & {"exclusiveMinimum", "exclusiveMaximum"}:
                self.relax(path, key, "more digits than a double has may round onto the bound itself")
        else:
            self.relax(path, "number", "many digits or an exponent may leave the range of a float")
        return {"type": "number", **sharper}

    def _string(self, plain: Plain, path: str) -> Any:
        least, most = plain.get("minLength", 0), plain.get("maxLength")
        if most is not None and most < least:
            return NEVER
        if plain.get("contentEncoding") and "pattern" not in plain:
            self.relax(path, "contentEncoding", "a grammar does not check the encoding")
        tree = self._pattern(plain, path)
        if tree is None:
            if most is None and self.string_max is not None:
                most = max(self.string_max, least)
                self.restrict(path, "maxLength", f"at most {most} characters, for nothing else bounds it")
            return {"type": "string", **_lengths(least, most, "Length")}
        if not _some_length(tree, least, most):
            return NEVER
        within = pattern.within(tree, least, most)
        held = tree if within is None else within
        if self.string_max is not None and pattern.lengths(held)[1] is None and most is None:
            held = pattern.bounded(held, self.string_max)
            self.restrict(path, "pattern", f"each endless part at most {self.string_max} times")
        counted = {} if within is not None else _lengths(least, most, "Length")
        return {"type": "string", "pattern": pattern.anchored_regex(held), **counted}

    def _pattern(self, plain: Plain, path: str) -> pattern.Tree | None:
        """Return the one pattern that will be held; a second one beside it is reported."""
        name = plain.get("format")
        tree = None
        if "pattern" in plain:
            try:
                tree = pattern.parse(plain["pattern"])
            except pattern.PatternError as error:
                raise self.refuse(path, f"the pattern {plain['pattern']}: {error}") from None
        if name is None:
            return tree
        if name not in formats.PATTERNS:
            self.relax(path, "format", f"the format {name} is not checked")
            return tree
        if tree is not None:
            self.relax(path, "format", f"the pattern is held, the format {name} beside it is not")
            return tree
        if name in formats.NARROWED:
            self.restrict(path, "format", f"{name}: {formats.NARROWED[name]}")
        return pattern.parse(f"^(?:{formats.PATTERNS[name]})$")

    def _anything(self) -> Any:
        """Return any JSON value; with bounded strings it has to be written out."""
        self.relax(self.path, "depth", f"a grammar does not count levels; more than {DEPTH_MAX} are refused when read")
        if self.string_max is None:
            return {}
        name = "any-json"
        if name not in self.definitions:
            self.definitions[name] = None
            here = {"$ref": f"#/$defs/{name}"}
            self.definitions[name] = {
                "anyOf": [
                    {"type": "null"},
                    {"type": "boolean"},
                    {"type": "number"},
                    {"type": "string", "maxLength": self.string_max},
                    {"type": "array", "items": here},
                    self._map(here, {}, ""),
                ]
            }
        return {"$ref": f"#/$defs/{name}"}

    # --- containers ------------------------------------------------------------------------------------------------

    def _array(self, plain: Plain, path: str) -> Any:
        least, most = plain.get("minItems", 0), plain.get("maxItems")
        places = plain.get("prefixItems", [])
        if most is not None and most <= len(places):
            places, rest = places[:most], NEVER
        else:
            rest = plain.get("items", True)
        if plain.get("uniqueItems") and (most is None or most > 1):
            self.relax(path, "uniqueItems", "a grammar does not compare items")
        lowered: dict[str, Any] = {"type": "array"}
        if places:
            lowered["prefixItems"] = [self.place(part, f"{path}[{index}]") for index, part in enumerate(places)]
        lowered["items"] = self.place(rest, f"{path}[]")
        return {**lowered, **_lengths(least, most, "Items")}

    def _object(self, plain: Plain, path: str) -> Any:
        properties = dict(plain.get("properties", {}))
        required = list(dict.fromkeys(plain.get("required", ())))
        others = plain.get("additionalProperties", plain.get("unevaluatedProperties"))
        most = plain.get("maxProperties", math.inf)
        if max(len(required), plain.get("minProperties", 0)) > most:
            return NEVER
        patterns = plain.get("patternProperties", {})
        if not properties and not required and not patterns:
            return self._map_of(plain, path, True if others is None else others)
        for key in required:
            properties.setdefault(key, True)
        for key in properties:
            parts = [part for searched, part in patterns.items() if self._matches(searched, key, path)]
            if key in plain.get("properties", {}):
                parts.append(plain["properties"][key])
            elif not parts:
                parts = member_schemas({**plain, "additionalProperties": True if others is None else others}, key)
            properties[key] = _all(parts)
        if not properties:
            return self._patterned(patterns, others, plain, path)
        if patterns:
            self.restrict(path, "patternProperties", "only the declared keys are written")
        elif others is None:
            self.restrict(path, "additionalProperties", "only the declared keys are written")
        return self._members(properties, required, False if patterns or others is None else others, plain, path)

    def _matches(self, searched: str, key: str, path: str) -> bool:
        try:
            return matches(searched, key)
        except pattern.PatternError as error:
            raise self.refuse(path, f"the pattern {searched}: {error}") from None

    def _members(self, properties: dict[str, Any], required: list[str], others: Any, plain: Plain, path: str) -> Any:
        if "propertyNames" in plain:
            for key in properties:
                if not admits(plain["propertyNames"], key, self.document):
                    properties[key] = NEVER
            if others is not False:
                self.relax(path, "propertyNames", "the keys that are not declared are not checked")
        members = {key: self.place(part, _below(path, key)) for key, part in properties.items()}
        lowered_others = NEVER if others is False else self.place(others, f"{path}.*")
        if plain.get("minProperties", 0) > len(required):
            self.relax(path, "minProperties", "a grammar does not count the optional keys")
        most = plain.get("maxProperties")
        if most is not None and (most < len(properties) or others is not False):
            self.relax(path, "maxProperties", "a grammar does not count the optional keys")
        if len(properties) > 1:
            self.restrict("", "properties", "keys are written in the order in which they are declared")
        ordered = [key for key in properties if key in required]
        return {"type": "object", "properties": members, "required": ordered, "additionalProperties": lowered_others}

    def _map_of(self, plain: Plain, path: str, others: Any) -> Any:
        limits = _lengths(plain.get("minProperties", 0), plain.get("maxProperties"), "Properties")
        value = self.place(others, f"{path}.*") if others is not False else NEVER
        names = plain.get("propertyNames", True)
        self.relax(path, "keys", "a grammar does not compare keys; a duplicate is refused when the text is read")
        if names is True or names == {}:
            return self._map(value, limits, path)
        allowed = self.place(both({"type": "string"}, names), f"{path} (key)")
        return self._map_with_names(allowed, value, limits, path)

    def _map(self, value: Any, limits: dict[str, int], path: str) -> Any:
        if value is NEVER:
            return NEVER if limits.get("minProperties") else _closed()
        if self.string_max is None:
            return {"type": "object", "additionalProperties": value, **limits}
        self.restrict(path, "keys", f"keys of at most {self.string_max} characters")
        key = pattern.anchored_regex(pattern.Repeat(pattern.ANY_CHAR, 0, self.string_max))
        return {"type": "object", "patternProperties": {key: value}, "additionalProperties": False, **limits}

    def _map_with_names(self, allowed: Any, value: Any, limits: dict[str, int], path: str) -> Any:
        if allowed is NEVER or value is NEVER:
            return NEVER if limits.get("minProperties") else _closed()
        if "enum" in allowed:
            if limits.get("minProperties") or limits.get("maxProperties", len(allowed["enum"])) < len(allowed["enum"]):
                self.relax(path, "minProperties", "a grammar does not count the optional keys")
            if len(allowed["enum"]) > 1:
                self.restrict("", "properties", "keys are written in the order in which they are declared")
            members = dict.fromkeys(allowed["enum"], value)
            return {"type": "object", "properties": members, "required": [], "additionalProperties": False}
        if allowed.get("type") == "string":
            return self._map_with_pattern(allowed, value, limits, path)
        self.relax(path, "propertyNames", "the keys are one of several kinds, which a grammar does not tell apart")
        return self._map(value, limits, path)

    def _map_with_pattern(self, allowed: Any, value: Any, limits: dict[str, int], path: str) -> Any:
        searched = allowed.get("pattern")
        if searched is not None and ("minLength" in allowed or "maxLength" in allowed):
            self.relax(path, "propertyNames", "the pattern of the keys is held, their length is not")
        if searched is None:
            least, most = allowed.get("minLength", 0), allowed.get("maxLength")
            searched = pattern.anchored_regex(pattern.Repeat(pattern.ANY_CHAR, least, most))
        return {"type": "object", "patternProperties": {searched: value}, "additionalProperties": False, **limits}

    def _patterned(self, patterns: Mapping[str, Any], others: Any, plain: Plain, path: str) -> Any:
        """A map whose keys choose among patterns; one of them can be held."""
        self.relax(path, "keys", "a grammar does not compare keys; a duplicate is refused when the text is read")
        (searched, part), *more = patterns.items()
        if more:
            self.restrict(path, "patternProperties", f"only keys of the first pattern are written: {searched}")
            for other, _ in more:
                self.relax(path, "patternProperties", f"a key may match {other} too, which is not looked at")
        if others is not False:
            self.restrict(path, "additionalProperties", "only keys of the pattern are written")
        limits = _lengths(plain.get("minProperties", 0), plain.get("maxProperties"), "Properties")
        key = {"type": "string", "pattern": searched}
        names = plain.get("propertyNames", True)
        value = self.place(part, f"{path}.*")
        return self._map_with_names(self.place(both(key, names), f"{path} (key)"), value, limits, path)


def _some_length(tree: pattern.Tree, least: int, most: int | None) -> bool:
    """Return whether a text of the pattern has a length inside; a very long one is believed."""
    low, high = pattern.lengths(tree)
    if (most is not None and low > most) or (high is not None and high < least):
        return False
    end = most if most is not None else high
    if end is None or end > LENGTHS_TRIED_MAX:
        return True
    return pattern.possible_lengths(tree, end) >> least != 0


def _all(parts: list[Any]) -> Any:
    schema: Any = True
    for part in parts:
        schema = both(schema, part)
    return schema


def _closed() -> dict[str, Any]:
    return {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _as_double(number: float, *, up: bool) -> int:
    """Return the nearest integer inside the bound that a double holds exactly."""
    whole = int(number)
    near = int(float(whole))
    if up and near < whole:
        near = int(math.nextafter(float(whole), math.inf))
    if not up and near > whole:
        near = int(math.nextafter(float(whole), -math.inf))
    return near


def _inward(number: float, rounding: str) -> float:
    """Return the number with as many digits as llguidance reads exactly, rounded as told."""
    short = Context(prec=DIGITS_EXACT, rounding=rounding).create_decimal(repr(number))
    if int(short.as_tuple().exponent) < -PLACES_EXACT:
        short = short.quantize(Decimal(1).scaleb(-PLACES_EXACT), rounding=rounding)
    return number if float(short) == number else float(short)


def _multiples(plain: Plain, step: float) -> list[float] | None:
    """Return the multiples between two bounds, in the decimals they are written as; None if they are too many."""
    lows = [plain[key] for key in ("minimum", "exclusiveMinimum") if key in plain]
    highs = [plain[key] for key in ("maximum", "exclusiveMaximum") if key in plain]
    if not lows or not highs:
        return None
    exact = Fraction(Decimal(repr(step)))
    first = math.ceil(Fraction(Decimal(repr(max(lows)))) / exact)
    last = math.floor(Fraction(Decimal(repr(min(highs)))) / exact)
    if last - first >= MULTIPLES_MAX:
        return None
    return [float(count * exact) for count in range(first, last + 1)]  # An open bound is taken out by `_constants`.


def _sharper(bounds: dict[str, float]) -> dict[str, float] | None:
    """Return at most one lower and one upper bound, or None when nothing lies between."""
    low, low_open = bounds.get("minimum", -math.inf), False
    if bounds.get("exclusiveMinimum", -math.inf) >= low and "exclusiveMinimum" in bounds:
        low, low_open = bounds["exclusiveMinimum"], True
    high, high_open = bounds.get("maximum", math.inf), False
    if bounds.get("exclusiveMaximum", math.inf) <= high and "exclusiveMaximum" in bounds:
        high, high_open = bounds["exclusiveMaximum"], True
    if low > high or (low == high and (low_open or high_open)):
        return None
    kept: dict[str, float] = {}
    if math.isfinite(low):
        kept["exclusiveMinimum" if low_open else "minimum"] = low
    if math.isfinite(high):
        kept["exclusiveMaximum" if high_open else "maximum"] = high
    return kept


def _lengths(least: int, most: int | None, what: str) -> dict[str, int]:
    return {**({f"min{what}": int(least)} if least else {}), **({f"max{what}": int(most)} if most is not None else {})}


# --- what can never be ---------------------------------------------------------------------------------------------


def _any_of(options: list[Any]) -> Any:
    flat: list[Any] = []
    for option in options:
        for part in option["anyOf"] if isinstance(option, dict) and option.keys() == {"anyOf"} else [option]:
            if part is not NEVER and part not in flat:
                flat.append(part)
    if {} in flat:
        return {}
    return NEVER if not flat else flat[0] if len(flat) == 1 else {"anyOf": flat}


def _possible_names(definitions: Mapping[str, Any]) -> set[str]:
    """Return the definitions of which some finite value exists, by going round until nothing is added."""
    possible: set[str] = set()
    while True:
        found = {name for name, schema in definitions.items() if name in possible or _is_possible(schema, possible)}
        if found == possible:
            return possible
        possible = found


def _is_possible(schema: Any, possible: set[str]) -> bool:
    return _pruned(schema, possible) is not NEVER


def _pruned(schema: Any, possible: set[str]) -> Any:
    """Return the schema without the parts that no finite value can have; NEVER if nothing is left."""
    if not isinstance(schema, dict) or not schema:
        return schema
    if "$ref" in schema:
        return schema if schema["$ref"].removeprefix("#/$defs/") in possible else NEVER
    if "anyOf" in schema:
        return _any_of([_pruned(option, possible) for option in schema["anyOf"]])
    if schema.get("type") == "array":
        return _pruned_array(schema, possible)
    if schema.get("type") == "object":
        return _pruned_object(schema, possible)
    return schema


def _pruned_array(schema: dict[str, Any], possible: set[str]) -> Any:
    places: list[Any] = []
    rest = _pruned(schema["items"], possible)
    for part in schema.get("prefixItems", ()):
        place = _pruned(part, possible)
        if place is NEVER:
            rest = NEVER
            break
        places.append(place)
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    if rest is NEVER:
        most = len(places)
    if most is not None and least > most:
        return NEVER
    pruned: dict[str, Any] = {"type": "array", **({"prefixItems": places} if places else {}), "items": rest}
    if rest is not NEVER or most != len(places):
        return {**pruned, **_lengths(least, most, "Items")}
    return {**pruned, **_lengths(least, None, "Items")}


def _pruned_object(schema: dict[str, Any], possible: set[str]) -> Any:
    others = _pruned(schema["additionalProperties"], possible)
    if "patternProperties" in schema:
        ((searched, part),) = schema["patternProperties"].items()
        value = _pruned(part, possible)
        if value is NEVER:
            return NEVER if schema.get("minProperties") else _closed()
        return {**schema, "patternProperties": {searched: value}}
    if "properties" not in schema:
        if others is NEVER:
            return NEVER if schema.get("minProperties") else _closed()
        return {**schema, "additionalProperties": others}
    members: dict[str, Any] = {}
    for key, part in schema["properties"].items():
        member = _pruned(part, possible)
        if member is NEVER and key in schema["required"]:
            return NEVER
        if member is not NEVER or others is not NEVER:
            members[key] = member  # A key that must not appear has to be known where others may.
    return {**schema, "properties": members, "additionalProperties": others}


def _reached(schema: Any, definitions: Mapping[str, Any]) -> set[str]:
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
