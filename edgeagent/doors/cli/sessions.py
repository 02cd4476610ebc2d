"""`edgeagent sessions`: list, show, remove and export sessions; `fork` begins a new one from an old one's records."""

from __future__ import annotations

import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from edgeagent.core.events import UserSaid
from edgeagent.doors.cli.options import root_named, state_option
from edgeagent.doors.cli.terminal import private_file, tell, tell_row
from edgeagent.errors import ConfigError, EdgeAgentError, ExitCode
from edgeagent.runtime.folder import (
    ABOUT_NAME,
    TRACE_NAME,
    directories,
    find_directory,
    locked,
    read_about,
    remove_directory,
)
from edgeagent.runtime.rebuild import is_lost
from edgeagent.runtime.recording import agent_name
from edgeagent.runtime.resume import fork_session
from edgeagent.runtime.vouched import examine_session
from edgeagent.trace.recover import Clean, Damaged


@dataclass(frozen=True)
class Row:
    """What a list says of one session, whatever state it is in."""

    id: str
    agent: str
    records: int
    turns: int
    last_ms: int
    condition: str
    first_words: str


@click.group(invoke_without_command=True)
@click.pass_context
def sessions(context: click.Context) -> Any:
    """List, show, remove and export sessions; without a word, list them."""
    if context.invoked_subcommand is None:
        return context.invoke(list_sessions)
    return None


@sessions.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a session.")
@state_option
def list_sessions(as_json: bool, state: Path | None) -> int:
    """List all sessions, oldest first; damaged ones too."""
    rows = [describe(d) for d in directories(root_named(state))]
    for row in rows:
        if as_json:
            tell_row(row.__dict__)
        else:
            when = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.last_ms / 1000)) if row.last_ms else "-"
            tell(f"{row.id}  {when}  {row.agent:16} {row.turns:3} turns  {row.condition:11} {row.first_words}")
    if not rows and not as_json:
        tell("no sessions yet; `edgeagent run` and `edgeagent chat` start them", err=True)
    return int(ExitCode.DONE)


@sessions.command()
@click.argument("session")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@state_option
def show(session: str, as_json: bool, state: Path | None) -> int:
    """Show what SESSION is: its agent, model, size and condition. `edgeagent trace show` shows its records."""
    directory = find_directory(root_named(state), session)
    row: dict[str, Any] = {**describe(directory).__dict__, "directory": str(directory)}
    try:
        about = read_about(directory)
        row |= {"model": about.model, "agent_spec": about.agent_spec, "durability": about.durability}
        row |= {"forked_from": about.forked_from} if about.forked_from else {}
    except ConfigError as error:
        row["about"] = str(error)
    row["bytes"] = sum(f.stat().st_size for f in directory.rglob("*") if f.is_file())
    if as_json:
        tell_row(row)
    else:
        for name, value in row.items():
            tell(f"{name.replace('_', ' '):12} {value}")
    return int(ExitCode.DONE)


@sessions.command()
@click.argument("session", nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@state_option
def remove(session: tuple[str, ...], yes: bool, state: Path | None) -> int:
    """Remove sessions, by their ids, and everything recorded in them. One that is in use is not removed.

    \b
    Example:
      edgeagent sessions remove 20261130-204500-1a2b
    """
    root = root_named(state)
    found = [find_directory(root, name) for name in session]
    if not yes and not sys.stdin.isatty():
        raise ConfigError("there is no terminal to ask on; say --yes to remove without being asked")
    if not yes and not click.confirm(f"Remove {', '.join(each.name for each in found)}, with all that is recorded?"):
        return int(ExitCode.DONE)
    for directory in found:
        remove_directory(directory)
        tell(f"removed {directory.name}")
    return int(ExitCode.DONE)


@sessions.command()
@click.argument("session")
@click.argument("target", type=click.Path(path_type=Path), required=False)
@state_option
def export(session: str, target: Path | None, state: Path | None) -> int:
    """Write SESSION to TARGET (SESSION.tar.gz): trace and session.json, without caches. It holds everything in clear.

    `edgeagent trace export --audit` writes what may be given away.
    """
    directory = find_directory(root_named(state), session)
    target = target or Path(f"{directory.name}.tar.gz")
    with (
        locked(directory),
        private_file(target, is_new=True) as out,
        tarfile.open(fileobj=out, mode="w:gz") as archive,
    ):
        for file in sorted(directory.iterdir()):
            if file.name in {TRACE_NAME, ABOUT_NAME} or file.name.startswith(f"{TRACE_NAME}."):
                archive.add(file, f"{directory.name}/{file.name}")
    tell(f"wrote {target}")
    return int(ExitCode.DONE)


def describe(directory: Path) -> Row:
    """What can be said of a session without its agent; never raises for damage."""
    agent = agent_name(directory) or "?"
    try:
        found = examine_session(directory / TRACE_NAME)
    except EdgeAgentError:
        return Row(directory.name, agent, 0, 0, 0, "not started", "")
    said = [r.event.text for r in found.records if isinstance(r.event, UserSaid)]
    last_ms = found.records[-1].event.at_ms if found.records else 0
    condition = "ok" if isinstance(found.verdict, Clean) and not is_lost(directory) else "recoverable"
    condition = f"damaged at {found.verdict.offset}" if isinstance(found.verdict, Damaged) else condition
    first = " ".join(said[0].split())[:60] if said else ""
    return Row(directory.name, agent, len(found.records), len(said), last_ms, condition, first)


@click.command()
@click.argument("session")
@click.option("--at", type=click.IntRange(min=1), help="How many records to take over; default: all.")
@state_option
def fork(session: str, at: int | None, state: Path | None) -> int:
    """Begin a new session from the first records of SESSION; prints its id. SESSION is not changed.

    What was outstanding at that record is unknown to the new session; nothing that was done is done again.

    \b
    Example:
      edgeagent run --resume "$(edgeagent fork 20261130-204500-1a2b --at 12)" "Now the south valve."
    """
    root = root_named(state)
    tell(fork_session(root, find_directory(root, session), at=at).name)
    return int(ExitCode.DONE)
