"""Answers: which turn answers which word that was posted, and what it came to. Touches no loop and no file.

A word begins a turn at once, or waits in the state's queue until the turns before it have ended; so what a word is
answered with is told from the transitions alone.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from edgeagent.core.effects import CallTool, Effect, Say
from edgeagent.core.events import Event, ToolFailed, ToolReturned, UserSaid
from edgeagent.core.state import State, Transition, is_resting
from edgeagent.core.step import QUEUE_MAX
from edgeagent.core.values import Outcome, read_json

TOO_MANY = Outcome(
    "failed",
    f"too many words wait for this session: {QUEUE_MAX} is the most; this was not kept, so say it again later",
)


@dataclass(frozen=True)
class Called:
    """A call that ran: the tool, its arguments, and its result; or, in `error`, why there is none.

    `unshown` says why the result of a tool that did its work has no JSON form; `result` is then None.
    """

    tool: str
    arguments: dict[str, Any]
    result: Any = None
    error: str = ""
    unshown: str = ""


@dataclass(frozen=True)
class Answer:
    """What a word came to: the text that was said, the calls that ran for it, how the turn ended, and the trace."""

    text: str
    outcome: Outcome
    calls: tuple[Called, ...] = ()
    trace: Path = Path()

    def __str__(self) -> str:
        """The text."""
        return self.text


def _promise() -> Future[Any]:
    """A future that nobody but the session can end: whoever waits may give up, and the others still wait."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


@dataclass(frozen=True)
class Word:
    """A word that was posted. `recorded` is the number of its record, once it cannot be lost by a crash of ours.

    `begun` is set when its turn begins, `answered` is what the turn came to.
    """

    recorded: Future[int] = field(default_factory=_promise)
    begun: threading.Event = field(default_factory=threading.Event)
    answered: Future[Answer] = field(default_factory=_promise)

    def fail(self, error: BaseException) -> None:
        """Let whoever waits know that nothing comes, where nothing has come."""
        for future in (self.recorded, self.answered):
            with contextlib.suppress(InvalidStateError):
                future.set_exception(error)


class Taken(NamedTuple):
    """One transition: the state before and after an event, what it led to, and the word it came with, if one waits."""

    event: Event
    before: State
    state: State
    effects: tuple[Effect, ...]
    word: Word | None = None


class Turns:
    """Follows the transitions of one session. `close` leaves no word without an answer."""

    def __init__(self, trace: Path, state: State) -> None:
        self._trace = trace
        self._running: Word | None = None
        self._queued: deque[Word | None] = deque([None] * len(state.queued))
        self._calls: dict[int, CallTool] = {}
        self._called: list[Called] = []

    def follow(self, taken: Taken, ended: Transition | None) -> list[tuple[Word, Answer]]:
        """Take one transition; return the words it answers. `ended` is how the running turn ended, if it did.

        A turn that ends begins the next one in the same transition if a word waits; so `ended` is the transition that
        would have been without waiting words.
        """
        before, state = taken.before, taken.state
        answered: list[tuple[Word, Answer]] = []
        self._note_call(taken.event)
        said = deque(_texts(taken.effects))
        if ended is not None:
            texts = _texts(ended[1])
            answered += self._end(" ".join(texts), ended[0].outcome)
            said = deque(list(said)[len(texts) :])
        if isinstance(taken.event, UserSaid) and state.turn == before.turn:
            answered += self._queue(taken, said)
        begun = state.turn - before.turn
        for number in range(begun):
            begins_at_once = isinstance(taken.event, UserSaid) and is_resting(before)
            self._running = taken.word if begins_at_once else self._next(before, state)
            if self._running is not None:
                self._running.begun.set()
            if number < begun - 1 or is_resting(state):  # It was over before it began: a limit was reached.
                answered += self._end(said.popleft() if said else "", state.outcome)
        while len(self._queued) > len(state.queued):  # Forgotten with a turn that was cancelled, or at the end.
            forgotten = self._queued.popleft()
            answered += [(forgotten, self._answer("", state.outcome))] if forgotten else []
        self._calls |= {e.effect_id: e for e in taken.effects if isinstance(e, CallTool)}
        return answered

    def fail(self, error: BaseException) -> None:
        """Let everyone who waits know that no answer comes."""
        waiting, self._running, self._queued = [self._running, *self._queued], None, deque()
        for word in waiting:
            if word is not None:
                word.fail(error)

    def _queue(self, taken: Taken, said: deque[str]) -> list[tuple[Word, Answer]]:
        """Let a word wait that begins no turn yet, if it may; else say why not."""
        if is_too_many(taken):
            answer = Answer(f"[{TOO_MANY.detail}]", TOO_MANY, (), self._trace)
        elif is_resting(taken.state):
            outcome = Outcome("halted", "the session has ended")
            answer = Answer(said.popleft() if said else "", outcome, (), self._trace)
        else:
            self._queued.append(taken.word)
            return []
        return [(taken.word, answer)] if taken.word else []

    def _next(self, before: State, state: State) -> Word | None:
        """The word whose turn begins: those of users go before what was heard."""
        return self._queued.popleft() if self._queued and len(state.queued) < len(before.queued) else None

    def _end(self, text: str, outcome: Outcome | None) -> list[tuple[Word, Answer]]:
        word, answer = self._running, self._answer(text, outcome)
        self._running, self._calls, self._called = None, {}, []
        return [(word, answer)] if word is not None else []

    def _answer(self, text: str, outcome: Outcome | None) -> Answer:
        return Answer(text, outcome or Outcome("failed", "the turn has no outcome"), tuple(self._called), self._trace)

    def _note_call(self, event: Event) -> None:
        if not isinstance(event, ToolReturned | ToolFailed):
            return
        call = self._calls.pop(event.effect_id, None)
        if call is None:
            return  # Late, or of a turn before.
        arguments = read_json(call.arguments)
        if isinstance(event, ToolReturned):
            self._called.append(Called(call.tool, arguments, read_json(event.value), unshown=event.unshown))
        else:
            self._called.append(
                Called(call.tool, arguments, error=f"{event.reason.replace('_', ' ')}: {event.message}")
            )


def is_too_many(taken: Taken) -> bool:
    """Whether a word of the user's was not kept, since as many wait as may."""
    before, state = taken.before, taken.state
    is_kept = state.turn > before.turn or len(state.queued) > len(before.queued)
    return isinstance(taken.event, UserSaid) and not is_kept and not is_resting(state)


def _texts(effects: tuple[Effect, ...]) -> list[str]:
    return [effect.text for effect in effects if isinstance(effect, Say)]
