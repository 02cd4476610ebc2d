"""`edgeagent trace sign|keygen|rotate`: heads that others can check, and traces that do not grow for ever."""

from __future__ import annotations

import os
from pathlib import Path

import click

from edgeagent.doors.cli.options import find_trace_named, state_option
from edgeagent.doors.cli.terminal import tell
from edgeagent.errors import ConfigError, ExitCode, TraceError
from edgeagent.runtime.folder import TRACE_NAME
from edgeagent.runtime.recording import about_of
from edgeagent.runtime.rotate import rotate as rotate_session
from edgeagent.trace.disk import DISK, write_atomically
from edgeagent.trace.export.checkpoint import (
    Checkpoint,
    grown,
    new_key,
    open_checkpoint,
    read_signer,
    read_verifier,
    root_of,
)
from edgeagent.trace.file import examine_file
from edgeagent.trace.recover import Clean, Examined


@click.command()
@click.argument("name")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Where the private key goes.")
def keygen(name: str, output: Path) -> int:
    """Make an Ed25519 key called NAME; prints the public key, which whoever checks must know beforehand.

    \b
    Example:
      edgeagent trace keygen gateway7.example.com -o gateway7.key > gateway7.pub
    """
    key = new_key(name)
    public = key.verifier.text
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(key.text + "\n")
    except OSError as error:
        raise ConfigError(f"cannot write the key to {output}: {error.strerror}") from None
    tell(public)
    return int(ExitCode.DONE)


@click.command()
@click.argument("trace", required=False)
@click.option("--key", type=click.Path(path_type=Path), required=True, help="The private key's file.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Default: TRACE.checkpoint.")
@state_option
def sign(trace: str | None, key: Path, output: Path | None, state: Path | None) -> int:
    """Sign how many records TRACE has and what they are, as a checkpoint in C2SP's form.

    Keep the checkpoint elsewhere: `trace verify --checkpoint` then proves that nothing before it was cut or rewritten.

    \b
    Example:
      edgeagent trace sign --key gateway7.key -o /mnt/backup/gateway7.checkpoint
    """
    path = find_trace_named(trace, state)
    signer = read_signer(_read(key))
    found = examine_file(path)
    if not isinstance(found.verdict, Clean):
        raise TraceError(f"{path} is not clean, so nothing of it is signed: `edgeagent trace check` says what it is")
    target = output or path.with_name(f"{path.name}.checkpoint")
    note = signer.sign(checkpoint_of(path, found, signer.name))
    try:
        write_atomically(DISK, target, note.encode())
    except OSError as error:
        raise TraceError(f"cannot write {target}: {error.strerror}") from None
    tell(f"signed {note.splitlines()[1]} records in {target}")
    return int(ExitCode.DONE)


@click.command()
@click.argument("session")
@click.option("--drop", is_flag=True, help="Do not keep the old records.")
@click.option("--agent", "agent_spec", help="The agent, if session.json does not lead to it.")
@state_option
def rotate(session: str, drop: bool, agent_spec: str | None, state: Path | None) -> int:
    """Begin a new trace file for SESSION that carries on from the verified state; the old one becomes an archive.

    The chain goes on: a head or checkpoint that was noted at or after the rotation is checked as before; one from
    before it is checked against the archive.
    """
    path = find_trace_named(session, state)
    if path.name != TRACE_NAME:
        raise ConfigError(f"{path} is not the trace of a session; give a session's id or directory")
    done = rotate_session(path.parent, drop=drop, agent_spec=agent_spec)
    kept = f"they are kept in {done.archive}" if done.archive else "they are dropped"
    tell(f"{done.records} records folded ({done.bytes_before} bytes become {done.bytes_after}); {kept}")
    return int(ExitCode.DONE)


def checkpoint_of(path: Path, found: Examined, key_name: str, size: int | None = None) -> Checkpoint:
    """The checkpoint over the first `size` records (all, if not given). Raises TraceError if they are not here."""
    assert found.header is not None, "a clean trace has a header"
    first = found.header.first_seq
    count = len(found.records) if size is None else size - first
    if not 0 <= count <= len(found.records):
        end = first + len(found.records)
        where = f"they are in the archive beside {path}" if count < 0 else "what came later was cut off"
        raise TraceError(f"the checkpoint has {size} records and this file those from {first} to {end}: {where}")
    peaks, size = grown(found.header.peaks, first, (r.hash for r in found.records[:count]))
    about = about_of(path)
    return Checkpoint(f"{key_name}/{about.id if about else path.stem}", size, root_of(peaks))


def check_signed(path: Path, found: Examined, note_file: Path, key_file: Path) -> str:
    """Say that the trace begins with what was signed. Raises TraceError when it does not."""
    key = read_verifier(_read(key_file))
    signed = open_checkpoint(_read(note_file), key)
    here = checkpoint_of(path, found, key.name, signed.size)
    if here.root != signed.root:
        raise TraceError(f"the first {signed.size} records are not those that {key.name} signed: rewritten")
    later = len(found.records) + (found.header.first_seq if found.header else 0) - signed.size
    return f"the first {signed.size} records are those that {key.name} signed as {signed.origin}; {later} came later"


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {file}: {error}") from None
