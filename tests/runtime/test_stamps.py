"""Two clocks: what the wall clock does changes a label and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from edgeagent.core.agent import Agent, tool
from edgeagent.core.budget import Budget
from edgeagent.core.calls import QUESTION_TIMEOUT_MS
from edgeagent.core.effects import AskUser
from edgeagent.core.events import SessionResumed, steady_ms
from edgeagent.core.state import State
from edgeagent.driver.person import Decision, PersonDriver
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.runtime import golden
from edgeagent.runtime.folder import Beginning
from edgeagent.runtime.recording import load_recording, start_of
from edgeagent.runtime.resume import resume_session
from edgeagent.runtime.session import Outside, new_session
from edgeagent.runtime.stamps import JITTER_MS, Stamps
from edgeagent.runtime.wiring import drivers_of, step_of, with_dialect
from edgeagent.trace.file import examine_file

TRACES = Path(__file__).parents[2] / "traces"
THREE_WEEKS_MS = 3 * 7 * 24 * 3_600_000
NOW_MS = 1_700_000_000_000


class Clocks:
    """A wall clock that can be set, and a steady one."""

    def __init__(self) -> None:
        self.wall, self.steady = NOW_MS, 5_000

    def passes(self, ms: int) -> None:
        self.wall, self.steady = self.wall + ms, self.steady + ms

    def outside(self) -> Outside:
        return Outside(clock_ms=lambda: self.wall, steady_ms=lambda: self.steady)


@pytest.mark.parametrize("jump", [THREE_WEEKS_MS, -THREE_WEEKS_MS])
@pytest.mark.parametrize("directory", golden.situations(TRACES), ids=lambda d: d.name)
def test_a_clock_that_jumps_at_any_event_of_a_recording_changes_no_effect(directory: Path, jump: int) -> None:
    found = examine_file(directory / "trace.cbor")
    recording, begin = load_recording(directory / "trace.cbor", runs_beside=True), start_of(found)
    events = [r.event for r in found.records]

    def played(jumps_at: int) -> tuple[State, list[object]]:
        state, told = begin, []
        for number, event in enumerate(events):
            moved = replace(event, at_ms=event.at_ms + jump, skew_ms=event.skew_ms + jump)
            state, effects = recording.step(state, moved if number >= jumps_at else event)
            told.append(effects)
        return state, told

    without, told = played(len(events))
    for number in range(1, len(events)):
        state, same = played(number)
        assert same == told
        assert (state.outcome, state.now_ms) == (without.outcome, without.now_ms)


def test_a_jump_of_the_wall_clock_moves_the_label_and_not_the_steady_time() -> None:
    clocks = Clocks()
    stamps = Stamps(State(), clocks.outside().clock_ms, clocks.outside().steady)
    assert stamps.next(State()) == (NOW_MS, 0)
    clocks.passes(1_000)
    clocks.wall += JITTER_MS  # Slewed, not set.
    assert stamps.next(State()) == (NOW_MS + 1_000, 0)
    clocks.wall += THREE_WEEKS_MS
    at_ms, skew_ms = stamps.next(State())
    assert at_ms == clocks.wall
    assert at_ms - skew_ms == NOW_MS + 1_000
    clocks.wall -= 2 * THREE_WEEKS_MS
    at_ms, skew_ms = stamps.next(State())
    assert (at_ms, at_ms - skew_ms) == (clocks.wall, NOW_MS + 1_000)


@pytest.mark.parametrize("jump", [THREE_WEEKS_MS, -7_200_000, 0])
@pytest.mark.parametrize("takes_ms", [1_000, 12_700])
def test_a_budget_of_time_is_of_time_that_passed_whatever_the_clock_is_set_to(
    tmp_path: Path, jump: int, takes_ms: int
) -> None:
    clocks = Clocks()

    @tool(idempotent=True)
    def look() -> str:
        """Look."""
        clocks.passes(takes_ms)
        clocks.wall += jump
        return "sky"

    agent = with_dialect(Agent("watch", tools=(look,), budget=Budget(seconds=5)), "plain")
    model = ScriptedModel(['{"name": "look", "arguments": {}}', "Sky."])
    beginning = Beginning(agent_spec="", model="script", seed=1)
    session = new_session(agent, step_of(agent), drivers_of(agent, model), tmp_path, beginning, clocks.outside())
    outcome = session.say("Look.").outcome
    session.close()
    assert outcome is not None
    assert outcome.kind == ("answered" if takes_ms < 5_000 else "budget")


@pytest.mark.parametrize("jump", [THREE_WEEKS_MS, -7_200_000, 0])
@pytest.mark.parametrize("takes_ms", [1_000, QUESTION_TIMEOUT_MS + 1_000])
def test_a_question_lapses_by_time_that_passed_whatever_the_clock_is_set_to(
    tmp_path: Path, jump: int, takes_ms: int
) -> None:
    clocks, runs = Clocks(), []

    @tool(idempotent=False, confirm=True)
    def erase() -> str:
        """Erase."""
        runs.append("erased")
        return "erased"

    def decide(question: AskUser) -> Decision:
        clocks.passes(takes_ms)
        clocks.wall += jump
        return Decision(True, "", question.digest)

    agent = with_dialect(Agent("eraser", tools=(erase,), budget=Budget(seconds=3_600)), "plain")
    model = ScriptedModel(['{"name": "erase", "arguments": {}}', "Said."])
    beginning = Beginning(agent_spec="", model="script", seed=1)
    drivers = drivers_of(agent, model, PersonDriver(decide))
    session = new_session(agent, step_of(agent), drivers, tmp_path, beginning, clocks.outside())
    session.say("Erase.")
    session.close()
    assert runs == (["erased"] if takes_ms < QUESTION_TIMEOUT_MS else [])


@pytest.mark.parametrize(("away_ms", "passed_ms"), [(60_000, 60_000), (-60_000, 0)])
def test_between_two_processes_the_wall_clock_tells_how_long_it_was(
    tmp_path: Path, away_ms: int, passed_ms: int
) -> None:
    agent = with_dialect(Agent("watch"), "plain")
    clocks, beginning = Clocks(), Beginning(agent_spec="", model="script", seed=1)
    drivers = drivers_of(agent, ScriptedModel(["One.", "Two."]))
    session = new_session(agent, step_of(agent), drivers, tmp_path, beginning, clocks.outside())
    before = session.say("One").now_ms
    session.close()
    clocks.wall += away_ms
    clocks.steady = 77  # Another boot.
    again = resume_session(session.directory, agent, step_of(agent), drivers, outside=clocks.outside())
    after = again.say("Two").now_ms
    again.close()
    assert after - before == passed_ms
    last = examine_file(session.directory / "trace.cbor").records[-1].event
    assert (last.at_ms, steady_ms(last)) == (clocks.wall, after)
    assert SessionResumed not in [type(r.event) for r in examine_file(session.directory / "trace.cbor").records]
