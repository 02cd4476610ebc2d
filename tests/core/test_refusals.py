"""Refusals are read again as they were written, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from edgeagent.core.refusals import refusal_in, refusal_text


@pytest.mark.parametrize("because", ["", "no", 'a "quoted" \n one', "Zürich", "\ud835"])
def test_a_refusal_is_read_as_it_was_written(because: str) -> None:
    assert refusal_in(refusal_text(because)) == because.replace("\ud835", "\ufffd")


NONE = ["", "null", '{"refused":', '{"refused":"a… (3 of 4 characters left out)', '{"error":"x"}', "[]"]


@pytest.mark.parametrize("answer", NONE)
def test_what_is_none_is_not_taken_for_one(answer: str) -> None:
    assert refusal_in(answer) == ""
