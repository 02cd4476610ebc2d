"""Where the session stands: a fold over its events. Bounded: it holds only what can still matter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from edgeagent.core.budget import Budget, Spent
from edgeagent.core.effects import Effect
from edgeagent.core.events import Event, UserDecided
from edgeagent.core.values import CallMade, Choice, Exchange, Message, Outcome, call_digest

STATE_VERSION = 1

DENSITY_START = 34
"""Tokens per 100 bytes of prompt that we assume before the model has told us: 2.9 bytes a token, JSON-heavy English."""


class Unstarted(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Nothing has happened yet."""


class Idle(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Waiting for the user's next word."""


class AwaitingModel(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The model is writing. `refits` counts how often this ask was repeated because the prompt did not fit."""

    effect_id: int
    choice: Choice
    closing: str = ""
    refits: int = 0


class PendingCall(msgspec.Struct, frozen=True, array_like=True):
    """One call of a batch.

    `question_id` is not 0 while (and after) a person is asked, `confirmed` says that a yes has been used up;
    `answer` is None until known, `ran` says that it is the tool's own and not a refusal. `because` is why the person
    is asked, `asked_ms` when the waiting began and `expires_ms` when the question lapses. `lost` counts crashes
    while the call or its question was out. `confidence` is how probable the driver held the call to be right, None if
    it did not say. `kept` is the end of what can be read on of its result; `of` names, in a call of `result_more`, the
    tool whose result it reads on.
    """

    effect_id: int
    tool: str
    arguments: str
    question_id: int = 0
    answer: str | None = None
    ran: bool = False
    confirmed: bool = False
    because: str = ""
    asked_ms: int = 0
    expires_ms: int = 0
    lost: int = 0
    confidence: float | None = None
    kept: int = 0
    of: str = ""


class AwaitingCalls(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Calls of one batch are running, or a person is being asked about them."""

    calls: tuple[PendingCall, ...]


class Finished(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """The session has ended for good."""

    reason: str


Phase = Unstarted | Idle | AwaitingModel | AwaitingCalls | Finished


class Timer(msgspec.Struct, frozen=True, array_like=True):
    """A timer that has not fired: when it is due and what the model wrote down for then.

    `tainted` says that the model had read something untrusted when it wrote the note.
    """

    effect_id: int
    due_ms: int
    note: str
    tainted: bool = False


class Waiting(msgspec.Struct, frozen=True, array_like=True):
    """A message that begins a turn as soon as the session rests. `tainted` as in `Timer`; what was heard always is."""

    message: Message
    tainted: bool = True


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """A result that can be read on: the model has read its text up to `at`, and it is kept up to `end`.

    The text is the result itself if that is one, and else its canonical JSON; places are counted in characters. Of a
    list that is read element by element `left` of `elements` are left, else both are 0. `is_text` says that its parts
    are shown as JSON texts, `turn` is the one in which it was last read.
    """

    effect_id: int
    tool: str
    at: int
    end: int
    turn: int
    is_text: bool = False
    left: int = 0
    elements: int = 0


class State(msgspec.Struct, frozen=True, array_like=True):
    """Everything that the next step depends on, besides the agent.

    `past` are the exchanges that still fit into the model's window, oldest first; `dropped` counts those that
    no longer do. `current` is the running turn. `trouble` is how the turn ends if the model now only talks: its
    last call was refused or failed, and none has worked since. `monitors` is the policies' memory, which core
    carries and never reads. `children` are the calls of sub-agents, of which the first is running;
    `tainted` says that one has answered which had read something untrusted. `heard` is, in a sub-agent's session,
    what the user said to the first agent; None in a session of its own. `timers` are set and have not fired;
    `waiting` are what was heard and the timers that fired while a turn was running, of which `missed` were dropped,
    oldest first, because they were too many. `now_ms` is steady time, which waits and budgets are counted by; the wall
    clock shows `skew_ms` more. `session` is the id that the session began under.
    `done` are the digests of calls that must not be made twice and were made by the session that this was forked from.
    `kept` are the results in the window that can be read on, those that were read last at the end.
    """

    version: int = STATE_VERSION
    agent_digest: str = ""
    seed: int = 0
    context_tokens: int = 0
    now_ms: int = 0
    next_effect_id: int = 1
    turn: int = 0
    phase: Phase = Unstarted()
    past: tuple[Exchange, ...] = ()
    dropped: int = 0
    current: tuple[Message, ...] = ()
    made: tuple[CallMade, ...] = ()
    turn_spent: Spent = Spent()
    session_spent: Spent = Spent()
    outcome: Outcome | None = None
    trouble: Outcome | None = None
    density: int = DENSITY_START
    queued: tuple[str, ...] = ()
    monitors: Any = None
    children: tuple[Child, ...] = ()
    tainted: bool = False
    heard: tuple[str, ...] | None = None
    timers: tuple[Timer, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    missed: int = 0
    skew_ms: int = 0
    session: str = ""
    done: tuple[str, ...] = ()
    kept: tuple[Kept, ...] = ()


class Child(msgspec.Struct, frozen=True, array_like=True):
    """A call of a sub-agent: a session inside the state of the agent above, or (`state` None) one that waits its turn.

    `effect_id` is that of the call. `budget` is what the agent above had left when it began, `tainted` whether what it
    was asked may have been shaped by outsiders.
    """

    effect_id: int
    tool: str
    request: str
    state: State | None = None
    budget: Budget | None = None
    tainted: bool = False


Transition = tuple[State, tuple[Effect, ...]]


def at_time_of(state: State, event: Event) -> Event:
    """The event, as happening when the state's last one did."""
    return msgspec.structs.replace(event, at_ms=state.now_ms + state.skew_ms, skew_ms=state.skew_ms)


def is_held(call: PendingCall) -> bool:
    """Whether a person is being asked about this call."""
    return call.question_id != 0 and not call.confirmed and call.answer is None


def is_yes(call: PendingCall, decision: UserDecided, now_ms: int) -> bool:
    """Whether this answer lets exactly this call run: a yes, in time, to what was shown."""
    is_same = decision.digest in ("", call_digest(call.tool, call.arguments))
    return decision.approved and is_same and now_ms <= call.expires_ms


def outstanding(state: State) -> tuple[int, ...]:
    """The ids of the effects that were asked for and have no answer yet. After a crash these are lost."""
    match state.phase:
        case AwaitingModel(effect_id=effect_id):
            return (effect_id,)
        case AwaitingCalls(calls=calls):
            below = {c.effect_id: outstanding(c.state) if c.state else () for c in state.children}
            out = (
                below.get(c.effect_id, (c.question_id if is_held(c) else c.effect_id,))
                for c in calls
                if c.answer is None
            )
            return tuple(effect_id for each in out for effect_id in each)
        case _:
            return ()


def calls_out(state: State) -> Iterator[PendingCall]:
    """The calls that are running, those of sub-agents too."""
    if not isinstance(state.phase, AwaitingCalls):
        return
    below = {child.effect_id: child.state for child in state.children if child.state is not None}
    for call in state.phase.calls:
        inner = below.get(call.effect_id)
        if inner is not None:
            yield from calls_out(inner)
        elif call.answer is None:
            yield call


def is_resting(state: State) -> bool:
    """Whether nothing is outstanding: the session waits for a word of the user's or is over."""
    return isinstance(state.phase, Unstarted | Idle | Finished)
