"""`edgeagent trace`: look into traces."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from edgeagent.cli import trace_file, trace_sign
from edgeagent.cli.options import find_trace_named, state_option
from edgeagent.cli.screen import clock_text
from edgeagent.core.effects import AskModel, AskUser, CallTool, CancelEffect, Effect, Finish, Say
from edgeagent.core.events import Event, ModelAnswered, ModelFailed, SessionStarted, ToolFailed, ToolReturned, UserSaid
from edgeagent.errors import EdgeAgentError
from edgeagent.runtime.recording import effects_of, load_recording, records_of
from edgeagent.trace.record import Record, named_fields
from edgeagent.trace.recover import Examined, Torn

TEXT_MAX = 60
"""Characters of a text that a row shows; --json has all of it."""


@click.group()
def trace() -> None:
    """Look into traces: a trace.cbor, a session's directory or its id; without one, the last session."""


COMMANDS = (
    trace_file.check,
    trace_file.repair,
    trace_file.verify,
    trace_file.head,
    trace_sign.sign,
    trace_sign.keygen,
    trace_sign.rotate,
)
for command in COMMANDS:
    trace.add_command(command)


@trace.command()
@click.argument("trace", required=False)
@click.argument("agent", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a record.")
@state_option
def show(trace: str | None, agent: str | None, as_json: bool, state: Path | None) -> None:
    """Show every record: time, event, the effects it led to, tokens and time spent.

    Tokens are those of the prompt, those of it that had to be evaluated, those written, and those of them that the
    grammar forced. The effects are not recorded but follow from the agent, which is folded again for this.

    \b
    Example:
      edgeagent trace show
      edgeagent trace show 20261130-204500-1a2b --json
    """
    path = find_trace_named(trace, state)
    found = records_of(path)
    rows = list(_rows(path, agent, found))
    if as_json:
        for record, effects in rows:
            click.echo(json.dumps(_as_json(record, effects), ensure_ascii=False))
        return
    _draw([_as_row(record, effects) for record, effects in rows])
    if isinstance(found.verdict, Torn):
        click.echo(f"a torn end of {found.verdict.size} bytes follows ({found.verdict.because})", err=True)


def _rows(path: Path, agent: str | None, found: Examined) -> Iterator[tuple[Record, tuple[Effect, ...] | None]]:
    """Each record with its effects, or None from where they cannot be told."""
    told = 0
    try:
        recording = load_recording(path, agent)
        for record, _, effects in effects_of(recording, found):
            yield record, effects
            told += 1
    except EdgeAgentError as error:
        click.echo(f"effects are not shown from record {told} on: {error}", err=True)
    for record in found.records[told:]:
        yield record, None


COLUMNS = ("#", "time", "event", "", "effects", "prompt", "eval", "written", "forced", "ms")


def _as_row(record: Record, effects: tuple[Effect, ...] | None) -> tuple[str, ...]:
    event = record.event
    shown = "?" if effects is None else ", ".join(_effect_text(e) for e in effects)
    tokens, micros = ("", "", "", ""), ""
    if isinstance(event, ModelAnswered):
        usage = event.usage
        tokens = (str(usage.prompt), str(usage.evaluated), str(usage.completion), str(usage.forced))
        micros = _ms(usage.micros)
    elif isinstance(event, ToolReturned | ToolFailed):
        micros = _ms(event.micros)
    return (str(record.seq), clock_text(event.at_ms), type(event).__name__, _event_text(event), shown, *tokens, micros)


def _ms(micros: int) -> str:
    return f"{micros / 1000:.1f}" if micros else ""


def _event_text(event: Event) -> str:
    match event:
        case SessionStarted(agent=agent, version=version):
            return f"{agent}, edgeagent {version}"
        case UserSaid(text=text) | ModelAnswered(text=text):
            return _short(text)
        case ToolReturned(value=value):
            return _short(value)
        case ToolFailed(message=message) | ModelFailed(message=message):
            return _short(message)
        case _:
            return _short(", ".join(f"{n}={getattr(event, n)}" for n in event.__struct_fields__[1:]))


def _effect_text(effect: Effect) -> str:
    match effect:
        case AskModel(choice=choice, closing=closing):
            return f"AskModel({'closing: ' + closing if closing else choice})"
        case CallTool(tool=tool, arguments=arguments) | AskUser(tool=tool, arguments=arguments):
            return f"{type(effect).__name__} {tool}{_short(arguments)}"
        case Say(text=text):
            return f"Say {_short(text)}"
        case CancelEffect(target=target):
            return f"CancelEffect {target}"
        case Finish(reason=reason):
            return f"Finish {_short(reason)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TEXT_MAX else f"{line[: TEXT_MAX - 1]}…"


def _as_json(record: Record, effects: tuple[Effect, ...] | None) -> dict[str, Any]:
    return {
        "seq": record.seq,
        "offset": record.offset,
        "bytes": record.size,
        "hash": record.hash.hex(),
        **named_fields(record.event),
        "effects": None if effects is None else [named_fields(e) for e in effects],
    }


def _draw(rows: list[tuple[str, ...]]) -> None:
    if sys.stdout.isatty():
        _draw_rich(rows)
        return
    widths = [max(len(row[i]) for row in (COLUMNS, *rows)) for i in range(len(COLUMNS))]
    for row in (COLUMNS, *rows):
        cells = [
            c.rjust(w) if i == 0 or i > 4 else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo("  ".join(cells).rstrip())


def _draw_rich(rows: list[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold")
    for i, name in enumerate(COLUMNS):
        table.add_column(name, justify="right" if i == 0 or i > 4 else "left", no_wrap=i in (0, 1, 2))
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)
