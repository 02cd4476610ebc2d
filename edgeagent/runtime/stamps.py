"""The times that events are stamped with: a label by the wall clock, and one that no setting of a clock moves.

What counts. Waits, deadlines, questions and budgets go by steady time: it runs while the machine is awake and the
session is open. Time asleep does not count, as the time limits of drivers do not. Between two processes only the wall
clock can tell how long it was; if it went back, no time has passed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from edgeagent.core.state import State, Unstarted

JITTER_MS = 100
"""Two clocks are read one after the other and one of them is slewed: that much difference is no jump."""

Clock = Callable[[], int]


def wall_clock_ms() -> int:
    """Unix time in milliseconds."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """Milliseconds in which the machine was awake, since some time."""
    return time.monotonic_ns() // 1_000_000


class Stamps:
    """Gives one session's events their times. `steady_ms` None: the wall clock never jumps, as a test's does not."""

    def __init__(self, state: State, wall_ms: Clock, steady_ms: Clock | None) -> None:
        self._wall_ms, self._steady_ms = wall_ms, steady_ms
        if steady_ms is None:
            return
        wall = wall_ms()
        is_new = isinstance(state.phase, Unstarted)
        begun = wall if is_new else state.now_ms + max(0, wall - state.now_ms - state.skew_ms)
        self._skew_ms = wall - begun
        self._ahead_ms = begun - steady_ms()

    def now_ms(self, state: State) -> int:
        """Steady time, never before the state's."""
        clock = self._wall_ms() if self._steady_ms is None else self._ahead_ms + self._steady_ms()
        return max(clock, state.now_ms)

    def next(self, state: State) -> tuple[int, int]:
        """`at_ms` and `skew_ms` of an event that is taken now."""
        now = self.now_ms(state)
        if self._steady_ms is None:
            return now, 0
        skew = self._wall_ms() - now
        if abs(skew - self._skew_ms) > JITTER_MS:
            self._skew_ms = skew
        return now + self._skew_ms, self._skew_ms
