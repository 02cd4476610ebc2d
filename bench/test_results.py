"""A big result: what taking it costs beside writing it as JSON, and how much of it is read."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import AskModel, CallTool
from edgeagent.core.events import ModelAnswered, SessionStarted, ToolReturned, UserSaid
from edgeagent.core.state import State
from edgeagent.core.step import step
from edgeagent.core.values import Usage
from edgeagent.driver.tool import result_of

ROWS = [{"at": n / 7, "name": f"row {n}", "open": n % 2 == 0} for n in range(50_000)]
WINDOW = 1_024


@tool(idempotent=True)
def look(rows: int) -> list[dict[str, object]]:
    """Look."""
    return ROWS[:rows]


AGENT = Agent("reader", tools=(look,), dialect=Plain())


def taken(rows: int) -> tuple[float, int]:
    """Seconds that it takes from the tool's return to the next ask, and how many bytes of it are read."""
    state, _ = step(AGENT, State(), SessionStarted(0, "reader", "", 1, "plain", WINDOW, "0"))
    state, (ask,) = step(AGENT, state, UserSaid(0, "Look."))
    call = json.dumps({"name": "look", "arguments": {"rows": rows}})
    state, (wanted,) = step(AGENT, state, ModelAnswered(0, ask.effect_id, call, "end", Usage()))
    assert isinstance(wanted, CallTool)
    began = time.perf_counter()
    event = result_of(look, wanted).event
    assert isinstance(event, ToolReturned)
    _, (ask,) = step(AGENT, state, event)
    took = time.perf_counter() - began
    assert isinstance(ask, AskModel)
    return took, len(ask.messages[-1].text.encode())


def written() -> float:
    """Seconds that Python's own writer takes for all rows."""
    began = time.perf_counter()
    json.dumps(ROWS)
    return time.perf_counter() - began


def test_a_big_result(record_figure: Callable[[str, float], None]) -> None:
    """Four megabytes of rows, through a small window; and the same with a hundredth of them."""
    pairs = [(taken(len(ROWS)), written()) for _ in range(5)]
    record_figure("result.take_ratio", min(took for (took, _), _ in pairs) / min(wrote for _, wrote in pairs))
    record_figure("result.read_growth", pairs[0][0][1] / taken(len(ROWS) // 100)[1])
