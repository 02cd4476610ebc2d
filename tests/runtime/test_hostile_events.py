"""Generated events with hostile texts: recorded, resumed, replayed, exported and shown without an exception."""

from __future__ import annotations

import math
import random
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import orjson
import pytest

from edgeagent.core.effects import AskModel, AskUser, CallTool, SetTimer
from edgeagent.core.events import Event, SessionStarted
from edgeagent.core.state import State, outstanding
from edgeagent.core.values import Usage, canonical_json
from edgeagent.driver.result import told_of
from edgeagent.runtime.loop import Loop
from edgeagent.runtime.wiring import step_of
from edgeagent.trace.check import fold
from edgeagent.trace.export.audit import as_csv, as_lines, audit_rows
from edgeagent.trace.export.otlp import otlp
from edgeagent.trace.export.page import page
from edgeagent.trace.export.turns import turns_of
from edgeagent.trace.file import TraceFile, examine_file
from edgeagent.trace.record import named_fields
from edgeagent.trace.snapshot import decode_state, encode_state
from tests.core.test_text import AGENT, CALLS, Quiet

PIECES = (
    *("\ud800", "\udcff", "\udfff\ud800", "\ud83d\ude00", "\x00", "\x1b]0;t\x07", "\x9b2J", "\r\n", "\x7f", "\ufffe"),
    *("\u202e", "\u2066x\u2069", "\u200b", "\u2028", "\u0300" * 40, "\U000e0041", "\ufeff", "नमस्ते", "😀", "é", " "),
    *("<|im_end|>\n<|im_start|>user", "[INST]", "</s>", "<tool_call>", "<end_of_turn>", "{{ x }}", "<script>", "&#0;"),
    *('{"refused":', '"', "\\", "]]>", "=cmd()", "'; --", "… (5 of 9 elements left out)", "NaN", "-0.0", "1e400"),
    *("9" * 400, "-" + "1" * 30, "Infinity", "null", "[" * 200, '{"a":' * 50, "x" * 3_000, *CALLS, "pump", "stdin"),
)
RESULTS = (math.nan, -math.inf, -0.0, 2**63, -(2**200), 0.1 + 0.2, 5e-324, b"\x89PNG\r\n", {2**70: None}, [[]] * 40)
KINDS = tuple(kind for kind in get_args(Event) if kind is not SessionStarted)
HINTS = {kind: get_type_hints(kind) for kind in KINDS}
A_SESSION = 200
"""Events of one generated session: several turns, and enough for its state to grow to its bounds."""


class Hostile:
    """Draws events from a seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def event(self) -> Event:
        kind = self._chance.choice(KINDS)
        return kind(**{name: self._value(hint, name) for name, hint in HINTS[kind].items()})  # type: ignore[no-any-return]

    def _value(self, hint: Any, name: str) -> Any:
        chance = self._chance
        if hint is str:
            if name == "value" and chance.random() < 0.7:
                value = chance.choice((*RESULTS, self._text(), [self._text()] * 3, {self._text(): 1}))
                return told_of(value).json
            return chance.choice(CALLS) if chance.random() < 0.3 else self._text()
        if get_origin(hint) is Literal:
            return chance.choice(get_args(hint))
        if get_origin(hint) is tuple:
            inner = get_args(hint)
            if inner[-1] is Ellipsis:
                return tuple(self._value(inner[0], name) for _ in range(chance.randrange(3)))
            return tuple(self._value(each, name) for each in inner)
        if hint == Usage | None and chance.random() < 0.5:
            return None
        if hint in (Usage, Usage | None):
            return Usage(*(chance.randrange(500) for _ in range(5)))
        if hint is float:
            return chance.choice((0.0, -0.0, 0.5, 1e308, -5e-324))
        if hint is bool:
            return chance.random() < 0.5
        return chance.randrange(10) if hint is int else bytes(chance.randrange(4))

    def _text(self) -> str:
        return "".join(self._chance.choices(PIECES, k=self._chance.randrange(5)))


def lived(path: Path, seed: int) -> State:
    """Live through a generated session that is cut off and resumed halfway; return its last state."""
    hostile, step, quiet, clock = Hostile(seed), step_of(AGENT), Quiet(), iter(range(10_000))
    drivers = dict.fromkeys((AskModel, CallTool, AskUser, SetTimer), quiet)
    trace = TraceFile.create(path)
    loop = Loop(AGENT, step, trace, drivers, lambda: next(clock))
    loop.post(SessionStarted(0, "a", "d", 1, "plain", 2048, "0"))
    loop.take_one()
    for number in range(A_SESSION):
        if number == A_SESSION // 2:
            trace.close()
            trace, _ = TraceFile.resume(path)
            loop = Loop(AGENT, step, trace, drivers, lambda: next(clock), state=decode_state(encode_state(loop.state)))
        event, out = hostile.event(), outstanding(loop.state)
        answers = "effect_id" in event.__struct_fields__ and out
        loop.post(msgspec.structs.replace(event, effect_id=out[0]) if answers else event)
        while not loop._inbox.empty():
            loop.take_one()
    trace.close()
    return loop.state


def told(path: Path) -> tuple[State, int]:
    """Replay a trace, write everything that is made of one; return the state and how many events there were."""
    records, step = examine_file(path).records, partial(step_of(AGENT), AGENT)
    folded, state = [], State()
    for record in records:
        state, effects = fold(step, (record,), state)
        folded.append((record, state, effects))
    orjson.dumps(otlp(folded, agent="a", session="s", model="m"))
    "".join(as_lines(audit_rows(AGENT, folded, bytes(32)))).encode()
    "".join(as_csv(audit_rows(AGENT, folded, bytes(32)))).encode()
    rows = [(str(r.seq), "", "", canonical_json(named_fields(r.event)), *[""] * 6) for r in records]
    page("s", [], turns_of(AGENT, folded), rows).encode()
    return state, len(records)


def live_and_replay(folder: Path, least: int) -> int:
    count, seed = 0, 0
    while count < least:
        path = folder / "trace.cbor"
        state, (again, events) = lived(path, seed), told(path)
        assert again == state, f"seed {seed}"
        path.unlink()
        count, seed = count + events, seed + 1
    print(f"{count} hostile events in {seed} sessions: recorded, resumed, replayed and exported")
    return count


@pytest.mark.long
def test_hostile_events_are_recorded_resumed_replayed_and_exported(tmp_path: Path) -> None:
    assert live_and_replay(tmp_path, 1_000) >= 1_000


@pytest.mark.slow
def test_100_000_hostile_events_are_recorded_resumed_replayed_and_exported(tmp_path: Path) -> None:
    assert live_and_replay(tmp_path, 100_000) >= 100_000
