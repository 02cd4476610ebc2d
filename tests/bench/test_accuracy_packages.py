"""The packages of the accuracy bench: what is theirs judges as they do. Skipped where they were never fetched."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace

import pytest

pytest.importorskip("llama_cpp")

from bench.accuracy import packages
from bench.accuracy.cases import BFCLS, Case, Wanted, bfcl_case, cases_of
from bench.accuracy.judge import is_right
from bench.accuracy.packages import PACKAGES, DataMissing, cached, package
from edgeagent.core.values import ToolCall
from examples.greenhouse import agent

needs_bfcl = pytest.mark.skipif(cached("bfcl") is None, reason="bfcl-eval was never fetched")
needs_needle = pytest.mark.skipif(cached("needle") is None, reason="cactus-needle was never fetched")

SQUARE = {
    "name": "math.square",
    "description": "Square a number.",
    "parameters": {
        "type": "dict",
        "properties": {"x": {"type": "integer"}, "y": {"type": "string"}},
        "required": ["x"],
    },
}


def row(category):
    return {"id": f"{category}_0", "question": [[{"role": "user", "content": "Square."}]], "function": [SQUARE]}


def square(x, **more):
    return ToolCall("math_square", {"x": x} | more)


@needs_bfcl
def test_bfcls_checker_judges_one_call():
    case = bfcl_case(row("simple_python"), [{"math.square": {"x": [3], "y": ["a", ""]}}])
    assert is_right(case, square(3))
    assert is_right(case, square(3, y="A"))
    assert not is_right(case, square(4))
    assert not is_right(case, square(3, y="b"))
    assert not is_right(case, square(3), square(3))


@needs_bfcl
def test_bfcls_checker_judges_several_calls_in_any_order():
    case = bfcl_case(row("parallel"), [{"math.square": {"x": [3]}}, {"math.square": {"x": [4]}}])
    assert is_right(case, square(4), square(3))
    assert not is_right(case, square(3))
    assert not is_right(case, square(3), square(3))


@needs_bfcl
@pytest.mark.parametrize("category", BFCLS)
def test_every_row_of_bfcl_is_a_case(category):
    cases = cases_of(f"bfcl:{category}", "all")
    assert len(cases) > 100
    assert all(bool(case.wanted) is ("irrelevance" not in category) for case in cases)


@needs_bfcl
def test_rows_that_are_fitted_on_are_never_reported():
    fit, report = ({case.id for case in cases_of("bfcl:multiple", part)} for part in ("fit", "report"))
    assert (len(fit), len(report), len(fit | report)) == (100, 100, 200)


@needs_needle
def test_needles_comparison_folds_letters_and_takes_no_argument_more():
    case = Case("one", "", agent, (Wanted("notify", {"to": ["Ann"], "n": [3]}),), "needle")
    assert is_right(case, ToolCall("notify", {"n": 3.0, "to": "ann"}))
    assert not is_right(case, ToolCall("notify", {"n": 3, "to": "ann", "more": None}))
    assert not is_right(case, ToolCall("notify", {"to": "ann"}))


@needs_needle
def test_needle_has_192_cases_in_six_groups():
    cases = cases_of("needle", "all")
    groups = {"positive", "missing", "irrelevant", "negation", "invalid", "parallel"}
    assert (len(cases), {case.group for case in cases}) == (192, groups)
    assert not any(case.wanted for case in cases if case.critical)
    assert all(len(case.wanted) == 2 for case in cases if case.group == "parallel")


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A cache without wheels."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    package.cache_clear()
    yield tmp_path / "edgeagent" / "accuracy"
    package.cache_clear()


def test_what_pip_cannot_fetch_in_time_is_told_with_the_remedy(elsewhere, monkeypatch):
    monkeypatch.setattr(packages, "FETCH_S_MAX", 0.01)
    with pytest.raises(DataMissing, match=r"needed once, from a package index"):
        package("bfcl")


def test_another_wheel_of_that_name_is_refused(elsewhere):
    elsewhere.mkdir(parents=True)
    (elsewhere / "bfcl_eval-2026.3.23-py3-none-any.whl").write_bytes(b"other")
    with pytest.raises(DataMissing, match=r"remove it"):
        package("bfcl")


def test_a_file_that_a_wheel_lacks_is_told(elsewhere, monkeypatch):
    elsewhere.mkdir(parents=True)
    wheel = elsewhere / "bfcl_eval-2026.3.23-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("other.json", "{}")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setitem(PACKAGES, "bfcl", replace(PACKAGES["bfcl"], sha256=digest))
    with pytest.raises(DataMissing, match=r"has no bfcl_eval/data/BFCL_v4_multiple.json"):
        cases_of("bfcl:multiple", "report")
