"""What a running session shows: activity on stderr, the answer on stdout, or one JSON object a line."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO, assert_never

import msgspec

from edgeagent.core.budget import MONEY_PARTS
from edgeagent.core.effects import AskModel, AskUser, CallTool, CancelEffect, Effect, Finish, Say
from edgeagent.core.events import Event, ModelAnswered, ToolFailed, ToolReturned
from edgeagent.core.refusals import refusals
from edgeagent.core.state import PendingCall, State
from edgeagent.core.text import shown
from edgeagent.core.values import Outcome
from edgeagent.doors.cli.pending import Pending
from edgeagent.doors.cli.terminal import arguments_text, ask, can_ask, fit_for, tell, tell_row
from edgeagent.errors import ExitCode
from edgeagent.runtime.door import Decision

if TYPE_CHECKING:
    from edgeagent.runtime.fate import Fate  # It brings traces along, which `edgeagent ask` need not wait for.

SHOWN_MAX = 300
"""Characters of a result that the activity line shows; the trace has all of it."""


def exit_code_of(outcome: Outcome | None) -> ExitCode:
    """How a run that ended so leaves the shell."""
    if outcome is None:
        return ExitCode.ERROR
    match outcome.kind:
        case "answered":
            return ExitCode.DONE
        case "refused" | "halted":
            return ExitCode.REFUSED
        case "budget":
            return ExitCode.TIME_OUT if outcome.detail == "seconds" else ExitCode.BUDGET
        case "failed":
            return ExitCode.TIME_OUT if "time out" in outcome.detail else ExitCode.ERROR
        case "cancelled":
            return ExitCode.INTERRUPTED
        case "unknown":
            return ExitCode.UNKNOWN
        case _:
            assert_never(outcome.kind)


class Screen:
    """Writes a session to two streams: answers to `out`, activity to `err`. With `streams`, words appear as written."""

    def __init__(
        self,
        out: TextIO,
        err: TextIO,
        *,
        as_json: bool,
        quiet: bool = False,
        streams: bool = False,
        yes: Iterable[str] = (),
    ) -> None:
        self._out, self._err, self._as_json, self._quiet = out, err, as_json, quiet
        self._streams = streams and out.isatty() and not as_json
        self._live = err.isatty() and not as_json and not quiet
        self._color = self._live and "NO_COLOR" not in os.environ
        self._streamed, self._hides = "", False
        self._line_open = False
        self._yes = frozenset(yes)
        self.pending = Pending()
        self.unasked: list[AskUser] = []

    def decide(self, question: AskUser) -> Decision:
        """Ask whoever is at the other end: a person on the terminal, or the program that reads the rows."""
        if question.tool in self._yes:
            return Decision(True, "--yes", question.digest)
        if self._as_json:
            return ask_over_json(question)
        if not can_ask():
            self.unasked.append(question)
            return Decision(False, "there is no terminal to ask on", question.digest)
        self._clear_line()
        return ask(question, lambda: question.effect_id in self.pending.questions)

    def watch(self, event: Event, state: State, effects: tuple[Effect, ...]) -> None:
        """Show one transition, and keep in mind what is open after it."""
        lost = self.pending.follow(event, effects)
        if self._as_json:
            self._json({"event": type(event).__name__, **_fields(event)})
            for effect in effects:
                more = {"digest": effect.digest} if isinstance(effect, AskUser) else {}
                self._json({"effect": type(effect).__name__, **_fields(effect), **more})
            return
        if lost is not None:
            self.activity(f"  ? {unknown_text(lost)}")
        self._show_event(event)
        for because in refusals(state) if isinstance(event, ModelAnswered) else ():
            self.activity(f"  ✗ refused: {_short(because)}")
        for effect in effects:
            self._show_effect(effect)

    def progress(self, done: int, total: int) -> None:
        """One line, rewritten, while a prompt is evaluated; not between the words of an answer."""
        if self._live and not self._streamed:
            self._err.write(f"\r\x1b[Kreading the prompt: {done}/{total} tokens")
            self._err.flush()
            self._line_open = True

    def stream(self, text: str) -> None:
        """Show words as the model writes them; what begins like a call is not for people."""
        if not self._streams:
            return
        if self._hides or (not self._streamed and not text.strip()):
            return
        if not self._streamed and text.lstrip().startswith(("{", "[", "<")):
            self._hides = True
            return
        self._clear_line()
        self._streamed += text
        self._out.write(shown(text, lines=True))
        self._out.flush()

    def drop_words(self) -> None:
        """Leave what was written of an answer as it stands; another one begins."""
        self._out.write("\n")
        self._streamed = ""

    def waiting(self, place: int) -> None:
        """One line, rewritten, while other sessions have the model."""
        if self._live and place:
            self._err.write(f"\r\x1b[Kwaiting for the model: {place} before this session")
            self._err.flush()
            self._line_open = True

    def activity(self, text: str) -> None:
        """One line of what goes on, on stderr."""
        if self._as_json or self._quiet:
            return
        self._clear_line()
        text = shown(text)
        line = f"\x1b[2m{text}\x1b[0m\n" if self._color else f"{text}\n"
        print(line, end="", file=self._err, flush=True)  # At once, so that no tool's line comes in between.

    def repeat(self, state: State) -> None:
        """Show the last answer of a session in which nothing was left to do."""
        self.activity("nothing was interrupted; the last answer was:")
        if state.past and not self._as_json:
            print(fit_for(self._out, state.past[-1].messages[-1].text), file=self._out, flush=True)

    def result(self, outcome: Outcome | None, kept: str, place: str = "trace") -> None:
        """Say what the model cannot be trusted to say, and where the turn is kept; with --json, the last line."""
        unknown = [{"tool": c.tool, "arguments": json.loads(c.arguments)} for c in self.pending.unknown]
        unasked = [{"tool": q.tool, "arguments": json.loads(q.arguments)} for q in self.unasked]
        if self._as_json:
            more = ({"unknown": unknown} if unknown else {}) | ({"unasked": unasked} if unasked else {})
            self._json({"outcome": _fields(outcome) if outcome else None, place: kept, **more})
            return
        self._clear_line()
        for call in self.pending.unknown:
            tell(f"edgeagent: {unknown_text(call)}", err=True)
        for question in self.unasked:
            tell(f"edgeagent: {unasked_text(question)}", err=True)
        self.activity(f"{place}: {kept}")

    def _show_event(self, event: Event) -> None:
        match event:
            case ToolReturned(unshown=because, notes=notes) if because:
                self._show_notes(notes)
                self.activity(f"  ← {_short(unshown_text(because))}")
            case ToolReturned(value=value, notes=notes):
                self._show_notes(notes)
                self.activity(f"  ← {_short(value)}")
            case ToolFailed(reason=reason, message=message, notes=notes):
                self._show_notes(notes)
                self.activity(f"  ✗ {reason.replace('_', ' ')}: {_short(message)}")
            case ModelAnswered(usage=usage, asked=asked):
                for name, why in asked[:-1]:
                    self.activity(f"  {name} did not answer: {_short(why)}")
                self.activity(
                    f"  {asked[-1][0] if asked else 'model'}: {usage.prompt} prompt tokens ({usage.evaluated} "
                    f"evaluated), {usage.completion} written ({usage.forced} forced), {usage.micros / 1e6:.2f} s"
                    + f", costs {usage.cost / MONEY_PARTS:.6f}"
                    * bool(usage.cost)
                )
            case _:
                pass

    def _show_notes(self, notes: tuple[str, ...]) -> None:
        for note in notes:
            self.activity(f"  · {_short(note)}")

    def _show_effect(self, effect: Effect) -> None:
        match effect:
            case CallTool(tool=tool, arguments=arguments):
                self.activity(f"→ {tool}({arguments_text(arguments)})")
            case Say(text=text):
                self._clear_line()
                rest = text.removeprefix(self._streamed.strip()) if self._streamed else text
                self._streamed = ""
                print(fit_for(self._out, rest), file=self._out, flush=True)
            case Finish(reason=reason):
                self.activity(f"session ended: {reason}")
            case AskModel():
                self._streamed, self._hides = "", False
            case AskUser() | CancelEffect():
                pass

    def _json(self, row: dict[str, Any]) -> None:
        tell_row(row, self._out)

    def _clear_line(self) -> None:
        if self._line_open:
            self._err.write("\r\x1b[K")
            self._line_open = False


def unknown_text(call: PendingCall) -> str:
    """What a person must know of a call that was cut off."""
    called = f"{call.tool}({arguments_text(call.arguments)})"
    return f"unknown: {called} was interrupted; it may have happened or not. Check before you have it done again"


def unshown_text(because: str) -> str:
    """What a person is told of a call that did its work and whose result has no form."""
    return f"done; its result cannot be shown, because {because}"


def fate_text(fate: Fate) -> str:
    """What a person must know who looks at a session in which a call may have happened or not."""
    called = f"{fate.tool}({arguments_text(fate.arguments)})"
    if fate.is_lost:
        return f"{called} was interrupted (record {fate.seq}); it may have happened or not"
    return f"{called} has no result (record {fate.seq}): it is running, or it may have happened or not"


def unasked_text(question: AskUser) -> str:
    """What a person must know of a question that nobody could be asked, and how it can be."""
    called = f"{question.tool}({arguments_text(question.arguments)})"
    return (
        f"{called} was not run: it needs a person's yes ({question.because}), and there is no terminal to ask on. Run "
        f"it on one, say yes beforehand with --yes {question.tool}, or answer by program with `edgeagent chat --json`"
    )


def ask_over_json(question: AskUser) -> Decision:
    """Take the answer from the next line of stdin: `{"effect_id": 5, "approved": true, "digest": "..."}`.

    The question has been written as an `AskUser` row. What is not an answer to exactly it is a no.
    """
    line = sys.stdin.readline()
    try:
        answer = msgspec.json.decode(line, type=JsonDecision)
    except msgspec.MsgspecError as error:
        return Decision(False, f"no answer to the question came on stdin ({error})" if line else "stdin has ended")
    if answer.effect_id != question.effect_id:
        return Decision(False, f"the answer was to question {answer.effect_id}, open was {question.effect_id}")
    return Decision(answer.approved, answer.text, answer.digest or "none was given")


class JsonDecision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a program says to a question; a yes needs the question's digest."""

    effect_id: int
    approved: bool
    digest: str = ""
    text: str = ""


def clock_text(at_ms: int) -> str:
    """Local time of day with milliseconds."""
    return time.strftime("%H:%M:%S", time.localtime(at_ms / 1000)) + f".{at_ms % 1000:03d}"


def _fields(value: Any) -> dict[str, Any]:
    return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, msgspec.Struct):
        return _fields(value)
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
