"""Generated consoles in every dress: vendors' prompts, line ends, colours, clocks, NUL, wrapped echoes, log lines.

Laws held for each: a command that ends is told, with its own answer and nothing else; it is run once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from edgeagent.driver.line.console_machine import ConsoleMachine
from edgeagent.driver.line.outcome import Done
from edgeagent.driver.line.profile import load_profile
from tests.driver.line.simulated import ONE_BY_ONE, Device, words

# fmt: off
PROMPTS = (
    "sw1#", "sw1>", "Router(config-if)# ", "RP/0/RSP0/CPU0:ios#", "nexus-7k# ", "admin@PA-VM> ", "user@junos# ",
    "[edit]\r\nuser@junos# ", "{master:0}\r\nuser@ex> ", "FGT60D (global) # ", "FortiGate-60E $ ", "<HUAWEI>",
    "[*HUAWEI-GigabitEthernet0/0/1]", "[~HUAWEI]", "(Cisco Controller) >", "(aruba-7005) [mynode] #",
    "(aruba-7005) *[mynode] #", "[admin@MikroTik] /ip address> ", "[admin@Mikro Tik 2] >", "TL-SG3216(config)#",
    "DGS-3120-24TC:admin#", "DGS-3120:5#", "ProCurve Switch 2510# ", "A:router1# ", "*A:router1>config# ",
    "B:sr-12>config>router$ ", "vyos@vyos:~$ ", "(UBNT EdgeSwitch) #", "XM.v6.1.7# ", "Console>(enable) ",
    "switch> (enable) ", "MA5608T(config-if-gpon-0/1)#", "-> ", "=> ", "[root@esxi:~] ", "[root@host ~]# ",
    "root@host:/etc# ", "bash-5.1$ ", "/ # ", "~ # ", "$ ", "# ", "> ", "% ", "host% ", "host:~ user$ ",
    "C:\\Users\\admin>", "PS C:\\Users> ", "uart:~$ ", "msh />", "nsh> ", ">>> ", "rommon 1 > ", "switch: ", "grub> ",
    "barebox:/ ", "RedBoot> ", "Marvell>> ", "[vxWorks *]# ", "user@host > ", "❯ ", "➜  ~ ", "λ ", "user@host ~ % ",
    "root@(none):/# ", "SSH@ICX7150#", "* X450G2.13 # ", "Slot-1 X460.5 > ", "(WLC) config>", "FS0:\\> ", "mysql> ",
    "MariaDB [(none)]> ", "postgres=# ", "lftp :~> ", "(gdb) ", "octave:1> ", "irb(main):001:0> ",
    "redis 127.0.0.1:6379> ", "user@host:~/src (main) $ ", "[user@host src (feature/x *)]$ ",
)
DRESSES = (
    ("\x1b[0;32m", "\x1b[0m"), ("\x1b[?2004h", ""), ("\x1b]0;user@host: ~\x07", ""), ("\r\x1b[K", ""),
    ("\x1b[01;31m\x1b[K", ""), ("\x1b[J\x1b[1G", ""), ("", "\x1b[0m\x1b[K"), ("\x1b[m", "\x1b[6n"), ("\r\r", ""),
)
# fmt: on
LINE_ENDS = ("\n", "\n\r", "\r\r\n", "\r\n\0", "\r\n\r")
NOISE = {
    "generic": "*Mar  1 00:01:02.003: %LINK-3-UPDOWN: Interface up\r\n",
    "linux": "[   37.360123] usb 1-1: new device\r\n",
}
LINES = ("line 1", "a: b", "   indented", "x" * 79, "x" * 80, "x" * 160, "100%", "table | cell", "", "naïve é 日本")
KINDS = ("line_end", "nul", "dress", "slow", "wrap", "cut", "noise", "lag", "clock")
TOGETHER = ({"dress", "noise"}, {"slow", "noise"}, {"slow", "clock"})
"""Not tried at once: a log line inside a sequence; bytes so slow that a log line takes a second."""


class Dressed(Device):
    """A console that prints in a dress of its own."""

    def __init__(self, prompt: str, scripts: dict[str, list[list[Any]]], chance: random.Random) -> None:
        super().__init__(prompt, scripts)
        self.chance = chance
        self.line_end, self.noise = "\r\n", ""
        self.dress: tuple[str, str] = ("", "")
        self.clock: Callable[[], str] = lambda: ""
        self.nul = self.slow_s = 0.0
        self.wraps, self.wrap = 0, ""
        self._column = 0

    def say(self, text: str, after_s: float = 0.0) -> None:
        """Print it as this console prints."""
        if text.endswith(self.prompt):
            before, after = self.dress
            text = f"{text.removesuffix(self.prompt)}{before}{self.clock()}{self.prompt}{after}"
        text = self._wrapped(text.replace("\r\n", self.line_end))
        if self.noise and len(text) > 1 and self.chance.random() < 0.15:
            at = self.chance.randrange(len(text))
            text = text[:at] + self.noise + text[at:]
        if self.nul:
            text = "".join(char + "\0" * (self.chance.random() < self.nul) for char in text)
        portions = text if self.slow_s else (text,)
        for number, portion in enumerate(portions):
            super().say(portion, after_s + self.slow_s * number)

    def _wrapped(self, text: str) -> str:
        """An echoed character, and what wraps the line behind it."""
        if len(text) != 1 or text < " ":
            self._column = 0
            return text
        self._column += 1
        if not self.wraps or self._column < self.wraps:
            return text
        self._column = 0
        return text + self.wrap


def scripts_of(chance: random.Random) -> tuple[dict[str, list[list[Any]]], dict[str, str]]:
    """Three commands, and what each answers."""
    scripts: dict[str, list[list[Any]]] = {}
    answers = {}
    for number in range(3):
        lines = [f"token{number}", *chance.choices(LINES, k=chance.randrange(4))]
        while not lines[-1].strip():
            lines.pop()
        scripts[f"cmd{number}"] = [[chance.choice((0, 0.1, 0.7)), f"{line}\r\n"] for line in lines]
        answers[f"cmd{number}"] = "\n".join(lines)
    return scripts, answers


def dressed(chance: random.Random, name: str, scripts: dict[str, list[list[Any]]]) -> tuple[Dressed, set[str]]:
    """A console in one or two kinds of dress."""
    device = Dressed("root@board:~# " if name == "linux" else chance.choice(PROMPTS), scripts, chance)
    kinds = set(chance.sample(KINDS, chance.choice((1, 1, 2))))
    kinds = kinds if not any(each <= kinds for each in TOGETHER) else {"cut"}
    device.line_end = chance.choice(LINE_ENDS) if "line_end" in kinds else "\r\n"
    device.nul = 0.2 * ("nul" in kinds)
    device.dress = chance.choice(DRESSES) if "dress" in kinds else ("", "")
    device.slow_s = chance.choice((0.005, 0.02)) * ("slow" in kinds)
    device.wraps, device.wrap = (
        (chance.choice((20, 80)), chance.choice((" \r", "\r\n"))) if "wrap" in kinds else (0, "")
    )
    device.cut = ONE_BY_ONE if "cut" in kinds else -1
    of_its_log = device.prompt.startswith("RP/")  # IOS XR begins its log lines with its prompt.
    device.noise = NOISE[name] if "noise" in kinds and not of_its_log else ""
    device.lag_s = chance.choice((0.3, 1.0, 2.0)) * ("lag" in kinds)
    if "clock" in kinds and "\r\n" not in device.prompt:
        seconds = iter(range(10**6))
        device.clock = lambda: f"[12:00:{next(seconds) % 60:02d}] "
    return device, kinds


def dress_violations(seed: int) -> Iterator[str]:
    """Play one console; say what of the laws was broken."""
    chance = random.Random(seed)
    name = chance.choice(("generic", "generic", "linux"))
    scripts, answers = scripts_of(chance)
    device, kinds = dressed(chance, name, scripts)
    profile = load_profile(name)
    machine = ConsoleMachine(msgspec.structs.replace(profile, columns=device.wraps or profile.columns), words())
    for command, answer in answers.items():
        outcome = device.carry(machine.run(command, 120.0))
        if not isinstance(outcome, Done) or outcome.output.strip("\n") != answer:
            yield f"{kinds} {device.prompt!r} {device.line_end!r} {device.dress}: {outcome}, not {answer!r}"
            break
    if len(set(device.started)) < len(device.started) or device.unheard_of:
        yield f"{kinds} {device.prompt!r}: started {device.started}, nobody asked for {device.unheard_of}"


def first_dress_violation(plays: int) -> str:
    """The first law that was broken, or nothing."""
    return next((f"seed {seed}: {found}" for seed in range(plays) for found in dress_violations(seed)), "")
