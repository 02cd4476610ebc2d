"""Generated types, and JSON values that fit them or just miss: the material of the property tests."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import ipaddress
import itertools
import pathlib
import re
import string
import uuid
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict

import msgspec
from hypothesis import strategies as st
from msgspec import Meta

from edgeagent.shape import formats, nodes
from edgeagent.shape.types import Shape

_count = itertools.count()
PATTERNS = [
    "^[a-z]+$",
    "^\\d{2,4}$",
    "a|b",
    "^x",
    "y$",
    "^(?:ab){1,3}$",
    '^[^a-c"\\\\]{0,5}$',
    "^é.[ü-ÿ]$",
    "^\\w+-\\d$",
]
KEYS = st.sampled_from(["a", "b", "c", "temp", "mode", "a b", 'q"', "é", "x/y", "if"])
NAMES = st.sampled_from(["a", "b", "c", "temp", "mode", "seconds", "é"])


class Colour(enum.Enum):
    """Named values that are strings."""

    RED = "red"
    BLUE = "bl\\ue"


class Level(enum.IntEnum):
    """Named values that are numbers."""

    LOW = -1
    HIGH = 10


class Pair(NamedTuple):
    """A record written as a NamedTuple."""

    left: int
    right: str = "none"


class Chain(msgspec.Struct):
    """A type that contains itself."""

    value: int
    next: Chain | None = None


@dataclasses.dataclass(frozen=True)
class Tree:
    """A type that contains itself in a list."""

    name: Annotated[str, Meta(max_length=4)]
    below: list[Tree] = dataclasses.field(default_factory=list)


class Options(TypedDict):
    """A record written as a TypedDict."""

    on: bool
    note: NotRequired[str]


class Circle(msgspec.Struct, tag="circle"):
    """One of two tagged records."""

    radius: Annotated[float, Meta(gt=0)]


class Square(msgspec.Struct, tag="square"):
    """One of two tagged records."""

    side: Annotated[int, Meta(ge=1, le=9)]


CODED = [
    bytes,
    decimal.Decimal,
    datetime.datetime,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    uuid.UUID,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    pathlib.Path,
]
HASHABLE = [int, str, bool, Colour, Level, Literal["a", 1, None], datetime.date, tuple[int, str]]


@st.composite
def integers(draw: st.DrawFn) -> Any:
    """Integers with none, one or both bounds, of any size a double holds."""
    edge = st.one_of(st.integers(-20, 20), st.integers(-(10**6), 10**6), st.integers(-(2**53), 2**53))
    low, high = draw(st.none() | edge), draw(st.none() | edge)
    if low is not None and high is not None and low > high:
        low, high = high, low
    step = draw(st.sampled_from([None, None, None, 1, 2, 5, 7]))
    if step and low is not None and high is not None and high - low < step:
        step = None
    return Annotated[int, Meta(ge=low, le=high, multiple_of=step)]


@st.composite
def numbers(draw: st.DrawFn) -> Any:
    """Numbers with none, one or both bounds, open or closed."""
    edge = st.one_of(st.integers(-50, 50), st.sampled_from([-2.5, 0.1, 0.25, 1e-3, 99.99, 1e6, -1e6, 20.5]))
    low, high = draw(st.none() | edge), draw(st.none() | edge)
    if low is not None and high is not None:
        low, high = min(low, high), max(low, high) + (low == high)
    bounds: dict[str, Any] = {}
    if low is not None:
        bounds[draw(st.sampled_from(["gt", "ge"]))] = low
    if high is not None:
        bounds[draw(st.sampled_from(["lt", "le"]))] = high
    return Annotated[float, Meta(**bounds)] if bounds else float


@st.composite
def strings(draw: st.DrawFn) -> Any:
    """Strings with lengths, a pattern or a format."""
    kind = draw(st.sampled_from(["plain", "length", "pattern", "format"]))
    if kind == "pattern":
        return Annotated[str, Meta(pattern=draw(st.sampled_from(PATTERNS)))]
    if kind == "format":
        return Annotated[str, Meta(extra_json_schema={"format": draw(st.sampled_from(sorted(formats.PATTERNS)))})]
    if kind == "length":
        least = draw(st.integers(0, 4))
        return Annotated[str, Meta(min_length=least, max_length=least + draw(st.integers(0, 5)))]
    return str


@st.composite
def records(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> Any:
    """Dataclasses and Structs with up to four members, some with defaults."""
    names = draw(st.lists(NAMES, min_size=0, max_size=4, unique=True))
    needed = [(name, draw(inner)) for name in names]
    optional = draw(st.integers(0, len(needed)))
    members: list[Any] = list(needed[: len(needed) - optional])
    members += [(name, Optional[kind], None) for name, kind in needed[len(needed) - optional :]]  # noqa: UP045  (a | needs types, not Literal)
    title = f"Generated{next(_count)}"
    if draw(st.booleans()):
        return msgspec.defstruct(title, members)
    return dataclasses.make_dataclass(
        title, [m if len(m) == 2 else (m[0], m[1], dataclasses.field(default=None)) for m in members]
    )


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda kind: list[kind]),  # type: ignore[valid-type]
        st.tuples(inner, st.integers(0, 2), st.integers(0, 3)).map(
            lambda drawn: Annotated[list[drawn[0]], Meta(min_length=drawn[1], max_length=drawn[1] + drawn[2])]  # type: ignore[valid-type]
        ),
        st.lists(inner, max_size=3).map(lambda kinds: tuple[tuple(kinds)]),  # type: ignore[misc]
        inner.map(lambda kind: tuple[kind, ...]),  # type: ignore[valid-type]
        st.sampled_from(HASHABLE).map(lambda kind: set[kind]),
        inner.map(lambda kind: dict[str, kind]),  # type: ignore[valid-type]
        inner.map(lambda kind: dict[Colour, kind]),  # type: ignore[valid-type]
        inner.map(lambda kind: dict[Annotated[str, Meta(pattern="^[a-c]{1,2}$")], kind]),  # type: ignore[valid-type]
        inner.map(lambda kind: Optional[kind]),  # noqa: UP045  (a | needs types, not Literal)
        st.lists(inner, min_size=2, max_size=3).map(_union),
        records(inner),
    )


def _union(kinds: list[Any]) -> Any:
    union = kinds[0]
    for kind in kinds[1:]:
        union = Optional[union] if kind is None else __import__("typing").Union[union, kind]  # noqa: UP045
    return union


LEAVES = st.one_of(
    st.just(bool),
    st.just(None),
    st.just(Any),
    integers(),
    numbers(),
    strings(),
    st.sampled_from(CODED),
    st.sampled_from([Colour, Level, Pair, Chain, Tree, Options, Circle | Square]),
    st.sampled_from([Literal["on", "off"], Literal[1, "1", True, None], Literal['quote"', "back\\slash", "tab\t"]]),
)
TYPES = st.recursive(LEAVES, _containers, max_leaves=6)

# --- values --------------------------------------------------------------------------------------------------------

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-30, 30),
    st.integers(-(2**64), 2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"], max_codepoint=0x3FFFF), max_size=6),
    st.sampled_from(["", "a", "on", "red", "2024-02-29", "1.2.3.4", "é", 1.0, 10.0, -1.0]),
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=4
)


def values(shape: Shape) -> st.SearchStrategy[Any]:
    """JSON values for a shape: most fit, some miss in one place, a few are anything."""
    fitting = _fitting(shape.node, shape.table, 3)
    return st.one_of(fitting, fitting, fitting, st.tuples(fitting, st.data()).map(_spoiled), JSON)


def _spoiled(drawn: tuple[Any, Any]) -> Any:
    value, data = drawn
    if isinstance(value, list) and value and data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(value) - 1))
        return [*value[:place], _spoiled((value[place], data)), *value[place + 1 :]]
    if isinstance(value, dict) and data.draw(st.booleans()):
        if not value:
            return {"unknown": 1}
        key = data.draw(st.sampled_from(sorted(value)))
        if data.draw(st.booleans()):
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: _spoiled((value[key], data))}
    return data.draw(JSON)


def _fitting(node: nodes.Node, table: nodes.Table, depth: int) -> st.SearchStrategy[Any]:
    match node:
        case nodes.Null():
            return st.none()
        case nodes.Boolean():
            return st.booleans()
        case nodes.Integer():
            low = -100 if node.low is None else node.low
            high = max(low, 100) if node.high is None else node.high
            return st.integers(min(low, high) - 1, high + 1) | st.integers(min(low, high), high).map(
                lambda value: value - value % (node.multiple_of or 1)
            )
        case nodes.Number():
            edges = [value for value in (node.low, node.high) if value is not None]
            near = st.sampled_from(edges or [0]) | st.integers(-60, 60) | st.floats(-1e7, 1e7)
            return near.map(lambda value: round(value, 3) if isinstance(value, float) else value)
        case nodes.Text() | nodes.Coded():
            return _fitting_text(node)
        case nodes.Choice():
            return st.sampled_from([written for written, _ in node.options])
        case nodes.Many():
            return st.lists(_below(node.item, table, depth), min_size=node.least, max_size=node.most or node.least + 3)
        case nodes.Fixed():
            return st.tuples(*(_below(item, table, depth) for item in node.items)).map(list)
        case nodes.Dictionary() if isinstance(node.key, nodes.Choice):
            optional = {written: _below(node.value, table, depth) for written, _ in node.key.options}
            return st.fixed_dictionaries({}, optional=optional).map(lambda v: {k: v[k] for k in optional if k in v})
        case nodes.Dictionary():
            key = _fitting(node.key, table, 0) if not isinstance(node.key, nodes.Text) or node.key.pattern else KEYS
            return st.dictionaries(key, _below(node.value, table, depth), max_size=3)
        case nodes.Record():
            return _fitting_record(node, table, depth)
        case nodes.Either():
            return st.one_of([_below(option, table, depth) for option in node.options])
        case nodes.Noted():
            return _fitting(node.inner, table, depth)
        case nodes.Named():
            return _fitting(table[node.name], table, depth)
    return JSON


def _below(node: nodes.Node, table: nodes.Table, depth: int) -> st.SearchStrategy[Any]:
    return _fitting(node, table, depth - 1) if depth else SCALARS


def _fitting_text(node: nodes.Text | nodes.Coded) -> st.SearchStrategy[str]:
    ascii_only = st.characters(codec="ascii", exclude_characters="\x7f") | st.sampled_from("éü☃\U0001f600")
    if isinstance(node, nodes.Coded):
        return st.from_regex(re.compile(node.coding.pattern), fullmatch=True, alphabet=ascii_only)
    if node.format is not None:
        return st.from_regex(re.compile(formats.PATTERNS[node.format]), fullmatch=True, alphabet=ascii_only)
    if node.pattern is not None:
        return st.from_regex(re.compile(node.pattern), alphabet=ascii_only)
    most = node.least + 6 if node.most is None else node.most + 1
    return st.text(st.sampled_from(string.printable + "é\U0001f600"), min_size=max(0, node.least - 1), max_size=most)


def _fitting_record(node: nodes.Record, table: nodes.Table, depth: int) -> st.SearchStrategy[Any]:
    needed: dict[str, Any] = {} if node.tag is None else {node.tag[0]: st.just(node.tag[1])}
    needed |= {field.key: _below(field.node, table, depth) for field in node.fields if field.required}
    optional = {field.key: _below(field.node, table, depth) for field in node.fields if not field.required}
    return st.fixed_dictionaries(needed, optional=optional if depth else {}).map(lambda value: _ordered(node, value))


def _ordered(node: nodes.Record, value: dict[str, Any]) -> dict[str, Any]:
    order = [] if node.tag is None else [node.tag[0]]
    return {key: value[key] for key in [*order, *(field.key for field in node.fields)] if key in value}
