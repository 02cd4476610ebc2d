"""`edgeagent trace export`: a trace for auditors and for tracing tools, without what is nobody's business."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import orjson

from edgeagent.doors.cli.options import find_trace_named, root_named, state_option
from edgeagent.doors.cli.terminal import pass_on, private_file, tell
from edgeagent.errors import ConfigError, ExitCode
from edgeagent.runtime.keys import AUDIT_KEY_NAME, local_key
from edgeagent.runtime.recording import Recording, effects_of, load_recording, records_of
from edgeagent.trace.export.audit import as_csv, as_lines, audit_rows
from edgeagent.trace.export.otlp import otlp

KEY_BYTES_MIN = 16


@click.command()
@click.argument("trace", required=False)
@click.argument("agent", required=False)
@click.option("--audit", "what", flag_value="audit", help="Every event and effect, with keyed hashes for values.")
@click.option("--otlp", "what", flag_value="otlp", help="OpenTelemetry spans in OTLP's JSON form.")
@click.option("--csv", "as_table", is_flag=True, help="With --audit: CSV instead of JSON lines.")
@click.option("--key", type=click.Path(path_type=Path), help="With --audit: the hashes' key; default: the state's own.")
@click.option("--check", "checked", type=click.Path(path_type=Path), help="With --audit: compare with this export.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Default: stdout.")
@state_option
def export(
    trace: str | None,
    agent: str | None,
    what: str | None,
    as_table: bool,
    key: Path | None,
    checked: Path | None,
    output: Path | None,
    state: Path | None,
) -> int:
    """Write TRACE in a form that may be given away.

    --audit shows in clear only what the agent's author has written (names, enum values, reasons of rules) and numbers
    of tools that are not sensitive; every other value is a keyed hash, which who has the key can check. --check says
    whether an earlier export still is what the trace says. --otlp holds no content at all.

    \b
    Example:
      edgeagent trace export --audit -o audit.jsonl
      edgeagent trace export --otlp -o spans.json
    """
    if what is None:
        raise click.UsageError("say what to write: --audit or --otlp")
    path = find_trace_named(trace, state)
    recording = load_recording(path, agent)
    pieces = _audit(recording, _key(key, state), as_table) if what == "audit" else _otlp(recording)
    if checked is not None:
        return _compare(pieces, checked)
    _write(pieces, output)
    return int(ExitCode.DONE)


def _audit(recording: Recording, key: bytes, as_table: bool) -> Iterator[str]:
    found = records_of(recording.trace)
    rows = audit_rows(recording.agent, effects_of(recording, found), key)
    return as_csv(rows) if as_table else as_lines(rows)


def _otlp(recording: Recording) -> Iterator[str]:
    about = recording.about
    folded = effects_of(recording, records_of(recording.trace))
    names = {
        "session": about.id if about else recording.trace.stem,
        "model": Path(about.model).name if about else "unknown",
    }
    yield orjson.dumps(otlp(folded, agent=recording.agent.name, **names)).decode() + "\n"


def _key(named: Path | None, state: Path | None) -> bytes:
    if named is None:
        return local_key(root_named(state), AUDIT_KEY_NAME)
    try:
        key = named.read_bytes().strip()
    except OSError as error:
        raise ConfigError(f"cannot read the key {named}: {error.strerror}") from None
    if len(key) < KEY_BYTES_MIN:
        raise ConfigError(f"the key {named} has {len(key)} bytes; hashes need at least {KEY_BYTES_MIN}")
    return key


def _compare(pieces: Iterable[str], checked: Path) -> int:
    try:
        lines = checked.read_text(encoding="utf-8").splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {checked}: {error}") from None
    now = list(pieces)
    for number, (one, other) in enumerate(zip(lines, now, strict=False), 1):
        if one != other:
            tell(f"line {number} of {checked} is not what the trace says")
            return int(ExitCode.CHECK_FAILED)
    if len(lines) > len(now):
        tell(f"{checked} has {len(lines)} lines and the trace gives {len(now)}: something was cut off the trace")
        return int(ExitCode.CHECK_FAILED)
    tell(f"verified: {len(lines)} lines, {len(now) - len(lines)} more by now")
    return int(ExitCode.DONE)


def _write(pieces: Iterable[str], output: Path | None) -> None:
    if output is None:
        for piece in pieces:
            pass_on(piece)
        return
    with private_file(output) as file:
        file.writelines(piece.encode() for piece in pieces)
