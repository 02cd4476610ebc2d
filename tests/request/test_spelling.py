"""Spelling: a slip is read as the word that is meant, and nothing else is touched."""

from __future__ import annotations

from typing import Literal

import pytest

from edgeagent.core.agent import tool
from edgeagent.request.plan import plan
from edgeagent.request.said import said_of
from edgeagent.request.spelling import meant_by
from edgeagent.request.tools import Tools

WORDS = frozenset(("shutter", "close", "bedroom", "quiet", "temperature"))


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("clsoe", "close"),
        ("shuter", "shutter"),
        ("bedrooom", "bedroom"),
        ("temparature", "temperature"),
        ("Clsoe", "close"),
    ],
)
def test_a_slip_is_the_word_that_is_meant(word, meant):
    assert meant_by(word, WORDS) == meant


@pytest.mark.parametrize("word", ["close", "quite", "clos", "cls", "CLSOE", "cl0se", "clothe", "shelter"])
def test_a_word_that_is_known_or_that_people_write_or_is_too_far_is_left(word):
    assert meant_by(word, WORDS) is None


def test_what_two_words_may_be_is_left():
    assert meant_by("starter", frozenset(("started", "startled", "starters"))) is None


@tool(idempotent=True)
def close_shutter(room: Literal["bedroom", "office"]) -> str:
    """Close the shutter of a room."""
    return ""


@tool(idempotent=False)
def write_note(text: str) -> str:
    """Write a note."""
    return ""


TOOLS = Tools.of([close_shutter, write_note])


def test_an_order_with_slips_is_done():
    (call,) = plan("clsoe teh shuttre of the bedrom", TOOLS, needed=-99.0).calls
    assert call.tools == ("close_shutter",)
    assert [text for _, _, text in call.evidence.narrowed] == ['{"enum":["bedroom"]}']


def test_a_text_is_taken_as_it_was_spelled():
    (call,) = plan('Write the note "clsoe the shuttre"', TOOLS, needed=-99.0).calls
    assert [text for _, _, text in call.evidence.narrowed] == ['{"enum":["clsoe the shuttre"]}']


def test_addresses_and_names_are_left():
    said = "Write a note to clsoe@shuttre.example and Clsoe_1"
    assert said_of(said, words=TOOLS.lexicon.spelled) == said
