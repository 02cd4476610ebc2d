"""Measure so that a noisy machine passes and a real regression fails.

A time is the ratio to a calibration loop that runs in the same process, in turn with what is measured; the figure is
the median over many turns. Counts and sizes are taken as they are.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable

CALIBRATION_ROUNDS = 400
"""Makes one calibration about 40 µs on a 3 GHz core: long against the clock, short against the scheduler."""


def calibration() -> int:
    """A fixed piece of plain Python: calls, small objects, attribute and dictionary look-ups."""
    seen: dict[int, tuple[int, int]] = {}
    total = 0
    for number in range(CALIBRATION_ROUNDS):
        pair = (number, total)
        seen[number & 63] = pair
        total += len(seen) + pair[0]
    return total


def seconds_of(function: Callable[[], object], inner: int) -> float:
    """Wall seconds of one call, taken over `inner` calls."""
    began = time.perf_counter()
    for _ in range(inner):
        function()
    return (time.perf_counter() - began) / inner


def ratio(function: Callable[[], object], *, inner: int = 20, rounds: int = 60) -> float:
    """The median over `rounds` of (one call of `function`) ÷ (one calibration), both measured in turn."""
    function()
    calibration()
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        pairs = [(seconds_of(function, inner), seconds_of(calibration, 10)) for _ in range(rounds)]
    finally:
        if was_enabled:
            gc.enable()
    return statistics.median(one / other for one, other in pairs)


def paired_ratio(one: Callable[[], object], other: Callable[[], object], *, inner: int = 20, rounds: int = 60) -> float:
    """The median over `rounds` of (one call of `one`) ÷ (one call of `other`), measured in turn."""
    one()
    other()
    return statistics.median(seconds_of(one, inner) / seconds_of(other, inner) for _ in range(rounds))
