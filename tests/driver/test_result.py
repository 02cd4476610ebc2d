"""Results as JSON: as they are, or said why not; a tool that has done its work is never said to have failed."""

from __future__ import annotations

import math
from decimal import Decimal
from ipaddress import ip_address
from pathlib import Path

import pytest

from edgeagent.core.agent import tool
from edgeagent.core.effects import CallTool
from edgeagent.core.events import ToolReturned
from edgeagent.core.values import read_json
from edgeagent.driver.result import CannotShow, told_of
from edgeagent.driver.tool import RESULT_BYTES_MAX, result_of


class Number(float):
    """As numpy's: a float that is not quite one."""


class Array:
    def tolist(self) -> list[object]:
        return [1, Number(2.5)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, '"NaN"'),
        ([math.inf, -math.inf, -0.0], '["Infinity","-Infinity",-0.0]'),
        (2**70, "1180591620717411303424"),
        ({"n": [2**70]}, '{"n":[1180591620717411303424]}'),
        ({1: "a", 2.5: "b"}, '{"1":"a","2.5":"b"}'),
        ("bad \ud835", '"bad \ufffd"'),
        ({"\ud835": 1}, '{"\ufffd":1}'),
        (Number(2.5), "2.5"),
        ([Array()], "[[1,2.5]]"),
        (Decimal("0.10"), '"0.10"'),
    ],
)
def test_a_result_is_told_as_it_is(value: object, text: str) -> None:
    assert told_of(value).json == text


def test_bytes_are_told_as_kind_size_and_digest() -> None:
    told = told_of({"picture": b"\x89PNG\r\n" + bytes(20_000), "note": bytearray(b"abc")}).json
    assert '"bytes":20006,"kind":"image/png","sha256":"' in told
    assert '"bytes":3,"kind":"text/plain"' in told
    assert len(told) < 400


def loop() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


class Rude:
    def tolist(self) -> object:
        raise RuntimeError("\ud835")


class Ending:
    def tolist(self) -> object:
        raise SystemExit(3)


@pytest.mark.parametrize(
    ("value", "because"),
    [
        ((n for n in range(3)), "generator"),
        (object(), "object"),
        (loop(), "holds itself"),
        ([10**5000], "digits"),
        ({1: "a", "1": "b"}, "written alike"),
        ({(1, 2): "a"}, ""),
        (Rude(), "RuntimeError"),
        (Ending(), "SystemExit"),
    ],
    ids=("generator", "object", "loop", "digits", "alike", "tuple", "rude", "ending"),
)
def test_what_cannot_be_shown_is_done_all_the_same_and_says_why(value: object, because: str) -> None:
    @tool(idempotent=False)
    def act() -> object:
        """Act."""
        return value

    with pytest.raises(CannotShow):
        told_of(value)

    event = result_of(act, CallTool(7, "act", "{}", 5_000)).event
    assert isinstance(event, ToolReturned)
    assert event.unshown
    assert because in event.unshown
    event.unshown.encode()


@pytest.mark.parametrize(
    ("value", "kept", "total"),
    [
        (list(range(100_000)), list, 100_000),
        ("é" * 1_000_000, str, 1_000_000),
        ("\x00" * 1_000_000, str, 1_000_000),
        ({"rows": list(range(100_000))}, str, 588_900),
        (["x" * 1_000_000], str, 1_000_004),
    ],
    ids=("list", "text", "controls", "object", "one element"),
)
def test_of_a_giant_result_the_beginning_is_recorded_and_how_much_there_was(
    value: object, kept: type, total: int
) -> None:
    @tool(idempotent=True)
    def act() -> object:
        """Act."""
        return value

    event = result_of(act, CallTool(7, "act", "{}", 5_000)).event
    assert isinstance(event, ToolReturned)
    assert isinstance(read_json(event.value), kept)
    assert event.total == total
    assert len(event.value.encode()) <= RESULT_BYTES_MAX


class Other(str):
    def __str__(self) -> str:
        return "a lie"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Path("/dev/ttyUSB0"), '"/dev/ttyUSB0"'),
        (Path("/a\udcff"), '"/a\ufffd"'),
        (ip_address("fe80::1"), '"fe80::1"'),
        (frozenset({"b", "a", "c"}), '["a","b","c"]'),
        (Other("what it is"), '"what it is"'),
    ],
)
def test_what_a_tool_of_a_board_often_returns_has_one_form(value: object, text: str) -> None:
    assert told_of(value).json == text


def test_an_integer_with_more_digits_than_python_writes_is_told_so() -> None:
    with pytest.raises(CannotShow, match=r"it holds an integer of more than \d+ digits"):
        told_of([10**5_000])
