"""Results within a share of the window: cut where a part ends, told how much is missing; no turn fails for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import AskModel
from edgeagent.core.events import ModelAnswered, ModelFailed, SessionStarted, ToolReturned, UserSaid
from edgeagent.core.results import cut, told
from edgeagent.core.state import State
from edgeagent.core.step import step
from edgeagent.core.values import Usage, canonical_json


@pytest.mark.parametrize(
    ("value", "bytes_max", "text"),
    [
        ([1.5, 2.5, 3.5, 4.5], 9, "[1.5,2.5]… (2 of 4 elements left out)"),
        ([{"n": 1}, {"n": 2}], 10, '[{"n":1}]… (1 of 2 elements left out)'),
        ("one line\nanother line", 16, '"one line\\n"… (12 of 21 characters left out)'),
        ("some words more", 9, '"some "… (10 of 15 characters left out)'),
        ({"a": 1, "b": 2}, 9, '{"a":1,… (6 of 13 characters left out)'),
        (["x" * 50], 10, '["xxxxxxxx… (44 of 54 characters left out)'),
        ("नमस्ते दुनिया", 30, '"नमस्ते "… (6 of 13 characters left out)'),
        ([1, 2, 3], 7, "[1,2,3]"),
        ([1, 2, 3], 0, "… (7 of 7 characters left out)"),
    ],
)
def test_a_result_is_cut_where_a_part_ends_and_says_what_is_missing(value: object, bytes_max: int, text: str) -> None:
    assert cut(canonical_json(value), bytes_max) == text


def test_what_was_cut_is_cut_again_and_still_says_how_much_there_was() -> None:
    once = cut(canonical_json(list(range(1000))), 100)
    assert cut(once, 20) == "[0,1,2,3,4,5,6,7,8]… (991 of 1000 elements left out)"
    assert cut(once, 0) == "[]… (1000 of 1000 elements left out)"


def test_of_a_result_that_was_not_recorded_whole_the_note_counts_all_of_it() -> None:
    assert cut(told("[0,1,2]", 5_000), 100) == "[0,1,2]… (4997 of 5000 elements left out)"
    assert cut(told('"ab"', 5_000), 100) == '"ab"… (4998 of 5000 characters left out)'
    assert cut(told("[0,1,2]", 5_000), 4) == "[0]… (4999 of 5000 elements left out)"


@pytest.mark.parametrize("value", ["", "[1", "7", "null", "[" * 5_000, '{"a":1}', "NaN"])
def test_the_beginning_of_a_result_that_is_neither_list_nor_text_is_told_as_characters(value: str) -> None:
    assert told(value, 9_000) == f"{value}… ({9_000 - len(value)} of 9000 characters left out)"


ANY = st.recursive(
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | st.text("é\n, "),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=4), inner, max_size=6),
    max_leaves=60,
)


@given(ANY, st.integers(0, 200), st.integers(0, 200))
def test_any_result_keeps_to_its_bytes_whenever_it_is_cut(value: object, first: int, second: int) -> None:
    whole, least = canonical_json(value), min(first, second)
    text = cut(cut(whole, max(first, second)), least)
    body = text if text == whole else text[: text.rindex("… (")]
    assert len(body.encode()) <= max(least, len("[]"))


@tool(idempotent=True)
def look() -> object:
    """Look."""


AGENT = Agent("reader", tools=(look,), dialect=Plain())
LOOK = '{"name": "look", "arguments": {}}'
KINDS = {
    "floats": [n / 7 for n in range(6_000)],
    "hindi": "नमस्ते दुनिया " * 1_500,
    "lines": "soil 31.5\n" * 6_000,
    "one word": "x" * 60_000,
    "rows": [{"id": n, "name": f"row {n}"} for n in range(1_500)],
    "nested": {"rows": [[n] * 3 for n in range(3_000)]},
    "small": 31.5,
    "digits": "1234567890" * 6_000,
}


def reads(ask: AskModel, window: int) -> ModelAnswered | ModelFailed:
    """A model of which every byte is a token, as a byte tokenizer's: the worst there is."""
    tokens = AGENT.prompt_bytes + sum(len(m.text.encode()) + 8 for m in ask.messages)
    if tokens + ask.max_tokens > window:
        return ModelFailed(0, ask.effect_id, "context_full", f"{tokens} tokens", tokens)
    return ModelAnswered(0, ask.effect_id, "Read.", "end", Usage(tokens, tokens, 5))


@pytest.mark.parametrize("window", [1_024, 2_048])
@pytest.mark.parametrize("kind", KINDS)
def test_no_turn_fails_because_a_result_is_long(kind: str, window: int) -> None:
    state, _ = step(AGENT, State(), SessionStarted(0, "reader", "", 1, "plain", window, "0"))
    state, (ask,) = step(AGENT, state, UserSaid(0, "Look."))
    state, (call,) = step(AGENT, state, ModelAnswered(0, ask.effect_id, LOOK, "end", Usage(10, 10, 10)))
    state, (ask,) = step(AGENT, state, ToolReturned(0, call.effect_id, canonical_json(KINDS[kind])))
    for _ in range(4):
        state, effects = step(AGENT, state, reads(ask, window))
        if not isinstance(effects[-1], AskModel):
            break
        ask = effects[-1]
    assert state.outcome is not None
    assert state.outcome.kind == "answered"
