"""What is shipped of the fitting keeps its promises."""

from __future__ import annotations

import math

from edgeagent.request.calibration_weights import digest_of, fitted_for
from edgeagent.request.call_odds import MISSING


def test_nothing_that_speaks_for_a_call_counts_against_it():
    weights = fitted_for("").call.each
    assert weights.pop(MISSING)[0] < 0
    assert all(weight >= 0 for weight, _ in weights.values())


def test_it_says_what_it_was_fitted_on_and_that_no_reported_row_was_among_it():
    rows = fitted_for("").rows
    assert rows["part"] == "fit"
    assert sum(rows["sets"].values()) > 300
    assert "greenhouse" not in rows["sets"]


def test_a_model_that_nothing_was_fitted_for_is_weighed_like_the_first():
    assert fitted_for("unknown") is fitted_for("another")
    assert len(digest_of(fitted_for("unknown"))) == 16


def test_all_of_it_is_finite():
    fitted = fitted_for("")
    for each in (fitted.call, fitted.right):
        assert math.isfinite(each.weights.log_odds(dict.fromkeys(each.each, 1.0)))
