"""Which lists does a request have?"""

from __future__ import annotations

import pytest

from edgeagent.request.parts.declared import arguments_of
from edgeagent.request.parts.lists import list_candidates
from edgeagent.request.parts.numbers import mentions_in
from edgeagent.request.parts.words import Words


def lists(request, items, name="entries", description=""):
    schema = {"type": "array", "items": items, "description": description}
    argument = arguments_of({"properties": {name: schema}})[name]
    return [each.value for each in list_candidates(argument, Words.of(request), mentions_in(request))]


@pytest.mark.parametrize(
    ("said", "items", "found"),
    [
        ("Add 4, 8 and 15.", {"type": "integer"}, [4, 8, 15]),
        ("Clean the 2nd, 3rd and 5th floor.", {"type": "integer"}, [2, 3, 5]),
        ("The mean of [1, 2, 4].", {"type": "number"}, [1.0, 2.0, 4.0]),
        ("From the point (3.5, -2).", {"type": "number"}, [3.5, -2.0]),
        ("Solve [[1, 2], [3, 4]].", {"type": "array", "items": {"type": "integer"}}, [[1, 2], [3, 4]]),
        ("Buy apples, pears and plums.", {"type": "string"}, ["apples", "pears", "plums"]),
        ("Sort by 'age', 'name' and 'size'.", {"type": "string"}, ["age", "name", "size"]),
        ("Invite our colleagues Ada, Bo and Cy.", {"type": "string"}, ["Ada", "Bo", "Cy"]),
        ("Warm and dry rooms.", {"type": "string", "enum": ["dry", "warm", "cold"]}, ["warm", "dry"]),
    ],
)
def test_what_is_told_in_a_row_is_a_list(said, items, found):
    assert found in lists(said, items)


def test_no_list_is_outside_the_schema():
    assert [4.5, 8] not in lists("Add 4.5 and 8.", {"type": "integer"})


def test_a_list_whose_argument_is_named_goes_first():
    found = lists("Colors red and blue for sizes 3 and 4.", {"type": "string"}, name="colors")
    assert found[0] == ["red", "blue"]
