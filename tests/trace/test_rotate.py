"""A trace that goes on in a new file: nothing of the session is lost, and it does not grow for ever."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from edgeagent.core.events import UserSaid
from edgeagent.errors import TraceError
from edgeagent.runtime import session as session_module
from edgeagent.trace.export.checkpoint import grown, root_of
from edgeagent.trace.file import TraceFile, examine_file
from edgeagent.trace.recover import Clean
from edgeagent.trace.rotate import archives_of

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.crash.world import QUICK, TURNS, live, reopen, start


def nothing(what: str) -> None:
    """Hear nothing."""


def test_hashes_tree_and_numbers_go_on_in_the_new_file(tmp_path: Path) -> None:
    session = start(tmp_path, nothing, QUICK)
    session.say("one")
    before = examine_file(session.trace_path)
    session._trace.rotate(session.state)
    session.say("two")
    session.close()
    after = examine_file(session.trace_path)
    assert isinstance(after.verdict, Clean)
    assert after.header is not None
    assert after.header.before == before.head
    assert [r.seq for r in after.records][:2] == [len(before.records), len(before.records) + 1]
    whole = grown((), 0, [r.hash for r in (*before.records, *after.records)])
    assert grown(after.header.peaks, after.header.first_seq, [r.hash for r in after.records]) == whole
    assert root_of(whole[0])


def test_a_rotated_session_resumes_to_the_same_state(tmp_path: Path) -> None:
    session = start(tmp_path, nothing, QUICK)
    session.say(TURNS[0])
    session._trace.rotate(session.state)
    session.close()
    (session.directory / "snapshot.cbor").unlink(missing_ok=True)
    again = reopen(session.directory, nothing, QUICK)
    assert again.state == session.state
    again.close()


def test_a_session_that_runs_for_ever_keeps_a_bounded_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "ROTATE_AT_BYTES", 2_000)
    session = start(tmp_path, nothing, QUICK)
    for number in range(120):
        session.say(f"{number}: " + "words " * 20)
    live(session, said=len(TURNS))
    assert session.trace_path.stat().st_size < 20_000
    assert len(archives_of(session.trace_path)) == 8
    header = examine_file(session.trace_path).header
    assert header is not None
    assert header.first_seq > 200


def test_archives_are_ordered_by_their_first_record(tmp_path: Path) -> None:
    for name in ("9-10", "100-120", "11-99", "cut-12", "checkpoint"):
        (tmp_path / f"t.{name}").touch()
    assert [p.name for p in archives_of(tmp_path / "t")] == ["t.9-10", "t.11-99", "t.100-120"]


def test_a_file_that_someone_else_has_changed_is_not_rotated(tmp_path: Path) -> None:
    session = start(tmp_path, nothing, QUICK)
    session.say("one")
    with session.trace_path.open("ab") as file:
        file.write(b"x")
    with pytest.raises(TraceError, match="not whole"):
        session._trace.rotate(session.state)
    session.close()


def test_appending_goes_on_behind_a_rotation(tmp_path: Path) -> None:
    from edgeagent.core.state import State

    trace = TraceFile.create(tmp_path / "t")
    trace.append(UserSaid(1, "a"), (), sync=False)
    trace.rotate(State(), archives=0)
    trace.append(UserSaid(2, "b"), (), sync=True)
    trace.close()
    assert [(r.seq, r.event) for r in examine_file(tmp_path / "t").records] == [(1, UserSaid(2, "b"))]
    assert archives_of(tmp_path / "t") == []
