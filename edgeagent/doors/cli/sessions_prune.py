"""`edgeagent sessions prune`: make room by removing old sessions and caches that nothing uses."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import click

from edgeagent.doors.cli.options import root_named, state_option
from edgeagent.doors.cli.terminal import tell, tell_row
from edgeagent.errors import ConfigError, ExitCode
from edgeagent.runtime.prune import Item, Plan, Wanted, plan_of, prune

SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
BYTES = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}


@click.command("prune")
@click.argument("session", nargs=-1)
@click.option("--older-than", metavar="AGE", help="Sessions last used so long ago: 30d, 12h, 2w.")
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Keep at least the N newest sessions.")
@click.option("--to-size", metavar="SIZE", help="Down to this size (20MB), caches first, then the oldest sessions.")
@click.option("--dry-run", is_flag=True, help="Show what would go; remove nothing.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each thing that goes or stays, and the sum.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@state_option
def prune_command(
    session: tuple[str, ...],
    older_than: str | None,
    keep: int | None,
    to_size: str | None,
    dry_run: bool,
    as_json: bool,
    yes: bool,
    state: Path | None,
) -> int:
    """Remove old sessions, those named, and saved memories that nothing here can use any more; say what that frees.

    Without a word about sessions only such memories go, and what killed processes have left. A session that somebody
    works in stays; one that waits for an answer or a timer, is unfinished, or does not know what became of a call stays
    unless it is named.

    \b
    Example:
      edgeagent sessions prune --older-than 30d --keep 10
      edgeagent sessions prune --to-size 20MB --dry-run
    """
    root = root_named(state)
    age_s = None if older_than is None else _measured(older_than, SECONDS, "--older-than", "30d, 12h or 2w")
    size = None if to_size is None else round(_measured(to_size, BYTES, "--to-size", "20MB or 500kB"))
    plan = plan_of(root, Wanted(session, age_s, keep, size), time.time_ns() // 1_000_000)
    if not as_json:
        _tell_plan(plan, root)
    if plan.going and not dry_run and not yes and not _is_confirmed(plan, as_json=as_json):
        return int(ExitCode.DONE)
    outcomes = [(item, "") for item in plan.going] if dry_run else list(prune(root, plan))
    freed = sum(item.size for item, failed in outcomes if not failed)
    if as_json:
        _tell_rows(plan, outcomes, freed, dry_run=dry_run)
        return int(ExitCode.DONE)
    for item, failed in outcomes:
        if failed:
            tell(f"stays: {item.kind} {item.path.name}: {failed}")
    tell(f"{'would free' if dry_run else 'freed'} {_size(freed)} of {_size(plan.size)}")
    return int(ExitCode.DONE)


def _is_confirmed(plan: Plan, *, as_json: bool) -> bool:
    if as_json or not sys.stdin.isatty():
        raise ConfigError(
            "there is no terminal to ask on; say --yes to remove without being asked, or --dry-run to look"
        )
    return click.confirm(f"Remove these {len(plan.going)}?")


def _tell_plan(plan: Plan, root: Path) -> None:
    for item in plan.going:
        name = item.path.name if item.kind == "session" else str(item.path.relative_to(root))
        tell(f"{'goes:':6} {item.kind:15} {name}  {_size(item.size)}  ({item.because})")
    for name, because in plan.staying:
        tell(f"stays: {'session':15} {name}  ({because})")


def _tell_rows(plan: Plan, outcomes: list[tuple[Item, str]], freed: int, *, dry_run: bool) -> None:
    for item, failed in outcomes:
        row = {"kind": item.kind, "path": str(item.path), "bytes": item.size, "because": item.because}
        tell_row({**row, "removed": not dry_run and not failed, **({"failed": failed} if failed else {})})
    for name, because in plan.staying:
        tell_row({"kind": "session", "stays": name, "because": because})
    tell_row({"freed": freed, "bytes": plan.size, "dry_run": dry_run})


def _measured(text: str, units: dict[str, int], option: str, example: str) -> float:
    """A number with a unit. Raises a usage error."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]?)(?:i?b)?", text.strip().lower())
    if found is None or found[2] not in units:
        raise click.UsageError(f"{option} {text!r} is no such measure; write {example}")
    return float(found[1]) * units[found[2]]


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
