"""Reading on in a result that was cut: all of it is shown in the end, each part once and within the window's share."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent, tool
from edgeagent.core.budget import Budget
from edgeagent.core.effects import AskModel, CallTool, Effect
from edgeagent.core.events import ModelAnswered, ModelFailed, SessionStarted, ToolReturned, UserSaid
from edgeagent.core.state import State
from edgeagent.core.values import Usage, canonical_json, read_json
from edgeagent.errors import ConfigError
from edgeagent.policy.all_guards import guard_for
from edgeagent.policy.fact import what_happened
from edgeagent.policy.guard import guarded_step
from edgeagent.policy.ready import no_effect_after_untrusted

PART_BYTES = 4_096
NOTE = re.compile(r"… \((\d+) of (\d+) (elements|characters) left out(; result_more \{\"result\":(\d+)\} reads on)?\)$")


@tool(idempotent=True)
def look() -> object:
    """Look."""


@tool(idempotent=True, trusted=True)
def measure() -> object:
    """Measure."""


@tool(idempotent=False)
def pay(euros: int) -> str:
    """Pay."""
    return f"paid {euros}"


AGENT = Agent(
    "reader",
    tools=(look, measure, pay),
    dialect=Plain(),
    budget=Budget(steps=None, tool_calls=None, completion_tokens=None, seconds=None, refusals=None),
)


class Reading:
    """A session with a model that is given its words, and a driver that keeps every result."""

    def __init__(self, window: int = 1_024, agent: Agent = AGENT) -> None:
        self.agent, self.kept = agent, dict[int, str]()
        guard = guard_for(agent)
        self.step = lambda state, event: guarded_step(guard, agent, state, event)
        self.state, _ = self.step(State(), SessionStarted(0, "reader", "", 1, "plain", window, "0"))
        self.last: Effect = self.take(UserSaid(0, "Look."))[-1]

    def take(self, event) -> tuple[Effect, ...]:
        self.state, effects = self.step(self.state, event)
        if effects:
            self.last = effects[-1]
        return effects

    @property
    def shown(self) -> str:
        assert isinstance(self.last, AskModel)
        return self.last.messages[-1].text

    @property
    def is_offered(self) -> bool:
        return isinstance(self.last, AskModel) and "result_more" in self.last.tools

    def writes(self, text: str) -> tuple[Effect, ...]:
        assert isinstance(self.last, AskModel)
        return self.take(ModelAnswered(0, self.last.effect_id, text, "end", Usage(10, 10, 10)))

    def call(self, name: str, **arguments: object) -> tuple[Effect, ...]:
        return self.writes(json.dumps({"name": name, "arguments": arguments}))

    def look(self, value: object, name: str = "look") -> None:
        """Let the tool return this value, all of which is kept."""
        self.call(name)
        assert isinstance(self.last, CallTool)
        text, self.is_text = canonical_json(value), isinstance(value, str)
        whole = self.kept[self.last.effect_id] = value if isinstance(value, str) else text
        self.take(ToolReturned(0, self.last.effect_id, text, kept=len(whole)))

    def more(self, **arguments: object) -> None:
        """Read on, as the driver of tools does."""
        self.call("result_more", **arguments)
        assert isinstance(self.last, CallTool), self.shown
        wanted = read_json(self.last.arguments)
        piece = self.kept[wanted["result"]][wanted["at"] :].encode()[:PART_BYTES].decode(errors="ignore")
        self.take(ToolReturned(0, self.last.effect_id, canonical_json(piece), kept=len(piece)))


def all_read(reading: Reading, too_long: Iterable[bool] = ()) -> str:
    """Everything that was shown of a result, put together by its places; now and then the prompt was too long."""
    got, fails = "", iter(too_long)
    for _ in range(1_000):
        if next(fails, False):
            tokens = sum(len(m.text.encode()) for m in reading.last.messages) // 2
            reading.take(ModelFailed(0, reading.last.effect_id, "context_full", "", tokens))
        message = reading.last.messages[-1]
        note = NOTE.search(message.text)
        body = message.text[: note.start()] if note else message.text
        start = message.part.start if message.part else 0
        whole = reading.kept[message.part.effect_id] if message.part else ""
        # A page of elements has its own bracket where the list has a comma, however it is cut afterwards.
        is_page = bool(start) and not reading.is_text and body.startswith("[") and whole[start] == ","
        got = got[:start] + _content(body, start, note, is_text=reading.is_text, is_page=is_page)
        if not any(each.at < each.end for each in reading.state.kept):
            return got
        if not reading.is_offered:  # The window is full of what was read in this turn.
            reading.writes("So far.")
            reading.take(UserSaid(0, "Read on."))
        reading.more()
    raise AssertionError("it is never read to its end")


def _content(body: str, start: int, note: re.Match[str] | None, *, is_text: bool, is_page: bool) -> str:
    if is_text:
        return read_json(body)
    if note is not None and note[3] == "elements":
        return "" if body == "[]" else ("," if start else "[") + body[1:-1]
    return f",{body[1:]}" if is_page else body


ANY = st.recursive(
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | st.text('é\n, ["\\'),
    lambda inner: st.lists(inner, max_size=60) | st.dictionaries(st.text(max_size=4), inner, max_size=6),
    max_leaves=120,
)
KINDS = {
    "numbers": list(range(2_000)),
    "rows": [{"id": n, "name": f"row {n}, [{n}]"} for n in range(300)],
    "hindi": "नमस्ते दुनिया " * 300,
    "lines": "soil 31.5\n" * 600,
    "one long element among short ones": [1, 2, "x" * 6_000, 3, {"a": [4, ']"},{']}, *range(300)],
    "one element": ["y" * 4_000],
    "nested": {"rows": [[n] * 3 for n in range(400)]},
    "lists": [[n, [n]] for n in range(500)],
    "digits": 10**4_000,
    "quotes": '"\\' * 1_500,
}


@pytest.mark.parametrize("window", [1_024, 4_096])
@pytest.mark.parametrize("kind", KINDS)
def test_a_result_that_was_cut_is_read_on_to_its_end(kind: str, window: int) -> None:
    value, reading = KINDS[kind], Reading(window)
    reading.look(value)
    assert reading.is_offered
    whole = value if isinstance(value, str) else canonical_json(value)
    assert all_read(reading) == whole
    assert not reading.is_offered


@pytest.mark.long
@given(ANY, st.integers(1_600, 4_000), st.lists(st.booleans(), max_size=12))
@settings(max_examples=100)
def test_any_result_is_read_on_to_its_end_however_often_it_is_cut_again(
    value: object, window: int, too_long: list[bool]
) -> None:
    reading = Reading(window)
    reading.look(value)
    assert all_read(reading, too_long) == (value if isinstance(value, str) else canonical_json(value))


def test_what_stands_behind_a_part_that_was_cut_again_is_no_repetition() -> None:
    reading, value = Reading(1_700), ["x" * 90] * 21
    reading.look(value)
    assert all_read(reading, [False, True]) == canonical_json(value)


def test_the_tool_is_there_only_while_a_result_is_cut() -> None:
    reading = Reading(4_096)
    reading.look("short")
    assert not reading.is_offered
    reading.look(list(range(600)), "measure")
    assert reading.is_offered
    assert "result_more" not in AGENT.tool_names
    while reading.state.kept[-1].at < reading.state.kept[-1].end:
        reading.more()
    assert not reading.is_offered
    reading.call("result_more")
    assert reading.shown == '{"refused":"no tool result_more; look, measure, pay"}'


def test_an_agent_without_a_place_for_results_is_never_offered_it() -> None:
    reading = Reading()
    reading.call("look")
    reading.take(ToolReturned(0, reading.last.effect_id, canonical_json(list(range(600)))))
    assert reading.shown.endswith("elements left out)")
    assert not reading.is_offered


def test_where_no_part_fits_into_the_turn_any_more_reading_on_waits_for_the_next() -> None:
    reading = Reading()
    reading.look(list(range(2_000)))
    while reading.is_offered:
        reading.more()
    place = reading.state.kept
    reading.call("result_more")
    assert reading.state.kept == place
    reading.writes("So far.")
    reading.take(UserSaid(0, "Read on."))
    assert reading.is_offered


def test_a_place_or_a_result_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    reading = Reading()
    reading.look("a word " * 600)
    reading.call("result_more", result=99)
    assert reading.shown == '{"refused":"nothing is left to read on in result 99; there is more of: 2"}'
    reading.call("result_more", at=5_000)
    assert reading.shown == '{"refused":"result 2 ends at 4200, and at is 5000"}'


def test_of_several_results_the_last_is_read_on_or_the_one_that_is_named() -> None:
    reading = Reading(8_000)
    reading.look(list(range(3_000)))
    reading.look("a word " * 1_000, "measure")
    reading.more()
    assert reading.shown.startswith('"a word')
    reading.more(result=2)
    assert reading.shown.startswith("[")
    reading.more(result=2, at=2)
    assert reading.shown.startswith(",1,2,3")


def test_the_same_part_is_not_read_twice_in_a_turn() -> None:
    reading = Reading(8_000)
    reading.look(list(range(3_000)))
    reading.more(at=0, result=2)
    reading.call("result_more", at=0, result=2)
    assert "already called" in reading.shown


def test_what_is_not_kept_any_more_is_said_and_not_offered_again() -> None:
    reading = Reading()
    reading.look(list(range(600)))
    reading.call("result_more")
    reading.take(ToolReturned(0, reading.last.effect_id, "null", unshown="the rest of it is not kept any more"))
    assert reading.shown == '{"done":"its result cannot be shown, because the rest of it is not kept any more"}'
    assert not reading.is_offered


def test_a_tool_cannot_be_called_like_the_one_that_reads_on() -> None:
    @tool(idempotent=True, name="result_more")
    def other() -> str:
        """Read."""
        return ""

    with pytest.raises(ConfigError, match="agent a has a tool called result_more, which reads on in results"):
        Agent("a", tools=(other,))


@pytest.mark.parametrize(("name", "may_pay"), [("look", False), ("measure", True)])
def test_what_is_read_on_is_trusted_as_the_tool_that_returned_it(name: str, may_pay: bool) -> None:
    reading = Reading(8_000, dataclasses.replace(AGENT, policies=(no_effect_after_untrusted(),)))
    reading.look(list(range(3_000)), name)
    reading.more()
    assert isinstance(reading.call("pay", euros=1)[-1], CallTool) == may_pay


def test_a_guard_sees_the_part_as_the_tool_s_own_result_without_arguments() -> None:
    reading = Reading()
    reading.look(list(range(600)))
    reading.call("result_more")
    kind, call = what_happened(reading.state, ToolReturned(0, reading.last.effect_id, '"1,2"', kept=3))
    assert call is not None
    assert (kind, call.tool, call.arguments) == ("returned", "look", "{}")
