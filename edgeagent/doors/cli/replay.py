"""`edgeagent replay`: fold a trace again and compare it with what was recorded."""

from __future__ import annotations

from pathlib import Path

import click

from edgeagent.doors.cli.options import find_trace_named, state_option
from edgeagent.doors.cli.terminal import tell, tell_row
from edgeagent.errors import ExitCode, TraceDisagrees
from edgeagent.runtime import golden
from edgeagent.runtime.recording import load_recording, records_of, start_of
from edgeagent.trace.check import fold
from edgeagent.trace.recover import Torn


@click.command()
@click.argument("trace", required=False)
@click.argument("agent", required=False)
@click.option("--check", "folder", type=click.Path(path_type=Path), help="Replay every recording in this folder.")
@click.option("--rewrite", is_flag=True, help="With --check: renew the recordings; read the diff before you commit it.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@state_option
def replay(
    trace: str | None, agent: str | None, folder: Path | None, rewrite: bool, as_json: bool, state: Path | None
) -> int:
    """Fold TRACE again and compare every record's effects with what was recorded.

    TRACE is a trace.cbor, a session's directory or its id; without one, the last session. AGENT (FILE.py or
    FILE.py:NAME) is needed only for a trace that was taken out of its directory.

    \b
    Example:
      edgeagent replay
      edgeagent replay 20261130-204500-1a2b
      edgeagent replay --check traces
    """
    if folder is not None:
        return _check_folder(folder, rewrite=rewrite)
    path = find_trace_named(trace, state)
    recording = load_recording(path, agent)
    found = records_of(path)
    difference = None
    try:
        fold(recording.step, found.records, start_of(found))
    except TraceDisagrees as error:
        difference = error
    notes = [(each.seq, note) for each in found.records for note in getattr(each.event, "notes", ())]
    count = len(found.records)
    torn = found.verdict.size if isinstance(found.verdict, Torn) else 0
    if as_json:
        row = {"trace": str(path), "records": count, "identical": difference is None, "head": found.head.hex()}
        if difference:
            row |= {"first_difference": difference.record, "because": str(difference)}
        told = {"notes": [{"record": seq, "note": note} for seq, note in notes]} if notes else {}
        tell_row(row | {"torn_bytes": torn} | told)
    elif difference:
        tell(f"different at record {difference.record} of {count}: {difference}")
    else:
        tell(f"identical: {count} records{f'; a torn end of {torn} bytes was left out' if torn else ''}")
    for seq, note in [] if as_json else notes:
        tell(f"record {seq}: {note}")
    return int(ExitCode.CHECK_FAILED if difference else ExitCode.DONE)


def _check_folder(folder: Path, *, rewrite: bool) -> int:
    """Check or renew all recordings of a folder; a line for each that differs, and the sum."""
    found, different = golden.situations(folder), 0
    for directory in found:
        if rewrite:
            changed = golden.rewrite(directory)
            different += changed
            tell(f"{directory.name}: {'renewed' if changed else 'unchanged'}")
            continue
        problem = golden.check(directory)
        different += bool(problem)
        if problem:
            tell(f"{directory.name}: {problem}")
    tell(f"{len(found)} recordings, {different} {'renewed' if rewrite else 'different'}")
    return int(ExitCode.CHECK_FAILED if different and not rewrite else ExitCode.DONE)
