"""The one clock that wakes sessions: a thread that posts TimerFired when a timer's time has come.

Time in which the machine sleeps counts: a timer is for a time of day, or for something that happens outside. A thread
that waits does not see that time go by, so it looks at the clock at least every `LOOK_S`.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time

from edgeagent.core.effects import Effect, SetTimer
from edgeagent.core.events import TimerFired
from edgeagent.driver.base import Post

LOOK_S = 30.0
"""How late a timer may fire after the machine has slept."""


def steady_s() -> float:
    """Seconds that never go back nor jump; those in which the machine sleeps count where the system can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


class ClockDriver:
    """Owns the thread that waits. It starts with the first timer."""

    def __init__(self) -> None:
        self._timers: list[tuple[float, int, int, Post]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, effect: Effect, post: Post) -> None:
        """Wait for the timer; TimerFired follows, at once if its time has passed."""
        assert isinstance(effect, SetTimer), "the wiring sends only timers here"
        with self._changed:
            due_s = steady_s() + effect.after_ms / 1000
            heapq.heappush(self._timers, (due_s, next(self._order), effect.effect_id, post))
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="clock", daemon=True)
                self._thread.start()

    def cancel(self, effect_id: int) -> None:
        """Timers are not cancelled with the turn that set them."""

    def close(self) -> None:
        """Forget all timers; the state of each session still holds its own."""
        with self._changed:
            self._closed = True
            self._timers.clear()
            self._changed.notify()

    def _run(self) -> None:
        while (due := self._next()) is not None:
            effect_id, post = due
            post(TimerFired(0, effect_id))

    def _next(self) -> tuple[int, Post] | None:
        """Wait for the next timer to be due; None when the driver is closed."""
        with self._changed:
            while not self._closed:
                left_s = self._timers[0][0] - steady_s() if self._timers else None
                if left_s is not None and left_s <= 0:
                    _, _, effect_id, post = heapq.heappop(self._timers)
                    return effect_id, post
                self._changed.wait(None if left_s is None else min(left_s, LOOK_S))
            return None
