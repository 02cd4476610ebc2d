"""Results longer than what is recorded are kept beside the trace and read on; losing one loses only its rest."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

import edgeagent
from edgeagent import Agent, tool
from edgeagent.core.events import ToolReturned
from edgeagent.core.values import canonical_json
from edgeagent.doors.cli.main import cli
from edgeagent.runtime.fork import fork_session
from edgeagent.runtime.model import Script
from edgeagent.runtime.recording import load_recording, records_of
from edgeagent.runtime.rests import KEPT_BYTES_MAX, MAGIC, KeptResults
from edgeagent.testing import call
from edgeagent.trace.check import fold
from edgeagent.trace.disk import DISK, Disk

ROWS = [{"n": n, "line": f"row {n}"} for n in range(5_000)]


@tool(idempotent=True)
def read_log() -> list[dict[str, object]]:
    """Read the log."""
    return ROWS


@tool(idempotent=True)
def read_page() -> str:
    """Read the page."""
    return "a line of it\n" * 400


AGENT = Agent("reader", "You read.", (read_log, read_page))


def told(state: Path, *script: str, **more: object) -> tuple[edgeagent.Session, list[edgeagent.Answer]]:
    """A session that has answered as often as the script ends a turn; it is closed."""
    turns = sum(not text.startswith("{") for text in script)
    with edgeagent.open(AGENT, model=Script(list(script)), state=state, **more) as session:
        return session, [session.ask("Go on.") for _ in range(turns)]


def parts(answer: edgeagent.Answer) -> list[object]:
    return [each.result for each in answer.calls if each.tool == "result_more"]


def test_a_long_result_is_read_on_from_its_file_and_a_short_one_from_the_trace(tmp_path: Path) -> None:
    more = call("result_more")
    session, answers = told(tmp_path, call("read_log"), more, "One.", call("read_page"), more, "Two.")
    (of_log,), (of_page,) = map(parts, answers)
    assert str(of_log) in canonical_json(ROWS)
    assert str(of_page) in "a line of it\n" * 400
    kept = [path.name for path in (session.directory / "results").iterdir()]
    assert kept == ["2"], "only what is longer than what is recorded"
    assert (session.directory / "results" / "2").read_bytes() == MAGIC + canonical_json(ROWS).encode()
    assert (session.directory / "results" / "2").stat().st_mode & 0o077 == 0


def test_a_result_is_read_on_in_the_next_process_and_replay_needs_no_file(tmp_path: Path) -> None:
    session, _ = told(tmp_path, call("read_log"), "One.")
    script = (call("read_log"), "One.", call("result_more"), "Two.")
    with edgeagent.open(AGENT, model=Script(list(script)), state=tmp_path, resume=session.id) as again:
        answer = again.ask("Read on.")
        state = again.state
    assert str(parts(answer)[0]) in canonical_json(ROWS)
    shutil.rmtree(session.directory / "results")
    found = records_of(session.trace_path)
    assert fold(load_recording(session.trace_path, AGENT).step, found.records)[0] == state


def test_where_the_file_is_gone_it_is_said_and_the_turn_goes_on(tmp_path: Path) -> None:
    session, _ = told(tmp_path, call("read_log"), "One.")
    file = session.directory / "results" / "2"
    file.unlink()
    trace = session.trace_path.read_bytes()
    script = (call("read_log"), "One.", call("result_more"), "Two.")
    with edgeagent.open(AGENT, model=Script(list(script)), state=tmp_path, resume=session.id) as again:
        answer = again.ask("Read on.")
    assert answer.text == "Two."
    assert trace != session.trace_path.read_bytes()


class NoRoom(Disk):
    """A disk that takes no cache."""

    def write_cache(self, path: Path, *content: bytes | bytearray | memoryview) -> bool:
        return False


def test_a_full_disk_loses_only_what_is_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "edgeagent.toml").write_text("[state]\ncache_mb = 0\n")
    session, (answer,) = told(
        tmp_path, call("read_log"), call("result_more"), "One.", config=tmp_path / "edgeagent.toml"
    )
    assert answer.text == "One."
    returned = [r.event for r in records_of(session.trace_path).records if isinstance(r.event, ToolReturned)]
    assert 0 < returned[0].kept < len(canonical_json(ROWS))
    assert str(parts(answer)[0]) in returned[0].value
    assert KeptResults(tmp_path, NoRoom()).keep(1, "x" * 100_000) == 0


def test_a_fork_has_the_results_of_the_records_that_it_begins_with(tmp_path: Path) -> None:
    session, _ = told(tmp_path, call("read_log"), "One.", call("read_log"), "Two.")
    count = next(r.seq for r in records_of(session.trace_path).records if isinstance(r.event, ToolReturned)) + 1
    forked = fork_session(tmp_path, session.directory, at=count, again=True, agent=AGENT)
    assert [path.name for path in (forked.directory / "results").iterdir()] == ["2"]


def test_an_exported_session_has_its_results(tmp_path: Path) -> None:
    session, _ = told(tmp_path, call("read_log"), "One.")
    target = tmp_path / "out.tar.gz"
    command = ["sessions", "export", session.id, str(target), "--state", str(tmp_path)]
    assert CliRunner().invoke(cli, command).exit_code == 0
    with tarfile.open(target) as archive:
        assert f"{session.id}/results/2" in archive.getnames()


def test_the_oldest_results_go_before_a_session_keeps_more_than_its_share(tmp_path: Path) -> None:
    kept = KeptResults(tmp_path, DISK)
    assert all(kept.keep(number, "x" * 100_000) == 100_000 for number in range(1, 41))
    assert len(list((tmp_path / "results").iterdir())) == 32
    assert kept.part(40, 99_999) == "x"
    assert kept.part(1, 0) == ""


@pytest.mark.long
def test_of_a_result_that_is_longer_than_is_kept_the_beginning_is(tmp_path: Path) -> None:
    kept = KeptResults(tmp_path, DISK)
    assert kept.keep(1, "é" * (KEPT_BYTES_MAX // 2 + 9)) == KEPT_BYTES_MAX // 2
    assert kept.part(1, KEPT_BYTES_MAX // 2 - 1) == "é"


@pytest.mark.parametrize("text", ["a\r\nb\rc\n" * 20_000, "नमस्ते 😀 " * 10_000, "\x00\ufeff\u2028" * 30_000])
def test_every_character_of_a_kept_text_stands_where_it_stood(tmp_path: Path, text: str) -> None:
    kept = KeptResults(tmp_path, DISK)
    kept.keep(1, text)
    got = ""
    while piece := kept.part(1, len(got)):
        got += piece
    assert got == text


@pytest.mark.parametrize("damage", [b"", b"edgeagent", b"other\n", MAGIC[:-1]])
def test_a_file_that_is_none_of_ours_is_not_read(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "1").write_bytes(damage)
    assert KeptResults(tmp_path, DISK).part(1, 0) == ""


def test_a_part_is_never_more_than_is_recorded_of_one(tmp_path: Path) -> None:
    _, (answer,) = told(tmp_path, call("read_log"), call("result_more"), "One.")
    assert len(json.dumps(parts(answer)[0])) < 3 * 4_096


PICTURE = b"\x89PNG\r\n" + bytes(range(256)) * 80


@tool(idempotent=True)
def look() -> dict[str, object]:
    """Look through the camera."""
    return {"picture": PICTURE, "notes": [bytearray(b"sharp"), "at noon"]}


@tool(idempotent=True)
def many() -> list[bytes]:
    """Read many registers."""
    return [bytes([n]) for n in range(20)]


def looked(state: Path, named: str = "look") -> tuple[edgeagent.Session, tuple[str, ...]]:
    """A session of one call, and what people are told of its result."""
    agent = Agent("looker", "You look.", (look, many))
    with edgeagent.open(agent, model=Script([call(named), "Done."]), state=state) as session:
        session.ask("Go on.")
    (event,) = (r.event for r in records_of(session.trace_path).records if isinstance(r.event, ToolReturned))
    return session, event.notes


def test_bytes_of_a_result_are_kept_as_they_are_and_a_person_is_told_where(tmp_path: Path) -> None:
    session, notes = looked(tmp_path)
    assert notes == (
        f"its {len(PICTURE)} bytes are kept in results/2-1.bin",
        "its 5 bytes are kept in results/2-2.bin",
    )
    assert (session.directory / "results" / "2-1.bin").read_bytes() == PICTURE
    assert (session.directory / "results" / "2-2.bin").read_bytes() == b"sharp"
    assert (session.directory / "results" / "2-1.bin").stat().st_mode & 0o077 == 0


def test_of_many_bytes_as_many_are_kept_as_are_allowed_and_the_rest_is_said_not_to_be(tmp_path: Path) -> None:
    session, notes = looked(tmp_path, "many")
    assert notes[-2:] == ("its 1 bytes are kept in results/2-8.bin", "its 1 bytes are not kept")
    assert len(list((session.directory / "results").iterdir())) == 8


def test_a_fork_and_an_export_have_the_bytes(tmp_path: Path) -> None:
    session, _ = looked(tmp_path)
    agent = Agent("looker", "You look.", (look, many))
    forked = fork_session(tmp_path, session.directory, at=None, again=True, agent=agent)
    assert (forked.directory / "results" / "2-1.bin").read_bytes() == PICTURE
    target = tmp_path / "out.tar.gz"
    command = ["sessions", "export", session.id, str(target), "--state", str(tmp_path)]
    assert CliRunner().invoke(cli, command).exit_code == 0
    with tarfile.open(target) as archive:
        file = archive.extractfile(f"{session.id}/results/2-1.bin")
        assert file is not None
        assert file.read() == PICTURE


def test_bytes_find_room_by_letting_older_results_go_and_none_beyond_their_share_is_kept(tmp_path: Path) -> None:
    kept = KeptResults(tmp_path, DISK)
    assert kept.keep_bytes(1, 1, bytes(KEPT_BYTES_MAX + 1)) == ""
    assert kept.keep(2, "x" * 1_000)
    assert kept.keep_bytes(3, 1, bytes(KEPT_BYTES_MAX)) == "results/3-1.bin"
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["3-1.bin"]


def test_where_the_disk_takes_no_bytes_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "results").touch()
    assert KeptResults(tmp_path, DISK).keep_bytes(1, 1, b"x") == ""
