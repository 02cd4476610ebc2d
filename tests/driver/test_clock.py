"""The clock: timers fire in the order in which they are due, each once, and a past one at once."""

from __future__ import annotations

import queue

from edgeagent.core.effects import SetTimer
from edgeagent.core.events import Event, TimerFired
from edgeagent.driver.clock import ClockDriver


def test_timers_fire_in_the_order_in_which_they_are_due() -> None:
    clock, inbox = ClockDriver(), queue.Queue[Event]()
    for effect_id, after_ms in ((1, 90), (2, 0), (3, 30)):
        clock.submit(SetTimer(effect_id, after_ms), inbox.put)
    fired = [inbox.get(timeout=60) for _ in range(3)]
    clock.close()
    assert fired == [TimerFired(0, 2), TimerFired(0, 3), TimerFired(0, 1)]


def test_two_sessions_may_use_the_same_number() -> None:
    clock, one, other = ClockDriver(), queue.Queue[Event](), queue.Queue[Event]()
    clock.submit(SetTimer(7, 0), one.put)
    clock.submit(SetTimer(7, 0), other.put)
    assert one.get(timeout=60) == other.get(timeout=30) == TimerFired(0, 7)
    clock.close()


def test_a_closed_clock_posts_nothing_and_its_thread_ends() -> None:
    clock, inbox = ClockDriver(), queue.Queue[Event]()
    clock.submit(SetTimer(1, 60_000), inbox.put)
    thread = clock._thread
    assert thread is not None
    clock.close()
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert inbox.empty()
