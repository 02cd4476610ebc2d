"""MicroPython on an emulated micro:bit: the friendly and the raw REPL."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from edgeagent.driver.line.console import Console
from edgeagent.driver.line.outcome import Done, Failed, NotSent, TimedOut

pytestmark = pytest.mark.device


@pytest.fixture(scope="module")
def console(micropython: object) -> Iterator[Console]:
    """A console at the friendly prompt."""
    console = micropython.console("micropython")  # type: ignore[attr-defined]  # the fixture's Target
    assert console.state == "repl"
    yield console


def test_a_function_is_defined_and_called_in_the_same_session(console: Console) -> None:
    assert console.run("def twice(x):\n    return 2 * x\n") == Done("")
    assert console.run("print(twice(21))") == Done("42")
    assert console.state == "repl"


def test_an_exception_is_a_failure_with_its_traceback(console: Console) -> None:
    outcome = console.run("raise ValueError('low battery')")
    assert isinstance(outcome, Failed)
    assert outcome.output.endswith("ValueError: low battery")


def test_a_raw_repl_that_somebody_left_open_is_synchronised(console: Console) -> None:
    """ampy#43: could not enter raw repl."""
    console.port.write(b"\x01print('half a lin")
    time.sleep(0.2)
    assert console.run("print('ours')") == Done("ours")


def test_what_boot_code_prints_does_not_hinder(console: Console) -> None:
    console.port.write(b"for i in range(3): print('boot', i)\r\r")
    assert console.run("print('ours')") == Done("ours")


def test_an_endless_loop_times_out_and_is_interrupted_only_on_request(console: Console) -> None:
    outcome = console.run("n = 0\nwhile True:\n    n += 1\n", 1.0)
    assert isinstance(outcome, TimedOut)
    assert isinstance(console.run("print(1)", 1.0), NotSent)
    assert console.interrupt() == "repl"
    done = console.run("print(n > 0)")
    assert done == Done("True")


def test_nothing_was_reset_in_between(console: Console) -> None:
    """micropython#9659: two commands, one session."""
    assert console.run("print(twice(4))") == Done("8")
    assert b"soft reboot" not in console.port.heard(0)
