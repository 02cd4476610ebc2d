"""Every kind of annotation has a schema, decodes strictly, encodes back, or is refused by tool and field."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import ipaddress
import pathlib
import subprocess
import sys
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, TypedDict, TypeVar

import annotated_types as at
import attrs
import msgspec
import pydantic
import pytest
from msgspec import Meta

from edgeagent.errors import ShapeError
from edgeagent.shape.types import Shape, shape_of, shape_of_parameters

T = TypeVar("T")
Seconds = NewType("Seconds", int)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Chain:
    """A value and what follows it."""

    value: int
    next: Chain | None = None


class Leaf(msgspec.Struct, tag=True):
    weight: int


class Fork(msgspec.Struct, tag="fork", rename="camel"):
    left_side: Fork | Leaf
    right_side: Fork | Leaf


class Options(TypedDict):
    on: bool
    note: NotRequired[Annotated[str, "for the log"]]


class Pair(NamedTuple):
    left: int
    right: str = "none"


@attrs.define
class Probe:
    _pin: int
    names: list[str] = attrs.Factory(list)


class Setpoint(pydantic.BaseModel):
    degrees: float = pydantic.Field(gt=-40, le=85, description="Celsius")
    label: Annotated[str, pydantic.StringConstraints(pattern="^[a-z]+$", max_length=4)] = "aa"
    colour: Colour = Colour.RED


@dataclasses.dataclass
class Box(Generic[T]):
    item: T
    more: list[Box[T]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Window:
    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ValueError("end is before start")


def a_valve(
    seconds: Annotated[int, at.Interval(ge=1, le=600), at.Unit("s")],
    valve: Literal["north", "south", None, 3],
    mode: Colour = Colour.RED,
    note: Annotated[str, Meta(max_length=20, pattern="^[a-z ]*$"), "for the log"] | None = None,
) -> bool: ...


# --- the arguments of a tool ---------------------------------------------------------------------------------------


def test_the_schema_of_arguments_keeps_their_order_and_is_closed() -> None:
    assert shape_of_parameters(a_valve, where="valve").schema == {
        "type": "object",
        "properties": {
            "seconds": {"type": "integer", "minimum": 1, "maximum": 600, "x-unit": "s"},
            "valve": {"enum": ["north", "south", None, 3]},
            "mode": {"enum": ["red", "blue"], "default": "red"},
            "note": {
                "anyOf": [
                    {"type": "string", "maxLength": 20, "pattern": "^[a-z ]*$", "description": "for the log"},
                    {"type": "null"},
                ],
                "default": None,
            },
        },
        "required": ["seconds", "valve"],
        "additionalProperties": False,
    }


def test_arguments_decode_to_keyword_arguments_and_absent_ones_keep_their_defaults() -> None:
    shape = shape_of_parameters(a_valve, where="valve")
    assert shape.decode({"seconds": 7, "valve": 3, "mode": "blue"}) == {"seconds": 7, "valve": 3, "mode": Colour.BLUE}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seconds": 700, "valve": "north"}, "seconds: 700 is above the maximum 600"),
        ({"seconds": "5", "valve": "north"}, 'seconds: "5" is not an integer'),
        ({"seconds": True, "valve": "north"}, "seconds: true is not an integer"),
        ({"seconds": 5.5, "valve": "north"}, "seconds: 5.5 is not an integer"),
        ({"valve": "north"}, "seconds: missing"),
        ({"seconds": 5, "valve": "east"}, 'valve: "east" is not one of "north", "south", null, 3'),
        ({"seconds": 5, "valve": None, "x": 1}, "x: unknown key; the keys are: seconds, valve, mode, note"),
        ({"seconds": 5, "valve": None, "note": "A"}, 'note: nothing fits: note: "A" does not match the pattern'),
        ([], r"\[\] is not an object"),
    ],
)
def test_a_wrong_argument_is_refused_by_its_path(arguments: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        shape_of_parameters(a_valve, where="valve").decode(arguments)


def _star(*a: int) -> None: ...
def _double_star(**a: int) -> None: ...
def _positional(a: int, /) -> None: ...
def _untyped(a) -> None: ...  # type: ignore[no-untyped-def]  # the point of it
def _bad_default(a: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013  # the point of it
def _integer_keys(a: dict[int, str]) -> None: ...
def _predicate(a: Annotated[int, at.Predicate(bool)]) -> None: ...
def _bound_on_text(a: Annotated[str, at.Gt(3)]) -> None: ...
def _length_on_number(a: Annotated[int, at.Len(3)]) -> None: ...
def _look_ahead(a: Annotated[str, Meta(pattern="(?=a)")]) -> None: ...
def _unhashable(a: set[list[int]]) -> None: ...
def _unresolved(a: Undefined) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # the point of it
def _a_callable(a: Callable[[int], int]) -> None: ...
def _empty_range(a: Annotated[int, at.Gt(3), at.Lt(4)]) -> None: ...
def _bad_number(a: complex) -> None: ...
def _inner(a: list[Annotated[bool, at.Ge(1)]]) -> None: ...
def _only_shown(a: Annotated[int, Meta(extra_json_schema={"enum": [1]})]) -> None: ...


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_star, "argument a: .*declare each argument by name"),
        (_double_star, "argument a: .*declare each argument by name"),
        (_positional, "argument a: is positional only"),
        (_untyped, "argument a: has no type"),
        (_bad_default, r"argument a: its default does not fit: null is not an integer; write `int \| None`"),
        (_integer_keys, "argument a: the keys of a JSON object are strings, not int"),
        (_predicate, "argument a: Predicate cannot be held by a grammar"),
        (_bound_on_text, "argument a: str cannot have a minimum"),
        (_length_on_number, "argument a: int cannot have a least length"),
        (_look_ahead, r"argument a: the pattern \(\?=a\): a look-ahead"),
        (_unhashable, "argument a: the items of a set must be hashable"),
        (_unresolved, "name 'Undefined' is not defined"),
        (_a_callable, "argument a: .*has no form in JSON"),
        (_empty_range, "argument a: no integer lies between 3 and 4"),
        (_bad_number, "argument a: complex has no form in JSON"),
        (_inner, r"argument a\[\]: bool cannot have a minimum"),
        (_only_shown, 'argument a: extra_json_schema "enum" would only be shown'),
    ],
)
def test_a_wrong_declaration_names_tool_and_field(function: Any, message: str) -> None:
    with pytest.raises(ShapeError, match="^tool valve.*" + message):
        shape_of_parameters(function, where="valve")


def test_names_of_an_enclosing_function_are_seen_in_annotations() -> None:
    class Local(msgspec.Struct):
        x: int

    def tool(a: Local) -> Local:
        return Local(a.x)

    assert shape_of_parameters(tool, where="t").decode({"a": {"x": 1}}) == {"a": Local(1)}


# --- kinds of types ------------------------------------------------------------------------------------------------

BOTH_WAYS: list[tuple[Any, Any, Any]] = [
    (None, None, None),
    (bool, True, True),
    (int, 5, 5),
    (float, 0.5, 0.5),
    (float, 1, 1.0),
    (str, "é", "é"),
    (Any, {"a": [1, None]}, {"a": [1, None]}),
    (object, [1], [1]),
    (Seconds, 5, 5),
    (Colour, "red", Colour.RED),
    (Level, 2, Level.HIGH),
    (Literal["a", 1, None, Colour.RED], "red", Colour.RED),
    (Literal[1, True], True, True),
    (int | None, None, None),
    (int | float, 1, 1),
    (float | int, 1, 1),
    (int | float, 1.0, 1.0),
    (list[int], [1, 2], [1, 2]),
    (collections.abc.Sequence[int], [1], [1]),
    (tuple[int, str], [1, "a"], (1, "a")),
    (tuple[()], [], ()),
    (tuple[int, ...], [1, 2], (1, 2)),
    (list, [1, "a"], [1, "a"]),
    (set[int], [1, 2], {1, 2}),
    (frozenset[str], ["a"], frozenset({"a"})),
    (dict[str, int], {"a": 1}, {"a": 1}),
    (dict, {"a": [1]}, {"a": [1]}),
    (dict[Colour, int], {"red": 1}, {Colour.RED: 1}),
    (dict[uuid.UUID, int], {"123e4567-e89b-12d3-a456-426614174000": 1}, None),
    (Chain, {"value": 1, "next": {"value": 2, "next": None}}, Chain(1, Chain(2))),
    (
        Fork | Leaf,
        {"type": "fork", "leftSide": {"type": "Leaf", "weight": 1}, "rightSide": {"type": "Leaf", "weight": 2}},
        Fork(Leaf(1), Leaf(2)),
    ),
    (Options, {"on": True}, {"on": True}),
    (Options, {"on": True, "note": "x"}, {"on": True, "note": "x"}),
    (Pair, {"left": 1, "right": "r"}, Pair(1, "r")),
    (Probe, {"pin": 1, "names": ["a"]}, Probe(1, ["a"])),
    (Setpoint, {"degrees": 20.5, "label": "abc", "colour": "blue"}, Setpoint(degrees=20.5, label="abc", colour="blue")),
    (Box[int], {"item": 1, "more": [{"item": 2, "more": []}]}, Box(1, [Box(2)])),
    (Box[list[str]], {"item": ["a"], "more": []}, Box(["a"])),
    (bytes, "aGk=", b"hi"),
    (decimal.Decimal, "1.50", decimal.Decimal("1.50")),
    (datetime.date, "2024-02-29", datetime.date(2024, 2, 29)),
    (datetime.datetime, "2024-02-29T10:00:00+00:00", datetime.datetime(2024, 2, 29, 10, tzinfo=datetime.UTC)),
    (Annotated[datetime.datetime, Meta(tz=False)], "2024-02-29T10:00:00", datetime.datetime(2024, 2, 29, 10)),
    (datetime.time, "10:00:00", datetime.time(10)),
    (datetime.timedelta, "PT90S", datetime.timedelta(seconds=90)),
    (datetime.timedelta, "-P1DT0.5S", -datetime.timedelta(days=1, microseconds=500_000)),
    (uuid.UUID, "123e4567-e89b-12d3-a456-426614174000", uuid.UUID("123e4567-e89b-12d3-a456-426614174000")),
    (ipaddress.IPv4Address, "1.2.3.4", ipaddress.IPv4Address("1.2.3.4")),
    (ipaddress.IPv6Address, "::1", ipaddress.IPv6Address("::1")),
    (ipaddress.IPv4Network, "10.0.0.0/8", ipaddress.IPv4Network("10.0.0.0/8")),
    (ipaddress.IPv6Interface, "::1/64", ipaddress.IPv6Interface("::1/64")),
    (pathlib.Path, "/etc/hosts", pathlib.Path("/etc/hosts")),
]


@pytest.mark.parametrize(("annotation", "written", "typed"), BOTH_WAYS, ids=lambda value: str(value)[:40])
def test_a_value_decodes_to_its_type_and_encodes_back(annotation: Any, written: Any, typed: Any) -> None:
    shape = shape_of(annotation)
    found = shape.decode(written)
    assert typed is None or (found == typed and type(found) is type(typed))
    assert shape.encode(found) == written


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (bool, 1, "1 is not true or false"),
        (int, True, "true is not an integer"),
        (int, "1", '"1" is not an integer'),
        (float, "1", '"1" is not a number'),
        (float, float("nan"), "nan is not a finite number"),
        (float, 10**400, "outside the range of a float"),
        (str, 1, "1 is not a string"),
        (None, 0, "0 is not null"),
        (Literal[1], True, "true is not one of 1"),
        (list[int], [1, "a"], r'\[1\]: "a" is not an integer'),
        (set[int], [1, 1.0], "1.0 appears twice"),
        (tuple[int, str], [1], "1 items instead of 2"),
        (dict[Colour, int], {"green": 1}, 'green: "green" is not one of'),
        (Chain, {"value": 1, "next": {"value": "x"}}, r'next.value: "x" is not an integer'),
        (Fork | Leaf, {"type": "Leaf", "weight": "x"}, 'weight: "x" is not an integer'),
        (Leaf, {"type": "leaf", "weight": 1}, 'type: "leaf" is not "Leaf"'),
        (Options, {"on": True, "off": 1}, "off: unknown key"),
        (Window, {"start": 2, "end": 1}, "Window refuses it: end is before start"),
        (Setpoint, {"degrees": 100}, "degrees: 100 is above the maximum 85"),
        (bytes, "aGk", '"aGk" is not a bytes'),
        (datetime.date, "2023-02-29", "is not a date"),
        (datetime.date, "2024-W01-1", "is not a date"),
        (datetime.datetime, "2024-02-29T10:00:00", "is not a date-time"),
        (decimal.Decimal, "1e5", "is not a Decimal"),
        (ipaddress.IPv4Network, "10.0.0.1/8", "has host bits set"),
        (Annotated[bytes, at.MaxLen(1)], "aGk=", "2 bytes, 1 is the most"),
        (Annotated[datetime.timedelta, at.Le(datetime.timedelta(minutes=1))], "PT61S", "above the maximum 0:01:00"),
        (Annotated[float, Meta(multiple_of=0.1)], 0.35, "0.35 is not a multiple of 0.1"),
        (Annotated[str, Meta(pattern="^a$")], "a\n", "does not match the pattern"),
        (Annotated[str, Meta(extra_json_schema={"format": "email"})], "zzz", "not of the format email"),
    ],
)
def test_nothing_is_coerced(annotation: Any, value: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        shape_of(annotation).decode(value)


def test_one_point_zero_is_an_integer_as_json_schema_says() -> None:
    found = shape_of(int).decode(1.0)
    assert found == 1
    assert type(found) is int


def test_point_three_is_a_multiple_of_point_one_by_its_decimal_text() -> None:
    assert shape_of(Annotated[float, Meta(multiple_of=0.1)]).decode(0.3) == 0.3


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, "x"),
        (int, 1.0),
        (Colour, "red"),
        (datetime.date, datetime.datetime(2024, 1, 1)),
        (Chain, {"value": 1}),
        (list[int], (1,)),
        (decimal.Decimal, decimal.Decimal("NaN")),
        (datetime.datetime, datetime.datetime(2024, 1, 1)),
        (Any, {1: 2}),
        (Any, object()),
    ],
)
def test_encode_refuses_what_is_not_of_the_type(annotation: Any, value: Any) -> None:
    with pytest.raises(ShapeError):
        shape_of(annotation).encode(value)


def test_a_recursive_type_stands_under_defs() -> None:
    schema = shape_of(Chain).schema
    assert schema["$ref"] == "#/$defs/Chain"
    assert schema["$defs"]["Chain"]["properties"]["next"]["anyOf"][0] == {"$ref": "#/$defs/Chain"}


def test_a_type_used_once_stands_inline() -> None:
    assert "$defs" not in shape_of(list[Pair]).schema


def test_two_types_of_one_name_stay_apart() -> None:
    shape = shape_of(tuple[Box[int], Box[str]])
    assert shape.decode([{"item": 1}, {"item": "a"}]) == (Box(1), Box("a"))
    with pytest.raises(ShapeError):
        shape.decode([{"item": "a"}, {"item": 1}])


def test_limits_around_a_union_hold_for_the_options_that_can_have_them() -> None:
    schema = shape_of(Annotated[int | None, at.Ge(0)]).schema
    assert schema == {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]}


def test_a_tagged_object_that_is_not_whole_may_still_be_another_option() -> None:
    shape = shape_of(Leaf | dict[str, int | str])
    assert shape.decode({"type": "Leaf", "weight": "x"}) == {"type": "Leaf", "weight": "x"}
    with pytest.raises(ShapeError, match="weight"):
        shape.decode({"type": "Leaf", "weight": []})


def test_words_beside_a_type_reach_the_schema() -> None:
    schema = shape_of(Annotated[int, Meta(title="T", description="D", examples=[1]), at.Unit("m")]).schema
    assert schema == {"type": "integer", "title": "T", "description": "D", "examples": [1], "x-unit": "m"}


def test_a_class_that_checks_itself_says_so_in_the_schema() -> None:
    assert shape_of(Window).schema["x-decoder"] == "its own __post_init__"


def test_a_shape_cannot_be_changed() -> None:
    shape = shape_of(int)
    with pytest.raises(AttributeError):
        shape.python = str  # type: ignore[misc]  # the point of it
    assert isinstance(shape, Shape)


def test_a_default_that_is_made_anew_each_time_is_not_in_the_schema() -> None:
    assert "default" not in shape_of(Probe).schema["properties"]["names"]


# --- cost ----------------------------------------------------------------------------------------------------------


def test_importing_shapes_adds_few_modules_and_none_of_the_authors_choice() -> None:
    code = """
import sys, msgspec
before = set(sys.modules)
import edgeagent.shape.types
new = set(sys.modules) - before
print(len(new), *sorted(new & {"annotated_types", "attr", "pydantic", "numpy", "typing_extensions"}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, *unwanted = done.stdout.split()
    assert unwanted == []
    # A third is ours; the front door, ipaddress, pathlib, base64 and what those need make the rest.
    assert int(count) <= 50
