"""Vouching for the end of a session's trace: its head, kept apart in the state folder, and its sealed snapshot.

    <state>/heads/<id>      how far the session had come when it last did what must not be done twice
    <state>/head.key        what heads are sealed with; session.json says which key it was begun with

A trace that is less than was vouched for is damaged. A session that was begun with a head and has lost it, or comes
from another machine, may have lost its end too: it can be looked at, and goes on once a person has said that its trace
stands as it is (`edgeagent trace repair --to`). One from before there were heads goes on, and has one from its next
call on.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from edgeagent.errors import ConfigError, TraceError
from edgeagent.runtime.folder import SNAPSHOT_NAME, TRACE_NAME, head_path, read_about, root_of, sessions_folder
from edgeagent.runtime.keys import HEAD_KEY_NAME, key_there, local_key
from edgeagent.runtime.snapshot import vouched_for
from edgeagent.trace.disk import DISK, Disk, write_atomically
from edgeagent.trace.file import cut_before, examine_file
from edgeagent.trace.head import Head, Vouched, decode_head, encode_head, judged
from edgeagent.trace.record import GENESIS
from edgeagent.trace.recover import Damaged, Examined, Torn

_SNAPSHOT, _HEAD = f"{SNAPSHOT_NAME}, sealed by this machine,", "the head that is kept apart"


class HeadFile:
    """The head of one session. Its session alone writes it, or a person who accepts a trace as it is."""

    def __init__(self, directory: Path, disk: Disk = DISK) -> None:
        self.path = head_path(directory)
        self._disk, self._session = disk, directory.name
        self._secret = local_key(root_of(directory), HEAD_KEY_NAME)
        self.seal_id = seal_id(self._secret)
        try:
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise self._cannot_be_kept(error) from None

    def begin(self, seq: int = 0, head: bytes = GENESIS) -> None:
        """Vouch for a session's first records, durably, before there is a session. Raises TraceError."""
        try:
            self._disk.sync_folder(self.path.parent.parent)
            self.move(seq, head)
        except OSError as error:
            raise self._cannot_be_kept(error) from None

    def move(self, seq: int, head: bytes) -> None:
        """Vouch for `seq` records, which must be on the disk already; durable when this returns. Raises OSError."""
        write_atomically(self._disk, self.path, encode_head(Head(self._session, seq, head), self._secret))

    def _cannot_be_kept(self, error: OSError) -> TraceError:
        return TraceError(f"cannot keep the head {self.path}: {error.strerror or error}")


def accept(directory: Path) -> None:
    """Vouch for a session's trace as it stands now, and for nothing that stood there before. Raises TraceError."""
    found = examine_file(directory / TRACE_NAME, events=False)
    (directory / SNAPSHOT_NAME).unlink(missing_ok=True)
    if directory.absolute().parent.name == sessions_folder(Path()).name:
        seq = len(found.records) + (found.header.first_seq if found.header else 0)
        HeadFile(directory).begin(seq, found.head)


def vouchers_of(directory: Path) -> tuple[Vouched, ...]:
    """What vouches for this session's records. To be read before the trace, which may be written meanwhile."""
    snapshot, head = vouched_for(directory), head_of(directory)
    here = () if snapshot is None else (Vouched(_SNAPSHOT, *snapshot),)
    return here if head is None else (*here, Vouched(_HEAD, head.seq, head.hash))


def judged_here(directory: Path, found: Examined, vouchers: tuple[Vouched, ...]) -> Examined:
    """A session's trace as it was found; damaged if what vouches for it says that it was more."""
    if isinstance(found.verdict, Torn) or cut_before(directory / TRACE_NAME, found):
        # A last record that did not arrive whole is a tear, which is said and recorded as one; never one that has led
        # to what must not be done twice, which was on the disk before the head that vouches for it.
        ends = len(found.records) + (found.header.first_seq if found.header else 0)
        vouchers = tuple(v for v in vouchers if v.by == _HEAD or v.seq != ends + 1)
    return judged(found, vouchers)


def examine_session(trace: Path, *, events: bool = True) -> Examined:
    """Read a trace and judge it, by what vouches for it too. Raises TraceError when it cannot be read."""
    vouchers = vouchers_of(trace.parent) if trace.name == TRACE_NAME else ()
    return judged_here(trace.parent, examine_file(trace, events=events), vouchers)


def examine_to_go_on(trace: Path, *, events: bool = True) -> Examined:
    """As `examine_session`; damaged too if the session was begun with a head and has none here."""
    lost = why_not_vouched(trace.parent)  # First, as above.
    found = examine_session(trace, events=events)
    if not lost or isinstance(found.verdict, Damaged):
        return found
    return Examined(found.header, found.records, found.end, Damaged(found.end, lost))


def why_not_vouched(directory: Path) -> str:
    """Say why nothing here vouches for the end of a session that was begun with a head; or nothing."""
    try:
        sealed_by = read_about(directory).sealed_by
    except ConfigError:
        return ""  # It cannot be opened anyway.
    if not sealed_by or head_of(directory) is not None:
        return ""
    secret, head = key_there(root_of(directory), HEAD_KEY_NAME), head_path(directory)
    if secret is None or seal_id(secret) != sealed_by:
        what = f"it was begun on another machine, or {HEAD_KEY_NAME} has been lost"
    else:
        what = f"its head {head} is {'not what was written' if head.exists() else 'gone'}"
    return f"{what}, so nothing vouches for its end: more may have happened than stands there"


def head_of(directory: Path) -> Head | None:
    """The head that was sealed here for this session."""
    secret = key_there(root_of(directory), HEAD_KEY_NAME)
    try:
        head = None if secret is None else decode_head(head_path(directory).read_bytes(), secret)
    except OSError:
        return None
    return head if head is not None and head.session == directory.name else None


def seal_id(secret: bytes) -> str:
    """The name of a key, which says nothing of it."""
    return hashlib.blake2b(secret, digest_size=8, person=b"edgeagent head").hexdigest()
