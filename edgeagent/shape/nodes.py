"""What a declared type lets through: the one closed union from which schema, decoding and encoding follow.

A node says which JSON values belong to a type and how they look in Python. `schema_of` here, `decode` and
`encode` in `decode.py` each go through the same union, so a new kind of type that one of them forgets is found by
the type checker. It knows nothing of annotations: `types.py` reads those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, assert_never

from msgspec import UNSET, Struct

from edgeagent.shape import formats

# A keyword of ours: a check that only the decoder makes, as a sentence. `lower` reports it as a relaxation.
DECODER_CHECK = "x-decoder"


class Anything(Struct, frozen=True):
    """Any JSON value, as it is."""


class Foreign(Struct, frozen=True):
    """A JSON value that a schema from elsewhere lets through, as it is; `why_not` is that schema as a test.

    It gets a value and its place, and returns what is wrong, or nothing.
    """

    schema: Mapping[str, Any]
    why_not: Callable[[Any, str], str]


class Null(Struct, frozen=True):
    """Only null."""


class Boolean(Struct, frozen=True):
    """true or false; never 0 or 1."""


class Integer(Struct, frozen=True):
    """A whole number; 1.0 is one, as JSON Schema says, though no grammar of ours writes it."""

    low: int | None = None
    high: int | None = None
    multiple_of: int | None = None


class Number(Struct, frozen=True):
    """A finite number."""

    low: float | None = None
    low_open: bool = False
    high: float | None = None
    high_open: bool = False
    multiple_of: float | None = None


class Text(Struct, frozen=True):
    """A string; lengths count code points."""

    least: int = 0
    most: int | None = None
    pattern: str | None = None
    format: str | None = None


class Coding(Struct, frozen=True):
    """How a Python class is written as a string: its pattern, both ways, and a check that the pattern cannot say."""

    python: type
    pattern: str
    decode: Callable[[str], Any]
    encode: Callable[[Any], str]
    format: str | None = None
    check: str | None = None


class Coded(Struct, frozen=True):
    """A string that stands for a value of another class, with limits on that value."""

    coding: Coding
    low: Any = None
    low_open: bool = False
    high: Any = None
    high_open: bool = False
    least: int = 0
    most: int | None = None


class Choice(Struct, frozen=True):
    """One of some scalars; each JSON value beside the Python value it stands for."""

    options: tuple[tuple[Any, Any], ...]


class Many(Struct, frozen=True):
    """An array of items of one type; `build` is list, tuple, set, frozenset or deque."""

    item: Node
    build: Callable[[list[Any]], Any]
    python: type
    least: int = 0
    most: int | None = None
    unique: bool = False


class Fixed(Struct, frozen=True):
    """An array with a type for each place."""

    items: tuple[Node, ...]


class Dictionary(Struct, frozen=True):
    """An object with free keys and values of one type."""

    key: Node
    value: Node
    least: int = 0
    most: int | None = None


class Field(Struct, frozen=True):
    """One member of a record: its attribute, its key in JSON, and the keyword its class is built with."""

    name: str
    key: str
    argument: str
    node: Node
    required: bool
    default: Any = UNSET  # The JSON form, for the schema alone: an absent key is left to the class.


class Record(Struct, frozen=True):
    """An object with known keys. `python` None is a plain dict (a TypedDict, a function's arguments)."""

    name: str
    fields: tuple[Field, ...]
    build: Callable[..., Any]
    python: type | None = None
    tag: tuple[str, str | int] | None = None
    description: str | None = None
    check: str | None = None


class Either(Struct, frozen=True):
    """A value of one of the options, tried in their order (for numbers: the exact type first)."""

    options: tuple[Node, ...]


class Noted(Struct, frozen=True):
    """A node with words or keywords for the schema that change nothing about what is accepted."""

    inner: Node
    notes: Mapping[str, Any]


class Named(Struct, frozen=True):
    """A reference to a node of the table: for types that contain themselves or are used twice."""

    name: str


Node = (
    Anything
    | Foreign
    | Null
    | Boolean
    | Integer
    | Number
    | Text
    | Coded
    | Choice
    | Many
    | Fixed
    | Dictionary
    | Record
    | Either
    | Noted
    | Named
)

Table = Mapping[str, Node]


def schema_of(root: Node, table: Table, shared: frozenset[str]) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a node; the shared names it reaches stand under `$defs`, others inline."""
    used = Definitions(table, shared, {})
    schema = _schema(root, used)
    return {**schema, "$defs": used.schemas} if used.schemas else schema


class Definitions(Struct):
    """What named nodes there are, which of them are shared, and the schemas of those met so far."""

    table: Table
    shared: frozenset[str]
    schemas: dict[str, Any]


def _schema(node: Node, used: Definitions) -> dict[str, Any]:
    match node:
        case Anything():
            return {}
        case Foreign():
            return dict(node.schema)
        case Null():
            return {"type": "null"}
        case Boolean():
            return {"type": "boolean"}
        case Integer():
            bounds = {"minimum": node.low, "maximum": node.high, "multipleOf": node.multiple_of}
            return {"type": "integer", **_given(bounds)}
        case Number():
            return {"type": "number", **_number_bounds(node)}
        case Text():
            return {"type": "string", **_lengths(node.least, node.most, "Length"), **_text_keywords(node)}
        case Coded():
            return _coded_schema(node)
        case Choice():
            values = [value for value, _ in node.options]
            return {"const": values[0]} if len(values) == 1 else {"enum": values}
        case Many():
            unique = {"uniqueItems": True} if node.unique else {}
            item = _schema(node.item, used)
            return {"type": "array", "items": item, **_lengths(node.least, node.most, "Items"), **unique}
        case Fixed():
            return _fixed_schema([_schema(item, used) for item in node.items])
        case Dictionary():
            key = {k: v for k, v in _schema(node.key, used).items() if k != "type"}
            value = _schema(node.value, used)
            limits = _lengths(node.least, node.most, "Properties")
            return {
                "type": "object",
                "additionalProperties": value,
                **limits,
                **({"propertyNames": key} if key else {}),
            }
        case Record():
            return _record_schema(node, used)
        case Either():
            return {"anyOf": [_schema(option, used) for option in node.options]}
        case Noted():
            return {**_schema(node.inner, used), **node.notes}
        case Named():
            return _named_schema(node, used)
        case _:
            assert_never(node)


def _given(keywords: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in keywords.items() if value is not None}


def _lengths(least: int, most: int | None, what: str) -> dict[str, Any]:
    return _given({f"min{what}": least or None, f"max{what}": most})


def _number_bounds(node: Number) -> dict[str, Any]:
    low = "exclusiveMinimum" if node.low_open else "minimum"
    high = "exclusiveMaximum" if node.high_open else "maximum"
    return _given({low: node.low, high: node.high, "multipleOf": node.multiple_of})


def _text_keywords(node: Text) -> dict[str, Any]:
    return _given({"pattern": node.pattern, "format": node.format})


def _coded_schema(node: Coded) -> dict[str, Any]:
    coding = node.coding
    # A format whose pattern is ours says the same in fewer words.
    known = coding.format is not None and formats.PATTERNS.get(coding.format) == coding.pattern
    words: dict[str, Any] = {"format": coding.format} if known else {"pattern": f"^(?:{coding.pattern})$"}
    if coding.python is bytes:
        words["contentEncoding"] = "base64"
    check = ", ".join(part for part in (coding.check, limits_text(node)) if part)
    return {"type": "string", **words, **_given({DECODER_CHECK: check or None})}


def limits_text(node: Coded) -> str:
    """Return the limits on the decoded value as words, or nothing."""
    words = []
    if node.low is not None:
        words.append(f"{'above' if node.low_open else 'at least'} {node.low}")
    if node.high is not None:
        words.append(f"{'below' if node.high_open else 'at most'} {node.high}")
    if node.least:
        words.append(f"at least {node.least} bytes")
    if node.most is not None:
        words.append(f"at most {node.most} bytes")
    return ", ".join(words)


def _fixed_schema(items: list[dict[str, Any]]) -> dict[str, Any]:
    if not items:
        return {"type": "array", "maxItems": 0}
    count = len(items)
    return {"type": "array", "prefixItems": items, "minItems": count, "maxItems": count}


def _record_schema(node: Record, used: Definitions) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    if node.tag is not None:
        properties[node.tag[0]] = {"const": node.tag[1]}
    for field in node.fields:
        schema = _schema(field.node, used)
        properties[field.key] = schema if field.default is UNSET else {**schema, "default": field.default}
    required = [node.tag[0]] if node.tag is not None else []
    required += [field.key for field in node.fields if field.required]
    return {
        "type": "object",
        **_given({"description": node.description}),
        "properties": properties,
        "required": required,
        "additionalProperties": False,
        **_given({DECODER_CHECK: node.check}),
    }


def _named_schema(node: Named, used: Definitions) -> dict[str, Any]:
    if node.name not in used.shared:
        return _schema(used.table[node.name], used)
    if node.name not in used.schemas:
        used.schemas[node.name] = {}  # Holds the place, and the order, while the type refers to itself.
        used.schemas[node.name] = _schema(used.table[node.name], used)
    pointer = node.name.replace("~", "~0").replace("/", "~1")
    return {"$ref": f"#/$defs/{pointer}"}
