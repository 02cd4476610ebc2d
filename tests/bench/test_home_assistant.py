"""Sentences for Home Assistant as cases. Skipped where their package was never fetched, or hassil is not there."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("llama_cpp")
pytest.importorskip("hassil")

from bench.accuracy.cases import cases_of, is_set
from bench.accuracy.home_assistant import AREAS, COMBINATIONS, LANGUAGES, NAMES, house
from bench.accuracy.judge import is_right
from bench.accuracy.packages import cached
from edgeagent.core.values import ToolCall

needs_sentences = pytest.mark.skipif(cached("ha") is None, reason="home-assistant-intents was never fetched")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_language_has_a_house_with_the_same_rooms_and_devices(lang):
    assert (len(AREAS[lang].split(", ")), len(NAMES[lang].split(", "))) == (4, 7)
    assert is_set(f"ha:{lang}")
    assert list(house(lang).tool_names) == list(COMBINATIONS)


def test_another_language_is_no_set():
    assert not is_set("ha:tlh")


@needs_sentences
@pytest.mark.long
@pytest.mark.parametrize("lang", ["en", "pl"])
def test_a_hundred_sentences_are_reported_each_right_when_called_as_hassil_understands_it(lang):
    cases = cases_of(f"ha:{lang}", "report")
    assert len({case.request for case in cases}) == 100
    assert len(Counter(case.group for case in cases)) == len(COMBINATIONS)
    for case in cases:
        assert is_right(case, ToolCall(case.wanted[0].tool, dict(case.wanted[0].arguments)))


@needs_sentences
@pytest.mark.long
def test_the_same_sentences_are_drawn_every_time():
    once, again = cases_of("ha:fr", "fit", 20), cases_of("ha:fr", "fit", 20)
    assert [case.request for case in once] == [case.request for case in again]
    assert not {case.id for case in once} & {case.id for case in cases_of("ha:fr", "report")}


@needs_sentences
@pytest.mark.long
def test_minutes_may_be_told_in_hours():
    cases = [case for case in cases_of("ha:nl", "all") if len(case.asked.accept) > 1]
    assert cases
    for case in cases:
        assert all(is_right(case, ToolCall(way[0].tool, dict(way[0].arguments))) for way in case.asked.accept)
