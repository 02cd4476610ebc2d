"""A device in simulated time: a shell that runs scripts, and whoever carries a play's wishes to it. No port, no clock.

Of the keys that are pressed it `loses` those of these numbers; while a command runs one that `mimics` answers Enter
with the shell's prompt, and one that is `deaf` cannot be interrupted. `lag_s` is the way to it and back.

A script is a list of steps: `[seconds, text]` prints after a pause; `["ask", text]` waits for a line,
`["page", text, wiped]` for a key, and prints what wipes the text away; `["lose"]` ends the line, `["reset"]` starts the
device again, `["hang"]` never goes on; `["prompt", text]` changes the prompt, `["after", text]` prints behind the next.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable
from typing import Any

from edgeagent.driver.line.play import Given, LineGone, Look, Play, Result, Type

ECHO_S = 0.001
BYTE_S = 0.0001
ONE_BY_ONE = -2
"""As the place of a cut: there is one behind every byte."""

WIPED = "\r" + " " * 20 + "\r"

BANNER = "\r\nDRAM:  256 MiB\r\n[    0.000000] Booting Linux on CPU 0\r\n"


class Device:
    """A console that reads lines, echoes, runs scripts, and notes what it did and what was typed into it when."""

    def __init__(self, prompt: str, scripts: dict[str, list[list[Any]]], *, joins: bool = True, status: str = "0"):
        self.now = 0.0
        self.prompt = prompt
        self.scripts = scripts
        self.joins, self.status = joins, status
        self.cut = -1
        self.lag_s = 0.0
        self.loses: frozenset[int] = frozenset()
        self.mimics = self.deaf = False
        self.asks_user = "login: "
        self.lost = False
        self.started: list[str] = []
        self.finished: list[str] = []
        self.unheard_of: list[str] = []
        self.typed_while_running: list[tuple[str, str]] = []
        self.entered_at: list[tuple[str, str]] = []
        self.state = "shell"
        self._due: list[tuple[float, int, bytes | Callable[[], None]]] = []
        self._count = 0
        self._keys = 0
        self.printed = 0
        self._line = ""
        self._ahead = ""
        self._running = ""
        self._rest: list[list[Any]] = []
        self._waits_for = ""
        self._wiped = WIPED
        self._after = ""
        self._kept = b""

    # -- the play's side

    def carry(self, play: Play[Result]) -> Result:
        """Carry out a play's wishes until its end."""
        try:
            wish = next(play)
            while True:
                wish = play.send(self._given(wish))
        except StopIteration as end:
            result: Result = end.value
            return result

    def _given(self, wish: Type | Look) -> Given:
        if self.lost:
            return Given(self.now, lost="unplugged")
        if isinstance(wish, Type):
            if self.lag_s:
                self._later(self.lag_s / 2, lambda: self._keys_come(wish.data))
            else:
                self._keys_come(wish.data)
            return Given(self.now, accepted=len(wish.data))
        if self._kept:
            heard, self._kept = self._kept, b""
            return Given(self.now, heard)
        return self._wait(wish.until)

    def idle(self, seconds: float) -> None:
        """Let time go by while nobody reads: what is printed meanwhile is kept by the port."""
        until = self.now + seconds
        while self.now < until and not self.lost:
            self._kept += self._wait(until).heard

    def _wait(self, until: float) -> Given:
        while self._due and self._due[0][0] <= max(until, self.now):
            at = max(self.now, self._due[0][0])
            self.now, heard = at, b""
            while self._due and self._due[0][0] <= at:
                what = heapq.heappop(self._due)[2]
                if callable(what):
                    what()
                    if self.lost:
                        return Given(self.now, heard, lost="unplugged")
                else:
                    heard += what
            if heard:
                return Given(self.now, heard)
        self.now = max(self.now, until)
        return Given(self.now)

    # -- the device's side

    def _keys_come(self, data: bytes) -> None:
        for char in data.decode("latin-1"):
            self._key(char)

    def say(self, text: str, after_s: float = 0.0) -> None:
        """Print; one place of all that is printed may be cut in two, or every one."""
        data, after_s = text.encode(), after_s + self.lag_s / 2
        place = self.cut - self.printed
        self.printed += len(data)
        if self.cut == ONE_BY_ONE:
            for number in range(len(data)):
                self._later(after_s + BYTE_S * number, data[number : number + 1])
            return
        portions = (data[:place], data[place:]) if 0 < place < len(data) else (data,)
        for number, portion in enumerate(portions):
            self._later(after_s + 0.02 * number, portion)

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        """Have something happen to it then."""
        self._later(seconds, what)

    def leave_session(self) -> None:
        """End the session, and what runs in it; a log-in is asked for."""
        self._running, self._waits_for, self._rest = "", "", []
        self.state = "log_in"
        self.say(f"\r\n{self.asks_user}")

    def _later(self, after_s: float, what: bytes | Callable[[], None]) -> None:
        self._count += 1
        last = max((due[0] for due in self._due if isinstance(due[2], bytes)), default=0.0)
        at = self.now + after_s
        heapq.heappush(self._due, (max(at, last) if isinstance(what, bytes) else at, self._count, what))

    def _key(self, char: str) -> None:
        self._keys += 1
        if self._keys in self.loses:
            return
        if self._running and not self._waits_for:
            self.typed_while_running.append((self._running, char))
            if char == "\r" and self.mimics:
                self.say(f"\r\n{self.prompt}")
                return
            self._ahead += char
            if char == "\x03" and not self.deaf:
                self._end(interrupted=True)
            return
        if self._waits_for == "key":
            self._waits_for = ""
            self.say(self._wiped)
            self._go_on()
        elif char == "\x15":
            self.say("\b \b" * len(self._line))
            self._line = ""
        elif char == "\x03":
            self._line = ""
            if self._running:
                self._end(interrupted=True)
            else:
                self.say(f"^C\r\n{self.prompt}")
        elif char == "\r":
            self._enter()
        elif char >= " ":
            self._line += char
            if self.state != "password":
                self.say(char, ECHO_S)

    def _enter(self) -> None:
        line, self._line = self._line, ""
        self.say("\r\n")
        self.entered_at.append((self.state, line))
        if self._waits_for == "line":
            self._waits_for = ""
            self._go_on()
            return
        if self.state == "log_in":
            self.state = "password" if line else "log_in"
            self.say("Password: " if line else self.asks_user)
            return
        if self.state == "password":
            self.state = "shell" if line == "s3cret" else "log_in"
            self.say(self.prompt if self.state == "shell" else f"\r\nLogin incorrect\r\n{self.asks_user}")
            return
        self._run(line)

    def _run(self, line: str) -> None:
        rest: list[list[Any]] = []
        for part in line.split("; ") if line.strip() else []:
            joined = re.fullmatch(r'echo "(\w+)""(\w+)"( \$\?)?', part)
            if joined and self.joins:
                rest.append([0, f"{joined[1]}{joined[2]}{' ' + self.status if joined[3] else ''}\r\n"])
            elif part in self.scripts:
                self._running = part
                self.started.append(part)
                rest += [*self.scripts[part], ["finished", part]]
            else:
                self.unheard_of.append(part)
                rest.append([0, f"{part.split()[0]}: command not found\r\n"])
        self._rest = rest
        self._go_on()

    def _go_on(self) -> None:
        while self._rest:
            step = self._rest.pop(0)
            match step[0]:
                case "finished":
                    self.finished.append(step[1])
                case "ask" | "page":
                    self.say(step[1])
                    self._waits_for = "line" if step[0] == "ask" else "key"
                    self._wiped = step[2] if len(step) > 2 else WIPED
                    return
                case "hang":
                    return
                case "prompt":
                    self.prompt = step[1]
                case "after":
                    self._after = step[1]
                case "lose":
                    self._later(0, self._lose)
                    return
                case "reset":
                    self._running, self._rest = "", []
                    self.say(BANNER)
                    self.say(self.prompt, 2.0)
                    return
                case 0:
                    self.say(step[1])
                case seconds:
                    self._later(float(seconds), lambda text=step[1]: self._print_on(text))  # type: ignore[misc]
                    return
        self._end()

    def _print_on(self, text: str) -> None:
        if self._running or self._rest:
            self.say(text)
        self._go_on()

    def _lose(self) -> None:
        self.lost = True

    def _end(self, *, interrupted: bool = False) -> None:
        self._running, self._waits_for, self._rest = "", "", []
        self.say(f"{'^C' + chr(13) + chr(10) if interrupted else ''}{self.prompt}{self._after}")
        self._after = ""
        ahead, self._ahead = "" if interrupted else self._ahead, ""
        for at, char in enumerate(ahead):
            if self._running:
                self._ahead = ahead[at:]
                break
            self._key(char)


def words() -> Callable[[], str]:
    """Return a giver of words that are never the same twice."""
    given = iter(range(10_000))
    return lambda: f"w{next(given):04d}q"


__all__ = ["Device", "LineGone", "words"]
