"""What leaves a trace for others: hashes that verify, and never a value that is nobody's business."""

from __future__ import annotations

import csv
import io
import json
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest

from edgeagent.codec.dialect import dialect_called
from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import AskModel, CallTool
from edgeagent.core.events import Event, ModelAnswered, SessionStarted, ToolFailed, ToolReturned, UserSaid
from edgeagent.core.state import State
from edgeagent.core.values import Usage
from edgeagent.policy.ready import confirm_before
from edgeagent.runtime import golden
from edgeagent.runtime.recording import effects_of, load_recording
from edgeagent.runtime.wiring import step_of
from edgeagent.trace.export.audit import Veil, as_csv, as_lines, audit_rows
from edgeagent.trace.export.otlp import otlp
from edgeagent.trace.file import TraceFile, examine_file

TRACES = Path(__file__).parents[3] / "traces"
CANARY = "canary-5f3a9c"
PIN = 4_711_928
KEY = b"a key for tests only"


@tool(idempotent=True, sensitive=True)
def unlock(pin: int, owner: str) -> str:
    """Unlock the door."""
    return owner


@tool(idempotent=True)
def note(text: str, level: Annotated[int, msgspec.Meta(ge=1, le=9)], kind: Literal["info", "alarm"]) -> str:
    """Write a note."""
    return text


AGENT = Agent(
    "guard",
    "You guard a door.",
    (unlock, note),
    (confirm_before("note", because="notes are read by all"),),
    dialect=dialect_called("plain"),
)


def call(name: str, **arguments: object) -> str:
    return json.dumps({"name": name, "arguments": arguments})


@pytest.fixture
def folded(tmp_path: Path) -> list:
    """A session into which the canary comes in every way there is."""
    step, state, rows = partial(step_of(AGENT), AGENT), State(), []
    trace = TraceFile.create(tmp_path / "t")
    usage = Usage(1, 1, 1)
    events: list[Event] = [
        SessionStarted(1, "guard", AGENT.digest, 1, "plain", 2048, "0.1.0"),
        UserSaid(2, f"Unlock for {CANARY} with {PIN}."),
        ModelAnswered(3, 1, call("unlock", pin=PIN, owner=CANARY), "closed", usage, CANARY.encode()),
        ToolReturned(4, 2, json.dumps({"owner": CANARY})),
        ModelAnswered(5, 3, f"Unlocked for {CANARY}.", "end", usage),
        UserSaid(6, f"Note {CANARY}."),
        ModelAnswered(7, 5, call("note", text=CANARY, level=3, kind="alarm"), "closed", usage),
        ToolFailed(8, 6, "raised", f"OSError: {CANARY}"),
    ]
    for event in events:
        state, effects = step(state, event)
        trace.append(event, effects, sync=False)
        rows.append((state, effects))
    trace.close()
    records = examine_file(tmp_path / "t").records
    return [(record, *row) for record, row in zip(records, rows, strict=True)]


def test_a_canary_that_came_in_by_every_way_goes_out_by_none(folded: list) -> None:
    out = "".join(as_lines(audit_rows(AGENT, folded, KEY)))
    out += "".join(as_csv(audit_rows(AGENT, folded, KEY)))
    out += json.dumps(otlp(folded, agent="guard", session="s", model="m"))
    assert CANARY not in out
    assert CANARY.encode().hex() not in out
    assert str(PIN) not in out


def test_what_the_author_wrote_is_readable(folded: list) -> None:
    out = "".join(as_lines(audit_rows(AGENT, folded, KEY)))
    for word in ("unlock", "note", "alarm", "notes are read by all", '"level":3'):
        assert word in out


def test_who_has_key_and_value_can_check_a_hash(folded: list) -> None:
    rows = list(audit_rows(AGENT, folded, KEY))
    (arguments,) = [r["fields"]["arguments"] for r in rows if r["type"] == "CallTool" and r["tool"] == "unlock"]
    veil = Veil(AGENT, KEY)
    assert arguments == {"pin": veil.hash(PIN), "owner": veil.hash(CANARY)}
    assert Veil(AGENT, b"another key").hash(PIN) != veil.hash(PIN)


def test_every_event_and_effect_has_a_row(folded: list) -> None:
    rows = list(audit_rows(AGENT, folded, KEY))
    assert sum(r["kind"] == "event" for r in rows) == len(folded)
    assert sum(r["kind"] == "effect" for r in rows) == sum(len(effects) for _, _, effects in folded)


def test_no_cell_of_the_table_begins_like_a_formula(folded: list) -> None:
    table = list(csv.reader(io.StringIO("".join(as_csv(audit_rows(AGENT, folded, KEY))))))
    assert len({len(row) for row in table}) == 1
    assert not [cell for row in table for cell in row if cell.startswith(("=", "+", "-", "@", "\t"))]


@pytest.mark.parametrize("directory", golden.situations(TRACES), ids=lambda d: d.name)
def test_every_recording_exports_and_twice_the_same(directory: Path) -> None:
    recording, found = (
        load_recording(directory / "trace.cbor", runs_beside=True),
        examine_file(directory / "trace.cbor"),
    )
    rows = list(effects_of(recording, found))
    names = {"agent": recording.agent.name, "session": directory.name, "model": "m"}
    assert list(audit_rows(recording.agent, rows, KEY)) == list(audit_rows(recording.agent, rows, KEY))
    assert otlp(rows, **names) == otlp(rows, **names)


@pytest.mark.parametrize("directory", golden.situations(TRACES), ids=lambda d: d.name)
def test_every_call_is_a_span_with_an_end_under_its_turn(directory: Path) -> None:
    recording, found = (
        load_recording(directory / "trace.cbor", runs_beside=True),
        examine_file(directory / "trace.cbor"),
    )
    rows = list(effects_of(recording, found))
    exported = otlp(rows, agent="a", session="s", model="m")
    spans = exported["resourceSpans"][0]["scopeSpans"][0]["spans"]
    asked = {e.effect_id for _, _, effects in rows for e in effects if isinstance(e, AskModel | CallTool)}
    turns = [s for s in spans if s["name"].startswith("invoke_agent")]
    assert len(spans) - len(turns) >= len(asked)
    assert len({s["spanId"] for s in spans}) == len(spans)
    assert len({s["traceId"] for s in spans}) == 1
    for span in spans:
        assert int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"])
        assert (len(span["traceId"]), len(span["spanId"])) == (32, 16)
    assert {s["parentSpanId"] for s in spans if s not in turns} <= {t["spanId"] for t in turns}
