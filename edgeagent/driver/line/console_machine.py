"""States of a console and its commands, as plays without I/O: begin, end and status are certain, or said to be unknown.

Laws:
* No command is sent unless the state has just been confirmed by an answer that only a live prompt can give.
* A line is typed, its echo is read back, and only then is Enter pressed: a lost byte never becomes another command.
* A command ends by evidence: its marker; or the prompt that was confirmed, from its line's start on, then quiet, then a
  new prompt after each nudge: some blanks and Enter, so many by chance, which a live editor echoes before its prompt.
  Until then nothing else is typed, and its effect is unknown. It is never sent again.
* A half-typed line of somebody else is cleared, never completed.
* A password goes to nothing but its prompt, looked at once more when the password is there.
Knows nothing of ports, threads, tools or agents.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from edgeagent.driver.line import raw_repl
from edgeagent.driver.line.consoles import session_ends
from edgeagent.driver.line.ending import (
    NAME,
    Sent,
    answer_of,
    late_prompts,
    marker_end,
    prompt_end,
    refused_line,
    stands,
)
from edgeagent.driver.line.nudging import Nudger
from edgeagent.driver.line.outcome import DeviceReset, Done, Failed, LinkWasLost, NotSent, Outcome, TimedOut
from edgeagent.driver.line.outcome import WaitingForInput as Waiting
from edgeagent.driver.line.play import ECHO_S, LAG_S_MAX, LineGone, Play
from edgeagent.driver.line.profile import SECRET, Profile
from edgeagent.driver.line.screen import echo_length
from edgeagent.driver.line.view import READY, State, View

CONFIRM_S = 3.0  # One attempt at a prompt while entering: many times what a live one needs.
NUDGE_S = 1.0
GAP_S = 0.15
"""How long the rest of a prompt may take whose begin stands there: `switch> (enable) ` begins like one."""

PROBE_S = 0.5
ROUND_TRIPS = 7
"""A command's time-out is its own; besides, the line needs so many: prompt, echo, answer, nudges, status."""

NUDGES_MAX = 3
"""How often a silent prompt is asked for a new one while its command may still run; then only listened to."""

PAGES_MAX = 500

BUSY = "the command before, {command!r}, has not ended (its effect is unknown): interrupt it, or wait for its end"


class ConsoleMachine(Nudger):
    """One console of one device. Its methods are plays; one runs at a time, to its end."""

    def __init__(self, profile: Profile, word: Callable[[], str]) -> None:
        super().__init__(profile, word)
        self.state: State = "unknown"
        self.running = ""
        self.person_has_it = False
        self.confirmed = ""
        self._sent = Sent("")
        self._question = ""
        self._answered = self.logged_in_at = ""
        self._torn = False
        self._nudges: tuple[str, ...] = ()
        self._missed = 0

    def handed_back(self) -> None:
        """A person had the console and saw what became of it; nothing known of the state holds any more."""
        self.person_has_it = False
        self.state = "unknown"
        self.running = self._question = ""
        self.echoes_blanks, self.ticks = None, False

    # -- the state

    @property
    def others_log_in(self) -> bool:
        """Whether the log-in that stands there may be another device's: asked for by a command that has not ended.

        One that ends a session brings up the console's own; so does what shows the very name that was logged in at.
        """
        if not self.running or session_ends().match(self.running):
            return False
        named = len(NAME.findall(self.logged_in_at)) > 1
        return not (named and self.view.clean[0].rstrip("\n").rpartition("\n")[2].strip() == self.logged_in_at)

    def watch(self) -> Play[State]:
        """Read what has come and say the state, without sending anything."""
        while (yield from self.look(0)):
            pass
        self._note_end()
        self.state = self._classified()
        return self.state

    def confirm(self, timeout_s: float) -> Play[State]:
        """Make sure of the state: by an answer that only a live prompt can give.

        While a command has not ended nothing is typed but the nudge that shows its end, and that only where its prompt
        stands. When its line was lost meanwhile its end may have passed unheard: then the prompt is asked for.
        """
        state = yield from self.watch()
        until = self.now + timeout_s
        if self.running and self.style == "prompt" and (yield from self._new_prompt(self.profile.settle_s)):
            self.running = ""
        if self.running and not self._torn:
            return state
        if state in ("log_in", "password", "booting"):
            self.running = "" if self._torn else self.running  # It started again, or ended its session.
            return state
        nudges = self.running or state not in READY
        state = yield from (self.nudge(until) if nudges else self._probe(until))
        if state in READY:
            self.running, self._torn = "", False
        return state

    def enter(self, timeout_s: float) -> Play[State]:
        """Get to a prompt: hold the boot loader, wake a silent line. Log in with `log_in`."""
        yield from self.look(0)
        until = self.now + timeout_s
        while self.now < until:
            yield from self.look(0.1)
            if key := self.view.hold_key:
                yield from self.fresh()  # Before the key: its answer may come at once.
                self.running, self.state = "", "unknown"
                yield from self.send(key)
            # A line that said nothing since it was opened is not in the middle of booting; it need not be waited for.
            elif (yield from self.quiet(self.profile.quiet_ms / 1000 if self.view.raw else 0)):
                # A shell that is just starting may swallow what is typed; then it is asked again.
                most_s = CONFIRM_S + ROUND_TRIPS * self.lag_s
                state = yield from self.confirm(max(0.5, min(most_s, until - self.now)))
                if state in (*READY, "log_in", "password"):
                    return state
        return self.state

    def interrupt(self, timeout_s: float) -> Play[State]:
        """Break off what runs and find the prompt again. What the command did stays unknown."""
        view = yield from self.fresh()
        until = self.now + timeout_s
        yield from self.send(self.profile.keys.interrupt)
        if self.style == "raw_repl":
            yield from self.pause(0.2)  # The traceback comes first; then the raw REPL is left.
            yield from self.send(raw_repl.LEAVE)
        self._nudges, self._missed = (), 0
        if self.style == "prompt" and self.running:  # What ignores the key may print something like a prompt.
            while self.now < until and self.running:
                yield from self.look(0.1, until)
                self.running = "" if (yield from self._new_prompt(self.profile.settle_s)) else self.running
            self.state = "unknown" if self.running and self.view.prompt in READY else self._classified()
            self._question = self._question if self.running else ""
            return self.state
        while self.now < until and not view.prompt:
            yield from self.look(0.1, until)
        self.state = self._classified()
        if self.state in READY and (yield from self._probe(until)) in READY:
            self.running = self._question = ""
        return self.state

    # -- commands

    def run(self, command: str, timeout_s: float) -> Play[Outcome]:
        """Run one command and say how it ended. Never raises for what a device does; never sends it twice."""
        if refused := self._why_not(command):
            return NotSent(refused)
        try:
            yield from self.look(0)
            return (yield from self._transact(command, timeout_s))
        except LineGone as gone:
            self._torn = True
            text, noise = self.view.clean
            lost = LinkWasLost(answer_of(text, self._sent, self.profile), str(gone), noise)
            return lost if self.running == command else NotSent(str(gone))

    def answer(self, text: str, timeout_s: float) -> Play[Outcome]:
        """Answer the question of a command that waits for input, and go on waiting for its end."""
        if not self._question:
            return NotSent("no command waits for input")
        if re.search(SECRET, self._question):
            return NotSent("a password goes to its prompt only through log_in")
        try:
            yield from self.watch()
            if self.view.question != self._question:
                return NotSent(f"the question {self._question!r} does not stand there any more", self.view.tail)
            self._question = ""
            yield from self.fresh()
            self._sent = Sent(text, "", self._sent.end)
            yield from self.type(text + self.profile.keys.enter)
            return (yield from self._until_end(self.now + timeout_s))
        except LineGone as gone:
            self._torn = True
            return LinkWasLost("", str(gone))

    def _why_not(self, command: str) -> str:
        raw = self.style == "raw_repl"
        if self.person_has_it:
            return "a person has the console; the agent waits until it is handed back"
        if not command.strip() or any((c < " " and not (raw and c in "\n\t")) or c == "\x7f" for c in command):
            return f"{command!r} is not one line of text"
        longest = max(len(part) for part in self._line(command, "0" * 8, "0" * 8).split("\n"))
        if longest > self.profile.line_bytes_max and not raw:
            return f"the line would be {longest} characters; this device takes {self.profile.line_bytes_max}"
        return ""

    def _transact(self, command: str, timeout_s: float) -> Play[Outcome]:
        began = self.now
        state = yield from self.confirm(timeout_s)
        until = began + timeout_s + ROUND_TRIPS * self.lag_s
        if self.running:
            return NotSent(BUSY.format(command=self.running), self.view.tail)
        if state not in READY:
            return NotSent(f"the console is in state {state}, not at a prompt", self.view.tail)
        if self.style == "raw_repl":
            return (yield from self._in_raw_repl(command, until))
        left, last = (self.word(), self.word()) if self.style == "marker" else ("", "")
        sent = Sent(self._line(command, left, last), left, left + last)
        if problem := (yield from self.typed(sent.line, until)):
            return NotSent(problem)
        if self.person_has_it or self.now >= until:
            yield from self.clear()
            return NotSent("a person took the console" if self.person_has_it else "the time was over before Enter")
        self.running, self._sent, self._nudges, self._missed, self._answered = command, sent, (), 0, ""
        yield from self.send(self.profile.keys.enter)
        return (yield from self._until_end(until))

    def _line(self, command: str, left: str, last: str) -> str:
        if self.style != "marker":
            return command
        parts = {"{left}": left, "{right}": "a", "{last}": last, "{command}": command}
        # One pass, so that nothing inside the command is taken for a place of ours.
        return re.sub(r"\{(left|right|last|command)\}", lambda m: parts[m.group()], self.profile.transaction.line)

    # -- the end of a command

    def _until_end(self, until: float) -> Play[Outcome]:
        """Read until the command's end, its question, a reset, or the time."""
        started, pages = self.now, 0
        while True:
            waits_s = 0.1 if self.view.pager_key else self.profile.settle_s
            quiet = not (yield from self.look(waits_s, until))
            yield from self.answer_cursor()
            over = self.now >= until
            marked = self.style == "marker"
            banner = self.view.banner  # After a marker it was only printed, by `dmesg` for one.
            ended = (yield from self._end_seen(quiet or over, over)) if marked or not banner else None
            if ended is not None:
                self.running = ""
                return (yield from self._with_status(ended)) if self.profile.transaction.status_command else ended
            text, noise = self.view.clean
            body = answer_of(text, self._sent, self.profile)
            if banner and (not marked or quiet or over):
                self.state, self.running = "booting", ""
                return DeviceReset(body, banner, noise)
            if quiet and (key := self.view.pager_key) and pages < PAGES_MAX:
                pages += 1
                self.view.drop_line()
                yield from self.send(key)
            elif quiet and (question := self._question_asked()) and not (yield from self._allowed_answer(question)):
                self._question = question
                return Waiting(question, body, noise)
            elif over:
                self.state = "unknown"
                return TimedOut(body, round((self.now - started) * 1000), noise)

    def _end_seen(self, quiet: bool, over: bool) -> Play[Done | Failed | None]:
        """The end of the command, if there is evidence of it; after a marker the prompt may be missing at the end."""
        view = self.view
        if self.style == "marker":
            if not (view.prompt or over):
                return None
            ended = marker_end(view, self._sent) or (refused_line(view, self._sent) if view.prompt else None)
        else:
            stood = quiet and (yield from self._new_prompt(0.1))
            ended = prompt_end(view, self._sent, self.confirmed, ticks=self.ticks) if stood else None
        if ended is not None:
            self.state = self._classified()
        return ended

    def _new_prompt(self, quiet_s: float) -> Play[bool]:
        """Ask a prompt that stands there quietly for a new one; nothing else may come of that."""
        before = self.view.last_line
        if self._missed and not late_prompts(self.view, before, self._nudges, ticks=self.ticks):
            quiet_s = self.profile.settle_s * 4**self._missed  # It was not reading; it must be surer now.
        if not stands(self.view, self.confirmed, ticks=self.ticks) or not (yield from self.quiet(quiet_s)):
            return False
        if self._missed >= NUDGES_MAX:
            return late_prompts(self.view, before, self._nudges, ticks=self.ticks)
        for _ in range(2 + self._missed):  # Once may be a command that prints a prompt just then.
            nudge = self.nudge_keys()
            self._nudges = (*self._nudges, nudge)  # Also those answered in time: a slow line echoes them in between.
            if not (yield from self.nudged(before, nudge)):
                self._missed += 1
                return False
        self.confirmed = before
        return True

    def _question_asked(self) -> str:
        """The question that stands there; our own line's echo is none, nor one whose answer is on its way."""
        shown = self.view.clean[0]
        echoed = echo_length(shown, self._sent.line) if self.profile.echo else None
        below = shown[echoed or 0 :]  # An echo that is wrapped has line ends of its own.
        if shown == self._answered or ("\n" not in below and self.profile.echo):
            return ""
        asks = self.view.prompt in ("log_in", "password") and self.others_log_in
        return self.view.question or (below.strip().rpartition("\n")[2] if asks else "")

    def _allowed_answer(self, question: str) -> Play[bool]:
        """Type what the operator lets be answered to this question."""
        for pattern, answer in self.profile.answer_patterns:
            if pattern.search(question):
                self._answered = self.view.clean[0]
                yield from self.type(answer + self.profile.keys.enter)
                return True
        return False

    def _with_status(self, outcome: Done | Failed) -> Play[Outcome]:
        """Ask a console without `;` for the status of the command before. Reading it changes nothing."""
        asking, way = self.profile.transaction.status_command, self.profile.transaction
        untold = Done(outcome.output, None, outcome.noise) if isinstance(outcome, Done) else outcome
        if (yield from self.typed(asking, self.now + ECHO_S + self.lag_s)):
            return untold
        yield from self.send(self.profile.keys.enter)
        limit, found = self.now + ECHO_S + self.lag_s, None
        while self.now < limit and found is None:
            yield from self.look(0.2, limit)
            if self.view.last_line == self.confirmed:
                answer = answer_of(self.view.clean[0], Sent(asking), self.profile)
                found = re.search(rf"^(?:{way.status})$", answer, re.MULTILINE)  # A log line may hold numbers too.
        if found is None:
            return untold
        status = int(found.group(1))
        if status == 0 and isinstance(outcome, Done):
            return outcome
        return Failed(outcome.output, status, outcome.noise)

    def _in_raw_repl(self, code: str, until: float) -> Play[Outcome]:
        if not (yield from raw_repl.enter(self, until)):
            return NotSent("the raw REPL did not answer", self.view.tail)
        yield from self.type(code, until=until)
        self.running = code
        outcome = yield from raw_repl.until_end(self, until)
        if isinstance(outcome, TimedOut):
            self.state = "unknown"
            return outcome
        self.running = ""
        if not isinstance(outcome, DeviceReset):
            yield from raw_repl.leave(self)
            self.state = self._classified()
        return outcome

    # -- the parts

    def _probe(self, until: float) -> Play[State]:
        """Have the prompt join a word that we only sent in halves: a log-in prompt or a file being read cannot."""
        if self.style != "marker":
            return (yield from self.nudge(until))
        left, right = self.word(), self.word()
        parts = {"{left}": left, "{right}": right}
        line = re.sub(r"\{(left|right)\}", lambda m: parts[m.group()], self.profile.transaction.probe)
        yield from self.clear()
        until = max(until, self.now + PROBE_S + 2 * self.lag_s)
        if (yield from self.typed(line, until)):
            self.state = "unknown"
            return self.state
        yield from self.send(self.profile.keys.enter)
        joined = False
        while not joined and self.now < until:
            yield from self.look(0.1, until)
            yield from self.answer_cursor()
            joined = left + right in self.view.clean[0] and self.view.prompt is not None
        self.state = self._classified() if joined else "unknown"
        return self.state

    def nudge(self, until: float) -> Play[State]:
        """Ask an unknown console for its prompt; clear a half-typed line first, so that it is never completed."""
        if self.style != "raw_repl" and not self.running:
            yield from self.clear()
        view = yield from self.fresh()
        yield from self.send(self.profile.keys.nudge)
        sent_at, limit = self.now, min(until, self.now + max(LAG_S_MAX, self.profile.round_trip_s + NUDGE_S))
        while self.now < limit and not view.prompt and not view.hold_key:
            yield from self.look(0.05, limit)
        if view.prompt and not self.running:
            self.measured(self.now - sent_at)
        while (yield from self.look(GAP_S)) and self.now < limit + NUDGE_S:
            pass
        self.state = self._classified() if view.raw else "off"
        if self.running and self.style == "prompt" and not stands(view, self.confirmed, ticks=self.ticks):
            self.state = "unknown"
        if self.state in READY:
            self.confirmed = view.last_line
            if self.style == "marker" and self.now < until:
                return (yield from self._probe(until))
            if self.style == "prompt" and self.echoes_blanks is None and not self.running:
                yield from self.learn_blanks(self.confirmed)
        return self.state

    def answered_line(self, text: str, until: float) -> Play[State]:
        """Answer a log-in's prompt with a line, and see what comes next."""
        view = yield from self.fresh()
        yield from self.type(text + self.profile.keys.enter)
        return (yield from self.next_prompt(view, until))

    def next_prompt(self, view: View, until: float) -> Play[State]:
        """See which prompt comes on a new line of this view."""
        while self.now < until:
            yield from self.look(0.1, until)
            if view.prompt and "\n" in view.clean[0] and (yield from self.quiet(0.1)):
                break
        self.state = self._classified()
        return self.state

    def _classified(self) -> State:
        if (state := self.view.prompt) is not None:
            return state
        if self.view.banner:
            return "booting"
        return "unknown" if self.view.raw or self.state in READY else self.state

    def _note_end(self) -> None:
        """A command that was given up may end later after all: then the console is free again."""
        if not self.running:
            return
        if self.style == "marker":
            ended = marker_end(self.view, self._sent) is not None
        else:
            ended = self.style == "raw_repl" and raw_repl.read(bytes(self.view.raw)) is not None
        if ended or self.view.banner:
            self.running = self._question = ""
