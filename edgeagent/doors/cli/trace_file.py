"""`edgeagent trace check|repair|verify|head`: is a trace what was written, and what may be done if it is not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import assert_never

import click

from edgeagent.doors.cli.options import find_trace_named, state_option
from edgeagent.doors.cli.terminal import tell, tell_row
from edgeagent.doors.cli.trace_sign import check_signed
from edgeagent.errors import ExitCode, TraceError
from edgeagent.runtime.folder import ABOUT_NAME, locked
from edgeagent.runtime.vouched import accept, examine_session, why_not_vouched
from edgeagent.trace.file import cut, damaged
from edgeagent.trace.recover import Clean, Damaged, Examined, Torn


@click.command()
@click.argument("trace", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@state_option
def check(trace: str | None, as_json: bool, state: Path | None) -> int:
    """Say whether TRACE is clean, torn at its end, or damaged; change nothing.

    Clean: every byte is as it was written. Torn: the last write did not arrive whole; resuming cuts it off. Damaged:
    something else stands where a record was written, or records are missing that this machine vouches for. Unvouched:
    clean, but what vouches for the session's end has been lost. Exit code 0 only for clean, else 6.
    """
    path = find_trace_named(trace, state)
    found = examine_session(path)
    lost = why_not_vouched(path.parent) if isinstance(found.verdict, Clean) else ""
    row = {"trace": str(path), "records": len(found.records), "head": found.head.hex(), **_verdict_row(found)}
    if as_json:
        tell_row(row | {"verdict": "unvouched", "because": lost, "offset": found.end} if lost else row)
    elif lost:
        tell(f"unvouched: {len(found.records)} records are right; {lost}. {_accept_text(found)}")
    else:
        tell(_verdict_text(found))
    return int(ExitCode.DONE if isinstance(found.verdict, Clean) and not lost else ExitCode.CHECK_FAILED)


@click.command()
@click.argument("trace", required=False)
@click.option("--to", "offset", type=click.IntRange(min=0), help="Keep only what stands before this byte.")
@state_option
def repair(trace: str | None, offset: int | None, state: Path | None) -> int:
    """Cut a torn end off TRACE; or, with --to, everything from a byte on, whatever it is.

    What is cut off is kept beside the trace. Damage is never cut off without --to: what was recorded there may have
    happened, and a session that has forgotten it may do it again. Look first with `edgeagent trace check`. A trace that
    is repaired is vouched for as it stands then: --to the end of the last record accepts that what followed is lost.

    \b
    Example:
      edgeagent trace repair 20261130-204500-1a2b --to 7301
    """
    path = find_trace_named(trace, state)
    with _alone_in(path.parent):
        found = examine_session(path)
        at = _where_to_cut(path, found, offset)
        if at is None:
            tell(f"clean: {len(found.records)} records, nothing to repair")
            return int(ExitCode.DONE)
        size = path.stat().st_size - at
        try:
            beside = cut(path, at) if size else None
            accept(path.parent)
        except OSError as error:
            raise TraceError(f"cannot repair {path}: {error.strerror or error}") from None
    kept = sum(r.offset < at for r in found.records)
    tell(
        f"cut at byte {at}: {kept} records stay, {size} bytes are kept in {beside}"
        if beside
        else f"{kept} records stay"
    )
    return int(ExitCode.DONE)


@click.command()
@click.argument("trace", required=False)
@click.option("--expect-head", metavar="HASH", help="A head that was noted earlier; it must still be in the trace.")
@click.option("--checkpoint", type=click.Path(path_type=Path), help="A signed checkpoint; needs --public-key.")
@click.option("--public-key", type=click.Path(path_type=Path), help="The public key's file.")
@state_option
def verify(
    trace: str | None, expect_head: str | None, checkpoint: Path | None, public_key: Path | None, state: Path | None
) -> int:
    """Check every record and its chain; with a noted head or checkpoint, that nothing before it was cut or rewritten.

    \b
    Example:
      edgeagent trace verify --expect-head "$(cat noted-head)"
      edgeagent trace verify --checkpoint noted.checkpoint --public-key gateway7.pub
    """
    if (checkpoint is None) != (public_key is None):
        raise click.UsageError("--checkpoint and --public-key go together")
    path = find_trace_named(trace, state)
    found = examine_session(path)
    if not isinstance(found.verdict, Clean):
        tell(_verdict_text(found))
        return int(ExitCode.CHECK_FAILED)
    if checkpoint is not None and public_key is not None:
        tell(f"verified: {check_signed(path, found, checkpoint, public_key)}")
    if expect_head is None:
        tell(f"verified: {len(found.records)} records, head {found.head.hex()}")
        return int(ExitCode.DONE)
    later = _records_after(found, expect_head.strip().lower())
    if later is None:
        tell(f"not verified: no record has the head {expect_head}; what led to it was cut off or rewritten")
        return int(ExitCode.CHECK_FAILED)
    tell(f"verified: {len(found.records)} records, {later} of them after the expected head")
    return int(ExitCode.DONE)


@click.command()
@click.argument("trace", required=False)
@state_option
def head(trace: str | None, state: Path | None) -> int:
    """Print the hash that vouches for everything in TRACE. Note it elsewhere; `trace verify --expect-head` takes it."""
    path = find_trace_named(trace, state)
    found = examine_session(path)
    if isinstance(found.verdict, Damaged):
        raise damaged(path, found.verdict)
    tell(found.head.hex())
    return int(ExitCode.DONE)


def _records_after(found: Examined, expected: str) -> int | None:
    if found.header is not None and found.header.before.hex() == expected:
        return len(found.records)
    at = next((i for i, r in enumerate(found.records) if r.hash.hex() == expected), None)
    return None if at is None else len(found.records) - 1 - at


def _where_to_cut(path: Path, found: Examined, offset: int | None) -> int | None:
    if offset is not None:
        borders = [*(r.offset for r in found.records), found.end]
        if offset not in borders:
            near = max((b for b in borders if b <= offset), default=borders[0])
            raise TraceError(f"no record of {path} begins at byte {offset}; the nearest border before it is {near}")
        return offset
    match found.verdict:
        case Clean():
            return None
        case Torn(offset=at):
            return at
        case Damaged():
            raise damaged(path, found.verdict)
        case _:
            assert_never(found.verdict)


def _accept_text(found: Examined) -> str:
    return f"`edgeagent trace repair --to {found.end}` accepts the trace as it stands"


def _verdict_row(found: Examined) -> dict[str, object]:
    match found.verdict:
        case Clean():
            return {"verdict": "clean"}
        case Torn(offset=offset, size=size, because=because):
            return {"verdict": "torn", "offset": offset, "bytes": size, "because": because}
        case Damaged(offset=offset, because=because):
            return {"verdict": "damaged", "offset": offset, "because": because}
        case _:
            assert_never(found.verdict)


def _verdict_text(found: Examined) -> str:
    count = len(found.records)
    match found.verdict:
        case Clean():
            return f"clean: {count} records, head {found.head.hex()}"
        case Torn(offset=offset, size=size, because=because):
            return f"torn at byte {offset}: {because}; {count} records are right, {size} bytes will be put aside"
        case Damaged(offset=offset, because=because):
            return f"damaged at byte {offset}: {because}; {count} records before it are right"
        case _:
            assert_never(found.verdict)


@contextlib.contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Hold the session's lock, if this is a session's directory."""
    with locked(directory) if (directory / ABOUT_NAME).exists() else contextlib.nullcontext():
        yield
