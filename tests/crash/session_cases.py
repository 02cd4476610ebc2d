"""Whole sessions that are killed, lose power, or meet a failing disk, and are then resumed by the real program."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from edgeagent.core.events import ModelAnswered
from edgeagent.core.state import outstanding
from edgeagent.driver.llama.kv_head import MAGIC
from edgeagent.errors import ConfigError, TraceDamaged, TraceError
from edgeagent.runtime.caches import KINDS
from edgeagent.runtime.folder import ABOUT_NAME, SNAPSHOT_NAME, TRACE_NAME, head_path, root_of, sessions_folder
from edgeagent.runtime.keys import HEAD_KEY_NAME, local_key
from edgeagent.runtime.vouched import accept
from edgeagent.trace.caches import Allowance, YieldingDisk
from edgeagent.trace.disk import Disk
from edgeagent.trace.file import Durability, examine_file
from edgeagent.trace.head import decode_head
from edgeagent.trace.recover import Clean
from tests.crash.bytes_cases import Case
from tests.crash.disks import CONTENTS, ERRORS, Counting, Failing, Killing, Remembering, ShortWrites, Small
from tests.crash.world import QUICK, complaint, fold_all, live, reopen, revive, start, whole_session


def cuts_resumed(room: Path, every: int = 1) -> Iterator[Case]:
    """The trace is cut at every byte; resumed; cut again in what was appended; resumed again."""
    source_dir, source = whole_session(room / "whole")
    for at in range(0, len(source) + 1, every):
        directory = _copy(source_dir, room / "cut", source[:at])
        prefix = examine_file(directory / TRACE_NAME).records
        state = fold_all(tuple(r.event for r in prefix))
        session = reopen(directory, _deaf, QUICK)
        wrong = "" if session.state == state or not prefix else "the resumed state is not the fold of what is whole"
        session.close()
        runs = _runs_recorded(directory)
        yield f"cut at {at}, resumed", wrong or _revived(directory, runs)
        yield f"cut at {at}, resumed twice", _unchanged_by_resuming(directory)
        again = (directory / TRACE_NAME).read_bytes()
        later = min(len(again) - 1, at + 1 + (at * 7919) % 97)
        (directory / TRACE_NAME).write_bytes(again[:later])
        accept(directory)  # Who is killed there has vouched for no more, and left no snapshot.
        yield f"cut at {at}, resumed, cut at {later}", _revived(directory, _runs_recorded(directory))


def killed(room: Path, every: int = 1) -> Iterator[Case]:
    """SIGKILL before, within and after each file operation and each tool's effect; then resumed, also in two tries."""
    counting = Counting()
    with tempfile.TemporaryDirectory(dir=room) as root:
        live(start(Path(root), _deaf, counting))
    for number in range(1, counting.count + 1, every):
        for when in ("before", "within", "after"):
            yield f"killed {when} operation {number}", _killed_then_revived(room, Killing(number, when), second=0)
            if when == "after":
                for second in range(1, 14, 2 * every):
                    text = f"killed after operation {number} and at operation {second} of the resume"
                    yield text, _killed_then_revived(room, Killing(number, when), second=second)
    for tool in ("pay 1", "pay 2", "look"):
        for when in ("before", "after"):
            yield f"killed {when} {tool}", _killed_then_revived(room, Disk(), second=0, tool=(tool, when))


def power_cut(room: Path, every: int = 1) -> Iterator[Case]:
    """The power goes after each operation, and of what was not synced any part is left, names too, in every mode."""
    modes: tuple[Durability, ...] = ("strict", "effects", "relaxed")
    for mode in modes:
        disk = Remembering()
        root = room / f"power-{mode}"
        live(start(root, disk.ran, disk, mode))
        for number, moment in list(enumerate(disk.moments))[::every]:
            for names in (False, True):
                for content in CONTENTS:
                    left = moment.after_power_cut(names=names, content=content)
                    text = f"{mode}: power cut after {number} ({moment.what}), {content} left, names {names}"
                    yield text, _power_back(room, left, list(moment.runs))


def failing(room: Path, every: int = 1) -> Iterator[Case]:
    """The N-th operation fails, once or for good, for N = 1, 2, 3 … until a run passes untouched."""
    for error in ERRORS:
        for stays in (False, True):
            if error == errno.EINTR and stays:
                continue  # An interrupted call is repeated for ever, as it should be.
            number, hit = 1, True
            while hit:
                disk = Failing(number, error, stays=stays)
                wrong = _failed_then_revived(room, disk)
                hit = disk.hit
                yield f"operation {number} fails with {errno.errorcode[error]}{' for good' if stays else ''}", wrong
                number += every
    for size in range(1, 160, every):
        yield f"writes of at most {size} bytes", _failed_then_revived(room, ShortWrites(size))


def full(room: Path, every: int = 1) -> Iterator[Case]:
    """The disk has no room left from any byte or name on: alone, and with caches near their limit, which must yield."""
    for error in (errno.ENOSPC, errno.EDQUOT):
        for cached in (0, 3):
            for left in range(0, 5_500, 61 * every):
                text = f"room for {left} bytes beside {cached} caches, then {errno.errorcode[error]}"
                yield text, _full_then_revived(room, cached, error, left=left)
            for names in range(14):
                text = f"room for {names} names beside {cached} caches, then {errno.errorcode[error]}"
                yield text, _full_then_revived(room, cached, error, names=names)


CACHE_BYTES = 6_000


def _full_then_revived(room: Path, cached: int, error: int, *, left: int = 100_000, names: int = 1_000) -> str:
    """Live a session until the disk is full, then revive it on one that has room; every cache may be lost for it."""
    root = Path(tempfile.mkdtemp(dir=room))
    (root / "kv").mkdir()
    for number in range(cached):
        (root / "kv" / f"{number}.kv").write_bytes(MAGIC + bytes(CACHE_BYTES))
    small = Small(root, 0)
    small.error = error
    small.size, small.names = small.taken()[0] + left, small.taken()[1] + names
    disk = YieldingDisk(root, KINDS, Allowance(reserve_bytes=0), under=small)
    runs: list[str] = []
    try:
        live(start(root, runs.append, disk))
        failed = ""
    except (TraceError, ConfigError) as stopped:
        failed = str(stopped)
    traces = list(root.glob("sessions/*/trace.cbor"))
    wrong = ""
    if failed and any(removed.exists() for removed in root.glob("kv/*.kv")):
        wrong = f"stopped though caches could yield: {failed}"
    elif runs and not traces:
        wrong = "a tool ran and there is no session"
    elif list(root.rglob("*.new")):
        wrong = "something half written was left behind"
    elif any(not isinstance(examine_file(trace).verdict, Clean) for trace in traces):
        wrong = "the trace is not whole"
    elif traces:
        wrong = _revived(traces[0].parent, runs)
    elif list(root.glob("sessions/*")):
        wrong = "a session that could not begin was left behind"
    shutil.rmtree(root)
    return wrong


def caches(room: Path, every: int = 1) -> Iterator[Case]:
    """A snapshot that is missing, cut, flipped or another session's changes nothing; a newer one is believed."""
    source_dir, source = whole_session(room / "whole")
    state = fold_all(tuple(r.event for r in examine_file(source_dir / TRACE_NAME).records))
    snapshot = (source_dir / SNAPSHOT_NAME).read_bytes()
    for bit in range(0, len(snapshot) * 8, 3 * every):
        changed = _flipped(snapshot, bit)
        yield f"bit {bit} of the snapshot flipped", _same_state(room, source_dir, source, changed, state)
    for at in range(0, len(snapshot) + 1, every):
        yield f"snapshot cut at {at}", _same_state(room, source_dir, source, snapshot[:at], state)
    for record in examine_file(source_dir / TRACE_NAME).records[1:]:
        text = f"snapshot of the whole session, trace of {record.seq} records"
        yield text, _refused(room, source_dir, source[: record.offset], snapshot)


def heads(room: Path, every: int = 1) -> Iterator[Case]:
    """A trace without what its head vouches for is refused, wherever it was cut; so is one whose head was changed."""
    source_dir, source = whole_session(room / "whole")
    sealed = head_path(source_dir).read_bytes()
    head = decode_head(sealed, local_key(root_of(source_dir), HEAD_KEY_NAME))
    assert head is not None, "it was sealed here"
    last = examine_file(source_dir / TRACE_NAME).records[head.seq - 1]
    for at in range(0, len(source) + 1, every):
        directory = _copy(source_dir, room / "heads", source[:at])
        head_path(directory).write_bytes(sealed)
        lost = at < last.offset + last.size
        text = f"trace cut at {at}, {'before' if lost else 'behind'} the end of what its head vouches for"
        yield text, _not_opened(directory) if lost else _revived(directory, ["pay 1", "pay 2"])
    changed = {f"bit {bit} of the head flipped": _flipped(sealed, bit) for bit in range(0, len(sealed) * 8, every)}
    changed |= {f"head cut at {at}": sealed[:at] for at in range(0, len(sealed), every)}
    directory = _copy(source_dir, room / "heads", source)
    for text, content in changed.items():
        head_path(directory).write_bytes(content)
        yield text, _not_opened(directory)


def _flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def _not_opened(directory: Path) -> str:
    before = (directory / TRACE_NAME).read_bytes()
    try:
        reopen(directory, _deaf, QUICK).close()
    except TraceDamaged:
        return "" if (directory / TRACE_NAME).read_bytes() == before else "refused, and the trace was changed"
    return "something is missing that was vouched for, and nobody noticed"


def _same_state(room: Path, source_dir: Path, trace: bytes, snapshot: bytes, state: object) -> str:
    directory = _copy(source_dir, room / "cache", trace)
    (directory / SNAPSHOT_NAME).write_bytes(snapshot)
    session = reopen(directory, _deaf, QUICK)
    same = session.state == state
    session.close()
    return "" if same else "the state is another"


def _refused(room: Path, source_dir: Path, trace: bytes, snapshot: bytes) -> str:
    directory = _copy(source_dir, room / "cache", trace)
    (directory / SNAPSHOT_NAME).write_bytes(snapshot)
    return _not_opened(directory)


def _killed_then_revived(room: Path, disk: Disk, *, second: int, tool: tuple[str, str] | None = None) -> str:
    root = Path(tempfile.mkdtemp(dir=room))
    counter = root / "counter"
    counter.touch()
    _in_child(lambda: live(start(root, _counting_in(counter, tool), disk)))
    found = [d for d in sessions_folder(root).glob("*") if (d / ABOUT_NAME).exists()]
    if found and second:
        _in_child(lambda: revive(found[0], _counting_in(counter, None), Killing(second, "after")))
    ran = counter.read_text().splitlines()
    wrong = "a tool ran before there was a session" if ran and not found else ""
    if found:
        wrong = _revived(found[0], ran)
        if not wrong and list(root.rglob("*.new")):
            wrong = "what was half written is still there"
    shutil.rmtree(root)
    return wrong


def _in_child(work: object) -> None:
    """Run in a process of its own that may be killed.

    The child begins its own session with its own threads, and needs no lock that a thread of the parent may hold.
    """
    assert callable(work)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # From 3.12 on, about exactly that.
        child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFEXITED(status) or os.WTERMSIG(status) == signal.SIGKILL


def _counting_in(counter: Path, tool: tuple[str, str] | None) -> object:
    def ran(what: str) -> None:
        if tool == (what, "before"):
            os.kill(os.getpid(), signal.SIGKILL)
        with counter.open("a") as file:
            file.write(what + "\n")
        if tool == (what, "after"):
            os.kill(os.getpid(), signal.SIGKILL)

    return ran


def _power_back(room: Path, left: dict[Path, bytes], runs: list[str]) -> str:
    directories = {p.parent for p in left if p.name == ABOUT_NAME}
    if not directories:
        return "" if not runs else "a tool ran before the session was durable"
    (old,) = directories
    root = Path(tempfile.mkdtemp(dir=room))
    directory = sessions_folder(root) / old.name
    directory.mkdir(parents=True)
    for key in root_of(old).glob("*.key"):
        shutil.copy(key, root)
    for path, content in left.items():
        if path.parent == old:
            (directory / path.name).write_bytes(content)
        elif path == head_path(old):
            head_path(directory).parent.mkdir()
            head_path(directory).write_bytes(content)
    wrong = _revived(directory, runs)
    shutil.rmtree(root)
    return wrong


def _failed_then_revived(room: Path, disk: Disk) -> str:
    root = Path(tempfile.mkdtemp(dir=room))
    runs: list[str] = []
    try:
        live(start(root, runs.append, disk))
        failed = False
    except TraceError:
        failed = True
    if isinstance(disk, Failing) and disk.must_stop and not failed:
        return "the session went on as if nothing had failed"
    found = [d for d in sessions_folder(root).glob("*") if (d / ABOUT_NAME).exists()]
    wrong = "" if found or not runs else "a tool ran and there is no session"
    if found:
        wrong = _revived(found[0], runs)
    shutil.rmtree(root)
    return wrong


def _revived(directory: Path, runs: list[str]) -> str:
    """Resume to the end with the real code, add what the tools do to `runs`, and judge."""
    try:
        revive(directory, runs.append, QUICK)
    except (TraceError, ConfigError) as error:
        return f"cannot be resumed: {error}"
    return complaint(directory, runs)


def _unchanged_by_resuming(directory: Path) -> str:
    before = (directory / TRACE_NAME).read_bytes()
    session = reopen(directory, _deaf, QUICK)
    session.resume_turn()
    state = session.state
    session.close()
    if (directory / TRACE_NAME).read_bytes() != before:
        return "resuming once more has added records"
    return "" if not outstanding(state) else "something is outstanding"


def _runs_recorded(directory: Path) -> list[str]:
    """What had run when the power went, at worst: every payment whose intent is whole."""
    texts = [r.event.text for r in examine_file(directory / TRACE_NAME).records if isinstance(r.event, ModelAnswered)]
    return [f"pay {bill}" for bill in (1, 2) if any(f'"bill": {bill}' in text for text in texts)]


def _copy(source: Path, room: Path, trace: bytes) -> Path:
    root = room
    directory = sessions_folder(root) / source.name
    shutil.rmtree(root, ignore_errors=True)
    directory.mkdir(parents=True)
    shutil.copy(source / ABOUT_NAME, directory)
    for key in source.parent.parent.glob("*.key"):
        shutil.copy(key, root)
    (directory / TRACE_NAME).write_bytes(trace)
    accept(directory)
    return directory


def _deaf(what: str) -> None:
    """Hear nothing."""
