"""Every row of the schema suite, by both engines: right, or refused aloud, or relaxed in the report; never wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.schema_suite import judge, main, respaced
from edgeagent.errors import ExitCode

SUITE = Path(__file__).parents[1] / "shape" / "data" / "schemas.json"
ROWS: list[dict[str, Any]] = json.loads(SUITE.read_text())
BY_NAME = {row["name"]: row for row in ROWS}

# The only ones whose valid texts are not all written, each for a policy of docs/grammar.md.
POLICIES = {
    "an emoji in an enumeration": "escapes",
    "an accented letter in an enumeration": "escapes",
    "lengths count characters": "escapes",
    "an optional key before a required one": "key order",
}


@pytest.fixture
def model(engine: str, request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("smollm2")) if engine == "gbnf" else ""


@pytest.mark.parametrize("name", BY_NAME)
def test_a_row_is_never_wrong(name: str, engine: str, model: str) -> None:
    finding = judge(BY_NAME[name], engine, model)
    assert finding.verdict in ("right", "policy", "relaxed"), finding
    assert (finding.verdict == "policy") == (name in POLICIES), finding


def test_what_is_relaxed_is_what_the_report_says(engine: str, model: str) -> None:
    relaxed = {row["name"]: judge(row, engine, model).report for row in ROWS}
    assert "uniqueItems" in relaxed["items that must differ"][0]
    assert relaxed["an integer keeps both bounds"] == []


def test_the_names_of_the_rows_are_all_different() -> None:
    assert len(BY_NAME) == len(ROWS)


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ('{"a":1,"b":[1,2]}', '{"a": 1, "b": [1, 2]}'),
        ('{ "a" : "x,y:z" }', '{"a": "x,y:z"}'),
        ("1 ", "1 "),
        ('"a', '"a'),
        ('"a\nb"', '"a\nb"'),
        ("1.0", "1.0"),
    ],
)
def test_only_the_white_space_between_tokens_is_respelt(text: str, ours: str) -> None:
    assert respaced(text) == ours


def test_the_command_prints_the_verdicts_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(SUITE), "--engine", "llguidance", "--json"]) == ExitCode.DONE
    printed = json.loads(capsys.readouterr().out)
    assert printed["engine"] == "llguidance"
    assert sum(printed["counts"].values()) == len(ROWS) == len(printed["rows"])


def test_a_wrong_row_ends_the_command_with_check_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"name": "claims too much", "schema": {"type": "integer"}, "valid": ["true"], "invalid": []}
    (tmp_path / "suite.json").write_text(json.dumps([row]))
    assert main([str(tmp_path / "suite.json")]) == ExitCode.CHECK_FAILED
    assert "wrong    claims too much" in capsys.readouterr().out


def test_a_refused_row_names_the_field(engine: str, model: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=x)"}}}
    finding = judge({"name": "n", "schema": schema, "valid": [], "invalid": []}, engine, model)
    assert finding.verdict == "refused"
    assert "field a" in finding.report[0]
