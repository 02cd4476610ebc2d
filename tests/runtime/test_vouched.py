"""The end of a trace is vouched for elsewhere: what is missing there is noticed, however whole the rest looks."""

from __future__ import annotations

import errno
import shutil
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from edgeagent.core.events import ModelAnswered, UserSaid
from edgeagent.doors.cli.sessions import sessions
from edgeagent.doors.cli.trace import trace
from edgeagent.errors import TraceDamaged, TraceError
from edgeagent.runtime.folder import ABOUT_NAME, SNAPSHOT_NAME, TRACE_NAME, head_path, root_of
from edgeagent.runtime.keys import HEAD_KEY_NAME
from edgeagent.runtime.vouched import accept
from edgeagent.trace.file import examine_file

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.crash.world import QUICK, Quick, live, reopen, revive, start


def nothing(what: str) -> None:
    """Hear nothing."""


@pytest.fixture
def paid(tmp_path: Path) -> Path:
    """The directory of a session that has paid two bills, without the snapshot that closing it has left."""
    session = start(tmp_path / "state", nothing, QUICK)
    live(session)
    (session.directory / SNAPSHOT_NAME).unlink()
    return session.directory


def cut(directory: Path, *, inside: bool = False) -> int:
    """Cut the trace before the record that has led to the first payment, or inside it; return where."""
    path = directory / TRACE_NAME
    record = next(r for r in examine_file(path).records if isinstance(r.event, ModelAnswered))
    at = record.offset + (record.size // 2 if inside else 0)
    path.write_bytes(path.read_bytes()[:at])
    return at


@pytest.mark.parametrize("inside", [False, True])
def test_a_trace_that_has_lost_a_payment_is_damaged_and_the_payment_is_not_repeated(paid: Path, inside: bool) -> None:
    cut(paid, inside=inside)
    left, runs = (paid / TRACE_NAME).read_bytes(), []
    with pytest.raises(TraceDamaged, match=r"vouches for 7: what is missing may have happened.*repair --to"):
        revive(paid, runs.append, QUICK)
    assert runs == []
    assert (paid / TRACE_NAME).read_bytes() == left


def test_a_trace_that_is_gone_is_not_begun_anew(paid: Path) -> None:
    (paid / TRACE_NAME).unlink()
    with pytest.raises(TraceDamaged, match="is gone, and records are vouched for"):
        revive(paid, nothing, QUICK)


def test_a_directory_that_was_put_back_as_it_was_before_a_payment_is_noticed(tmp_path: Path) -> None:
    session = start(tmp_path / "state", nothing, QUICK)
    shutil.copytree(session.directory, tmp_path / "earlier")
    live(session)
    shutil.rmtree(session.directory)
    shutil.copytree(tmp_path / "earlier", session.directory)
    with pytest.raises(TraceDamaged, match="what is missing may have happened"):
        revive(session.directory, nothing, QUICK)


def _lose(directory: Path) -> None:
    head_path(directory).unlink()


def _change(directory: Path) -> None:
    head_path(directory).write_bytes(head_path(directory).read_bytes()[:-1])


def _lose_key(directory: Path) -> None:
    (root_of(directory) / HEAD_KEY_NAME).unlink()


def _exchange(directory: Path) -> None:
    other = start(root_of(directory), nothing, QUICK)
    live(other)
    shutil.copy(head_path(other.directory), head_path(directory))


@pytest.mark.parametrize(
    ("lose", "said"),
    [(_lose, "is gone"), (_change, "is not what was written"), (_exchange, "not what"), (_lose_key, "has been lost")],
)
def test_a_session_whose_head_is_lost_goes_on_once_a_person_accepts_its_trace(paid: Path, lose, said: str) -> None:
    lose(paid)
    with pytest.raises(TraceDamaged, match=rf"{said}.*nothing vouches for its end"):
        reopen(paid, nothing, QUICK)
    looked = CliRunner().invoke(trace, ["check", str(paid)], standalone_mode=False)
    assert "unvouched" in looked.output
    assert looked.return_value == 6
    end = examine_file(paid / TRACE_NAME).end
    CliRunner().invoke(trace, ["repair", str(paid), "--to", str(end)], standalone_mode=False)
    reopen(paid, nothing, QUICK).close()
    assert CliRunner().invoke(trace, ["check", str(paid)], standalone_mode=False).return_value == 0


def test_a_session_from_before_there_were_heads_goes_on_and_has_one_from_its_next_payment_on(paid: Path) -> None:
    about = msgspec.json.decode((paid / ABOUT_NAME).read_bytes())
    del about["sealed_by"]
    (paid / ABOUT_NAME).write_bytes(msgspec.json.encode(about))
    shutil.rmtree(head_path(paid).parent)
    cut(paid)
    runs: list[str] = []
    revive(paid, runs.append, QUICK)
    assert "pay 1" in runs
    (paid / SNAPSHOT_NAME).unlink()
    cut(paid)
    with pytest.raises(TraceDamaged, match="what is missing may have happened"):
        reopen(paid, nothing, QUICK)


def test_no_payment_leaves_before_its_head_is_on_the_disk(tmp_path: Path) -> None:
    class Full(Quick):
        is_full = False

        def create(self, path: Path) -> int:
            if self.is_full and path.parent.name == "heads":
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().create(path)

    runs: list[str] = []
    session = start(tmp_path, runs.append, disk := Full())
    disk.is_full = True
    with pytest.raises(TraceError, match=r"writing its head failed.*free some space"):
        live(session)
    assert runs == []
    disk.is_full = False
    assert reopen(session.directory, runs.append, disk).resume_turn().outcome.kind == "unknown"  # type: ignore[union-attr] # it has one


def test_only_a_call_that_must_not_be_made_twice_moves_the_head(tmp_path: Path) -> None:
    created: list[str] = []

    class Watched(Quick):
        def create(self, path: Path) -> int:
            created.append(path.parent.name)
            return super().create(path)

    session = start(tmp_path, nothing, Watched())
    live(session)
    assert created.count("heads") == 1 + 2  # As it begins, and for its two payments.


def test_records_that_are_missing_are_said_wherever_one_looks(paid: Path) -> None:
    cut(paid)
    state = str(root_of(paid))
    for arguments in (["check"], ["verify"]):
        told = CliRunner().invoke(trace, [*arguments, str(paid)], standalone_mode=False)
        assert "what is missing may have happened" in told.output
        assert told.return_value == 6
    assert "damaged at" in CliRunner().invoke(sessions, ["list", "--state", state], standalone_mode=False).output
    assert isinstance(CliRunner().invoke(trace, ["show", str(paid)], standalone_mode=False).exception, TraceDamaged)


def test_a_session_in_the_place_of_another_is_noticed(paid: Path) -> None:
    elsewhere = paid.with_name("20990101-000000-beef")
    paid.rename(elsewhere)
    with pytest.raises(TraceDamaged, match=r"nothing vouches|place of another session"):
        reopen(elsewhere, nothing, QUICK)
    accept(elsewhere)
    with pytest.raises(TraceDamaged, match="place of another session"):
        reopen(elsewhere, nothing, QUICK)


def test_a_removed_session_leaves_no_head(paid: Path) -> None:
    state = str(root_of(paid))
    CliRunner().invoke(sessions, ["remove", paid.name, "--yes", "--state", state], standalone_mode=False)
    assert not head_path(paid).exists()


def test_a_head_vouches_through_a_rotation(tmp_path: Path) -> None:
    session = start(tmp_path, nothing, QUICK)
    session.say("Pay the first bill.")
    session._trace.rotate(session.state)
    session.close()
    reopen(session.directory, nothing, QUICK).close()
    assert not any(isinstance(r.event, UserSaid) for r in examine_file(session.trace_path).records)
