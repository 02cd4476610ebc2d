"""Resuming: what is run again, what is reported, what is refused."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edgeagent.core.effects import CallTool
from edgeagent.core.events import SessionResumed, ToolReturned, TraceRepaired
from edgeagent.errors import ConfigError, TraceDamaged, TraceDisagrees
from edgeagent.runtime.folder import ABOUT_NAME, SNAPSHOT_NAME, TRACE_NAME, lock
from edgeagent.runtime.fork import fork_session
from edgeagent.runtime.recording import changes, parts_of
from edgeagent.runtime.resume import lost_events, resume_session
from edgeagent.runtime.session import Outside
from edgeagent.runtime.vouched import accept
from edgeagent.trace.file import examine_file

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.crash.world import (
    QUICK,
    TURNS,
    agent_that,
    drivers,
    live,
    reopen,
    revive,
    said_in,
    start,
    step_for,
)


def nothing(what: str) -> None:
    """Hear nothing."""


@pytest.fixture
def ended(tmp_path: Path) -> Path:
    """The directory of a session that has ended well."""
    session = start(tmp_path, nothing, QUICK)
    live(session)
    return session.directory


def cut_after(directory: Path, wanted: type, count: int = 1) -> None:
    """Cut the trace behind the `count`-th event of this kind."""
    path = directory / "trace.cbor"
    matching = [r for r in examine_file(path).records if isinstance(r.event, wanted)]
    path.write_bytes(path.read_bytes()[: matching[count - 1].offset + matching[count - 1].size])
    accept(directory)  # Who is killed there has vouched for no more, and left no snapshot.


def cut_at_intent_of(directory: Path, tool: str) -> None:
    """Cut the trace behind the record that has led to the first call of this tool."""
    agent, state = agent_that(nothing), None
    from edgeagent.core.state import State

    state = State()
    path = directory / "trace.cbor"
    for record in examine_file(path).records:
        state, effects = step_for()(agent, state, record.event)
        if any(isinstance(e, CallTool) and e.tool == tool for e in effects):
            path.write_bytes(path.read_bytes()[: record.offset + record.size])
            accept(directory)
            return


def events(directory: Path) -> list[object]:
    return [r.event for r in examine_file(directory / "trace.cbor").records]


def test_completed_effects_never_run_again(ended: Path) -> None:
    runs: list[str] = []
    cut_after(ended, ToolReturned, 1)
    revive(ended, runs.append, QUICK)
    assert "pay 1" not in runs
    assert runs.count("pay 2") == 1


def test_an_effect_that_must_not_happen_twice_is_reported_unknown(ended: Path) -> None:
    runs: list[str] = []
    cut_at_intent_of(ended, "pay")
    session = reopen(ended, runs.append, QUICK)
    state = session.resume_turn()
    assert runs == []
    assert any("unknown" in m.text for exchange in state.past for m in exchange.messages)
    session.close()


def test_an_idempotent_effect_is_asked_again(ended: Path) -> None:
    runs: list[str] = []
    cut_at_intent_of(ended, "look")
    session = reopen(ended, runs.append, QUICK)
    session.resume_turn()
    assert "look" in runs
    session.close()


def test_steps_that_are_done_are_not_done_again_at_step_40(tmp_path: Path) -> None:
    session = start(tmp_path, nothing, QUICK)
    for _ in range(20):
        session.say("hm")
    session.close()
    before = events(session.directory)
    reopened = reopen(session.directory, nothing, QUICK)
    reopened.resume_turn()
    reopened.close()
    assert events(session.directory) == before


def test_a_torn_end_is_kept_beside_cut_off_and_recorded(ended: Path) -> None:
    path = ended / "trace.cbor"
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    last = examine_file(path)
    session = reopen(ended, nothing, QUICK)
    session.resume_turn()
    session.close()
    kept = ended / f"trace.cbor.cut-{last.end}"
    assert whole[:-3] == whole[: last.end] + kept.read_bytes()
    assert any(isinstance(e, TraceRepaired) and e.cut_bytes == len(kept.read_bytes()) for e in events(ended))


def test_a_crash_between_cutting_and_recording_the_repair_does_not_lose_it(ended: Path) -> None:
    path = ended / "trace.cbor"
    path.write_bytes(path.read_bytes()[:-3])
    first = reopen(ended, nothing, QUICK)
    first._held.release()  # Dies here: the end is cut off, nothing is recorded yet.
    second = reopen(ended, nothing, QUICK)
    second.resume_turn()
    second.close()
    assert sum(isinstance(e, TraceRepaired) for e in events(ended)) == 1


def test_damage_before_the_end_is_refused_and_nothing_is_changed(ended: Path) -> None:
    path = ended / "trace.cbor"
    changed = bytearray(path.read_bytes())
    changed[len(changed) // 2] ^= 4
    path.write_bytes(changed)
    with pytest.raises(TraceDamaged) as damage:
        reopen(ended, nothing, QUICK)
    assert 0 < damage.value.offset <= len(changed) // 2
    assert path.read_bytes() == changed


def test_time_in_which_nothing_ran_does_not_count(ended: Path) -> None:
    cut_after(ended, ToolReturned, 1)
    session = reopen(ended, nothing, QUICK)  # 15 minutes later, and a turn may take two.
    state = session.resume_turn()
    session.close()
    assert state.outcome is not None
    assert state.outcome.kind == "answered"
    assert any(isinstance(e, SessionResumed) for e in events(ended))


def test_two_processes_cannot_write_one_session(tmp_path: Path) -> None:
    session = start(tmp_path, nothing, QUICK)
    with pytest.raises(ConfigError, match=r"in use by process \d+ since"):
        reopen(session.directory, nothing, QUICK)
    session.close()


def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    holder = "import sys,time; from pathlib import Path; from edgeagent.runtime.folder import lock;"
    holder += "lock(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", holder, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    with pytest.raises(ConfigError, match=f"process {process.pid}"):
        lock(tmp_path)
    process.kill()
    process.wait()
    process.stdout.close()
    lock(tmp_path).release()


def test_changed_code_is_named(ended: Path) -> None:
    from edgeagent.runtime.folder import read_about

    agent = agent_that(nothing)
    changed = dataclasses.replace(agent, system="You pay no bills.", tools=agent.tools[:1])
    about = read_about(ended)
    assert about.parts == parts_of(agent)
    assert changes(about, agent) == []
    assert set(changes(about, changed)) == {"tool look is gone", "system text changed"}


def test_an_agent_that_would_have_acted_otherwise_is_refused_by_record(ended: Path) -> None:
    (ended / "snapshot.cbor").unlink()
    agent = agent_that(nothing)
    other = dataclasses.replace(agent, tools=agent.tools[1:])
    with pytest.raises(TraceDisagrees) as difference:
        resume_session(ended, other, step_for(), drivers(other, 0), outside=Outside(disk=QUICK))  # type: ignore[arg-type] # real drivers
    assert difference.value.record == 1


def test_a_fork_has_the_same_beginning_and_repeats_nothing(ended: Path, tmp_path: Path) -> None:
    runs: list[str] = []
    records = examine_file(ended / "trace.cbor").records
    fork = fork_session(tmp_path, ended, at=5, agent=agent_that(nothing)).directory
    assert [r.hash for r in examine_file(fork / "trace.cbor").records][:5] == [r.hash for r in records[:5]]
    revive(fork, runs.append, QUICK)
    assert "pay 1" not in runs
    assert examine_file(ended / "trace.cbor").records == records


def test_a_fork_takes_no_more_records_than_there_are(ended: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--at takes 1 to"):
        fork_session(tmp_path, ended, at=1000)


def test_a_session_cut_off_before_its_trace_was_made_starts_after_all(tmp_path: Path) -> None:
    session = start(tmp_path, nothing, QUICK)
    session.close()
    session.trace_path.unlink()
    (session.directory / "snapshot.cbor").unlink()
    reopened = reopen(session.directory, nothing, QUICK)
    live(reopened, said_in(session.directory))
    assert len([e for e in events(session.directory) if type(e).__name__ == "UserSaid"]) == len(TURNS)


def test_a_session_json_of_another_shape_is_refused_by_name(ended: Path) -> None:
    (ended / ABOUT_NAME).write_text('{"id": 3}')
    with pytest.raises(ConfigError, match=ABOUT_NAME):
        reopen(ended, nothing, QUICK)


def test_a_resting_session_has_lost_nothing(ended: Path) -> None:
    from edgeagent.runtime.folder import read_about

    session = reopen(ended, nothing, QUICK)
    found = examine_file(ended / "trace.cbor")
    assert lost_events(read_about(ended), agent_that(nothing), session.state, found, 0) == []
    session.close()


@pytest.mark.parametrize(("said", "heard"), [("caf\udce9", "caf\ufffd"), ("\ud800 hm", "\ufffd hm"), ("ünï", "ünï")])
def test_bytes_that_are_no_text_do_not_end_the_session(tmp_path: Path, said: str, heard: str) -> None:
    session = start(tmp_path, nothing, QUICK)
    session.say(said)
    session.close()
    assert events(session.directory)[1].text == heard  # type: ignore[attr-defined] # UserSaid


def test_a_trace_cut_between_two_records_is_refused_if_the_snapshot_vouches_for_more(ended: Path) -> None:
    whole = (ended / TRACE_NAME).read_bytes()
    *_, third_last, second_last, _ = examine_file(ended / TRACE_NAME).records
    for last in (third_last, second_last):
        cut = whole[: last.offset + last.size]
        (ended / TRACE_NAME).write_bytes(cut)
        with pytest.raises(TraceDamaged, match=rf"ends after record {last.seq}.*what is missing may have happened"):
            reopen(ended, nothing, QUICK)
        assert (ended / TRACE_NAME).read_bytes() == cut
    (ended / SNAPSHOT_NAME).unlink()
    reopen(ended, nothing, QUICK).close()


def test_traces_of_two_sessions_that_were_exchanged_are_noticed(tmp_path: Path) -> None:
    one, other = (start(tmp_path, nothing, QUICK) for _ in range(2))
    live(one)
    live(other)
    shutil.copy(other.trace_path, one.trace_path)
    with pytest.raises(TraceDamaged, match=r"has another record|ends after"):
        reopen(one.directory, nothing, QUICK)
    (one.directory / SNAPSHOT_NAME).unlink()
    with pytest.raises(TraceDamaged, match="exchanged"):
        reopen(one.directory, nothing, QUICK)


def test_a_call_of_unknown_fate_is_the_turns_outcome_with_tool_and_arguments(ended: Path) -> None:
    cut_at_intent_of(ended, "pay")
    session = reopen(ended, nothing, QUICK)
    state = session.resume_turn()
    session.close()
    assert state.outcome is not None
    assert state.outcome.kind == "unknown"
    assert state.outcome.detail.startswith('pay {"')
