"""Which parts of a request may a text be?"""

from __future__ import annotations

import pytest

from edgeagent.request.parts.dates import whens_in
from edgeagent.request.parts.declared import arguments_of
from edgeagent.request.parts.text_candidates import PARTS_KEPT, text_candidates
from edgeagent.request.parts.texts import parts_of
from edgeagent.request.parts.words import Words


def best(name, request, description="", others=()):
    schemas = {name: {"type": "string", "description": description}} | {other: {"type": "string"} for other in others}
    said = Words.of(request)
    argument = arguments_of({"properties": schemas})[name]
    return text_candidates(argument, said, parts_of(said, whens_in(request)), frozenset())


@pytest.mark.parametrize(
    ("name", "request_text", "part"),
    [
        ("city", "Show me the weather in Porto Alegre please.", "Porto Alegre"),
        ("origin", "A train from Bergen to Oslo.", "Bergen"),
        ("destination", "A train from Bergen to Oslo.", "Oslo"),
        ("country", "Who lives in Lyon, France?", "France"),
        ("museum", "When does the Museum of Modern Art open?", "Museum of Modern Art"),
        ("file_path", "Delete /var/log/old.txt now.", "/var/log/old.txt"),
        ("order_id", "What became of order ZK-4411?", "ZK-4411"),
        ("title", "Lend me the book 'Small Gods' by Pratchett.", "Small Gods"),
        ("message", "Tell the guard that the gate is open.", "the gate is open"),
        ("start_time", "Book a room for Monday at 9am in Lund.", "Monday at 9am"),
        ("formula", "Simplify x^2 + 2x + 1 for me.", "x^2 + 2x + 1"),
    ],
)
def test_the_best_part_is_the_one_that_is_said_to_be_it(name, request_text, part):
    assert best(name, request_text)[0].value == part


def test_an_example_of_the_description_is_what_is_meant():
    found = best("size", "One large tea with cold milk.", "How much, e.g. small, medium, large.")
    assert found[0].value == "large"


def test_every_part_stands_in_the_request_and_there_are_not_too_many():
    request = "Let the engineers in Basel, Ghent and Turin know by Friday that the pump of line 7 leaks again."
    found = best("place", request, others=("message",))
    assert len(found) <= PARTS_KEPT
    assert all(request[each.begin : each.end] == each.value for each in found)


def test_a_request_without_words_has_no_parts():
    assert best("city", "?!") == best("city", "") == []


@pytest.mark.parametrize("request_text", ["Play something for me.", "Play whatever you think I like.", "Play it."])
def test_words_that_name_nothing_are_no_text(request_text):
    assert best("song", request_text) == []


def test_what_only_repeats_the_tool_is_no_text():
    schema = {"properties": {"label": {"type": "string"}}, "required": ["label"]}
    said = Words.of("Start a timer.")
    argument = arguments_of(schema)["label"]
    assert text_candidates(argument, said, parts_of(said), frozenset(("start", "timer"))) == []


def test_an_only_text_says_as_much_as_it_can():
    said = Words.of("Log grilled salmon with rice.")
    argument = arguments_of({"properties": {"meal": {"type": "string"}}})["meal"]
    found = text_candidates(argument, said, parts_of(said), frozenset(("log",)), is_only=True)
    weights = {each.value: each.weight for each in found}
    assert weights["grilled salmon with rice"] > weights.get("salmon", -9.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("email", "bo@farm.example"), ("url", "https://farm.example/log"), ("ip", "10.0.0.7")],
)
def test_an_address_is_told_by_its_spelling(name, value):
    assert best(name, f"Send Bo at the farm the log of Friday, {value}, now.", others=("text",))[0].value == value
