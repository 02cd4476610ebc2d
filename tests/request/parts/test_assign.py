"""What belongs together when pieces of a request are dealt out?"""

from __future__ import annotations

from itertools import pairwise, permutations

from hypothesis import given
from hypothesis import strategies as st

from edgeagent.request.parts.assign import LEAD_MAX, ORDER_BONUS, Candidate, deal, dealt


def piece(place, weight=0.0):
    return Candidate(place, 2 * place, 2 * place + 1, weight)


def test_the_order_of_the_request_decides_where_nothing_else_does():
    row = [piece(0), piece(1), piece(2)]
    assert deal([row, row, row]) == (0, 1, 2)


def test_weights_overrule_the_order():
    assert deal([[piece(0), piece(1, 5.0)], [piece(0), piece(1)]]) == (1, 0)


def test_a_piece_is_given_twice_only_where_there_is_no_other():
    assert deal([[piece(0, 9.0), piece(1)], [piece(0, 9.0), piece(1)]]) in ((0, 1), (1, 0))
    assert deal([[piece(0)], [piece(0)]]) == (0, 0)


def test_nothing_is_dealt_to_nobody():
    assert deal([]) == ()


weights = st.lists(st.lists(st.floats(-9, 9), min_size=4, max_size=4), min_size=1, max_size=4)


@given(weights)
def test_a_deal_is_a_permutation_while_there_are_enough_pieces(rows):
    dealt = deal([[piece(place, weight) for place, weight in enumerate(row)] for row in rows])
    assert len(set(dealt)) == len(rows)


@given(weights)
def test_of_all_permutations_the_best_is_dealt(rows):
    def worth(places):
        in_order = sum(one < other for one, other in pairwise(places))
        return sum(row[place] for row, place in zip(rows, places, strict=True)) + ORDER_BONUS * in_order

    dealt = deal([[piece(place, weight) for place, weight in enumerate(row)] for row in rows])
    best = max(worth(places) for places in permutations(range(4), len(rows)))
    assert abs(worth(dealt) - best) < 1e-6


def test_what_is_dealt_tells_by_how_much_it_leads():
    found = dealt({"a": [piece(0, 3.0), piece(1, 1.0)], "b": [piece(2)]})
    assert (found["a"].value, found["a"].lead) == (0, 2.0)
    assert found["b"].lead == LEAD_MAX


def test_the_same_value_said_twice_is_no_rival():
    twice = [Candidate("north", 0, 5, 1.0), Candidate("north", 9, 14, 1.0)]
    assert dealt({"a": twice})["a"].lead == LEAD_MAX
