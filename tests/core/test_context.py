"""What of the conversation fits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgeagent.core.context import DENSITY_MAX, density_from, exchange_of, fit, tokens_of
from edgeagent.core.values import Message

exchanges = st.lists(
    st.integers(0, 400).map(lambda n: exchange_of((Message("user", "x" * n), Message("assistant", "y" * n)))),
    max_size=12,
).map(tuple)


@given(exchanges, st.integers(0, 3_000))
def test_what_is_kept_is_the_newest_and_fits(past, room):
    kept = fit(past, room, 34)
    assert kept == past[len(past) - len(kept) :]
    assert tokens_of([m for e in kept for m in e.messages], 34) <= room


@given(exchanges)
def test_nothing_is_dropped_while_everything_fits(past):
    room = sum(tokens_of(e.messages, 34) + 1 for e in past)
    assert fit(past, room, 34) == past


def test_a_drop_makes_room_for_the_turns_to_come():
    past = tuple(exchange_of((Message("user", "x" * 100),)) for _ in range(10))
    each = tokens_of(past[0].messages, 34)
    assert len(fit(past, each * 9, 34)) == 5


def test_what_the_model_wrote_is_counted_exactly():
    assert tokens_of([Message("assistant", "long " * 100, token_ids=bytes(3 * 7))], 34) == 7 + 8


def test_the_density_the_model_counted_is_taken_with_a_margin_and_a_bound():
    assert density_from(50, 100) == 55
    assert density_from(10_000, 1) == DENSITY_MAX
