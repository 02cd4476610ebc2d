"""Older formats: upgraded step by step, or refused by number."""

from __future__ import annotations

import pytest

from edgeagent.errors import TraceError
from edgeagent.trace.upgrade import FORMAT, check_format, upgraded

STEPS = {1: lambda event: [*event, "added"], 2: lambda event: [event[0] + 100, *event[1:]]}


def test_an_older_event_goes_through_every_step() -> None:
    assert upgraded([3, "x"], 1, ours=3, upgrades=STEPS) == [103, "x", "added"]
    assert upgraded([3, "x"], 2, ours=3, upgrades=STEPS) == [103, "x"]
    assert upgraded([3, "x"], 3, ours=3, upgrades=STEPS) == [3, "x"]


def test_a_newer_format_is_refused_by_number() -> None:
    with pytest.raises(TraceError, match=f"format {FORMAT + 1}"):
        check_format(FORMAT + 1)


def test_a_format_that_nothing_leads_from_is_refused_by_number() -> None:
    with pytest.raises(TraceError, match="no upgrade from format 2"):
        check_format(1, ours=4, upgrades={1: STEPS[1], 3: STEPS[2]})


def test_there_is_a_step_from_every_older_format() -> None:
    for found in range(1, FORMAT + 1):
        check_format(found)
