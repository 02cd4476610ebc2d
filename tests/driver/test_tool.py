"""Running tools: one answer a call, whatever the tool does."""

from __future__ import annotations

import dataclasses
import queue
import threading
import time
from datetime import date
from enum import Enum

import pytest

from edgeagent.core.agent import tool
from edgeagent.core.effects import CallTool
from edgeagent.core.events import ToolFailed, ToolReturned
from edgeagent.driver import tool as tool_module
from edgeagent.driver.result import told_of
from edgeagent.driver.tool import ToolDriver


class Color(Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


RELEASE = threading.Event()


@tool(idempotent=True)
def point(x: int) -> Point:
    """Make a point."""
    return Point(x)


@tool(idempotent=True)
def fail(message: str) -> None:
    """Fail."""
    raise ValueError(message)


@tool(idempotent=True)
def fail_mutely() -> None:
    """Fail and cannot say why."""
    raise Mute


@tool(idempotent=True)
def leave() -> None:
    """Try to end the process."""
    raise SystemExit(3)


@tool(idempotent=True)
def hang() -> None:
    """Wait until the test is over."""
    RELEASE.wait(120)


@tool(idempotent=True)
async def later() -> str:
    """Answer asynchronously."""
    return "done"


@tool(idempotent=True)
def odd() -> object:
    """Return something without a JSON form."""
    return object()


TOOLS = {t.name: t for t in (point, fail, fail_mutely, leave, hang, later, odd)}


@pytest.fixture
def driver():
    made = ToolDriver(TOOLS)
    yield made
    RELEASE.set()
    made.close()
    RELEASE.clear()


def answer(driver, name, arguments="{}", timeout_ms=60_000):
    events = queue.Queue()
    driver.submit(CallTool(7, name, arguments, timeout_ms), events.put)
    return events.get(timeout=60), events


def test_a_result_comes_back_as_canonical_json(driver):
    event, _ = answer(driver, "point", '{"x": 3}')
    assert isinstance(event, ToolReturned)
    assert (event.effect_id, event.value) == (7, '{"x":3}')


def test_an_async_tool_is_awaited(driver):
    event, _ = answer(driver, "later")
    assert event.value == '"done"'


def test_a_tool_that_raises_is_a_failed_event_with_its_words(driver):
    event, _ = answer(driver, "fail", '{"message": "valve stuck"}')
    assert isinstance(event, ToolFailed)
    assert (event.reason, event.message) == ("raised", "ValueError: valve stuck")


def test_a_tool_whose_exception_cannot_say_why_has_failed_all_the_same(driver):
    event, _ = answer(driver, "fail_mutely")
    assert isinstance(event, ToolFailed)
    assert (event.reason, event.message) == ("raised", "Mute, which cannot say why")


def test_a_tool_cannot_end_the_process(driver):
    event, _ = answer(driver, "leave")
    assert event.message == "SystemExit: 3"


def test_a_tool_that_never_returns_is_answered_once_with_a_time_out(driver):
    event, events = answer(driver, "hang", timeout_ms=50)
    assert isinstance(event, ToolFailed)
    assert event.reason == "time_out"
    RELEASE.set()
    with pytest.raises(queue.Empty):
        events.get(timeout=0.2)


def test_after_too_many_calls_that_hang_no_new_one_is_started(driver):
    for _ in range(tool_module.LEFT_BEHIND_MAX):
        answer(driver, "hang", timeout_ms=1)
    event, _ = answer(driver, "point", '{"x": 3}')
    assert event.reason == "unavailable"


def test_arguments_that_are_not_of_the_type_never_reach_the_tool(driver):
    event, _ = answer(driver, "point", '{"x": "three"}')
    assert event.reason == "rejected"


def test_a_result_without_a_json_form_is_no_failure_of_the_tool(driver):
    event, _ = answer(driver, "odd")
    assert isinstance(event, ToolReturned)
    assert "JSON" in event.unshown


def test_a_driver_that_is_closed_says_nothing_more():
    driver = ToolDriver(TOOLS)
    events = queue.Queue()
    driver.submit(CallTool(1, "hang", "{}", 5_000), events.put)
    driver.close()
    RELEASE.set()
    time.sleep(0.1)
    RELEASE.clear()
    assert events.empty()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ({"b": 1, "a": [True, 2.5]}, '{"a":[true,2.5],"b":1}'),
        (Color.RED, '"red"'),
        (date(2026, 1, 2), '"2026-01-02"'),
        ("é", '"é"'),
        ((1, 2), "[1,2]"),
    ],
)
def test_values_have_one_json_text(value, text):
    assert told_of(value).json == text


def test_what_befell_the_way_to_a_device_goes_beside_the_result():
    noted = [("link lost: unplugged", "opened /dev/ttyUSB1"), ()]
    asking = dataclasses.replace(point, notes=lambda: noted.pop(0))
    driver = ToolDriver({"point": asking})
    first, _ = answer(driver, "point", '{"x": 3}')
    second, _ = answer(driver, "point", '{"x": 3}')
    driver.close()
    assert (first.value, first.notes) == ('{"x":3}', ("link lost: unplugged", "opened /dev/ttyUSB1"))
    assert second.notes == ()


def test_notes_that_cannot_be_had_do_not_spoil_the_result():
    driver = ToolDriver({"point": dataclasses.replace(point, notes=lambda: 1 // 0)})
    event, _ = answer(driver, "point", '{"x": 3}')
    driver.close()
    assert isinstance(event, ToolReturned)
    assert "ZeroDivisionError" in event.notes[0]
