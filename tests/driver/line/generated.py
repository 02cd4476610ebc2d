"""Generated devices for the console's machine: what they print, when they pause, cut, start again, is by chance.

Laws held for each: never "done" for a command that the device had not finished; never one command's answer for another;
nothing typed into what runs but nudges; no command twice for one call, and none that nobody asked for; a password at
its prompt alone. A `plain` device prints lines, pages and log lines and asks: of it each end and each answer is told.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from edgeagent.driver.line.console_machine import ConsoleMachine
from edgeagent.driver.line.log_in import log_in
from edgeagent.driver.line.outcome import Done, Failed, NotSent, Outcome, WaitingForInput
from edgeagent.driver.line.profile import load_profile
from tests.driver.line import dressed
from tests.driver.line.simulated import Device, words

PROMPTS = (
    *("sw1# ", "sw1#", "root@board:~# ", "> ", "<switch-zone>", "[admin@MikroTik] > ", "uart:~$ "),
    *(prompt for prompt in dressed.PROMPTS[::3] if "\n" not in prompt),
)
LIKE_PROMPTS = (
    *("Writing:#", "#", "Erasing>", "##", "50%>", "other# ", "Password: ", "login: ", "...$ ", "> >", "=> ", "C:\\>"),
    *(
        "Erase $",
        "[#####     ] 50%\r",
        "page 3 of 9 > ",
        "mysql> ",
        "(gdb) ",
        "[sudo] password for root: ",
        "-->",
        "$ ",
    ),
    *("root@10.0.0.1's password: ", "\r\nother login: ", "λ ", "100%|####>|", "\x1b[32m#\x1b[0m", "Router>", "sw2# "),
)
NOISE = {
    "linux": "[   37.360123] usb 1-1: new device\r\n",
    "generic": "*Mar  1 00:01:02.003: %LINK-3-UPDOWN: Interface up\r\n",
}
PAGERS = (" --More-- ", "<--- More --->", "---- More ----", "-- Press any key --", ":", "---(more 45%)---")
QUESTIONS = ("Really (yes/no): ", "Reload [confirm]", "Overwrite (y/n)? [n] ", "Continue?", "Proceed with reload? ")
PLAIN = 0.25
"""Of so many devices every end must be told."""


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
                chance.choice((*NOISE.values(),)),
                "\r\n",
            )
        )
        steps.append([pause, text])
    steps.insert(chance.randrange(len(steps) + 1), [0, f"{token}\r\n"])
    if chance.random() < 0.1:
        steps.append(chance.choice((["lose"], ["reset"], ["hang"], [30, "late\r\n"])))
    return steps


def plain_script(chance: random.Random, name: str, token: str) -> tuple[list[list[Any]], str]:
    """What a command prints that nothing is the matter with, and the answer that is in it; a question ends it."""
    steps: list[list[Any]] = [[0, f"{token}\r\n"]]
    answer = [token]
    for number in range(chance.randrange(4)):
        match chance.randrange(4):
            case 0:
                steps.append(["page", chance.choice(PAGERS)])
            case 1:
                steps.append([chance.choice((0, 0.3)), NOISE[name]])
            case _:
                steps.append([chance.choice((0, 0.05, 0.3, 1.1)), f"line {number}\r\n"])
                answer.append(f"line {number}")
    if chance.random() < 0.3:
        steps.append(["ask", chance.choice(QUESTIONS)])
    elif name == "generic" and chance.random() < 0.3:
        steps.append(["after", f"\r\n{NOISE[name]}"])
    return steps, "\n".join(answer)


def violations(seed: int) -> Iterator[str]:
    """Play one generated device; say what of the laws was broken."""
    chance = random.Random(seed)
    name = chance.choice(("generic", "generic", "generic", "linux"))
    prompt = "root@board:~# " if name == "linux" else chance.choice(PROMPTS)
    plain = chance.random() < PLAIN
    answers: dict[str, str] = {}
    scripts = {}
    for number in range(3):
        command, token = f"cmd{number}", f"token{number}"
        if plain:
            scripts[command], answers[command] = plain_script(chance, name, token)
        else:
            scripts[command] = script_of(chance, prompt, token)
    device = Device(prompt, scripts, status=chance.choice(("0", "0", "$?")))
    device.cut = chance.randrange(400)
    device.lag_s = chance.choice((0.0, 0.0, 0.0, 0.0, 0.3, 1.0, 2.5))
    device.mimics = not plain and chance.random() < 0.2
    if not plain and chance.random() < 0.2:
        device.loses = frozenset(chance.sample(range(1, 200), 3))
    yield from _played(device, ConsoleMachine(load_profile(name), words()), answers, chance)


def _played(device: Device, machine: ConsoleMachine, answers: dict[str, str], chance: random.Random) -> Iterator[str]:
    sent = 0
    for command in device.scripts:
        outcome = device.carry(machine.run(command, 60.0 if answers else chance.choice((1.0, 5.0, 20.0))))
        sent += not isinstance(outcome, NotSent)
        if isinstance(outcome, Done | Failed):
            yield from _wrongly_done(device, command, outcome)
        if answers:
            yield from _untold(device.scripts[command], answers[command], outcome)
        if isinstance(outcome, WaitingForInput):
            device.carry(machine.answer("no", 60.0))
        if chance.random() < 0.3:
            device.idle(chance.choice((0.1, 3.0, 40.0)))
        if device.lost:
            break
    if len(device.started) > sent or len(set(device.started)) < len(device.started):
        yield f"{device.started} for {sent} calls"
    if device.unheard_of:
        yield f"nobody asked for {device.unheard_of}"
    if typed := {char for _, char in device.typed_while_running} - {" ", *machine.profile.keys.nudge}:
        yield f"{typed} typed into what runs"


def _wrongly_done(device: Device, command: str, outcome: Done | Failed) -> Iterator[str]:
    number = command.removeprefix("cmd")
    if command not in device.finished:
        yield f"{command} is said to have ended and runs: {outcome}"
    if f"token{number}" not in outcome.output:
        yield f"{command} lacks its answer: {outcome}"
    if any(f"token{other}" in outcome.output for other in "012" if other != number):
        yield f"{command} has another one's answer: {outcome}"


def _untold(script: list[list[Any]], answer: str, outcome: Outcome) -> Iterator[str]:
    asked = script[-1][1] if script[-1][0] == "ask" else ""
    if not isinstance(outcome, WaitingForInput if asked else Done):
        yield f"{script} ended and that is not told: {outcome}"
    elif outcome.output.strip().removesuffix(asked.strip()).strip() != answer:
        yield f"{script} was answered with {outcome}"


def log_in_violations(seed: int) -> Iterator[str]:
    """Log in while the password takes its time, and the device does what it wants meanwhile."""
    chance = random.Random(seed)
    device = Device("root@board:~# ", {})
    device.state = chance.choice(("log_in", "log_in", "password"))
    device.asks_user = chance.choice(("login: ", "login: \r\n"))
    device.say(device.asks_user if device.state == "log_in" else "Password: ")
    machine = ConsoleMachine(load_profile("linux"), words())
    went_on = True

    def password() -> str:
        nonlocal went_on
        device.idle(chance.choice((0.0, 1.0)))
        if chance.random() < 0.5:
            went_on = False
            gave_up = "\r\nLogin timed out after 60 seconds\r\n\r\nboard login: "
            boots = "\r\nDRAM:  256 MiB\r\nHit any key to stop autoboot:  3 "
            what, device.state = chance.choice(((gave_up, "log_in"), ("", "password"), (boots, "boot")))
            device.say(what)
        return "s3cret"

    began = device.state
    state = device.carry(log_in(machine, "root", password, 10.0))
    if any(line == "s3cret" and where != "password" for where, line in device.entered_at):
        yield f"the password went to {device.entered_at}"
    if state == "shell" and device.state != "shell":
        yield f"{state} is said, and the device is in {device.state}"
    if began == "log_in" and went_on and state != "shell":
        yield f"nobody is logged in: {device.entered_at}"


def first_violation(plays: int, about: str = "") -> str:
    """The first law that was broken, of those that are said with these words; or nothing."""
    for seed in range(plays):
        for found in (*violations(seed), *log_in_violations(seed)):
            if about in found:
                return f"seed {seed}: {found}"
    return ""
