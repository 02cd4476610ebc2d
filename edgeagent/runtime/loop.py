"""Take one event, step, record, then submit what step asked for: the order that everything else relies on.

An event and the digest of its effects are on disk before the first of these effects leaves.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec.structs import replace

from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskModel, AskUser, CallTool, CancelEffect, Effect, Finish, Say, SetTimer
from edgeagent.core.events import Event, Heard, UserSaid
from edgeagent.core.outside import is_heard
from edgeagent.core.replay import Step
from edgeagent.core.state import State, is_resting
from edgeagent.core.text import TEXT_BYTES_MAX, cleaned
from edgeagent.driver.base import Driver
from edgeagent.errors import ConfigError
from edgeagent.runtime.answer import Taken, Word
from edgeagent.runtime.stamps import Clock, Stamps

INBOX_MAX = 1_024
"""Events that may wait. Each outstanding effect posts one, so only a flood of words can fill it; then posting waits."""

Watch = Callable[[Taken], None]


class Recorder(Protocol):
    """Where records go: the trace, or nothing."""

    def append(self, event: Event, effects: tuple[Effect, ...], *, sync: bool) -> None:
        """Write one record; with `sync` it is on the disk when this returns. Raises TraceError."""


class Loop:
    """Runs one session. Only the thread that calls `run` or `serve` touches the state; the rest any thread may call."""

    def __init__(
        self,
        agent: Agent,
        step: Step,
        recorder: Recorder,
        drivers: Mapping[type, Driver],
        clock_ms: Clock,
        *,
        state: State | None = None,
        watch: Watch | None = None,
        steady_ms: Clock | None = None,
    ) -> None:
        self.state = state or State()
        self._stamps = Stamps(self.state, clock_ms, steady_ms)
        self._agent, self._step, self._recorder, self.drivers = agent, step, recorder, drivers
        self._watch = watch
        self._inbox: queue.Queue[tuple[Event, Word | None] | Callable[[], None]] = queue.Queue(INBOX_MAX)
        self._stopped = False

    def post(self, event: Event, word: Word | None = None) -> None:
        """Put an event into the inbox, its texts readable; it is stamped when it is taken out, in the order of records.

        Raises ConfigError for a word of the user that is too long to be kept.
        """
        if isinstance(event, Heard) and not is_heard(self._agent, event):
            return  # Nobody listens; a flood of it must not fill the trace.
        if isinstance(event, UserSaid) and len(event.text.encode("utf-8", "replace")) > TEXT_BYTES_MAX:
            raise ConfigError(
                f"{len(event.text)} characters at once; {TEXT_BYTES_MAX} bytes are the most: let a tool read the file"
            )
        self._inbox.put((cleaned(event), word))

    def call(self, function: Callable[[], None]) -> None:
        """Have the thread that works call this between two transitions, after what already waits."""
        self._inbox.put(function)

    def stop(self) -> None:
        """Have `serve` and `run` return after the transition they are in."""
        self._stopped = True
        self.call(lambda: None)

    def left(self) -> list[Word]:
        """Take the words out that nobody has taken up."""
        words = []
        with contextlib.suppress(queue.Empty):
            while True:
                item = self._inbox.get_nowait()
                words += [item[1]] if isinstance(item, tuple) and item[1] is not None else []
        return words

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is outstanding and the inbox is empty."""
        return is_resting(self.state) and self._inbox.empty()

    def run(self) -> State:
        """Work until the session is at rest, or stopped; return the state."""
        while not (self.is_at_rest or self._stopped):
            self.take_one()
        return self.state

    def serve(self) -> None:
        """Work, and wait at rest for what comes, until stopped."""
        while not self._stopped:
            self.take_one()

    def submit(self, effects: tuple[Effect, ...]) -> None:
        """Hand effects to their drivers, in order."""
        for effect in effects:
            match effect:
                case AskModel() | CallTool() | AskUser() | SetTimer():
                    self.drivers[type(effect)].submit(effect, self.post)
                case CancelEffect(target=target):
                    for driver in self.drivers.values():
                        driver.cancel(target)
                case Say() | Finish():
                    pass  # Notices: whoever watches shows them.

    def set_timers(self) -> None:
        """Set the timers of the state again, as after a restart; one whose time has passed fires at once."""
        now_ms = self._stamps.now_ms(self.state)
        self.submit(tuple(SetTimer(t.effect_id, max(0, t.due_ms - now_ms)) for t in self.state.timers))

    def take_one(self) -> None:
        """Take what comes next out of the inbox and work it off; waits if there is nothing."""
        item = self._inbox.get()
        if not isinstance(item, tuple):
            return item()
        try:
            self._take(*item)
        except Exception as error:
            if item[1] is not None:
                item[1].fail(error)
            raise

    def _take(self, event: Event, word: Word | None) -> None:
        at_ms, skew_ms = self._stamps.next(self.state)
        event = replace(event, at_ms=at_ms, skew_ms=skew_ms)
        state, effects = self._step(self._agent, self.state, event)
        self._recorder.append(event, effects, sync=any(self._must_not_repeat(e) for e in effects))
        before, self.state = self.state, state
        if self._watch is not None:
            self._watch(Taken(event, before, state, effects, word))
        self.submit(effects)

    def _must_not_repeat(self, effect: Effect) -> bool:
        return isinstance(effect, CallTool) and not self._agent.family[effect.tool].idempotent
