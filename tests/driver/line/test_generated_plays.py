"""Generated devices against the console's machine: what they print, when they pause, cut, start again, is by chance.

Laws held for each: never "done" for a command that the device had not finished; never one command's answer for another;
nothing typed into what runs but nudges; no command twice for one call; a password at its prompt alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from edgeagent.driver.line import console_machine, ending
from edgeagent.driver.line.console_machine import ConsoleMachine
from edgeagent.driver.line.log_in import log_in
from edgeagent.driver.line.outcome import Done, Failed, NotSent
from edgeagent.driver.line.profile import load_profile
from edgeagent.driver.line.view import View
from tests.driver.line.simulated import Device, words

pytestmark = pytest.mark.long  # Seconds of CPU: `make test` runs it, `make quick` does not.

PLAYS = 600
PLAYS_ALL = 10_000
PROMPTS = ("sw1# ", "sw1#", "root@board:~# ", "> ", "<switch-zone>", "[admin@MikroTik] > ", "uart:~$ ")
LIKE_PROMPTS = ("Writing:#", "#", "Erasing>", "##", "50%>", "other# ", "Password: ", "login: ", "...$ ", "> >")
NOISE = ("[   37.360123] usb 1-1: new device\r\n", "*Mar  1 00:01:02.003: %LINK-3-UPDOWN: Interface up\r\n")


def script_of(chance: random.Random, prompt: str, token: str) -> list[list[Any]]:
    """What one command prints, by chance: its token is in it, and it is the only one with it."""
    steps: list[list[Any]] = []
    for _ in range(chance.randrange(5)):
        pause = chance.choice((0, 0, 0.05, 0.3, 0.6, 1.1, 2.0, 4.0))
        text = chance.choice(
            (
                f"line {chance.randrange(99)}\r\n",
                chance.choice(LIKE_PROMPTS),
                f"\r\n{prompt}",
                chance.choice(NOISE),
                "\r\n",
            )
        )
        steps.append([pause, text])
    steps.insert(chance.randrange(len(steps) + 1), [0, f"{token}\r\n"])
    if chance.random() < 0.1:
        steps.append(chance.choice((["lose"], ["reset"], ["hang"], [30, "late\r\n"])))
    return steps


def violations(seed: int) -> Iterator[str]:
    """Play one generated device; say what of the laws was broken."""
    chance = random.Random(seed)
    name = chance.choice(("generic", "generic", "generic", "linux"))
    prompt = "root@board:~# " if name == "linux" else chance.choice(PROMPTS)
    scripts = {f"cmd{n}": script_of(chance, prompt, f"token{n}") for n in range(3)}
    device = Device(prompt, scripts)
    device.cut = chance.randrange(400)
    machine = ConsoleMachine(load_profile(name), words())
    sent = 0
    for number, command in enumerate(scripts):
        outcome = device.carry(machine.run(command, chance.choice((1.0, 5.0, 20.0))))
        sent += not isinstance(outcome, NotSent)
        if isinstance(outcome, Done | Failed):
            if command not in device.finished:
                yield f"{command} is said to have ended and runs: {outcome}"
            if f"token{number}" not in outcome.output:
                yield f"{command} lacks its answer: {outcome}"
            if any(f"token{other}" in outcome.output for other in range(3) if other != number):
                yield f"{command} has another one's answer: {outcome}"
        if chance.random() < 0.3:
            device.idle(chance.choice((0.1, 3.0, 40.0)))
        if device.lost:
            break
    if len(device.started) > sent or len(set(device.started)) < len(device.started):
        yield f"{device.started} for {sent} calls"
    if typed := {char for _, char in device.typed_while_running} - set(machine.profile.keys.nudge):
        yield f"{typed} typed into what runs"


def log_in_violations(seed: int) -> Iterator[str]:
    """Log in while the password takes its time, and the device does what it wants meanwhile."""
    chance = random.Random(seed)
    device = Device("root@board:~# ", {})
    device.state = chance.choice(("log_in", "log_in", "password"))
    device.say("login: " if device.state == "log_in" else "Password: ")
    machine = ConsoleMachine(load_profile("linux"), words())

    def password() -> str:
        device.idle(chance.choice((0.0, 1.0)))
        if chance.random() < 0.5:
            gave_up = "\r\nLogin timed out after 60 seconds\r\n\r\nboard login: "
            boots = "\r\nDRAM:  256 MiB\r\nHit any key to stop autoboot:  3 "
            what, device.state = chance.choice(((gave_up, "log_in"), ("", "password"), (boots, "boot")))
            device.say(what)
        return "s3cret"

    state = device.carry(log_in(machine, "root", password, 10.0))
    if any(line == "s3cret" and where != "password" for where, line in device.entered_at):
        yield f"the password went to {device.entered_at}"
    if state == "shell" and device.state != "shell":
        yield f"{state} is said, and the device is in {device.state}"


def first_violation(plays: int) -> str:
    """The first law that was broken, or nothing."""
    for seed in range(plays):
        for found in (*violations(seed), *log_in_violations(seed)):
            return f"seed {seed}: {found}"
    return ""


def test_no_generated_device_breaks_a_law() -> None:
    assert first_violation(PLAYS) == ""


@pytest.mark.slow
def test_ten_thousand_generated_devices_break_no_law() -> None:
    assert first_violation(PLAYS_ALL) == ""


def test_the_generator_finds_a_prompt_that_is_believed_by_its_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_its_look(view: View, confirmed: str) -> bool:
        return view.prompt is not None

    monkeypatch.setattr(console_machine, "stands", by_its_look)
    monkeypatch.setattr(console_machine, "only_prompt", lambda *_: True)
    assert "is said to have ended" in first_violation(PLAYS) or "typed into" in first_violation(PLAYS)


def test_the_generator_finds_an_end_without_a_new_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_machine, "only_prompt", lambda *_: True)
    assert "is said to have ended" in first_violation(PLAYS)


def test_the_generator_finds_a_password_that_is_typed_without_a_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks_again = ConsoleMachine.watch

    def watch(self: ConsoleMachine) -> Any:
        return "password" if self.state == "password" else (yield from looks_again(self))

    monkeypatch.setattr(ConsoleMachine, "watch", watch)
    assert any(found for seed in range(PLAYS) for found in log_in_violations(seed))


def test_the_ending_knows_no_time() -> None:
    """What is evidence does not depend on when it came: the readings are functions of the text alone."""
    assert not {"time", "now"} & set(vars(ending))
