"""`edgeagent sessions`: list, show, remove, prune and export them; `fork` begins a new one from an old one."""

from __future__ import annotations

import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from edgeagent.core.events import UserSaid
from edgeagent.core.text import shown
from edgeagent.doors.cli.options import root_named, state_option
from edgeagent.doors.cli.screen import fate_text
from edgeagent.doors.cli.sessions_prune import prune_command
from edgeagent.doors.cli.terminal import arguments_text, private_file, tell, tell_row
from edgeagent.errors import ConfigError, EdgeAgentError, ExitCode
from edgeagent.runtime.fate import unknown_calls
from edgeagent.runtime.folder import (
    ABOUT_NAME,
    SNAPSHOT_NAME,
    TRACE_NAME,
    directories,
    find_directory,
    locked,
    read_about,
    remove_directory,
)
from edgeagent.runtime.fork import fork_session
from edgeagent.runtime.keys import KV_NAME
from edgeagent.runtime.rebuild import is_lost
from edgeagent.runtime.recording import agent_name
from edgeagent.runtime.rests import RESULTS_NAME, kept_in
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
    unknown: tuple[str, ...] = ()


@click.group(invoke_without_command=True)
@click.pass_context
def sessions(context: click.Context) -> Any:
    """List, show, remove, prune and export sessions; without a word, list them.

    \b
    Example:
      edgeagent sessions list --json
    """
    if context.invoked_subcommand is None:
        return context.invoke(list_sessions)
    return None


sessions.add_command(prune_command)


@sessions.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a session.")
@state_option
def list_sessions(as_json: bool, state: Path | None) -> int:
    """List all sessions, oldest first; damaged ones too, and how many calls of each may have happened or not."""
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
    """Show what SESSION is: its agent, model, size and condition. `edgeagent trace show` shows its records.

    `bytes a turn` is what a turn writes to its trace, `bytes a close` what ending the program wrote of caches.
    """
    directory = find_directory(root_named(state), session)
    row: dict[str, Any] = {**describe(directory).__dict__, "directory": str(directory)}
    try:
        about = read_about(directory)
        row |= {"model": about.model, "agent_spec": about.agent_spec, "durability": about.durability}
        row |= {"forked_from": about.forked_from} if about.forked_from else {}
    except ConfigError as error:
        row["about"] = str(error)
    sizes = {f: f.stat().st_size for f in directory.rglob("*") if f.is_file()}
    traced = sum(size for f, size in sizes.items() if f.name.startswith(TRACE_NAME))
    kept = sum(size for f, size in sizes.items() if f.name == SNAPSHOT_NAME or f.parent.name == KV_NAME)
    row |= {"bytes": sum(sizes.values()), "bytes_a_turn": round(traced / max(1, row["turns"])), "bytes_a_close": kept}
    if as_json:
        tell_row(row)
    else:
        for name, value in row.items():
            for each in value if isinstance(value, tuple) else (value,):
                tell(f"{name.replace('_', ' '):12} {each}")
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
    names = shown(", ".join(each.name for each in found))
    if not yes and not click.confirm(f"Remove {names}, with all that is recorded?"):
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
    """Write SESSION to TARGET (SESSION.tar.gz): trace, session.json, long results, bytes. All of it is in clear.

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
            elif file.name == RESULTS_NAME and file.is_dir():
                for each in sorted(kept_in(directory)):
                    archive.add(each, f"{directory.name}/{RESULTS_NAME}/{each.name}")
    tell(f"wrote {target}")
    return int(ExitCode.DONE)


def describe(directory: Path) -> Row:
    """What can be said of a session without its agent; never raises for damage."""
    agent = agent_name(directory) or "?"
    try:
        found = examine_session(directory / TRACE_NAME)
    except EdgeAgentError:
        return Row(directory.name, agent, 0, 0, 0, "not started", "")
    unknown = tuple(fate_text(fate) for fate in unknown_calls(directory, found))
    said = [r.event.text for r in found.records if isinstance(r.event, UserSaid)]
    last_ms = found.records[-1].event.at_ms if found.records else 0
    condition = "ok" if isinstance(found.verdict, Clean) and not is_lost(directory) else "recoverable"
    condition = f"{len(unknown)} unknown" if unknown else condition
    condition = f"damaged at {found.verdict.offset}" if isinstance(found.verdict, Damaged) else condition
    first = " ".join(said[0].split())[:60] if said else ""
    return Row(directory.name, agent, len(found.records), len(said), last_ms, condition, first, unknown)


@click.command()
@click.argument("session")
@click.option("--at", type=click.IntRange(min=1), help="How many records to take over; default: all.")
@click.option("--again", is_flag=True, help="What SESSION did after these records may be done again, unasked.")
@click.option("--agent", metavar="AGENT", help="The agent that SESSION was recorded with, if it is not there any more.")
@state_option
def fork(session: str, at: int | None, again: bool, agent: str | None, state: Path | None) -> int:
    """Begin a new session from the first records of SESSION; prints its id. SESSION is not changed.

    What was outstanding at that record is unknown to the new session. What SESSION did after it has happened, and is
    not done again by itself: it counts for rules and budgets `per` session, and before the very same call of a tool
    that is not idempotent a person is asked; without one it is refused. Those calls are listed on stderr.

    \b
    Example:
      edgeagent run --resume "$(edgeagent fork 20261130-204500-1a2b --at 12)" "Now the south valve."
    """
    root = root_named(state)
    source = find_directory(root, session)
    forked = fork_session(root, source, at=at, again=again, agent=agent)
    for tool, arguments in forked.once:
        called = f"{tool}({arguments_text(arguments)})"
        tell(f"{source.name} went on to make {called}; the fork asks before it makes that call again", err=True)
    tell(forked.directory.name)
    return int(ExitCode.DONE)
