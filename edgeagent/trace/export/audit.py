"""What of a trace may be given away: every event and effect as a row, without any text that the author has not written.

Law. Text goes out in clear only if it stands in the agent's own declaration (names, enum values, reasons of rules) or
in our own vocabulary; numbers only if the tool is not `sensitive`. Everything else, and everything of a sensitive tool,
becomes a keyed hash: who has the key and the value can check it, nobody can read it. All values go through `Veil`, so
a secret that has come into a trace by any way cannot come out of this one. No files here.
"""

from __future__ import annotations

import csv
import hmac
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import orjson

from edgeagent.core.agent import Agent
from edgeagent.core.budget import Limit
from edgeagent.core.effects import AskModel, AskUser, CallTool, Effect
from edgeagent.core.events import EffectLost, Event, ModelFailure, SessionStarted, ToolFailure, ToolReturned
from edgeagent.core.state import State
from edgeagent.core.values import Choice, Outcome, Stop, canonical_json, read_json
from edgeagent.trace.record import Record, named_fields

Row = dict[str, Any]
Folded = Iterable[tuple[Record, State, tuple[Effect, ...]]]

HASH_CHARS = 32
"""Of 64: 128 bits, more than anyone can search, and short enough to read."""

OUTCOMES = ("answered", "budget", "refused", "failed", "cancelled", "halted", "unknown")
OWN_WORDS = frozenset(
    word
    for words in (Choice, Stop, Limit, ModelFailure, ToolFailure)
    for word in (*get_args(words), *OUTCOMES, "interrupted", "plain", "the user said no", "")
)
"""Words that our own code puts into fields of text."""

LEFT_OUT = frozenset(("token_ids", "messages", "density"))
"""Fields that only repeat other records' text."""

COLUMNS = ("seq", "at_ms", "kind", "type", "effect_id", "tool", "fields", "record_hash")


class Veil:
    """Decides for one agent what is shown. `key` makes the hashes."""

    def __init__(self, agent: Agent, key: bytes) -> None:
        self._key = key
        self._tools = agent.family
        self._words = OWN_WORDS | {agent.name, agent.digest, *agent.family, *agent.hears} | _reasons(agent)
        self._of_tool = {name: self._words | _declared(t.parameters.schema) for name, t in agent.family.items()}

    def text(self, text: str, words: frozenset[str] | None = None) -> str:
        """The text itself if the author or we have written it, else its hash."""
        return text if text in (words or self._words) else self.hash(text)

    def hash(self, value: Any) -> str:
        """The keyed hash of a value's canonical JSON."""
        digest = hmac.digest(self._key, canonical_json(value).encode(), "sha256").hex()
        return f"hmac:{digest[:HASH_CHARS]}"

    def arguments(self, tool: str, text: str) -> Any:
        """A call's arguments: of a sensitive tool hashes only, else numbers and declared words in clear."""
        declared = self._tools.get(tool)
        try:
            value = read_json(text)
        except ValueError:
            return self.hash(text)
        if declared is None:
            return self.hash(value)
        return self._walk(value, self._of_tool[tool], sensitive=declared.sensitive)

    def field(self, value: Any) -> Any:
        """Any other field: numbers as they are, text and all else through the veil."""
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.field(v) for v in value]
        if isinstance(value, dict):
            return {k: self.field(v) for k, v in value.items()}  # The keys are names of our own fields.
        return self.hash(repr(value))

    def _walk(self, value: Any, words: frozenset[str], *, sensitive: bool) -> Any:
        if isinstance(value, dict):
            return {self.text(k, words): self._walk(v, words, sensitive=sensitive) for k, v in value.items()}
        if isinstance(value, list):
            return [self._walk(v, words, sensitive=sensitive) for v in value]
        if sensitive:
            return self.hash(value)
        return self.text(value, words) if isinstance(value, str) else value


def audit_rows(agent: Agent, folded: Folded, key: bytes) -> Iterator[Row]:
    """Yield a row for every event and every effect it led to, and one for each turn's outcome."""
    veil = Veil(agent, key)
    tools: dict[int, str] = {}
    before: Outcome | None = None
    for record, state, effects in folded:
        yield _row(record, "event", record.event, veil, tools)
        for effect in effects:
            if isinstance(effect, CallTool | AskUser):
                tools[effect.effect_id] = effect.tool
            yield _row(record, "effect", effect, veil, tools)
        if state.outcome is not None and state.outcome is not before:
            yield _outcome_row(record, state.outcome, veil)
        before = state.outcome


def _row(record: Record, kind: str, value: Event | Effect, veil: Veil, tools: Mapping[int, str]) -> Row:
    named = {k: v for k, v in named_fields(value).items() if k not in LEFT_OUT}
    effect_id = named.pop("effect_id", None)
    tool = named.pop("tool", None) or tools.get(effect_id or 0, "")
    fields: Row = {k: v for k, v in named.items() if k not in ("type", "at_ms")}
    if isinstance(value, CallTool | AskUser) or (isinstance(value, EffectLost) and value.tool):
        fields = {"arguments": veil.arguments(value.tool, value.arguments)} | _veiled(fields, veil, "arguments")
    elif isinstance(value, ToolReturned):
        notes = {"notes": fields["notes"]} if value.notes else {}
        fields = {"value": veil.hash(value.value), "micros": value.micros} | _veiled(notes, veil)
    elif isinstance(value, SessionStarted):
        fields = {"version": value.version} | _veiled(fields, veil, "version")  # Both are ours.
    elif isinstance(value, AskModel):
        fields = {"messages": len(value.messages)} | _veiled(fields, veil)
    else:
        fields = _veiled(fields, veil)
    return {
        "seq": record.seq,
        "at_ms": record.event.at_ms,
        "kind": kind,
        "type": type(value).__name__,
        "effect_id": effect_id,
        "tool": veil.text(tool),
        "fields": fields,
        "record_hash": record.hash.hex(),
    }


def _veiled(fields: Row, veil: Veil, *but: str) -> Row:
    return {k: veil.field(v) for k, v in fields.items() if k not in but}


def _outcome_row(record: Record, outcome: Outcome, veil: Veil) -> Row:
    fields = {"outcome": outcome.kind, "detail": veil.text(outcome.detail)}
    at = {"seq": record.seq, "at_ms": record.event.at_ms, "kind": "outcome", "type": "TurnEnded"}
    return {**at, "effect_id": None, "tool": "", "fields": fields, "record_hash": record.hash.hex()}


def as_lines(rows: Iterable[Row]) -> Iterator[str]:
    """JSON lines, keys in the order of the columns."""
    for row in rows:
        cells = {name: row[name] for name in COLUMNS}
        try:
            yield orjson.dumps(cells).decode() + "\n"
        except TypeError:  # An integer of more than 64 bits.
            yield canonical_json(cells) + "\n"


def as_csv(rows: Iterable[Row]) -> Iterator[str]:
    """CSV with a header; `fields` is JSON. No cell can begin like a formula: text is ours, the author's or a hash."""
    yield _csv_line(COLUMNS)
    for row in rows:
        cells = [row[name] for name in COLUMNS]
        cells[COLUMNS.index("fields")] = canonical_json(row["fields"])
        yield _csv_line(["" if cell is None else cell for cell in cells])


def _csv_line(cells: Iterable[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _reasons(agent: Agent) -> frozenset[str]:
    """Why rules refuse or ask, as the author wrote it, of this agent and those below it."""
    below = [t.agent for t in agent.family.values() if t.agent is not None]
    return frozenset(
        str(getattr(rule, "because", "")) for each in (agent, *below) for rule in each.policies
    ) | frozenset(f"{name} always asks first" for name in agent.family)


def _declared(schema: Any) -> frozenset[str]:
    """The words that a schema holds: names of properties, values of enums and constants."""
    found: set[str] = set()
    if isinstance(schema, dict):
        found.update(schema.get("properties", ()))
        found.update(v for v in (*schema.get("enum", ()), schema.get("const")) if isinstance(v, str))
        for part in schema.values():
            found |= _declared(part)
    elif isinstance(schema, list):
        for part in schema:
            found |= _declared(part)
    return frozenset(found)
