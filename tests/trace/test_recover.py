"""Reported faults of other logs, as cases: what each must come to here. The numbers name the reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeagent.core.events import Event, SessionStarted, UserSaid
from edgeagent.errors import TraceDamaged, TraceError
from edgeagent.trace.disk import Disk
from edgeagent.trace.file import TraceFile, cut, read
from edgeagent.trace.record import Header, encode_header, frame
from edgeagent.trace.recover import Clean, Damaged, Torn, examine
from edgeagent.trace.upgrade import FORMAT

STARTED = SessionStarted(1_764_535_117_000, "greenhouse", "a" * 64, 7, "plain", 2048, "0.1.0")
EVENTS: tuple[Event, ...] = (
    STARTED,
    UserSaid(1_764_535_118_000, "how dry is the soil?"),
    UserSaid(1_764_535_119_000, "ist das Gewächshaus noch offen? 温室"),
    UserSaid(1_764_535_120_000, "x" * 600),
    UserSaid(1_764_535_121_000, "close it"),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A trace of five records."""
    trace = TraceFile.create(tmp_path / "trace.cbor", header=Header(FORMAT, bytes(range(8))))
    for event in EVENTS:
        trace.append(event, (), sync=False)
    trace.close()
    return tmp_path / "trace.cbor"


def verdict(content: bytes) -> object:
    return examine(content).verdict


def found(content: bytes) -> tuple[Event, ...]:
    return tuple(r.event for r in examine(content).records)


def test_zeros_in_the_middle_are_never_skipped(path: Path) -> None:
    """claude-code#49876: 200 to 700 NUL bytes in the middle and valid records after cut the context in silence."""
    whole = path.read_bytes()
    third = examine(whole).records[2]
    for size in (20, 200, 700):
        holed = whole[: third.offset] + bytes(size) + whole[third.offset + size :]
        assert isinstance(verdict(holed), Damaged)
        assert found(holed) == EVENTS[:2]


def test_a_file_that_ends_in_kilobytes_of_zeros_is_recoverable(path: Path) -> None:
    """claude-code#76059: one record and 9 kB of NUL, or 143 kB: the session vanished."""
    whole = path.read_bytes()
    for size in (9_000, 143_000):
        assert isinstance(verdict(whole + bytes(size)), Torn)
        assert found(whole + bytes(size)) == EVENTS


def test_a_cut_last_record_leaves_all_before_it_and_is_said(path: Path) -> None:
    """claude-code#53821, buntdb#71: a blank conversation and no error; the whole load failed."""
    whole = path.read_bytes()
    assert isinstance(verdict(whole[:-1]), Torn)
    assert found(whole[:-1]) == EVENTS[:-1]
    path.write_bytes(whole[:-1])
    with pytest.raises(TraceDamaged, match="resuming the session cuts it"):
        list(read(path))


def test_nothing_is_ever_glued_to_a_torn_record(path: Path) -> None:
    """copilot-cli#4098, ms-agent#1000: the next event was written behind the torn one and lost as well."""
    path.write_bytes(path.read_bytes()[:-5])
    trace, before = TraceFile.resume(path)
    assert isinstance(before.verdict, Torn)
    trace.append(EVENTS[-1], (), sync=True)
    trace.close()
    assert tuple(r.event for r in read(path)) == EVENTS


def test_a_cut_inside_a_character_is_an_ordinary_tear(path: Path) -> None:
    """ms-agent#1000: a cut inside a multi-byte character, and the file would not open."""
    whole = path.read_bytes()
    third = examine(whole).records[2]
    inside = whole.index("温".encode()) + 1
    assert isinstance(verdict(whole[:inside]), Torn)
    assert found(whole[: third.offset + third.size]) == EVENTS[:3]
    assert isinstance(verdict(whole[: third.offset + third.size]), Clean)


def test_one_bad_record_in_the_middle_is_refused_with_its_offset(path: Path) -> None:
    """harness#889: one bad line, and all later events were lost."""
    whole = bytearray(path.read_bytes())
    second = examine(bytes(whole)).records[1]
    whole[second.offset + 30] ^= 0xFF
    outcome = verdict(bytes(whole))
    assert isinstance(outcome, Damaged)
    assert outcome.offset == second.offset


def test_the_beginning_of_a_record_before_the_record_is_damage(path: Path) -> None:
    """codex#24425: a prefix of a record, then the record again: two writers or a short write without a loop."""
    whole = path.read_bytes()
    last = examine(whole).records[-1]
    glued = whole[: last.offset] + whole[last.offset : last.offset + 20] + whole[last.offset :]
    assert not isinstance(verdict(glued), Clean)
    assert found(glued) == EVENTS[:-1]


@pytest.mark.parametrize("border", [512, 4096])
def test_a_last_record_that_is_partly_zero_from_a_sector_on_is_a_tear(tmp_path: Path, border: int) -> None:
    """etcd#6191, #11488: the last entries were partly zero after a hard reboot, and nothing would repair them."""
    trace = TraceFile.create(tmp_path / "t")
    trace.append(STARTED, (), sync=False)
    trace.append(UserSaid(1, "x" * 6000), (), sync=False)
    trace.close()
    whole = (tmp_path / "t").read_bytes()
    torn = whole[:border] + bytes(len(whole) - border)
    assert isinstance(verdict(torn), Torn)
    assert found(torn) == (STARTED,)


def test_zeros_inside_a_record_that_is_not_the_last_are_damage(path: Path) -> None:
    """etcd#11220: only the last record may be torn."""
    whole = path.read_bytes()
    fourth = examine(whole).records[3]
    holed = whole[: fourth.offset + 100] + bytes(100) + whole[fourth.offset + 200 :]
    assert isinstance(verdict(holed), Damaged)


def test_a_record_torn_at_a_page_border_is_repaired_and_damage_before_it_is_not(tmp_path: Path) -> None:
    """etcd#5230: a record torn at a page border, and the member would not start."""
    trace = TraceFile.create(tmp_path / "t")
    trace.append(STARTED, (), sync=False)
    for _ in range(3):
        trace.append(UserSaid(1, "y" * 1900), (), sync=False)
    trace.close()
    whole = (tmp_path / "t").read_bytes()
    assert isinstance(verdict(whole[:4096]), Torn)
    damaged = bytearray(whole[:4096])
    damaged[300] ^= 1
    assert isinstance(verdict(bytes(damaged)), Damaged)


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_in_the_last_record_is_damage_and_not_a_tear(path: Path, bit: int) -> None:
    whole = path.read_bytes()
    last = examine(whole).records[-1]
    for at in range(last.offset, len(whole)):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << bit
        outcome = verdict(bytes(flipped))
        assert isinstance(outcome, Damaged), f"byte {at}"
        assert outcome.offset == last.offset


def test_a_record_of_another_file_is_never_taken_for_one_of_this(path: Path, tmp_path: Path) -> None:
    other = TraceFile.create(tmp_path / "other", header=Header(FORMAT, b"another!"))
    for event in EVENTS:
        other.append(event, (), sync=False)
    other.close()
    whole, strange = path.read_bytes(), (tmp_path / "other").read_bytes()
    fourth = examine(whole).records[3]
    assert found(whole[: fourth.offset] + strange[fourth.offset :]) == EVENTS[:3]
    assert isinstance(verdict(whole[: fourth.offset] + strange[fourth.offset :]), Torn)


def test_a_rewritten_record_with_right_checksums_breaks_the_chain(path: Path) -> None:
    whole = path.read_bytes()
    header, second = Header(FORMAT, bytes(range(8))), examine(whole).records[1]
    payload = whole[second.offset + 8 : second.offset + second.size - 4].replace(b"how dry", b"how wet")
    forged = whole[: second.offset] + frame(header.nonce, second.offset, payload) + whole[second.offset + second.size :]
    outcome = verdict(forged)
    assert isinstance(outcome, Damaged)
    assert "rewritten" in outcome.because


def test_what_is_cut_off_is_durable_beside_the_trace_before_it_is_cut(path: Path) -> None:
    class Order(Disk):
        done: tuple[str, ...] = ()

        def rename(self, old: Path, new: Path) -> None:
            super().rename(old, new)
            self.done = (*self.done, "kept")

        def sync_folder(self, folder: Path) -> None:
            super().sync_folder(folder)
            self.done = (*self.done, "durable")

        def truncate(self, descriptor: int, size: int) -> None:
            super().truncate(descriptor, size)
            self.done = (*self.done, "cut")

    disk = Order()
    cut(path, examine(path.read_bytes()).records[-1].offset, disk)
    assert disk.done == ("kept", "durable", "cut")


def test_a_newer_format_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(encode_header(Header(FORMAT + 1, bytes(8))))
    with pytest.raises(TraceError, match=f"format {FORMAT + 1}.*newer edgeagent"):
        list(read(tmp_path / "t"))


@pytest.mark.parametrize("content", [b"", bytes(4096), b"edgeagent-tr", b"edgeagent-trace\n"])
def test_a_file_that_was_just_being_made_holds_nothing_and_is_made_again(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t"
    path.write_bytes(content)
    trace, before = TraceFile.resume(path)
    assert isinstance(before.verdict, Torn)
    trace.append(STARTED, (), sync=True)
    trace.close()
    assert [r.event for r in read(path)] == [STARTED]


def test_a_file_that_is_no_trace_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b'{"type": "session"}\n')
    with pytest.raises(TraceDamaged, match="not a trace"):
        TraceFile.resume(path)
    assert path.read_bytes() == b'{"type": "session"}\n'
