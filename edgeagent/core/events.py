"""What has happened: facts, in the past tense. An event carries its time, twice.

`at_ms` is what the wall clock said (Unix milliseconds): a label, which may jump. `skew_ms` is how far it has come to
run ahead of the clock that never jumps, so `steady_ms` is a time by which waits, deadlines and budgets can be counted.

Tags and field order are append-only: a tag is never used again, a new field goes last and has a default.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from edgeagent.core.values import Stop, Usage

ModelFailure = Literal["context_full", "engine", "time", "unavailable"]
ToolFailure = Literal["raised", "time_out", "rejected", "unavailable"]

CALL_ODDS, CALL_ODDS_NEEDED = "(call)", "(needed)"
"""Names among an answer's scores: the log-odds that a call is meant, and those from which on one is made."""


class SessionStarted(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The session's fixed inputs. `agent_digest` is `Agent.digest`, `context_tokens` the size of the model's window.

    `session` is its id: a trace belongs to one session.
    """

    at_ms: int
    agent: str
    agent_digest: str
    seed: int
    dialect: str
    context_tokens: int
    version: str
    skew_ms: int = 0
    session: str = ""


class UserSaid(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """A person (or the program that stands for one) said something: trusted text.

    `by` is who said it and `door` the way it came in by, where the door knows them.
    """

    at_ms: int
    text: str
    by: str = ""
    door: str = ""
    skew_ms: int = 0


class ModelAnswered(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The model wrote `text` in answer to an AskModel; it is read inside step.

    `token_ids` as in `Message`. `closed_early` says that the limit was near and the shortest completion was forced.
    `scores` say how well each admissible tool fits the request, where the driver compared them; under `CALL_ODDS` and
    `CALL_ODDS_NEEDED` (no tool can have such a name) how clearly a call is meant at all, and from where on one is made.
    `confidence` is, for each call in the text and in their order, how probable it is that the call is the right one;
    empty where the driver does not tell. `evidence` says, by `tool.argument` and in the order of writing, what each
    argument of the calls was held to and why: taken from the request, compared, left out, or free. `asked` says, where
    several models may answer, which were asked, in order, each with why it did not answer; the last one did.
    """

    at_ms: int
    effect_id: int
    text: str
    stop: Stop
    usage: Usage
    token_ids: bytes = b""
    closed_early: bool = False
    scores: tuple[tuple[str, float], ...] = ()
    confidence: tuple[float, ...] = ()
    evidence: tuple[tuple[str, str], ...] = ()
    skew_ms: int = 0
    asked: tuple[tuple[str, str], ...] = ()


class ModelFailed(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """No answer from the model. `prompt_tokens` is set when the prompt did not fit.

    `spent` is what was used none the less: by an answer that broke off and is paid for all the same.
    """

    at_ms: int
    effect_id: int
    reason: ModelFailure
    message: str
    prompt_tokens: int = 0
    skew_ms: int = 0
    spent: Usage | None = None


class ToolReturned(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """A tool ended well; `value` is its result as canonical JSON text.

    `unshown` says why the result has no such form; the tool did its work all the same. Of a very long result `value`
    is the beginning, a list or a text; `total` is then how many elements or characters there were (else 0).
    `notes` are what befell the way there meanwhile: a line that was lost, opened again, set again. `kept` is how many
    characters of the result can be read on later, as in `Kept`; 0 if no more than is shown.
    """

    at_ms: int
    effect_id: int
    value: str
    micros: int = 0
    unshown: str = ""
    total: int = 0
    skew_ms: int = 0
    notes: tuple[str, ...] = ()
    kept: int = 0


class ToolFailed(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """A tool raised, ran out of time, refused its arguments or is not there. After a time-out its effect is unknown.

    `notes` as in `ToolReturned`.
    """

    at_ms: int
    effect_id: int
    reason: ToolFailure
    message: str
    micros: int = 0
    skew_ms: int = 0
    notes: tuple[str, ...] = ()


class UserDecided(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """The answer to an AskUser. Silence is a no.

    `digest` is that of the question as it was shown (`AskUser.digest`). A yes with another digest is a no; whoever
    answers from outside this process must give it.
    """

    at_ms: int
    effect_id: int
    approved: bool
    text: str = ""
    digest: str = ""
    skew_ms: int = 0


class TimerFired(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """The time of a timer has come. `effect_id` is that of its SetTimer; what is to be done then is in the state."""

    at_ms: int
    effect_id: int
    skew_ms: int = 0


class EffectLost(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """After a crash: this effect was submitted and its result was never recorded. What it did is unknown.

    `tool` and `arguments` are those of a call that is not made again by itself, so that the trace alone names it.
    """

    at_ms: int
    effect_id: int
    skew_ms: int = 0
    tool: str = ""
    arguments: str = ""


class Cancelled(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """The user wants the running turn stopped."""

    at_ms: int
    reason: str = "interrupted"
    skew_ms: int = 0


class TraceRepaired(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """The end of the trace had been torn by a crash: `cut_bytes` bytes at byte `offset` were put aside and cut off."""

    at_ms: int
    offset: int
    cut_bytes: int
    skew_ms: int = 0


class SessionResumed(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """The session goes on in the middle of a turn, with this agent and version; EffectLost follows for what is lost.

    The time since the record before it does not count as wall time: nothing was running.
    """

    at_ms: int
    agent_digest: str
    version: str
    skew_ms: int = 0


class Heard(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """Text from outside that nobody asked for: a device's alarm, a broker's message. Never trusted.

    `source` is its name among `Agent.hears`; what comes from another source changes nothing.
    """

    at_ms: int
    source: str
    text: str
    skew_ms: int = 0


class Forked(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """The session was forked here. `made` are the calls, as tool and arguments, that the other one made after this."""

    at_ms: int
    made: tuple[tuple[str, str], ...]
    skew_ms: int = 0


class Reconfigured(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """The operator's settings were read again, between two turns. It changes nothing but who answers.

    `models` are those that are asked from now on, as one name; empty where they are the same as before. `rules` says
    what has changed among the operator's rules, for sessions that begin from now on: this one stays under its own.
    """

    at_ms: int
    models: str = ""
    rules: str = ""
    skew_ms: int = 0


Event = (
    SessionStarted
    | UserSaid
    | ModelAnswered
    | ModelFailed
    | ToolReturned
    | ToolFailed
    | UserDecided
    | EffectLost
    | Cancelled
    | TraceRepaired
    | SessionResumed
    | TimerFired
    | Heard
    | Forked
    | Reconfigured
)


def steady_ms(event: Event) -> int:
    """When it happened, by the clock that neither jumps nor goes back; 0 is no particular time."""
    return event.at_ms - event.skew_ms
