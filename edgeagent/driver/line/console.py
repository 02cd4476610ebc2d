"""What state is the console in, and how did a command end? A transaction: begin, end and status are certain.

Laws:
* No command is sent unless the state has just been confirmed by an answer that only a live prompt can give.
* A line is typed, its echo is read back, and only then is Enter pressed: a lost byte never becomes another command.
* A command whose end was not seen is unknown. It is never sent again, and nothing is typed into it.
* A half-typed line of somebody else is cleared, never completed.
* A password goes to nothing but its prompt, and never into a trace.
Knows nothing of tools or agents.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable
from typing import Literal

from edgeagent.driver.line import raw_repl
from edgeagent.driver.line.outcome import (
    DeviceReset,
    Done,
    Failed,
    LinkWasLost,
    NotSent,
    Outcome,
    TimedOut,
    WaitingForInput,
)
from edgeagent.driver.line.port import LinkLost, SerialPort, Who
from edgeagent.driver.line.profile import Profile
from edgeagent.driver.line.screen import CursorAsked, Cutter, Screen, echo_differs, echo_length, printed, set_aside

State = Literal["off", "boot_loader", "booting", "log_in", "password", "shell", "repl", "unknown"]

READY: tuple[State, ...] = ("boot_loader", "shell", "repl")
ECHO_S = 2.0
"""How long a typed line may take to come back."""

CONFIRM_S = 3.0  # One attempt at a prompt while entering: many times what a live one needs.
NUDGE_S = 1.0
TYPING_TRIES = 3
"""A line whose echo differs was never entered, so it may be typed again, slower each time."""

BUSY = "the command before, {command!r}, has not ended (its effect is unknown): interrupt it, or wait for its end"


class _View:
    """What was heard from one offset on, as a terminal shows it."""

    def __init__(self, port: SerialPort, profile: Profile, since: int | None = None) -> None:
        self.port = port
        self.profile = profile
        self.offset = port.offset if since is None else since
        self.raw = b""
        self.typed = ""
        self.asked = 0
        self._cutter = Cutter()
        self._screen = Screen(profile.columns)

    def more(self, timeout_s: float) -> bool:
        """Take in what comes within the time; return whether anything came. Raises LinkLost."""
        portion, self.offset = self.port.wait(self.offset, max(0.0, timeout_s))
        self.raw += portion
        events = self._cutter.feed(portion)
        self._screen.show(events)
        self.typed += printed(events)
        self.asked += sum(isinstance(event, CursorAsked) for event in events)
        return bool(portion)

    @property
    def clean(self) -> tuple[str, tuple[str, ...]]:
        """The text without noise lines, and those."""
        return set_aside(self._screen.text, self.profile.noise_patterns)

    @property
    def text(self) -> str:
        """All of the text. A device's start is looked for here: its lines are the kernel's too."""
        return self._screen.text

    @property
    def last_line(self) -> str:
        """The line that a prompt would be on."""
        return self.clean[0].rpartition("\n")[2]


class Console:
    """One console of one device. Safe to use from any thread; one command at a time."""

    def __init__(self, port: SerialPort, profile: Profile, *, word: Callable[[], str] | None = None) -> None:
        self.port = port
        self.profile = profile
        self.state: State = "unknown"
        self.running = ""
        self.person_has_it = False
        self._end = ""
        self._question = ""
        self._line_typed = ""
        self._torn = False
        self._since = port.offset
        self._word = word or (lambda: secrets.token_hex(4))
        self._turn = threading.RLock()

    # -- the state

    def look(self) -> State:
        """Read what has come and say the state, without sending anything. Raises LinkLost."""
        with self._turn:
            view = _View(self.port, self.profile, self._since)
            while view.more(0):
                pass
            self._note_end(view)
            self.state = self._classified(view)
            return self.state

    def confirm(self, timeout_s: float = 5.0) -> State:
        """Make sure of the state: by an answer that only a live prompt can give. Raises LinkLost.

        While a command has not ended nothing is typed, and the state stays what is seen. Only when its line was lost
        meanwhile its end may have passed unheard: then the prompt is asked for, and its answer is the end.
        """
        with self._turn:
            until = time.monotonic() + timeout_s
            state = self.look()
            if self.running and not self._torn:
                return state
            if state in ("log_in", "password", "booting"):
                self.running = "" if self._torn else self.running  # It started again, or ended its session.
                return state
            state = self._probe(until) if state in READY and not self.running else self._nudge(until)
            if state in READY:
                self.running, self._torn = "", False
            return state

    def enter(self, timeout_s: float = 30.0) -> State:
        """Get to a prompt: hold the boot loader, wake a silent line. Raises LinkLost. Log in with `log_in`."""
        with self._turn:
            until = time.monotonic() + timeout_s
            view = _View(self.port, self.profile, self._since)
            while time.monotonic() < until:
                view.more(0.1)
                if self._autoboot_counts(view):
                    self._send(self.profile.boot.autoboot_key)
                    self.running = ""
                    view = self._fresh(view)
                elif self._quiet(view):
                    # A shell that is just starting may swallow what is typed; then it is asked again.
                    state = self.confirm(max(0.5, min(CONFIRM_S, until - time.monotonic())))
                    if state in (*READY, "log_in", "password"):
                        return state
            return self.state

    def log_in(self, user: str, password: Callable[[], str], timeout_s: float = 20.0) -> State:
        """Log in; return the state afterwards: `shell`, or `log_in` when it was refused. Raises LinkLost.

        The password is asked for only once its prompt stands there, and goes nowhere else.
        """
        with self._turn:
            until = time.monotonic() + timeout_s
            if self.look() not in ("log_in", "password"):
                self._nudge(until)
            if self.state == "password":  # Somebody else's log-in: an empty answer ends it.
                self._answered_line("", until)
            if self.state != "log_in":
                return self.state
            if self._answered_line(user, until) != "password":
                return self.state
            secret = password()
            self.port.hide(secret.encode())
            try:
                self._answered_line(secret, until, hidden=True)
            finally:
                self.port.hide(b"")
            return self.confirm(max(0.1, until - time.monotonic())) if self.state in READY else self.state

    def interrupt(self, timeout_s: float = 5.0) -> State:
        """Break off what runs and find the prompt again. What the command did stays unknown. Raises LinkLost."""
        with self._turn:
            view = _View(self.port, self.profile)
            self._since = view.offset
            self._send(self.profile.keys.interrupt)
            if self._raw:
                view.more(0.2)  # The traceback comes first; then the raw REPL is left.
                self._send(raw_repl.LEAVE)
            until = time.monotonic() + timeout_s
            while time.monotonic() < until and not self._prompt(view):
                view.more(0.1)
            self.state = self._classified(view)
            if self.state in READY:
                self.running = self._question = ""
                return self._probe(until)
            return self.state

    # -- a person at the console

    def break_in(self) -> None:
        """A person takes the console: the agent's commands are not sent until it is handed back."""
        self.person_has_it = True

    def hand_back(self) -> None:
        """The agent may go on; nothing it knew of the state holds any more."""
        self.person_has_it = False
        self.state = "unknown"
        self.running = self._question = ""  # The person has seen what became of it.

    def person_types(self, data: bytes) -> None:
        """Send what a person typed, as such. Raises LinkLost; ValueError while the agent has the console."""
        if not self.person_has_it:
            raise ValueError("the agent has the console: break in first")
        self.port.write(data, who="person")

    # -- commands

    def run(self, command: str, timeout_s: float = 10.0) -> Outcome:
        """Run one command and say how it ended. Never raises for what a device does; never sends it twice."""
        with self._turn:
            started = time.monotonic()
            refused = self._why_not(command)
            if refused:
                return NotSent(refused)
            try:
                return self._transact(command, started, started + timeout_s)
            except LinkLost as lost:
                self._torn = True
                return LinkWasLost("", str(lost)) if self.running == command else NotSent(str(lost))

    def answer(self, text: str, timeout_s: float = 10.0) -> Outcome:
        """Answer the question of a command that waits for input, and go on waiting for its end."""
        with self._turn:
            if not self._question:
                return NotSent("no command waits for input")
            if re.search(r"(?i)pass(word|phrase)", self._question):
                return NotSent("a password goes to its prompt only through log_in")
            started = time.monotonic()
            try:
                view = _View(self.port, self.profile)
                self._question = ""
                self._type(text + self.profile.keys.enter)
                return self._until_end(view, "", started, started + timeout_s)
            except LinkLost as lost:
                self._torn = True
                return LinkWasLost("", str(lost))

    def _why_not(self, command: str) -> str:
        if self.person_has_it:
            return "a person has the console; the agent waits until it is handed back"
        if not command.strip() or any(self._is_control(c) for c in command):
            return f"{command!r} is not one line of text"
        longest = max(len(part) for part in self._line(command, "0" * 8, "0" * 8).split("\n"))
        if longest > self.profile.line_bytes_max and not self._raw:
            return f"the line would be {longest} characters; this device takes {self.profile.line_bytes_max}"
        return ""

    def _is_control(self, char: str) -> bool:
        return (char < " " and not (self._raw and char in "\n\t")) or char == "\x7f"

    @property
    def _raw(self) -> bool:
        return self.profile.transaction.style == "raw_repl"

    def _transact(self, command: str, started: float, until: float) -> Outcome:
        state = self.confirm(max(0.0, until - time.monotonic()))
        if self.running:
            return NotSent(BUSY.format(command=self.running))
        if state not in READY:
            return NotSent(f"the console is in state {state}, not at a prompt", self._tail())
        if self._raw:
            return self._in_raw_repl(command, started, until)
        left, last = self._word(), self._word()
        line = self._line(command, left, last)
        view, problem = self._typed(line, until)
        if view is None:
            return NotSent(problem)
        if self.person_has_it or time.monotonic() >= until:
            self._clear()
            return NotSent("a person took the console" if self.person_has_it else "the time was over before Enter")
        self.running, self._end = command, left + last if self._marked else ""
        self._since = view.offset
        self._send(self.profile.keys.enter)
        return self._until_end(view, left, started, until)

    @property
    def _marked(self) -> bool:
        return self.profile.transaction.style == "marker"

    def _line(self, command: str, left: str, last: str) -> str:
        if not self._marked:
            return command
        parts = {"{left}": left, "{right}": "a", "{last}": last, "{command}": command}
        # One pass, so that nothing inside the command is taken for a place of ours.
        return re.sub(r"\{(left|right|last|command)\}", lambda m: parts[m.group()], self.profile.transaction.line)

    def _typed(self, line: str, until: float) -> tuple[_View | None, str]:
        """Type the line and read its echo back. Returns the view, or None and why; then the line is cleared again."""
        problem, self._line_typed = "", line
        for slower in range(TYPING_TRIES):
            view = _View(self.port, self.profile)
            accepted = self._type(line, slower=slower, until=until)
            if accepted == len(line.encode()) and (not self.profile.echo or self._echoed(view, line, until)):
                return view, ""
            self._clear(settle_s=0.2)
            shown = view.typed[-80:]
            problem = f"the console did not take in the line as typed (it shows {shown!r}); nothing was executed"
            if time.monotonic() >= until:
                break
        return None, problem

    def _echoed(self, view: _View, line: str, until: float) -> bool:
        limit = min(until, time.monotonic() + ECHO_S)
        while True:
            shown, _ = set_aside(view.typed.replace("\r\n", "\n"), self.profile.noise_patterns)
            readings = (shown, self._after_prompt(shown))
            if any(echo_length(reading, line) is not None for reading in readings):
                return True
            if time.monotonic() >= limit:
                return False
            if all(echo_differs(reading, line) for reading in readings) and not view.more(0.15):
                return False  # Wrong, and nothing more comes that could be the rest of a noise line.
            view.more(min(0.1, max(0.0, limit - time.monotonic())))

    def _after_prompt(self, shown: str) -> str:
        """Drop a prompt that was drawn again before the echo, as line editors do when they are cleared."""
        drawn = re.split(r"[\r\n]", shown)
        for at, line in enumerate(drawn):
            for _, pattern in self.profile.prompt_patterns:
                found = re.match(pattern.pattern.removesuffix(r"\Z"), line)
                if found and found.end():
                    return "\r".join([line[found.end() :], *drawn[at + 1 :]])
        return shown

    def _until_end(self, view: _View, left: str, started: float, until: float) -> Outcome:
        """Read until the command's end, its question, a reset, or the time."""
        outcome = self._read_until_end(view, left, started, until)
        if isinstance(outcome, Done | Failed | DeviceReset):
            self.running = ""
            if isinstance(outcome, Done | Failed) and self.profile.transaction.status_command:
                return self._with_status(outcome, until)
        return outcome

    def _read_until_end(self, view: _View, left: str, started: float, until: float) -> Outcome:
        while True:
            try:
                came = view.more(min(self.profile.quiet_ms / 1000, max(0.0, until - time.monotonic())))
            except LinkLost as lost:
                text, noise = view.clean
                self._torn = True
                return LinkWasLost(self._body(text, left), str(lost), noise)
            self._answer_cursor(view)
            ended = self._ended(view, left)
            if ended is not None:
                return ended
            text, noise = view.clean
            if banner := self._banner(view.text):
                self.state = "booting"
                return DeviceReset(self._body(text, left), banner, noise)
            if not came and (question := self._asks(view.last_line)):
                self._question = question
                return WaitingForInput(question, self._body(text, left), noise)
            if time.monotonic() >= until:
                self.state = "unknown"
                if (ended := self._ended(view, left, time_is_over=True)) is not None:
                    return ended
                return TimedOut(self._body(text, left), round((time.monotonic() - started) * 1000), noise)

    def _ended(self, view: _View, left: str, *, time_is_over: bool = False) -> Outcome | None:
        """The end of the command, if it stands there; after a marker the prompt may be missing when time is over."""
        prompt = self._prompt(view)
        if not prompt and not (time_is_over and self._marked):
            return None
        text, noise = view.clean
        if self._marked:
            # The marker is the end; the prompt may be glued to noise and is looked for on its own.
            found = re.search(re.escape(self._end) + r" (-?\d+)\s", text)
            if found is None:
                return self._refused_line(view, text, left, noise)
            self.state = self._classified(view)
            status, body = int(found.group(1)), self._body(text[: found.start()], left)
            return Done(body, 0, noise) if status == 0 else Failed(body, status, noise)
        if view.more(0.05):
            return None  # What looked like a prompt was the middle of a line.
        self.state = self._classified(view)
        body = self._body(text.rpartition("\n")[0], left)
        failures = self.profile.transaction.failure
        if any(re.search(each, body, re.MULTILINE) for each in failures):
            return Failed(body, None, noise)
        return Done(body, 0, noise)

    def _refused_line(self, view: _View, text: str, left: str, noise: tuple[str, ...]) -> Outcome | None:
        """A line that the shell could not read was not begun: its prompt is back, the begin marker is not there."""
        shown = text.partition("\n")[2]
        failures = self.profile.transaction.failure
        if f"{left}a\n" in shown or not any(re.search(each, shown, re.MULTILINE) for each in failures):
            return None
        self.state = self._classified(view)
        return Failed(shown.rpartition("\n")[0].strip("\n"), None, noise)

    def _body(self, text: str, left: str) -> str:
        """The answer alone: what follows the begin marker, or the echo."""
        if self._marked and left:
            _, begun, after = text.partition(f"{left}a\n")
            return after.strip("\n") if begun else text.partition("\n")[2].strip("\n")
        if not self.profile.echo:
            return text.strip("\n")
        echoed = echo_length(text, self._line_typed)  # A wrapped echo may take several lines.
        return (text.partition("\n")[2] if echoed is None else text[echoed:]).strip("\n")

    def _with_status(self, outcome: Done | Failed, until: float) -> Outcome:
        """Ask a console without `;` for the status of the command before. Reading it changes nothing."""
        asking = self.profile.transaction.status_command
        view, _ = self._typed(asking, max(until, time.monotonic() + ECHO_S))
        if view is None:
            return Failed(outcome.output, None, outcome.noise)
        self._send(self.profile.keys.enter)
        answer = self._read_until_end(view, "", time.monotonic(), time.monotonic() + ECHO_S)
        found = re.search(self.profile.transaction.status, getattr(answer, "output", ""))
        status = int(found.group(1)) if found else None
        if status == 0 and isinstance(outcome, Done):
            return outcome
        return Failed(outcome.output, status, outcome.noise)

    # -- MicroPython

    def _in_raw_repl(self, code: str, started: float, until: float) -> Outcome:
        if not self._enter_raw_repl(until):
            return NotSent("the raw REPL did not answer", self._tail())
        view = _View(self.port, self.profile)
        self._type(code, until=until)
        self.running, self._since = code, view.offset
        self._send(raw_repl.RUN)
        try:
            while True:
                view.more(min(0.2, max(0.0, until - time.monotonic())))
                answer = raw_repl.read(view.raw)
                if answer is not None:
                    self.running = ""
                    self._leave_raw_repl()
                    return answer
                if banner := self._banner(view.text):
                    self.running = ""
                    return DeviceReset(view.clean[0], banner)
                if time.monotonic() >= until:
                    self.state = "unknown"
                    return TimedOut(raw_repl.begun(view.raw), round((time.monotonic() - started) * 1000))
        except LinkLost as lost:
            self._torn = True
            return LinkWasLost(raw_repl.begun(view.raw), str(lost))

    def _enter_raw_repl(self, until: float) -> bool:
        """Synchronise as tolerantly as ampy#43 asks for: what stands before the prompt does not matter."""
        view = _View(self.port, self.profile)
        self._send(raw_repl.ENTER)
        limit = min(until, time.monotonic() + ECHO_S)
        while time.monotonic() < limit:
            view.more(0.1)
            if raw_repl.is_ready(view.raw):
                return True
        return False

    def _leave_raw_repl(self) -> None:
        view = _View(self.port, self.profile)
        self._since = view.offset
        self._send(raw_repl.LEAVE)
        limit = time.monotonic() + ECHO_S
        while time.monotonic() < limit and not self._prompt(view):
            view.more(0.1)
        self.state = self._classified(view)

    # -- the parts

    def _probe(self, until: float) -> State:
        """Have the prompt join a word that we only sent in halves: a log-in prompt or a file being read cannot."""
        if self._raw:
            return self._nudge(until)
        if not self._marked:
            return self._nudge(until)
        left, right = self._word(), self._word()
        parts = {"{left}": left, "{right}": right}
        line = re.sub(r"\{(left|right)\}", lambda m: parts[m.group()], self.profile.transaction.probe)
        self._clear()
        view, _ = self._typed(line, until)
        if view is None:
            self.state = "unknown"
            return self.state
        self._since = view.offset
        self._send(self.profile.keys.enter)
        while True:
            view.more(min(0.1, max(0.0, until - time.monotonic())))
            self._answer_cursor(view)
            if left + right in view.clean[0] and self._prompt(view):
                self.state = self._classified(view)
                return self.state
            if time.monotonic() >= until:
                self.state = "unknown"
                return self.state

    def _nudge(self, until: float) -> State:
        """Ask an unknown console for its prompt; clear a half-typed line first, so that it is never completed."""
        if not self._raw:
            self._clear()
        view = _View(self.port, self.profile)
        self._since = view.offset
        self._send(self.profile.keys.nudge)
        limit = min(until, time.monotonic() + NUDGE_S)
        while time.monotonic() < limit and not self._prompt(view):
            view.more(0.05)
        while view.more(0.05):
            pass
        self.state = self._classified(view) if view.raw else "off"
        if self.state in READY and self._marked and time.monotonic() < until:
            return self._probe(until)
        return self.state

    def _clear(self, settle_s: float = 0.02) -> None:
        """Empty the line editor, and let what that prints go by."""
        view = _View(self.port, self.profile)
        self._send(self.profile.keys.clear_line)
        if self._raw:
            while view.more(0.1) and not self._prompt(view):
                pass
            return
        while view.more(settle_s):
            pass

    def _answered_line(self, text: str, until: float, *, hidden: bool = False) -> State:
        """Answer a log-in prompt with a line, and see what comes next."""
        view = _View(self.port, self.profile)
        self._since = view.offset
        self._type(text + self.profile.keys.enter, hidden=hidden)
        while time.monotonic() < until:
            view.more(0.1)
            if view.last_line and self._prompt(view) and "\n" in view.clean[0] and not view.more(0.1):
                break
        self.state = self._classified(view)
        return self.state

    def _classified(self, view: _View) -> State:
        last = view.last_line
        for state, pattern in self.profile.prompt_patterns:
            if pattern.search(last):
                return state  # type: ignore[return-value]  # the names come from the fields of Prompts
        if self._banner(view.text):
            return "booting"
        return "unknown" if view.raw or self.state in READY else self.state

    def _prompt(self, view: _View) -> bool:
        last = view.last_line
        return any(pattern.search(last) for _, pattern in self.profile.prompt_patterns)

    def _asks(self, last_line: str) -> str:
        if last_line and any(pattern.search(last_line) for pattern in self.profile.question_patterns):
            return last_line.strip()
        return ""

    def _banner(self, text: str) -> str:
        found = [m.group() for p in self.profile.banner_patterns if (m := p.search(text))]
        return found[0] if found else ""

    def _autoboot_counts(self, view: _View) -> bool:
        autoboot = self.profile.boot.autoboot
        return bool(autoboot and re.search(autoboot, view.last_line) and not self._prompt(view))

    def _quiet(self, view: _View) -> bool:
        # A line that said nothing since it was opened is not in the middle of booting; it need not be waited for.
        return not view.more(self.profile.quiet_ms / 1000 if view.raw else 0)

    def _fresh(self, view: _View) -> _View:
        self._since = view.offset
        return _View(self.port, self.profile, view.offset)

    def _note_end(self, view: _View) -> None:
        """A command that was given up may end later after all: then the console is free again."""
        if not self.running:
            return
        text = view.clean[0]
        if self._marked:
            ended = re.search(re.escape(self._end) + r" -?\d+", text) is not None
        else:
            ended = self._prompt(view) or (self._raw and raw_repl.read(view.raw) is not None)
        if ended or self._banner(view.text):
            self.running = self._question = ""

    def _answer_cursor(self, view: _View) -> None:
        if view.asked and self.profile.answer_cursor_query:
            self._send("\x1b[1;1R" * view.asked)
        view.asked = 0

    def _tail(self) -> str:
        view = _View(self.port, self.profile, self._since)
        view.more(0)
        return view.clean[0][-400:]

    def _send(self, keys: str, *, who: Who = "agent") -> None:
        if keys:
            self.port.write(keys.encode("latin-1"), who=who)

    def _type(self, text: str, *, slower: int = 0, until: float | None = None, hidden: bool = False) -> int:
        """Type at the pace that the device can take; return the bytes that the line took. Each try is slower."""
        pacing = self.profile.pacing
        data = text.encode()
        size = 1 if pacing.char_ms or slower > 1 else max(1, min(pacing.chunk_bytes, 256 if not slower else 16))
        wait_ms = max(pacing.char_ms if size == 1 else pacing.chunk_ms, (0, 10, 5)[slower])
        accepted = 0
        for at in range(0, len(data), size):
            if until is not None and time.monotonic() >= until:
                return accepted
            portion = data[at : at + size]
            taken = self.port.write(portion, hidden=hidden)
            accepted += taken
            if taken < len(portion):
                return accepted
            if wait_ms:
                time.sleep(wait_ms / 1000)
        if pacing.line_ms:
            time.sleep(pacing.line_ms / 1000)
        return accepted
