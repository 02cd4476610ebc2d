"""Consoles in every dress: each end is told with its own answer; and each fault that was found so, by its name."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from edgeagent.driver.line.console_machine import ConsoleMachine
from edgeagent.driver.line.outcome import Done, TimedOut
from edgeagent.driver.line.profile import load_profile
from edgeagent.driver.line.view import View
from tests.driver.line.dressed import NOISE, PROMPTS, Dressed, first_dress_violation
from tests.driver.line.simulated import words

PLAYS = 200
PLAYS_ALL = 10_000


@pytest.mark.long
def test_a_command_is_told_in_every_dress() -> None:
    assert first_dress_violation(PLAYS) == ""


@pytest.mark.slow
def test_ten_thousand_dressed_consoles_are_told() -> None:
    assert first_dress_violation(PLAYS_ALL) == ""


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_prompt_of_any_vendor_is_one(prompt: str) -> None:
    view = View(load_profile("generic"))
    view.feed(b"\r\n" + prompt.encode())
    assert view.prompt == "shell"


def dressed(prompt: str = "sw1# ", name: str = "generic", **lines: str) -> tuple[Dressed, ConsoleMachine]:
    """A console that prints these lines for `show`."""
    scripts: dict[str, list[list[Any]]] = {"show": [[0.1, f"{line}\r\n"] for line in lines.values()]}
    return Dressed(prompt, scripts, random.Random(1)), ConsoleMachine(load_profile(name), words())


def test_a_prompt_that_tells_the_time_is_the_same_prompt() -> None:
    device, machine = dressed(one="one")
    seconds = iter(range(100))
    device.clock = lambda: f"[12:00:{next(seconds):02d}] "
    assert device.carry(machine.run("show", 20.0)) == Done("one")
    assert machine.ticks


def test_a_prompt_with_another_number_is_another_one_where_none_ticks() -> None:
    """Progress such as `50%>` is no clock: only what changed while nothing ran may change."""
    device, machine = dressed(one="one")
    assert device.carry(machine.run("show", 20.0)) == Done("one")
    assert not machine.ticks
    device.scripts["flash"] = [[1.0, f"\r\nsw{number}# "] for number in range(2, 9)] + [["hang"]]
    assert isinstance(device.carry(machine.run("flash", 20.0)), TimedOut)


@pytest.mark.parametrize("name", ["generic", "linux"])
def test_a_log_line_between_a_return_and_its_line_feed_takes_no_answer_away(name: str) -> None:
    """It was printed over the answer's line, and a command was done with nothing said."""
    view = View(load_profile(name))
    view.feed(f"one\r{NOISE[name]}\ntwo\r\n".encode())
    assert view.clean == ("one\ntwo\n", (NOISE[name].strip(),))


def test_what_a_line_draws_over_itself_is_still_drawn_over() -> None:
    view = View(load_profile("linux"))
    view.feed(b"10%\r20%\r100%\r\n")
    assert view.clean[0] == "100%\n"


def test_nul_in_the_middle_of_a_sequence_is_skipped() -> None:
    view = View(load_profile("generic"))
    view.feed(b"\x1b[\x000;3\x002msw1\0# \x1b]0;ti\0tle\x07")
    assert view.last_line == "sw1# "


def test_the_echo_of_our_own_line_is_no_question_however_it_is_wrapped() -> None:
    """The marker's `$?` on a row of its own was taken for a question."""
    device, machine = dressed("root@board:~# ", "linux", one="one")
    device.wraps, device.wrap, device.lag_s = 20, "\r\n", 2.0
    machine = ConsoleMachine(msgspec.structs.replace(load_profile("linux"), columns=20), words())
    assert device.carry(machine.run("show", 20.0)) == Done("one")


def test_a_prompt_whose_begin_looks_like_one_is_waited_for() -> None:
    device, machine = dressed("switch> (enable) ", one="one")
    device.slow_s = 0.02
    assert device.carry(machine.run("show", 30.0)) == Done("one")
