"""Requests in other languages: the laws of `test_harm.py` hold in each of them, and plain orders are done.

A new language adds a file of requests to `languages/`; that is its test.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import tomllib
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

import pytest
from msgspec import Meta

from edgeagent.core.agent import LANGUAGES, tool
from edgeagent.errors import ConfigError
from edgeagent.request.plan import Before, plan
from edgeagent.request.said import said_of
from edgeagent.request.tongue import FILES, tongue, tongue_from, tongue_of
from edgeagent.request.tools import Tools


@tool(idempotent=True)
def open_valve(valve: Literal["north", "south"], minutes: Annotated[int, Meta(ge=1, le=120)] | None = None) -> str:
    """Open a valve, for some minutes or until it is closed."""
    return ""


@tool(idempotent=True)
def close_valve(valve: Literal["north", "south"]) -> str:
    """Close a valve."""
    return ""


@tool(idempotent=True)
def switch_light(room: Literal["kitchen", "garage"], on: bool) -> str:
    """Switch the light of a room on or off."""
    return ""


@tool(idempotent=True)
def set_oven(celsius: Annotated[int, Meta(ge=50, le=250)], minutes: Annotated[int, Meta(ge=1, le=300)]) -> str:
    """Heat the oven to a temperature in degrees Celsius for some minutes."""
    return ""


@tool(idempotent=True)
def set_alarm(at: dt.time) -> str:
    """Set the alarm clock to a time of day."""
    return ""


@tool(idempotent=False)
def send_message(text: str) -> str:
    """Send a message."""
    return ""


@tool(idempotent=True, effect="read")
def read_temperature() -> str:
    """Read the temperature of the water."""
    return ""


TOOLS = Tools.of([open_valve, close_valve, switch_light, set_oven, set_alarm, send_message, read_temperature])


class Eager:
    """A judge to which every request sounds like every tool, as a small model's may."""

    def request_behind(self, request, texts):
        return {name: -20.0 if name.startswith("(") else -2.0 for name in texts}

    def values_of(self, tool, argument, values):
        return [-1.0 for _ in values]


def acts(request):
    """The calls that change something, with or without a judge, however low the odds that are needed."""
    found = []
    for judge, needed in itertools.product((None, Eager()), (None, -99.0)):
        for call in plan(request, TOOLS, judge, needed=needed).calls:
            if any(TOOLS.by_name[name].effect != "read" for name in call.tools):
                found.append((call.tools, call.evidence.narrowed))
    return found


def arguments(request):
    (call,) = plan(request, TOOLS, needed=-99.0).calls
    values = {name: json.loads(text) for _, name, text in call.evidence.narrowed}
    return call.tools[0], {name: value["enum"][0] for name, value in values.items() if value}


ROWS = {
    name: tomllib.loads(Path(__file__).with_name("languages").joinpath(f"{file}.toml").read_text("utf-8"))
    for name, file in FILES.items()
}


def rows_of(table):
    return [(name, each) for name, rows in ROWS.items() for each in rows[table]]


@pytest.mark.parametrize(("language", "order"), rows_of("orders"))
def test_a_plain_order_is_done(language, order):
    request, name, wanted = order
    assert tongue_of(request).name == language
    assert arguments(request) == (name, wanted)


@pytest.mark.parametrize(("language", "request_"), rows_of("questions"))
def test_a_question_changes_nothing(language, request_):
    assert acts(request_) == []


@pytest.mark.parametrize(("language", "request_"), rows_of("denials"))
def test_what_is_denied_excepted_conditional_or_reported_is_never_done(language, request_):
    assert acts(request_) == []


@pytest.mark.parametrize(("language", "exception"), rows_of("exceptions"))
def test_what_an_exception_leaves_is_done_and_no_more(language, exception):
    request, left_alone = exception
    calls = plan(request, TOOLS, needed=-99.0).calls
    assert calls
    assert left_alone not in str([call.evidence.narrowed for call in calls])


@pytest.mark.parametrize(("language", "request_"), rows_of("small_talk"))
def test_small_talk_changes_nothing(language, request_):
    assert [names for names, _ in acts_of_words(request_)] == []


def acts_of_words(request):
    return [(call.tools, call) for call in plan(request, TOOLS).calls if TOOLS.by_name[call.tools[0]].effect != "read"]


@pytest.mark.parametrize(("language", "request_"), rows_of("unfit"))
def test_a_value_that_is_missing_or_does_not_fit_is_asked_for(language, request_):
    assert acts(request_) == []


# -- the file of a language ----------------------------------------------------------------------------------------

GERMAN = resources.files("edgeagent.request").joinpath("german.toml").read_text("utf-8")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('mark = ","', "", "missing required field `mark`"),
        ('mark = ","', 'mark = ","\nmarks = 1', "unknown field `marks`"),
        ("agrees = '''", "agrees = '''(", "german.toml: "),
        ('valve = "ventil', 'valve = "pumpe ventil', "'pumpe' stands for 'valve' and for 'pump'; leave one of them"),
        ('"stop", ""],', '"stop"],', "has 2 groups and 1 texts"),
    ],
)
def test_a_fault_in_the_file_is_an_error_that_names_it(old, new, fault):
    assert old in GERMAN
    with pytest.raises(ConfigError, match=fault):
        tongue_from(GERMAN.replace(old, new, 1), "german.toml")


def test_a_file_without_numerals_is_an_error_that_says_so():
    told, _, rest = GERMAN.partition('words = """\nnull:0')
    without = f'{told}words = ""\n{rest.partition(chr(34) * 3)[2]}'
    with pytest.raises(ConfigError, match=r"german\.toml: numbers\.words is empty; write pairs such as"):
        tongue_from(without, "german.toml")


def test_a_language_that_is_not_shipped_is_an_error_that_names_those_that_are():
    with pytest.raises(ConfigError, match="no language 'tlh' is shipped; known: en, de, es, fr, it"):
        tongue("tlh")


# -- which language ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_", ["Open the valve in Berlin", "Play La Bamba", "die casting", "e", "Start pump A", ""]
)
def test_what_is_english_or_in_doubt_is_read_as_it_stands(request_):
    said = said_of(request_)
    assert (said.tongue.name, str(said)) == ("en", request_)


def test_a_language_that_is_named_is_the_one():
    assert tongue_of("Start pump A").name == "en"
    assert said_of("Alarm auf 7", "de") == "alarm to 7"


def test_a_yes_in_the_language_of_the_proposal_is_the_call_that_was_proposed():
    request = "Wenn es regnet, schließe das Ventil Nord"
    said = plan(request, TOOLS, needed=-99.0).text
    assert said == "Soll ich das ausführen: close valve (valve north)?"
    assert plan("ja bitte", TOOLS, needed=-99.0, before=Before(request, said)).calls[0].tools == ("close_valve",)
    assert plan("nein danke", TOOLS, needed=-99.0, before=Before(request, said)).text.startswith("Verstanden")


def test_a_part_of_what_is_said_knows_what_was_really_said():
    said = said_of('Öffne das Ventil, und sende die Nachricht "Tür zu"')
    begin = said.index("send")
    assert said.part(begin, len(said)).as_said == 'sende die Nachricht "Tür zu"'
    assert said.spelled(said.index("valve"), said.index("valve") + 5) == "Ventil"


def test_every_language_that_is_shipped_can_be_named_by_an_agent():
    assert set(LANGUAGES) == {"en", *FILES}
