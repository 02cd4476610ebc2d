"""The order of things: stamp, step, record, submit."""

from __future__ import annotations

import itertools
import threading

import pytest

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import AskModel, AskUser, CallTool
from edgeagent.core.events import SessionStarted, UserSaid
from edgeagent.core.step import step
from edgeagent.core.values import Outcome
from edgeagent.driver.person import PersonDriver
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.driver.tool import ToolDriver
from edgeagent.errors import TraceError
from edgeagent.runtime.loop import Loop

LOG: list[str] = []


@tool(idempotent=True, effect="read")
def look() -> str:
    """Look."""
    LOG.append("look")
    return "sky"


@tool(idempotent=False)
def push() -> str:
    """Push."""
    LOG.append("push")
    return "pushed"


AGENT = Agent(name="tester", tools=(look, push), dialect=Plain())
LOOK, PUSH = (f'{{"name": "{name}", "arguments": {{}}}}' for name in ("look", "push"))


class Records:
    """Remembers what was recorded; can be told to fail."""

    def __init__(self, fail_at=None):
        self.rows, self.fail_at = [], fail_at

    def append(self, event, effects, *, sync):
        if len(self.rows) == self.fail_at:
            raise TraceError("disk full")
        LOG.append(f"record {type(event).__name__}")
        self.rows.append((event, effects, sync))


def loop_with(script, records):
    LOG.clear()
    ticks = itertools.count(1_000)
    drivers = {AskModel: ScriptedModel(script), CallTool: ToolDriver(AGENT.by_name), AskUser: PersonDriver()}
    loop = Loop(AGENT, step, records, drivers, lambda: next(ticks))
    loop.post(SessionStarted(0, "tester", AGENT.digest, 1, "plain", 2048, "0"))
    loop.post(UserSaid(0, "go"))
    return loop


def test_a_turn_runs_to_its_answer():
    state = loop_with([LOOK, "It is the sky."], Records()).run()
    assert state.outcome == Outcome("answered")


def test_an_event_is_recorded_before_its_effects_leave():
    loop_with([PUSH, "Done."], Records()).run()
    assert LOG.index("record ModelAnswered") < LOG.index("push") < LOG.index("record ToolReturned")


def test_only_a_call_that_must_not_be_repeated_is_synced_first():
    records = Records()
    loop_with([LOOK, PUSH, "Done."], records).run()
    synced = [effects for _, effects, sync in records.rows if sync]
    assert [e.tool for effects in synced for e in effects] == ["push"]


def test_nothing_leaves_when_the_record_cannot_be_written():
    with pytest.raises(TraceError):
        loop_with([PUSH, "Done."], Records(fail_at=2)).run()
    assert "push" not in LOG


def test_times_follow_the_order_of_records():
    records = Records()
    loop_with([LOOK, "Done."], records).run()
    times = [event.at_ms for event, _, _ in records.rows]
    assert times == sorted(times)
    assert times[0] >= 1_000


def test_words_may_be_posted_from_any_thread():
    records = Records()
    loop = loop_with(["one", "two"], records)
    thread = threading.Thread(target=loop.post, args=(UserSaid(0, "again"),))
    thread.start()
    thread.join()
    loop.run()
    assert [type(e).__name__ for e, _, _ in records.rows].count("UserSaid") == 2
