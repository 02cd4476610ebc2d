"""`edgeagent doctor`: what can be known about this board, line by line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from msgspec.structs import asdict

from edgeagent.doors.cli.check import failures_of
from edgeagent.doors.cli.options import root_named, settings_from, state_option
from edgeagent.doors.cli.terminal import tell, tell_row
from edgeagent.errors import EdgeAgentError, ExitCode
from edgeagent.runtime.board import Finding, Machine
from edgeagent.runtime.config import state_root

_MARKS = {"good": "ok  ", "bad": "BAD ", "unknown": "?   "}


@click.command()
@click.argument("agent", required=False)
@state_option
@click.option("--config", type=click.Path(path_type=Path), help="Default: edgeagent.toml beside AGENT.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def doctor(agent: str | None, as_json: bool, **options: Any) -> int:
    """Say whether this board is fit for an agent: CPU, memory, models, disk, clock, serial ports, systemd.

    Each line is known good (ok), known bad with what to do (BAD), or cannot be known here (?). With AGENT also what
    `edgeagent check` says of it. The exit code is 6 if anything is bad.

    \b
    Example:
      edgeagent doctor
      edgeagent doctor lamps/lamps.py --json
    """
    code = ExitCode.DONE
    for finding in _findings(agent, options):
        if finding.verdict == "bad":
            code = ExitCode.CHECK_FAILED
        if as_json:
            tell_row(asdict(finding))
            continue
        tell(f"{_MARKS[finding.verdict]} {finding.about:<14} {finding.found}", lines=True)
        if finding.remedy:
            tell(f"{'':<20}→ {finding.remedy}", lines=True)
    return int(code)


def _findings(agent: str | None, options: dict[str, Any]) -> Iterator[Finding]:
    wrong: EdgeAgentError | None = None
    root = root_named(options["state"])
    try:
        root = state_root(settings_from(agent, **options)) if agent else root
    except EdgeAgentError as error:
        wrong = error  # The board is looked at all the same.
    yield from Machine(state=root).findings(_begun)
    if wrong is not None:
        yield Finding("settings", "bad", str(wrong), "correct the file")
    elif agent is not None:
        _begun(f"checking {agent}, with its model")
        failed = failures_of(agent, options)
        found = "; ".join(f"{name}: {said}" for name, said in failed.items()) or "every check is good"
        yield Finding("agent", "bad" if failed else "good", found, f"edgeagent check {agent}" if failed else "")


def _begun(what: str) -> None:
    """Tell a person what is waited for; a log needs only the lines."""
    if sys.stderr.isatty():
        tell(f"… {what}", err=True)
