"""Which numbers does a request have, and whose is each?"""

from __future__ import annotations

from decimal import Decimal

import pytest

from edgeagent.request.parts.declared import arguments_of
from edgeagent.request.parts.numbers import MISFIT, OUTSIDE, mentions_in, number_candidates


def values(request):
    return [mention.value for mention in mentions_in(request) if not mention.is_weak]


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("Move 3 boxes.", 3),
        ("Move three boxes.", 3),
        ("Wait -4.5 s.", Decimal("-4.5")),
        ("It is minus 4 outside.", -4),
        ("Pay 1,250 euros.", 1250),
        ("Give 2 million.", 2_000_000),
        ("Give $1.5M.", 1_500_000),
        ("A charge of 2e-9 C.", Decimal("2e-9")),
        ("Heat it to 350K.", 350),
        ("It weighs 12kg.", 12),
        ("Set a = 7.", 7),
        ("Take one spoon.", 1),
        ("Wait a minute.", 1),
    ],
)
def test_a_number_is_read_as_it_is_meant(said, number):
    assert values(said) == [number]


@pytest.mark.parametrize("said", ["Derive 4x^2 + 3x - 5.", "Plot 2*y.", "Read the CO2.", "This one.", "A dog."])
def test_what_is_no_number_of_its_own_is_none(said):
    assert values(said) == []


def candidates(argument, request, **properties):
    arguments = arguments_of({"properties": properties, "required": list(properties)})
    found = number_candidates(arguments[argument], mentions_in(request))
    return [each.value for each in found if each.why != OUTSIDE]


def test_a_number_is_given_in_the_unit_that_the_argument_declares():
    pole = {"type": "number", "description": "How long the pole is, in meters."}
    assert candidates("length", "A pole of 250 cm.", length=pole) == [2.5]
    assert candidates("minutes", "It takes 2 hours.", minutes={"type": "integer"}) == [120]


def test_a_number_in_a_unit_of_another_kind_is_no_candidate():
    assert candidates("minutes", "It is 20 degrees for 5 minutes.", minutes={"type": "integer"}) == [5]


def test_a_percentage_is_a_part_of_one_only_where_that_is_meant():
    assert candidates("share", "Take 20%.", share={"type": "number"}) == [0.2]
    assert candidates("share", "Take 20%.", share={"type": "number", "description": "As a percentage."}) == [20]
    assert candidates("share", "Take 20%.", share={"type": "integer"}) == [20]


def test_what_the_schema_does_not_admit_is_told_apart_and_weighs_less():
    bounded = {"type": "integer", "minimum": 1, "maximum": 9}
    assert candidates("level", "Of 12, 7, 3.5 and 0.", level=bounded) == [7]
    arguments = arguments_of({"properties": {"level": bounded}})
    weights = {each.value: each.weight for each in number_candidates(arguments["level"], mentions_in("Of 12 or of 7"))}
    assert weights[12] == weights[7] - MISFIT
