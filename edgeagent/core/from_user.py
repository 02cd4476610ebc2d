"""What may stand in the arguments that must be quoted from the user, and does a call keep to it?

`narrowed` says it before the model writes, for the grammar; `why_not_quoted` afterwards, for models that have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from edgeagent.core.quoting import has_words, is_number_of, names_option, numbers_in, spans
from edgeagent.core.values import canonical_json
from edgeagent.errors import ShapeError
from edgeagent.shape.admits import admits
from edgeagent.shape.from_user import KEYWORD
from edgeagent.shape.pointer import Document

QUOTED = "x-quoted"
"""A schema with this keyword admits the spans of whole words (`core.quoting.spans`) of the texts it holds."""

Narrowed = tuple[str, str, str]

DIGITS_MAX, PLACES_MAX = 15, 12
"""Digits in all, and behind the point, of a number that a grammar lets the model quote."""

_QUOTABLE = frozenset(("string", "integer", "number"))


class Place(NamedTuple):
    """An argument (`to`, or `message.to` inside another) that must be quoted.

    `options` are the schemas of which one must hold; `many` says that they are of the items of a list. `required`
    counts every level above.
    """

    path: str
    options: tuple[Mapping[str, Any], ...]
    units: bool
    thousands: bool
    required: bool
    nullable: bool
    many: bool
    least: int


def places_of(schema: Mapping[str, Any], *, where: str) -> tuple[Place, ...]:
    """Return the marked arguments of a tool. Raises ShapeError for a mark where nothing can be quoted."""
    places = tuple(_places(schema, "", True, where))
    if sum(1 for _ in _marks(schema)) > len(places):
        raise ShapeError(
            f"tool {where}: FromUser stands at an argument, at a field of a nested record, or at a list's items; "
            "here it stands where the value cannot be found again (a recursive or shared type, a part of a union)"
        )
    return places


def _marks(schema: Any) -> Iterator[Any]:
    if isinstance(schema, Mapping):
        if KEYWORD in schema:
            yield schema[KEYWORD]
        for each in schema.values():
            yield from _marks(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _marks(each)


def _places(schema: Mapping[str, Any], path: str, required: bool, where: str) -> Iterator[Place]:
    for name, inner in schema.get("properties", {}).items():
        below = f"{path}.{name}" if path else name
        is_required = required and name in schema.get("required", ())
        place = _place(inner, below, is_required, where)
        if place is not None:
            yield place
        else:
            yield from _places(inner, below, is_required, where)


def _place(schema: Mapping[str, Any], path: str, required: bool, where: str) -> Place | None:
    many = schema.get("type") == "array" and isinstance(schema.get("items"), Mapping)
    inner = schema["items"] if many else schema
    options = [each for option in inner.get("anyOf", [inner]) for each in _of_one_type(option)]
    mark = schema.get(KEYWORD) or inner.get(KEYWORD) or _one_mark(options)
    if mark is None:
        return None
    quotable = tuple(o for o in options if o.get("type") != "null")
    for option in quotable:
        constants = _constants(option)
        if option.get("type") not in _QUOTABLE and constants is None:
            raise ShapeError(f"tool {where}, argument {path}: FromUser is for text, numbers, options and lists of them")
        if constants is not None and any(isinstance(c, bool) for c in constants):
            raise ShapeError(f"tool {where}, argument {path}: a yes or a no cannot be quoted: leave FromUser out")
    least = schema.get("minItems", 0) if many else 0
    nullable = len(quotable) < len(options)
    return Place(path, quotable, mark["units"], mark["thousands"], required, nullable, many, least)


def _of_one_type(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    types = schema.get("type")
    return [{**schema, "type": each} for each in types] if isinstance(types, list) else [schema]


def _one_mark(options: Sequence[Mapping[str, Any]]) -> Any:
    """The mark of the one option beside null, as in `Annotated[str, FromUser()] | None`."""
    others = [o for o in options if o.get("type") != "null"]
    return others[0].get(KEYWORD) if len(others) == 1 else None


def _constants(schema: Mapping[str, Any]) -> list[Any] | None:
    constants: list[Any] | None = [schema["const"]] if "const" in schema else schema.get("enum")
    return constants


# -- before the model writes ---------------------------------------------------------------------------------------


def narrowed(tool: str, places: Sequence[Place], texts: tuple[str, ...]) -> tuple[Narrowed, ...] | None:
    """Return what the texts leave of the arguments; None if a required one has nothing left."""
    found = []
    for place in places:
        fragment = _fragment(place, texts)
        if fragment is False and place.required:
            return None
        found.append((tool, place.path, canonical_json(fragment)))
    return tuple(found)


def _fragment(place: Place, texts: tuple[str, ...]) -> Any:
    options: list[Any] = [each for o in place.options if (each := _quotable(place, o, texts)) is not None]
    if place.nullable:
        options.append({"type": "null"})
    one = options[0] if len(options) == 1 else {"anyOf": options}
    if place.many:
        nothing: Any = False if place.least else {"maxItems": 0}
        return {"items": one} if options else nothing
    return one if options else False


def _quotable(place: Place, schema: Mapping[str, Any], texts: tuple[str, ...]) -> Any:
    """Return what the texts leave of one schema, or None for nothing."""
    constants = _constants(schema)
    if constants is not None:
        values = [c for c in constants if _is_named(place, c, texts)]
        return {"enum": values} if values else None
    if schema["type"] == "string":
        fits = (span for span in spans(texts) if admits(schema, span, Document(schema)))
        return {QUOTED: list(texts)} if next(fits, None) is not None else None
    found = numbers_in(texts, units=place.units, thousands=place.thousands)
    numbers = dict.fromkeys(_plain(each) for each in found if _is_short(each))
    values = [n for n in numbers if admits(schema, n, Document(schema))]
    return {"enum": values} if values else None


def _is_short(number: Decimal) -> bool:
    """Whether every engine reads the number exactly: a double would change a longer one."""
    _, digits, exponent = number.as_tuple()
    return len(digits) + max(0, int(exponent)) <= DIGITS_MAX and -int(exponent) <= PLACES_MAX


def _plain(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


# -- afterwards ----------------------------------------------------------------------------------------------------


def why_not_quoted(places: Sequence[Place], arguments: Mapping[str, Any], texts: tuple[str, ...]) -> str:
    """Return which argument, as it was written, the user did not say; or nothing."""
    for place in places:
        for value in _values(place, arguments):
            if not (value is None and place.nullable) and not _is_quoted(place, value, texts):
                return f"{place.path}: {canonical_json(value)} is not quoted from what the user said"
    return ""


def _values(place: Place, arguments: Mapping[str, Any]) -> list[Any]:
    value: Any = arguments
    for name in place.path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return []  # Left out: the author's own default stands.
        value = value[name]
    return value if place.many and isinstance(value, list) else [value]


def _is_quoted(place: Place, value: Any, texts: tuple[str, ...]) -> bool:
    return any(_is_quoted_as(place, option, value, texts) for option in place.options)


def _is_quoted_as(place: Place, schema: Mapping[str, Any], value: Any, texts: tuple[str, ...]) -> bool:
    if not admits(schema, value, Document(schema)):
        return False
    if _constants(schema) is not None:
        return _is_named(place, value, texts)
    if isinstance(value, str):
        return has_words(value, texts)
    return is_number_of(value, texts, units=place.units, thousands=place.thousands)


def _is_named(place: Place, constant: Any, texts: tuple[str, ...]) -> bool:
    match constant:
        case None:
            return True
        case str():
            return names_option(constant, texts)
        case _:
            return is_number_of(constant, texts, units=place.units, thousands=place.thousands)
