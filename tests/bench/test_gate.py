"""The gate itself: it passes what holds, and it can fail."""

from __future__ import annotations

import json

from bench.gate import BUDGETS, Budget, judge, read_budgets

BUDGET = {"step": Budget("step", 10, "us", "because")}


def test_a_figure_within_its_limit_holds():
    ((row,), unknown) = judge(BUDGET, {"step": 9.9})
    assert row.holds
    assert unknown == []


def test_a_regression_of_a_fifth_fails_and_is_named():
    ((row,), _) = judge(BUDGET, {"step": 9.9 * 1.2})
    assert not row.holds
    assert row.line().startswith("FAIL step")


def test_a_budget_that_was_not_measured_fails():
    ((row,), _) = judge(BUDGET, {})
    assert not row.holds
    assert "not measured" in row.line()


def test_a_figure_without_a_budget_is_reported():
    _, unknown = judge(BUDGET, {"step": 1, "new": 2})
    assert unknown == ["new"]


def test_every_budget_has_a_limit_a_unit_and_a_reason():
    assert all(b.unit and b.why for b in read_budgets().values())
    assert json.loads(BUDGETS.read_text())
