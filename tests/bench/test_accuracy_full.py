"""The whole accuracy table: which commands make it, and what is printed of their figures."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("llama_cpp")

from bench.accuracy.cases import Case, is_set
from bench.accuracy.full import BEGIN, END, JOBS, ROOT, Job, put_into, tables
from bench.accuracy.run import summaries
from bench.accuracy.tally import Answered, judged
from examples.greenhouse import agent

HALVES = {"bfcl:simple_python", "bfcl:multiple", "bfcl:parallel", "bfcl:live_simple", "bfcl:live_multiple"}


def option(job, name, rows_max=0):
    command = job.command(rows_max)
    return command[command.index(name) + 1]


def test_every_job_asks_sets_that_there_are_and_has_a_name_of_its_own():
    assert all(is_set(name) for job in JOBS for name in job.sets)
    assert len({job.name for job in JOBS}) == len(JOBS)


def test_smollm2_is_asked_every_row_that_is_reported():
    whole = {name for job in JOBS if job.model == "smollm2" and not job.rows for name in job.sets}
    assert whole >= HALVES | {"bfcl:irrelevance", "bfcl:live_irrelevance", "needle", "greenhouse"}


@pytest.mark.parametrize(("rows", "rows_max", "asked"), [(0, 0, "0"), (0, 10, "10"), (24, 0, "24"), (24, 10, "10")])
def test_a_look_asks_no_more_rows_than_it_says(rows, rows_max, asked):
    assert option(Job("a", "m", ("greenhouse",), rows), "--rows", rows_max) == asked


def test_both_sides_of_a_threshold_are_asked_by_the_same_job():
    for job in JOBS:
        assert not job.refusal or set(job.refusal.split("/")) <= set(job.sets)


ABOUT = {
    "model": "small.gguf",
    "model_bytes": 98_000_000,
    "memory_mb": 300,
    "window_tokens": 4096,
    "threads": 1,
    "machine": "x86_64",
    "edgeagent": "1",
    "libraries": {"numpy": "2"},
    "data": {"bfcl": "bfcl-eval 1"},
    "refusal": [],
}


def test_the_tables_stand_below_the_name_of_their_model(tmp_path):
    job, other = Job("one", "small", ("greenhouse",)), Job("two", "large", ("greenhouse",))
    results = {"ours": [judged(Case("none", "Hello.", agent), Answered((), "Hello."))]}
    (tmp_path / "one.json").write_text(json.dumps(ABOUT | {"results": summaries("greenhouse", results)}))
    text = tables([job, other], tmp_path)
    assert text.index("### small") < text.index("98 MB") < text.index("| greenhouse") < text.index("### large")


def test_a_page_keeps_what_stands_around_the_figures():
    assert put_into(f"before\n{BEGIN}old{END}\nafter", "new") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter"


def test_a_page_without_marks_is_not_written_into():
    with pytest.raises(ValueError, match="the page has no"):
        put_into("text", "new")


def test_the_page_in_the_repository_has_the_marks():
    page = (ROOT / "docs" / "models.md").read_text()
    assert put_into(page, "new") != page
