"""Feed: one session as its watchers see it. Each record is one event of a stream, whose id is the record's number.

So whoever reloads, reconnects or comes late asks for what is behind the last number it has, and is sent that and no
more. What comes between two records (a place in the queue) has no number and is not repeated, but for the words of the
answer that is being written: who comes in the middle of it is first told all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Any

import msgspec

from edgeagent.core.effects import AskModel, AskUser, Effect
from edgeagent.core.events import Event, ModelAnswered, ModelFailed, ToolFailed, ToolReturned
from edgeagent.core.state import AwaitingCalls, PendingCall, State, calls_out, is_held, is_resting
from edgeagent.core.values import Usage, call_digest
from edgeagent.doors.http.metrics import Metrics
from edgeagent.runtime.door import QuietDoor
from edgeagent.runtime.session import Session

RECENT_MAX = 256
"""Records that are kept as they were sent, so that who reconnects costs no reading of the trace."""

BEHIND_MAX = 1_024
"""Events that wait for one watcher; who is further behind is let go, and asks again for what it has not had."""

ALIVE_S = 15.0
RETRY_MS = 1_500
HIDDEN = frozenset({"token_ids", "messages", "narrowed", "evidence", "scores", "text_bytes"})
"""Fields that are long and for replay only."""


class Words(msgspec.Struct, frozen=True):
    """Words of an answer: which answer, counted; how many characters of it were written before."""

    answer: int
    at: int
    text: str

    @property
    def frame(self) -> bytes:
        """One event of a stream; what is written for who comes in the middle of an answer begins it anew."""
        return framed("words", {"text": self.text, "at": self.at})


Item = tuple[int | None, bytes] | Words


class Watcher:
    """One end of a stream. Only the event loop's thread touches the queue."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.items: asyncio.Queue[Item | None] = asyncio.Queue(BEHIND_MAX + 1)

    def put(self, item: Item | None) -> None:
        """Let the watcher have an item; None ends its stream. From any thread."""
        self._loop.call_soon_threadsafe(self._put, item)

    def _put(self, item: Item | None) -> None:
        if self.items.qsize() < BEHIND_MAX:
            self.items.put_nowait(item)
        elif not self.items.full():
            self.items.put_nowait(None)


class Feed(QuietDoor):
    """The door of a session that is served over HTTP."""

    def __init__(self, agent: str, key: str, metrics: Metrics, progressed: Callable[[], None]) -> None:
        self.agent, self.key = agent, key
        self.session: Session | None = None
        self.askers = 0
        """Who has asked and waits."""
        self._metrics, self._progressed = metrics, progressed
        self._lock = threading.Lock()
        self._recent: deque[tuple[int, bytes]] = deque(maxlen=RECENT_MAX)
        self._written, self._answers, self._watched = "", 0, -1
        """What the answer that is being written has of words, how many were before it, and the last record watched."""
        self._watchers: tuple[Watcher, ...] = ()
        self._before: State | None = None

    def serves(self, session: Session) -> None:
        """Know the session, before anything is served."""
        self.session, self._before, self._watched = session, session.state, session.seq - 1

    @property
    def is_watched(self) -> bool:
        """Whether anyone has a stream of it."""
        return bool(self._watchers)

    # -- the door --------------------------------------------------------------------------------------------------

    def watch(self, event: Event, state: State, effects: tuple[Effect, ...]) -> None:
        """Count a transition, and send it to all."""
        if self.session is None:
            return  # It is being opened; the trace has it.
        self._progressed()
        self._count(event, state)
        self._before = state
        seq = self.session.seq - 1
        item = seq, framed("record", record_row(seq, event, state, effects), seq)
        with self._lock:
            self._recent.append(item)
            self._watched = seq
            if isinstance(event, ModelAnswered | ModelFailed):
                self._written, self._answers = "", self._answers + 1
        self._send(item)

    def stream(self, text: str) -> None:
        """Send words as they are written."""
        self._progressed()
        with self._lock:
            words = Words(self._answers, len(self._written), text)
            self._written += text  # The window bounds it.
        self._send(words)

    def progress(self, done: int, total: int) -> None:
        """Send how far a prompt is."""
        self._progressed()
        self._send((None, framed("progress", {"done": done, "total": total})))

    def waiting(self, place: int) -> None:
        """Send the place in the model's queue."""
        self._send((None, framed("waiting", {"place": place})))

    def activity(self, text: str) -> None:
        """Send a sentence about what goes on."""
        self._send((None, framed("activity", {"text": text})))

    def _send(self, item: Item | None) -> None:
        for watcher in self._watchers:
            watcher.put(item)

    def _count(self, event: Event, state: State) -> None:
        add, before = self._metrics.add, self._before
        match event:
            case ModelAnswered(usage=usage):
                count_tokens(self._metrics, usage)
            case ToolReturned(micros=micros) | ToolFailed(micros=micros):
                add("edgeagent_seconds_total", micros / 1e6, phase="tools")
                add("edgeagent_calls_total", agent=self.agent, result=type(event).__name__)
            case _:
                pass
        if before is None:
            return
        refused = state.turn_spent.refusals - (before.turn_spent.refusals if before.turn == state.turn else 0)
        if refused > 0:
            add("edgeagent_refusals_total", refused, agent=self.agent)
        if is_resting(state) and not is_resting(before) and state.outcome is not None:
            add("edgeagent_turns_total", agent=self.agent, outcome=state.outcome.kind)

    # -- streams ---------------------------------------------------------------------------------------------------

    async def events(self, since: int) -> AsyncGenerator[bytes, None]:
        """Everything from this record on, and then what comes."""
        watcher, last = Watcher(asyncio.get_running_loop()), -1
        with self._lock:
            self._watchers = (*self._watchers, watcher)
        try:
            yield f"retry: {RETRY_MS}\n\n".encode()
            # Recorded before it is watched: what is not in the queue from here on is in the trace by now.
            for seq, frame in await self._behind(since):
                yield frame
                last = seq
            had: Words | None = None
            while True:
                if had is None and (had := self._so_far(last)) is not None and had.text:
                    yield had.frame
                try:
                    item = await asyncio.wait_for(watcher.items.get(), ALIVE_S)
                except TimeoutError:
                    yield b": alive\n\n"
                    continue
                if item is None:
                    return
                if isinstance(item, Words):
                    if had is not None and (item.answer, item.at) >= (had.answer, had.at + len(had.text)):
                        yield item.frame
                    continue
                number, frame = item
                if number is not None and (number <= last or number < since):
                    continue
                last = last if number is None else number
                yield frame
        finally:
            with self._lock:
                self._watchers = tuple(each for each in self._watchers if each is not watcher)

    def _so_far(self, last: int) -> Words | None:
        """What is written of the answer; None while the trace that was sent is ahead of what was watched."""
        with self._lock:
            return Words(self._answers, 0, self._written) if last <= self._watched else None

    def end(self) -> None:
        """End all streams."""
        self._send(None)

    async def _behind(self, since: int) -> list[tuple[int, bytes]]:
        with self._lock:
            recent = list(self._recent)
        if recent and recent[0][0] <= since:
            return [item for item in recent if item[0] >= since]
        return await asyncio.to_thread(self._read, since)

    def _read(self, since: int) -> list[tuple[int, bytes]]:
        assert self.session is not None, "who has a feed has opened the session"
        return [
            (each.seq, framed("record", record_row(*each), each.seq)) for each in self.session.records(max(0, since))
        ]


def count_tokens(metrics: Metrics, usage: Usage) -> None:
    """Count what an answer took of the model."""
    for kind in ("prompt", "evaluated", "completion", "forced"):
        metrics.add("edgeagent_tokens_total", getattr(usage, kind), kind=kind)
    metrics.add("edgeagent_seconds_total", usage.micros / 1e6, phase="model")


# -- rows ----------------------------------------------------------------------------------------------------------


def framed(kind: str, row: dict[str, Any], seq: int | None = None) -> bytes:
    """One event of a stream."""
    head = f"event: {kind}\n" if seq is None else f"id: {seq}\nevent: {kind}\n"
    return head.encode() + b"data: " + msgspec.json.encode(row) + b"\n\n"


def record_row(seq: int, event: Event, state: State, effects: tuple[Effect, ...]) -> dict[str, Any]:
    """One record, with where the session stands after it."""
    return {
        "seq": seq,
        "event": {"type": type(event).__name__, **fields_of(event)},
        "effects": [_effect_row(effect) for effect in effects],
        "state": state_row(state),
    }


def _effect_row(effect: Effect) -> dict[str, Any]:
    more: dict[str, Any] = {}
    if isinstance(effect, AskUser):
        more["digest"] = effect.digest
    elif isinstance(effect, AskModel):
        more["refused"] = _refused_before(effect)
    return {"type": type(effect).__name__, **fields_of(effect), **more}


def _refused_before(ask: AskModel) -> list[str]:
    """Why calls that the model wrote before it is asked again did not run."""
    found: list[str] = []
    for message in reversed(ask.messages):
        if message.role != "tool":
            break
        if message.text.startswith('{"refused":'):
            with contextlib.suppress(ValueError, KeyError):  # A tool's own result may begin so, and be cut.
                found.insert(0, str(json.loads(message.text)["refused"]))
    return found


def state_row(state: State) -> dict[str, Any]:
    """Where a session stands: its turn, what it has spent, what is asked of a person."""
    return {
        "phase": type(state.phase).__name__,
        "turn": state.turn,
        "queued": len(state.queued),
        "outcome": None if state.outcome is None else fields_of(state.outcome),
        "trouble": None if state.trouble is None else fields_of(state.trouble),
        "spent": fields_of(state.turn_spent),
        "spent_in_session": fields_of(state.session_spent),
        "is_tainted": state.tainted,
        "timers": [{"due_ms": timer.due_ms, "note": timer.note} for timer in state.timers],
        "questions": [question_row(call) for call in questions_in(state)],
    }


def questions_in(state: State) -> list[PendingCall]:
    """The calls that wait for a person's word."""
    return [call for call in calls_out(state) if is_held(call)] if isinstance(state.phase, AwaitingCalls) else []


def question_row(call: PendingCall) -> dict[str, Any]:
    """A question: exactly what would run, and what ties an answer to it."""
    return {
        "id": call.question_id,
        "tool": call.tool,
        "arguments": json.loads(call.arguments),
        "because": call.because,
        "digest": call_digest(call.tool, call.arguments),
        "expires_ms": call.expires_ms,
    }


def fields_of(value: msgspec.Struct) -> dict[str, Any]:
    """The fields of an event, an effect or a value, without what only a replay needs."""
    return {name: _plain(getattr(value, name)) for name in value.__struct_fields__ if name not in HIDDEN}


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return fields_of(value)
    if isinstance(value, bytes):
        return len(value)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
