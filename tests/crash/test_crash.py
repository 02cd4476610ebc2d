"""Some of the crash cases on every test run; `make crash-test` runs all of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.crash.cases import groups  # the path above makes it importable

SHOWN = ("killed", "power cut", "heads")
"""What every test run shows; the rest waits for `make test-slow`."""

EVERY = {
    "cuts and tails": 5,
    "flipped bits": 5,
    "flipped bits before a cut": 10,
    "holes": 1,
    "two writers": 1,
    "resumed after a cut": 31,
    "killed": 9,
    "power cut": 7,
    "failing disk": 5,
    "full disk": 13,
    "caches": 25,
    "heads": 25,
    "program": 16,
}


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [name if name in SHOWN else pytest.param(name, marks=pytest.mark.deep) for name in EVERY]
)
def test_no_crash_loses_what_was_promised_or_repeats_what_must_not_be(name: str, tmp_path: Path) -> None:
    outcomes = list(groups(tmp_path, EVERY[name])[name]())
    assert outcomes
    assert [f"{text}: {wrong}" for text, wrong in outcomes if wrong] == []


def test_every_group_is_run(tmp_path: Path) -> None:
    assert set(groups(tmp_path)) == set(EVERY)
