"""Plays of the console's machine: every file of `plays/`, whole, byte by byte, and cut at every place of its bytes."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgeagent.driver.line.console_machine import ConsoleMachine
from edgeagent.driver.line.outcome import Done, NotSent, Outcome, TimedOut, WaitingForInput
from edgeagent.driver.line.profile import Answer, Profile, Prompts, Transaction, load_profile
from tests.driver.line.simulated import ONE_BY_ONE, Device, words

PLAYS = sorted((Path(__file__).parent / "plays").glob("*.toml"))
RUN_S = 10.0
STRIDE = 3
"""`make test` cuts at every third place, and from another one in each play; `make test-slow` cuts at every one."""


def profile_of(play: dict[str, Any]) -> Profile:
    """The profile that a play file names, with what it changes."""
    profile = load_profile(play["profile"])
    prompts = msgspec.structs.replace(profile.prompts, shell=play.get("shell", profile.prompts.shell))
    answers = tuple(Answer(**each) for each in play.get("answers", ()))
    return msgspec.structs.replace(profile, prompts=Prompts(**msgspec.structs.asdict(prompts)), answers=answers)


def played(file: Path, cut: int = -1) -> tuple[list[tuple[dict[str, Any], Outcome]], Device]:
    """Play a file; return what was said and what came of it. Nothing is ever typed into what runs but a nudge."""
    play = tomllib.loads(file.read_text())
    profile = profile_of(play)
    device = Device(play["prompt"], play["scripts"], status=play.get("status", "0"))
    device.cut = cut
    machine = ConsoleMachine(profile, words())
    outcomes = []
    for each in play["plays"]:
        if "run" in each:
            outcomes.append((each, device.carry(machine.run(each["run"], RUN_S))))
        elif "answer" in each:
            outcomes.append((each, device.carry(machine.answer(each["answer"], RUN_S))))
        else:
            device.idle(each["wait"])
    assert {char for _, char in device.typed_while_running} <= {" ", *profile.keys.nudge}
    return outcomes, device


def problems(file: Path, cut: int = -1) -> list[str]:
    """What does not go as the file says."""
    return [problem for each in played(file, cut)[0] if (problem := differs(*each))]


def differs(wanted: dict[str, Any], outcome: Outcome) -> str:
    """Say how an outcome differs from the file."""
    if type(outcome).__name__ != wanted["outcome"]:
        return f"{wanted}: {outcome}"
    for key in ("output", "question"):
        if key in wanted and getattr(outcome, key) != wanted[key]:
            return f"{wanted}: {outcome}"
    if isinstance(outcome, Done) and (outcome.status is None) != ("status" in wanted):
        return f"{wanted}: {outcome}"
    return ""


@pytest.mark.parametrize("file", PLAYS, ids=lambda file: file.stem)
def test_a_play_goes_as_its_file_says(file: Path) -> None:
    assert problems(file) == []


@pytest.mark.parametrize("file", PLAYS, ids=lambda file: file.stem)
def test_a_device_whose_bytes_come_one_by_one_changes_nothing(file: Path) -> None:
    assert problems(file, cut=ONE_BY_ONE) == []


@pytest.mark.parametrize("file", PLAYS, ids=lambda file: file.stem)
@pytest.mark.deep
def test_where_the_bytes_are_cut_changes_nothing(file: Path) -> None:
    for cut in range(1 + PLAYS.index(file) % STRIDE, played(file)[1].printed, STRIDE):
        assert problems(file, cut) == [], f"cut at byte {cut}"


@pytest.mark.slow
@pytest.mark.parametrize("file", PLAYS, ids=lambda file: file.stem)
def test_every_cut_of_every_play_changes_nothing(file: Path) -> None:
    for cut in range(1, played(file)[1].printed):
        assert problems(file, cut) == [], f"cut at byte {cut}"


@pytest.mark.parametrize("shows", ["Writing:#", "#", "sw1#", "50%>"])
def test_what_ignores_the_interrupt_is_still_running(shows: str) -> None:
    """zephyr#59089 once more: the key does nothing, the flash goes on, and what it prints looks like a prompt."""
    writes = [[0.5, shows] for _ in range(40)]
    device = Device("sw1#", {"flash": [*writes, [0, "\r\ndone\r\n"]], "next": [[0, "fine\r\n"]]})
    device.deaf = True
    machine = ConsoleMachine(load_profile("generic"), words())
    assert isinstance(device.carry(machine.run("flash", 5.0)), TimedOut)
    assert device.carry(machine.interrupt(5.0)) == "unknown"
    assert isinstance(device.carry(machine.run("next", 2.0)), NotSent)
    assert "next" not in device.started
    device.idle(20.0)
    assert device.carry(machine.run("next", 5.0)) == Done("fine")


def test_what_is_interrupted_leaves_the_console_free() -> None:
    device = Device("sw1#", {"flash": [[60, "done\r\n"]], "next": [[0, "fine\r\n"]]})
    machine = ConsoleMachine(load_profile("generic"), words())
    assert isinstance(device.carry(machine.run("flash", 5.0)), TimedOut)
    assert device.carry(machine.interrupt(5.0)) == "shell"
    assert device.carry(machine.run("next", 5.0)) == Done("fine")


def test_a_status_that_is_not_told_is_not_known() -> None:
    device = Device("uart:~$ ", {"go": [[0, "gone\r\n"]], "retval": [[0, "net: 0 packets\r\n"]]})
    machine = ConsoleMachine(load_profile("zephyr"), words())
    assert device.carry(machine.run("go", 5.0)) == Done("gone", None)


def test_a_nudge_that_can_be_seen_is_no_part_of_an_answer() -> None:
    profile = msgspec.structs.replace(load_profile("u-boot"), transaction=Transaction())
    device = Device("=> ", {"#": [], "version": [[0, "U-Boot\r\n"]]})
    machine = ConsoleMachine(profile, words())
    assert device.carry(machine.run("version", 5.0)) == Done("U-Boot")
    assert device.carry(machine.run("version", 5.0)) == Done("U-Boot")


FAR = (("generic", "sw1# "), ("linux", "root@board:~# "), ("u-boot", "=> "), ("zephyr", "uart:~$ "))


@pytest.mark.parametrize(("name", "prompt"), FAR)
@pytest.mark.parametrize("lag_s", [0.5, 2.0, 2.5])
def test_a_command_ends_with_evidence_on_a_line_that_is_slow_there_and_back(
    name: str, prompt: str, lag_s: float
) -> None:
    """A satellite's two seconds ended as unknown: every wait was for a line that answers at once."""
    device = Device(prompt, {"show": [[0.1, "one\r\n"], [0.2, "two\r\n"]], "#": [], "retval": [[0, "0\r\n"]]})
    device.lag_s = lag_s
    machine = ConsoleMachine(load_profile(name), words())
    assert device.carry(machine.enter(30.0)) in ("shell", "boot_loader")
    for _ in range(3):
        assert device.carry(machine.run("show", 10.0)) == Done("one\ntwo")
    assert device.started.count("show") == 3


@pytest.mark.parametrize(("name", "prompt"), FAR)
def test_a_line_that_is_slower_than_is_waited_for_is_so_by_its_profile(name: str, prompt: str) -> None:
    device = Device(prompt, {"show": [[0.1, "one\r\n"]], "#": [], "retval": [[0, "0\r\n"]]})
    device.lag_s = 8.0
    machine = ConsoleMachine(msgspec.structs.replace(load_profile(name), round_trip_ms=9_000), words())
    assert device.carry(machine.enter(60.0)) in ("shell", "boot_loader")
    assert device.carry(machine.run("show", 10.0)) == Done("one")


def test_a_question_is_answered_once_however_slow_the_line_is() -> None:
    """The answer was typed again while its echo was on the way, and so answered the next question as well."""
    ask = "Overwrite [confirm]"
    device = Device("sw1# ", {"copy": [["ask", ask], [0, "copied\r\n"], ["ask", "Really [confirm]"], [0, "all\r\n"]]})
    device.lag_s = 2.0
    profile = msgspec.structs.replace(load_profile("generic"), answers=(Answer("Overwrite", "y"),))
    machine = ConsoleMachine(profile, words())
    assert device.carry(machine.enter(30.0)) == "shell"
    outcome = device.carry(machine.run("copy", 20.0))
    assert isinstance(outcome, WaitingForInput)
    assert outcome.question == "Really [confirm]"
    assert [line for _, line in device.entered_at if line.strip()] == ["copy", "y"]


def test_the_profile_says_how_slow_a_line_is_at_least() -> None:
    profile = msgspec.structs.replace(load_profile("generic"), round_trip_ms=2_000)
    machine = ConsoleMachine(profile, words())
    machine.measured(0.1)
    assert machine.lag_s == 2.0


class Lagging(Device):
    """A device whose line is held up now and then, as that of a busy machine is."""

    chance = random.Random(2)

    def say(self, text: str, after_s: float = 0.0) -> None:
        """Print, some of it late."""
        super().say(text, after_s + (self.chance.random() * 0.6 if self.chance.random() < 0.3 else 0.0))


def test_the_end_is_seen_on_a_line_that_is_held_up() -> None:
    """A nudge whose answer came late, between others that were answered in time, left the end unseen for ever."""
    for _ in range(40):
        device = Lagging("sw1#", {"show": [[0.1, "one\r\n"], [0.2, "two\r\n"]]})
        machine = ConsoleMachine(load_profile("generic"), words())
        for _ in range(4):
            assert isinstance(device.carry(machine.run("show", 60.0)), Done)


def test_a_line_that_is_typed_again_is_not_read_back_from_its_first_echo() -> None:
    """The echo took longer than it was waited for, the second typing lost a key, and half a command was entered."""
    device = Device("root@board:~# ", {"show": [[0, "one\r\n"]]})
    device.lag_s, device.loses = 2.5, frozenset({28})
    machine = ConsoleMachine(load_profile("linux"), words())
    assert isinstance(device.carry(machine.run("show", 1.0)), NotSent)
    device.idle(3.0)  # The prompt comes meanwhile, so nobody has seen how long it took.
    assert device.carry(machine.run("show", 20.0)) == Done("one")
    assert device.unheard_of == []
