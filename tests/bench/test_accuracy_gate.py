"""The floor under accuracy: what fails, what passes, and what a floor is."""

from __future__ import annotations

import pytest

pytest.importorskip("llama_cpp")

from bench.accuracy import gate, packages
from bench.accuracy.cases import is_set
from bench.accuracy.gate import ALL, ROWS, floor_of, missed, read_floors, with_all
from edgeagent.errors import ExitCode

BEFORE = with_all({"a": (7, 8), "b": (8, 12)})


def test_a_floor_is_the_lower_end_of_the_interval():
    assert (floor_of(8, 8), floor_of(7, 8), floor_of(0, 8)) == (6, 5, 0)


def test_what_was_measured_passes_its_own_floor():
    assert missed(BEFORE, BEFORE) == []


def test_a_case_or_two_fewer_pass():
    assert missed(with_all({"a": (6, 8), "b": (7, 12)}), BEFORE) == []


def test_a_set_below_its_floor_is_named():
    told = missed(with_all({"a": (4, 8), "b": (11, 12)}), BEFORE)
    assert told == ["a: 4 of 8 right; 5 is the floor (7 were)"]


def test_sets_that_each_hold_may_fail_together():
    told = missed(with_all({"a": (5, 8), "b": (5, 12)}), BEFORE)
    assert [each.partition(":")[0] for each in told] == [ALL]


def test_other_rows_than_the_floors_do_not_pass():
    assert "measure anew" in missed(with_all({"a": (8, 9), "b": (8, 12)}), BEFORE)[0]


def test_a_set_without_a_floor_does_not_pass():
    assert "has no floor" in missed({**BEFORE, "c": (1, 1)}, BEFORE)[0]


def test_the_floors_in_the_repository_are_of_the_sets_that_are_asked():
    floors = read_floors()
    assert {name: rows for name, (_, rows) in floors.items()} == {**ROWS, ALL: sum(ROWS.values())}
    assert all(is_set(name) for name in ROWS)


@pytest.mark.parametrize(("arguments", "code"), [([], ExitCode.DONE), (["--data-must-be-there"], ExitCode.ERROR)])
def test_without_data_nothing_is_checked_and_that_is_said(tmp_path, monkeypatch, capsys, arguments, code):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(packages, "FETCH_S_MAX", 0.01)
    monkeypatch.setattr("sys.argv", ["gate", *arguments])
    packages.package.cache_clear()
    assert gate.main() == code
    assert "NOT CHECKED" in capsys.readouterr().err
    packages.package.cache_clear()
