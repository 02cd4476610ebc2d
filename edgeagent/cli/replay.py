"""`edgeagent replay`: fold a trace again and compare it with what was recorded."""

from __future__ import annotations

import json
from pathlib import Path

import click

from edgeagent.cli.options import find_trace_named, state_option
from edgeagent.errors import ExitCode, TraceDisagrees
from edgeagent.runtime.recording import load_recording, records_of, start_of
from edgeagent.trace.check import fold
from edgeagent.trace.recover import Torn


@click.command()
@click.argument("trace", required=False)
@click.argument("agent", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@state_option
def replay(trace: str | None, agent: str | None, as_json: bool, state: Path | None) -> int:
    """Fold TRACE again and compare every record's effects with what was recorded.

    TRACE is a trace.cbor, a session's directory or its id; without one, the last session. AGENT (FILE.py or
    FILE.py:NAME) is needed only for a trace that was taken out of its directory.

    \b
    Example:
      edgeagent replay
      edgeagent replay 20261130-204500-1a2b
    """
    path = find_trace_named(trace, state)
    recording = load_recording(path, agent)
    found = records_of(path)
    difference = None
    try:
        fold(recording.step, found.records, start_of(found))
    except TraceDisagrees as error:
        difference = error
    count = len(found.records)
    torn = found.verdict.size if isinstance(found.verdict, Torn) else 0
    if as_json:
        row = {"trace": str(path), "records": count, "identical": difference is None, "head": found.head.hex()}
        if difference:
            row |= {"first_difference": difference.record, "because": str(difference)}
        click.echo(json.dumps(row | {"torn_bytes": torn}))
    elif difference:
        click.echo(f"different at record {difference.record} of {count}: {difference}")
    else:
        click.echo(f"identical: {count} records{f'; a torn end of {torn} bytes was left out' if torn else ''}")
    return int(ExitCode.CHECK_FAILED if difference else ExitCode.DONE)
