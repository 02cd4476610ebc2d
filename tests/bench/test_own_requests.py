"""Our own requests to device agents: whole, in their half, and of enough kinds and languages."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("llama_cpp")

from bench.accuracy.__main__ import main
from bench.accuracy.cases import accepted_cases, cases_of, is_set
from bench.accuracy.requests import files_of, half_of, read_file

CASES = [case for half in ("seen", "unseen") for case in accepted_cases(files_of(half))]
"""Reading them checks that each accepted call is one that its tool takes."""

KINDS = """
    direct polite urgent typo paraphrase indirect option opposite numword unit time date relative text list two except
    followup negation prohibition question nowrite missing bounds smalltalk unrelated
"""
"""The categories that the README explains."""


@pytest.mark.parametrize("half", ["seen", "unseen"])
def test_an_agent_is_in_the_half_that_its_name_says(half):
    assert {half_of(file.stem) for file in files_of(half)} <= {half}


def test_no_request_stands_there_twice():
    assert [text for text, count in Counter((c.agent.name, c.request) for c in CASES).items() if count > 1] == []


def test_agents_have_four_to_nine_tools():
    assert {len(case.agent.tools) for case in CASES} <= set(range(4, 10))


def test_opposites_are_tools_or_options_of_their_agent():
    for case in CASES:
        options = set(str([tool.parameters.schema for tool in case.agent.tools]).split("'"))
        assert {name for pair in case.asked.opposites for name in pair} <= {*case.agent.tool_names, *options}


def test_a_language_and_a_half_choose_their_rows():
    german = cases_of("own:de", "report")
    assert {case.asked.lang for case in german} == {"de"}
    assert {half_of(case.id.rpartition("-")[0]) for case in german} == {"seen"}


def test_other_is_every_language_but_english():
    languages = Counter(case.asked.lang for case in cases_of("own:other", "report"))
    assert languages.keys() == {"de", "es", "fr"}
    assert len(cases_of("own:all", "report")) == languages.total() + len(cases_of("own:en", "report"))


@pytest.mark.parametrize("name", ["own:en", "own:all", "own:fr:unseen", "own:es:seen"])
def test_halves_and_languages_are_sets(name):
    assert is_set(name)


@pytest.mark.parametrize("name", ["own", "own:", "own:xx", "own:en:other"])
def test_what_is_no_half_is_told(name):
    assert not is_set(name)


def test_what_was_wrong_in_the_unseen_half_is_not_shown(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["bench.accuracy", "--set", "own:en:unseen", "--wrong"])
    with pytest.raises(SystemExit):
        main()
    assert "only totals are shown" in capsys.readouterr().err


AGENT = '''
from edgeagent import Agent, tool

@tool(idempotent=True)
def water(bed: int) -> str:
    """Water a bed."""
    return "wet"

agent = Agent(name="garden", system="", tools=[water])
'''


@pytest.fixture
def rows_of(tmp_path):
    """The requests of a file for a small agent, with such a row."""

    def read(row):
        file = tmp_path / "garden.toml"
        file.write_text(f"source = '''{AGENT}'''\nrows = [{row}]", encoding="utf-8")
        return next(read_file(file))[1]

    return read


@pytest.mark.parametrize(
    "row",
    [
        '["direct", "en", "Water bed 2", "water(bed=\'two\')"]',
        '["direct", "en", "Water bed 2", "mow()"]',
        '["direct", "en", "Water bed 2", "water(2)"]',
        '["direct", "en", "Water bed 2", "water(bed=2"]',
        '["direct", "en", "Water bed 2"]',
        '["direct", "en", "Water bed 2", "water(bed=2)", [["Water bed 1", "water(bed=\'one\')"]]]',
    ],
)
def test_a_row_that_is_not_understood_is_named(rows_of, row):
    with pytest.raises(ValueError, match=r"garden-00: .*Water bed 2.* is not understood"):
        rows_of(row)


def test_ways_calls_and_what_was_said_before_are_read(rows_of):
    (asked,) = rows_of('["two", "en", "Both", "water(bed=1) + water(bed=2) | none", [["Hi", "water(bed=3)"]]]')
    assert [[call.arguments for call in way] for way in asked.accept] == [[{"bed": 1}, {"bed": 2}], []]
    assert (asked.want, asked.before[0][0], asked.before[0][1][0].arguments) == ("none", "Hi", {"bed": 3})


def test_each_half_has_twelve_agents_and_every_language_and_kind():
    for half in ("seen", "unseen"):
        cases = list(accepted_cases(files_of(half)))
        assert len(files_of(half)) == 12
        languages = Counter(case.asked.lang for case in cases)
        assert languages["en"] >= 150
        assert min(languages[lang] for lang in ("de", "es", "fr")) >= 50
        assert {"call", "ask", "none"} == {case.asked.want for case in cases}
    assert len(CASES) >= 480
    assert {case.group for case in CASES} == set(KINDS.split())


@pytest.mark.parametrize(("beside", "least"), [("practice", 9), ("check", 4)])
def test_the_agents_to_practise_on_and_to_check_with_are_read_and_in_no_half(beside, least):
    names = {file.stem for file in files_of(beside)}
    assert len({case.agent.name for case in accepted_cases(files_of(beside))}) == len(names) >= least
    assert not names & {file.stem for half in ("seen", "unseen") for file in files_of(half)}
