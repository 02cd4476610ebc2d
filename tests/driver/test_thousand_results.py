"""A thousand results of twenty kinds, from 1 byte to 50 MB, read through a window of 1,024 tokens of one byte each."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from edgeagent.core.agent import tool
from edgeagent.core.effects import AskModel, CallTool
from edgeagent.core.events import ModelAnswered, SessionStarted, ToolReturned, UserSaid
from edgeagent.core.results import RESULT_TOKENS_MAX
from edgeagent.core.state import DENSITY_START, State
from edgeagent.core.step import step
from edgeagent.core.values import Usage
from edgeagent.driver.tool import RESULT_BYTES_MAX, result_of
from tests.core.test_results import AGENT, LOOK, reads

WINDOW = 1_024
NOTE_BYTES_MAX = 60
SMALL = (1, 2, 3, 5, 8, 13, 50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000, 1_200, 1_500, 1_700, 2_000)
MIDDLE = (2_500, 3_000, 4_000, 5_000, 6_000, 8_000, 10_000, 12_000, 15_000, 20_000, 30_000, 40_000, 50_000, 60_000)
LARGE = (64_000, 65_000, 66_000, 70_000, 80_000, 90_000, 100_000, 150_000, 200_000, 300_000, 400_000, 500_000, 700_000)
SIZES = (*SMALL, *MIDDLE, *LARGE, 1_000_000)
KINDS: dict[str, Callable[[int], object]] = {
    "word": lambda n: "x" * n,
    "hindi": lambda n: "नम " * (n // 8),
    "lines": lambda n: "a b\n" * (n // 4),
    "floats": lambda n: [1.5] * (n // 4),
    "rows": lambda n: [{"i": k, "v": "é"} for k in range(n // 18)],
    "bytes": bytes,
    "picture": lambda n: b"\x89PNG\r\n" + bytes(n),
    "object": lambda n: {"rows": [0] * (n // 2)},
    "generator": lambda n: (k for k in range(n)),
    "no numbers": lambda n: [math.nan] * (n // 6),
    "number keys": lambda n: dict.fromkeys(range(n // 8), "a"),
    "70 bits": lambda n: [2**70] * (n // 23),
    "surrogates": lambda n: "\ud835" * (n // 3),
    "no json": lambda n: object(),
    "one element": lambda n: ["x" * n],
    "controls": lambda n: "\x00" * (n // 6),
    "nested": lambda n: [["a", [n]]] * (n // 16),
    "nothing": lambda n: None,
    "emoji": lambda n: "😀" * (n // 4),
    "deep text": lambda n: {"a": {"b": "y z," * (n // 4)}},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_turn_fails_for_a_result_of_any_kind_and_size(kind: str) -> None:
    for size in (*SIZES, 50_000_000):
        assert _outcome_after(KINDS[kind], size) == "answered", size


def _outcome_after(kind: Callable[[int], object], size: int) -> str:
    @tool(idempotent=True)
    def look() -> object:
        """Look."""
        return kind(size)

    state, _ = step(AGENT, State(), SessionStarted(0, "reader", "", 1, "plain", WINDOW, "0"))
    state, (ask,) = step(AGENT, state, UserSaid(0, "Look."))
    state, (call,) = step(AGENT, state, ModelAnswered(0, ask.effect_id, LOOK, "end", Usage(10, 10, 10)))
    event = result_of(look, CallTool(call.effect_id, "look", "{}", 5_000)).event
    assert isinstance(event, ToolReturned), "the tool did its work"
    assert len(event.value.encode()) <= RESULT_BYTES_MAX, "so much and no more is read, however much there was"
    state, (ask,) = step(AGENT, state, event)
    assert len(ask.messages[-1].text.encode()) <= RESULT_TOKENS_MAX * 100 // DENSITY_START + NOTE_BYTES_MAX
    while isinstance(ask, AskModel):
        state, effects = step(AGENT, state, reads(ask, WINDOW))
        ask = effects[-1]
    assert state.outcome is not None
    return state.outcome.kind
