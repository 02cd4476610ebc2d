"""The trace: what a record costs in time and bytes, and how soon a long session and its model are back."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bench.measure import calibration, seconds_of
from bench.play import AGENT, CALL, RESULT, TOKEN_IDS, USAGE, started, turn
from edgeagent.core.events import Event, ModelAnswered, SessionStarted, ToolReturned, UserSaid
from edgeagent.policy.guard import AllowAll, guarded_step
from edgeagent.runtime.folder import TRACE_NAME, About, write_about
from edgeagent.runtime.resume import resume_session
from edgeagent.runtime.snapshot import write_snapshot
from edgeagent.trace.file import TraceFile, examine_file

STEP = partial(guarded_step, AllowAll())
TYPICAL: tuple[Event, ...] = (
    UserSaid(1_764_535_118_000, "Open the north valve for 30 seconds."),
    ModelAnswered(1_764_535_119_000, 31, CALL, "closed", USAGE, TOKEN_IDS),
    ToolReturned(1_764_535_120_000, 32, RESULT, 150),
    ModelAnswered(1_764_535_121_000, 33, "The north valve is open.", "end", USAGE, TOKEN_IDS[:18]),
)
TURNS = 250


def test_append(tmp_path: Path, record_figure: Callable[[str, float], None]) -> None:
    """One record without a sync, and the bytes of the four records of a turn."""
    trace = TraceFile.create(tmp_path / "t.cbor", durability="relaxed")
    events = itertools.cycle(TYPICAL)
    rounds = []
    for _ in range(60):
        append = seconds_of(lambda: trace.append(next(events), (), sync=False), 40)
        rounds.append((append, seconds_of(calibration, 10)))
    trace.close()
    record_figure("trace.append_ratio", statistics.median(one / other for one, other in rounds))
    record_figure("trace.append_us", 1e6 * min(one for one, _ in rounds))
    sizes = [r.size for r in examine_file(tmp_path / "t.cbor").records]
    record_figure("trace.bytes_typical", statistics.mean(sizes))


@pytest.fixture
def long_session(tmp_path: Path) -> Path:
    """The directory of a session of 1,001 events, with the snapshot that closing it leaves."""
    directory = tmp_path / "sessions" / "long"
    directory.mkdir(parents=True)
    about = About(
        id="long",
        agent=AGENT.name,
        agent_spec="play.py",
        agent_digest=AGENT.digest,
        model="script",
        dialect="plain",
        created_ms=0,
    )
    write_about(directory, about)
    trace = TraceFile.create(directory / TRACE_NAME, durability="relaxed")
    state = started()
    trace.append(SessionStarted(1, AGENT.name, AGENT.digest, 1, "plain", 2048, "0"), (), sync=False)
    for number in range(TURNS):
        before = state
        _, events = turn(state, 10 * number + 10)
        for event in events:
            before, effects = STEP(AGENT, before, event)
            trace.append(event, effects, sync=False)
        state = before
    trace.close()
    write_snapshot(directory, AGENT, state, trace.seq, trace.head)
    return directory


def test_resume(long_session: Path, record_figure: Callable[[str, float], None]) -> None:
    """Opening a session of 1,001 events again, without the model."""

    def resumed_s() -> float:
        began = time.perf_counter()
        session = resume_session(long_session, AGENT, STEP, {})
        spent = time.perf_counter() - began
        assert session.state.turn == TURNS
        session.close()
        return spent

    record_figure("trace.resume_ms", 1e3 * min(resumed_s() for _ in range(15)))


def test_warm(record_figure: Callable[[str, float], None]) -> None:
    """First token of a resumed session with a prefix of 500 tokens, as a share of evaluating the prefix again."""
    from bench.warm import measure
    from edgeagent.models.store import find

    warmth = measure(find("smollm2"), rounds=3)
    assert warmth.same_text
    record_figure("warm.first_token_share", 1 / warmth.times_sooner)
