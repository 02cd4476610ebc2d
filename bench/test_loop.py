"""The loop without a model: stamp, step, record, submit."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from bench.measure import calibration, seconds_of
from bench.play import AGENT, CALL
from edgeagent.core.effects import AskModel, AskUser, CallTool, Effect
from edgeagent.core.events import Event, SessionStarted, ToolReturned, UserSaid
from edgeagent.driver.base import Driver, Post
from edgeagent.driver.person import PersonDriver
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.policy.guard import AllowAll, guarded_step
from edgeagent.runtime.loop import Loop
from edgeagent.trace.file import TraceFile

TURNS = 250
EVENTS_A_TURN = 4


class Instant:
    """A tool that has always just returned: what is measured is the loop, not a thread."""

    def submit(self, effect: Effect, post: Post) -> None:
        """Answer at once."""
        assert isinstance(effect, CallTool)
        event: Event = ToolReturned(0, effect.effect_id, "1")
        post(event)

    def cancel(self, effect_id: int) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """Nothing is held."""


def run_turns(folder: Path, number: int) -> None:
    """`TURNS` turns with a real trace that is synced at the end."""
    script = itertools.cycle([CALL, "The north valve is open."])
    ticks = itertools.count(1)
    trace = TraceFile.create(folder / f"{number}.cbor")
    drivers: dict[type, Driver] = {AskModel: ScriptedModel(script), CallTool: Instant(), AskUser: PersonDriver()}
    loop = Loop(AGENT, lambda a, s, e: guarded_step(AllowAll(), a, s, e), trace, drivers, lambda: next(ticks))
    loop.post(SessionStarted(0, AGENT.name, AGENT.digest, 1, "plain", 2048, "0"))
    for _ in range(TURNS):
        loop.post(UserSaid(0, "Open the north valve for 30 seconds."))
        loop.run()
    trace.close()


def test_loop(tmp_path: Path, record_figure: Callable[[str, float], None]) -> None:
    """Events per second with a trace on the disk, as a ratio and as bytes."""
    ratios, seconds = [], []
    for number in range(7):
        # CPU time for the ratio: the loop waits for the disk and for threads, the calibration for nothing.
        began, began_cpu = time.perf_counter(), time.process_time()
        run_turns(tmp_path, number)
        seconds.append((time.perf_counter() - began) / (TURNS * EVENTS_A_TURN))
        cpu_s = (time.process_time() - began_cpu) / (TURNS * EVENTS_A_TURN)
        began_cpu = time.process_time()
        seconds_of(calibration, 50)
        ratios.append(cpu_s / ((time.process_time() - began_cpu) / 50))
    record_figure("loop.event_ratio", statistics.median(ratios))
    record_figure("loop.us_an_event", min(seconds) * 1e6)
    record_figure("trace.bytes_an_event", (tmp_path / "0.cbor").stat().st_size / (TURNS * EVENTS_A_TURN + 1))
