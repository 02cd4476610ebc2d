"""A value of the declared type to a JSON value; what is not of the type is refused, naming the place."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, assert_never, cast

from edgeagent.errors import ShapeError
from edgeagent.shape.decode import (
    below,
    check_count,
    check_limits,
    decode,
    fits,
    foreign_of,
    json_of,
    refuse,
    resolved,
    shown,
    wrong,
)
from edgeagent.shape.nodes import (
    Anything,
    Boolean,
    Choice,
    Coded,
    Dictionary,
    Either,
    Fixed,
    Foreign,
    Integer,
    Many,
    Named,
    Node,
    Noted,
    Null,
    Number,
    Record,
    Table,
    Text,
)


def encode(node: Node, value: Any, path: str, table: Table) -> Any:
    """Return the JSON value of a typed one; raise `ShapeError` if it is not of the type."""
    match node:
        case Anything():
            return json_of(value, path)
        case Foreign():
            return foreign_of(node, value, path)
        case Null() | Boolean() | Integer() | Number() | Text():
            return _plain(node, value, path, table)
        case Coded():
            return _encode_coded(node, value, path)
        case Choice():
            return _encode_choice(node, value, path)
        case Many():
            return _encode_many(node, value, path, table)
        case Fixed():
            if not isinstance(value, tuple) or len(value) != len(node.items):
                wrong(path, value, f"a tuple of {len(node.items)}")
            pairs = zip(node.items, value, strict=True)
            return [encode(item, part, f"{path}[{index}]", table) for index, (item, part) in enumerate(pairs)]
        case Dictionary():
            return _encode_dictionary(node, value, path, table)
        case Record():
            return _encode_record(node, value, path, table)
        case Either():
            return _encode_either(node, value, path, table)
        case Noted():
            return encode(node.inner, value, path, table)
        case Named():
            return encode(table[node.name], value, path, table)
        case _:
            assert_never(node)


def _plain(node: Node, value: Any, path: str, table: Table) -> Any:
    if isinstance(node, Integer) and isinstance(value, float):
        wrong(path, value, "an int")
    return decode(node, value, path, table)


def _encode_coded(node: Coded, value: Any, path: str) -> str:
    # A datetime is a date by inheritance, but not one in meaning.
    if not isinstance(value, node.coding.python) or (
        hasattr(value, "hour") and not hasattr(node.coding.python, "hour")
    ):
        wrong(path, value, f"a {node.coding.python.__name__}")
    check_limits(node, value, path)
    text = node.coding.encode(value)
    if not fits(node.coding.pattern, text):
        refuse(path, f"{shown(text)} cannot be written as a {node.coding.format or node.coding.python.__name__}")
    return text


def _encode_choice(node: Choice, value: Any, path: str) -> Any:
    for written, python in node.options:
        if type(python) is type(value) and python == value:
            return written
    return wrong(path, value, "one of " + ", ".join(shown(python) for _, python in node.options))


def _encode_many(node: Many, value: Any, path: str, table: Table) -> list[Any]:
    if not isinstance(value, node.python) or isinstance(value, str | bytes):
        wrong(path, value, f"a {node.python.__name__}")
    items = cast(Collection[Any], value)
    check_count(len(items), node.least, node.most, "items", path)
    written = [encode(node.item, item, f"{path}[{index}]", table) for index, item in enumerate(items)]
    if isinstance(value, set | frozenset):
        written.sort(key=repr)  # A set has no order of its own; a trace needs one.
    return written


def _encode_dictionary(node: Dictionary, value: Any, path: str, table: Table) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        wrong(path, value, "a dict")
    check_count(len(value), node.least, node.most, "keys", path)
    return {
        encode(node.key, key, path, table): encode(node.value, item, below(path, str(key)), table)
        for key, item in value.items()
    }


def _encode_record(node: Record, value: Any, path: str, table: Table) -> dict[str, Any]:
    if not isinstance(value, Mapping if node.python is None else node.python):
        wrong(path, value, node.name)
    written: dict[str, Any] = {} if node.tag is None else {node.tag[0]: node.tag[1]}
    for field in node.fields:
        if isinstance(value, Mapping) and node.python is None:
            if field.name not in value and not field.required:
                continue
            if field.name not in value:
                refuse(below(path, field.key), "missing")
            member = value[field.name]
        else:
            member = getattr(value, field.name)
        written[field.key] = encode(field.node, member, below(path, field.key), table)
    return written


def _encode_either(node: Either, value: Any, path: str, table: Table) -> Any:
    reasons = []
    options = [resolved(option, table) for option in node.options]
    if isinstance(value, int):
        options.sort(key=lambda option: isinstance(option, Number))
    for option in options:
        try:
            return encode(option, value, path, table)
        except ShapeError as error:
            reasons.append(str(error))
    return refuse(path, "nothing fits: " + "; ".join(dict.fromkeys(reasons)))
