"""`edgeagent trace`: look into traces."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from edgeagent.core.effects import AskModel, AskUser, CallTool, CancelEffect, Effect, Finish, Say, SetTimer
from edgeagent.core.events import (
    CALL_ODDS,
    CALL_ODDS_NEEDED,
    EffectLost,
    Event,
    ModelAnswered,
    ModelFailed,
    SessionStarted,
    ToolFailed,
    ToolReturned,
    UserSaid,
)
from edgeagent.core.state import State
from edgeagent.core.text import shown
from edgeagent.doors.cli import trace_export, trace_file, trace_sign
from edgeagent.doors.cli.options import find_trace_named, state_option
from edgeagent.doors.cli.screen import clock_text, fate_text, unshown_text
from edgeagent.doors.cli.terminal import arguments_text, private_file, tell, tell_row
from edgeagent.errors import EdgeAgentError
from edgeagent.runtime.fate import unknown_calls
from edgeagent.runtime.recording import Recording, effects_of, load_recording, records_of
from edgeagent.trace.export.page import page
from edgeagent.trace.export.turns import Turn, Use, turns_of
from edgeagent.trace.record import Record, named_fields
from edgeagent.trace.recover import Examined, Torn

TEXT_MAX = 60
"""Characters of a text that a row shows; --json has all of it."""

BAR_CHARS = 8
"""How long the bar of a budget is."""


@click.group()
def trace() -> None:
    """Look into traces: a trace.cbor, a session's directory or its id; without one, the last session.

    \b
    Example:
      edgeagent trace show
    """


COMMANDS = (
    trace_file.check,
    trace_file.repair,
    trace_file.verify,
    trace_file.head,
    trace_export.export,
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
@click.option("--html", "page_file", type=click.Path(path_type=Path), help="Write one page that opens anywhere.")
@click.option("--why", is_flag=True, help="How well each tool fitted the request, where the driver compared them.")
@state_option
def show(
    trace: str | None, agent: str | None, as_json: bool, page_file: Path | None, why: bool, state: Path | None
) -> None:
    """Show every record (time, event, the effects it led to, tokens, time spent) and what each turn has used.

    Tokens are those of the prompt, those of it that had to be evaluated, those written, and those of them that the
    grammar forced. The effects are not recorded but follow from the agent, which is folded again for this.

    \b
    Example:
      edgeagent trace show
      edgeagent trace show --why
      edgeagent trace show 20261130-204500-1a2b --html session.html
    """
    path = find_trace_named(trace, state)
    found = records_of(path)
    told = _Told(path, agent, found)
    if as_json:
        for record, effects in told.rows():
            tell_row(_as_json(record, effects))
        return
    rows = [_as_row(record, effects) for record, effects in told.rows()]
    if page_file is not None:
        _write_page(page_file, path, found, told, rows)
        return
    _draw(rows)
    if why:
        for line in _why(found):
            tell(line)
    for turn in told.turns():
        tell(f"turn {turn.number}: {turn.outcome}; " + ", ".join(_use_text(use) for use in turn.uses))
        for reason in turn.refusals:
            tell(f"    {reason}")
    for fate in unknown_calls(path.parent, found):
        tell(f"unknown: {fate_text(fate)}")
    if isinstance(found.verdict, Torn):
        tell(f"a torn end of {found.verdict.size} bytes follows ({found.verdict.because})", err=True)


class _Told:
    """A trace with what follows from it, as far as its agent can tell."""

    def __init__(self, path: Path, agent: str | None, found: Examined) -> None:
        self.found = found
        self.recording: Recording | None = None
        self.folded: list[tuple[Record, State, tuple[Effect, ...]]] = []
        try:
            self.recording = load_recording(path, agent)
            for each in effects_of(self.recording, found):
                self.folded.append(each)  # One by one: what was folded before an error is shown.
        except EdgeAgentError as error:
            tell(f"effects are not shown from record {len(self.folded)} on: {error}", err=True)

    def rows(self) -> Iterator[tuple[Record, tuple[Effect, ...] | None]]:
        """Each record with its effects, or None from where they cannot be told."""
        for record, _, effects in self.folded:
            yield record, effects
        for record in self.found.records[len(self.folded) :]:
            yield record, None

    def turns(self) -> list[Turn]:
        """The turns that can be told."""
        return turns_of(self.recording.agent, self.folded) if self.recording else []


def _why(found: Examined) -> Iterator[str]:
    """Why the model's answers are what they are, as far as the driver has told."""
    for record in found.records:
        if isinstance(record.event, ModelAnswered):
            yield from (f"record {record.seq}{told}" for told in why(record.event))


def why(event: ModelAnswered) -> Iterator[str]:
    """Whether a call was meant, the tools' scores (best first), what arguments were held to, how sure each call is."""
    scores = dict(event.scores)
    odds, needed = scores.pop(CALL_ODDS, None), scores.pop(CALL_ODDS_NEEDED, None)
    if odds is not None and needed is not None:
        yield f": log-odds of a call {odds:g}, needed {needed:g}"
    if scores:
        best_first = sorted(scores.items(), key=lambda scored: -scored[1])
        yield " chose among: " + ", ".join(f"{tool} {score:g}" for tool, score in best_first)
    if event.evidence:
        yield " arguments: " + ", ".join(f"{name} {because}" for name, because in event.evidence)
    if event.confidence:
        sure = ", ".join(f"{100 * each:.0f} %" for each in event.confidence)
        yield f": {sure} sure that this is the right call"


def _use_text(use: Use) -> str:
    if use.limit is None:
        return f"{use.used:g} {use.name}"
    blocks = round(use.share * BAR_CHARS)
    return f"{use.name} {'█' * blocks}{'░' * (BAR_CHARS - blocks)} {use.used:g}/{use.limit:g}"


def _write_page(file: Path, path: Path, found: Examined, told: _Told, rows: list[tuple[str, ...]]) -> None:
    about = told.recording.about if told.recording else None
    facts = [("records", str(len(found.records))), ("bytes", str(path.stat().st_size)), ("head", found.head.hex()[:16])]
    facts += [("agent", about.agent), ("model", Path(about.model).name), ("edgeagent", about.version)] if about else []
    facts += [("unknown", fate_text(fate)) for fate in unknown_calls(path.parent, found)]
    title = f"Session {about.id if about else path}"
    with private_file(file) as out:
        out.write(page(title, facts, told.turns(), rows).encode())
    tell(f"wrote {file}")


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
        case ModelAnswered(text=text, asked=(*passed, (name, _))):
            return "; ".join([*(_short(f"{each}: {why}") for each, why in passed), f"{name}: {_short(text)}"])
        case UserSaid(text=text) | ModelAnswered(text=text):
            return _short(text)
        case EffectLost(tool=tool, arguments=arguments) if tool:
            return f"unknown: {tool}({_short(arguments_text(arguments))})"
        case ToolReturned(unshown=because, notes=notes) if because:
            return "; ".join(_short(each) for each in (unshown_text(because), *notes))
        case ToolReturned(value=text, notes=notes) | ToolFailed(message=text, notes=notes):
            return "; ".join(_short(each) for each in (text, *notes))
        case ModelFailed(message=message):
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
        case SetTimer(after_ms=after_ms):
            return f"SetTimer in {after_ms / 1000:g} s"


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
        tell("  ".join(cells).rstrip())


def _draw_rich(rows: list[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold")
    for i, name in enumerate(COLUMNS):
        table.add_column(name, justify="right" if i == 0 or i > 4 else "left", no_wrap=i in (0, 1, 2))
    for row in rows:
        table.add_row(*(Text(shown(cell)) for cell in row))
    Console().print(table)
