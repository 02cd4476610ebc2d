"""Answers in plain words: what a tool returned, and nothing else."""

from __future__ import annotations

import pytest

from edgeagent.core.agent import tool
from edgeagent.request.answers import cannot, told
from edgeagent.request.tongue import FILES, tongue

ENGLISH = tongue("en").sentences


@tool(idempotent=True, say="{valve} is open for {seconds} s")
def open_valve(valve: str, seconds: int | None = None) -> None:
    """Open a valve."""


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("null", "Done: set valve (valve north, wide open yes)."),
        ('"closed"', "closed"),
        ('" "', "set valve:  "),
        ("21.5", "set valve: 21.5"),
        ("true", "set valve: yes"),
        ('["ipad","xbox"]', "set valve: ipad, xbox"),
        ('{"down":94,"is_up":true}', "set valve: down: 94, is up: yes"),
        ('[{"a":1,"b":null},{"a":2,"b":[3,4]}]', "set valve:\na: 1, b: –\na: 2, b: 3, 4"),
        ("{}", "set valve: –"),
        ('{"error":"timeout: nobody answered"}', "set valve did not work: timeout: nobody answered"),
        ('{"refused":"a rule forbids it"}', "set valve was refused: a rule forbids it"),
        ("[1, 2, … (2 of 9 elements left out)", "[1, 2, … (2 of 9 elements left out)"),
    ],
)
def test_a_result_is_told_as_it_is(result, said):
    assert told(None, "set_valve", {"valve": "north", "wide_open": True}, result, ENGLISH) == said


def test_a_tool_may_say_it_in_its_authors_words():
    assert told(open_valve, "open_valve", {"valve": "north", "seconds": 30}, "null", ENGLISH) == (
        "north is open for 30 s"
    )


def test_an_argument_that_was_not_given_leaves_the_plain_words():
    assert told(open_valve, "open_valve", {"valve": "north"}, "null", ENGLISH) == "Done: open valve (valve north)."


def test_a_failure_is_never_told_in_the_authors_words_for_success():
    found = told(open_valve, "open_valve", {"valve": "north", "seconds": 3}, '{"error":"stuck"}', ENGLISH)
    assert found == "open valve did not work: stuck"


@pytest.mark.parametrize("name", FILES)
def test_every_language_has_its_words_for_it(name):
    sentences = tongue(name).sentences
    assert "open valve (valve x)" in told(None, "open_valve", {"valve": "x"}, "null", sentences)
    assert cannot([open_valve], sentences).startswith(sentences.no_tool)
    assert "open valve" in cannot([open_valve], sentences)


def test_a_say_that_is_no_text_is_refused_where_it_is_declared():
    with pytest.raises(Exception, match="tool f: say is 3; it must be a text"):

        @tool(idempotent=True, say=3)
        def f() -> None:
            """Do."""
