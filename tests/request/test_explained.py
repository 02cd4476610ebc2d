"""Orders of which a tool explains only where and how much: they are asked about, and never carried out."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal

import pytest
from msgspec import Meta

from edgeagent.core.agent import tool
from edgeagent.request.explained import explained, is_alike
from edgeagent.request.parts.words import Words
from edgeagent.request.plan import plan
from edgeagent.request.said import Spoken, said_of
from edgeagent.request.tools import Tools

Plot = Literal["front field", "back field", "vineyard"]
WEDNESDAY = Spoken(now=dt.datetime(2026, 3, 4, 10, 15, tzinfo=dt.UTC))


@tool(idempotent=True)
def start_plowing(plot: Plot, minutes: Annotated[int, Meta(ge=1, le=600)] | None = None) -> str:
    """Begin to plow a plot."""
    return ""


@tool(idempotent=True)
def raise_awning(window: Literal["kitchen", "study"]) -> str:
    """Raise the awning of a window."""
    return ""


@tool(idempotent=True)
def lower_awning(window: Literal["kitchen", "study"]) -> str:
    """Lower the awning of a window."""
    return ""


@tool(idempotent=True, effect="read")
def awning_position(window: Literal["kitchen", "study"]) -> str:
    """Tell how far an awning is out."""
    return ""


@tool(idempotent=True)
def storm_guard(state: Literal["on", "off"]) -> str:
    """Pull all awnings in when a storm comes."""
    return ""


@tool(idempotent=True)
def close_daily(day: Literal["monday", "tuesday", "friday"], at: dt.time) -> str:
    """Close the stall each week on a day."""
    return ""


@tool(idempotent=True)
def out_of_service(car: Literal["A", "B"]) -> str:
    """Take a car out of service."""
    return ""


@tool(idempotent=True)
def back_in_service(car: Literal["A", "B"]) -> str:
    """Put a car back into service."""
    return ""


@tool(idempotent=False)
def go_to_floor(car: Literal["A", "B"], floor: Annotated[int, Meta(ge=0, le=30)]) -> str:
    """Send a car to a floor."""
    return ""


@tool(idempotent=True)
def lock_keypad() -> str:
    """Lock the keypad."""
    return ""


@tool(idempotent=True)
def unlock_keypad() -> str:
    """Unlock the keypad."""
    return ""


@tool(idempotent=True)
def away(start: dt.date, end: dt.date) -> str:
    """Away mode between two days."""
    return ""


FARM = Tools.of([start_plowing])
HOUSE = Tools.of([raise_awning, lower_awning, awning_position, storm_guard])
LIFT = Tools.of([out_of_service, back_in_service, go_to_floor])


def called(request: str, tools: Tools) -> list[tuple[str, str]]:
    """The calls that are made, whatever a model thinks of the request, with what their arguments are held to."""
    found = plan(request, tools, needed=-99.0, spoken=WEDNESDAY)
    return [(call.tools[0], " ".join(text for _, _, text in call.evidence.narrowed)) for call in found.calls]


@pytest.mark.parametrize(
    "request_",
    [
        "Water the front field for ten minutes",
        "Spray the vineyard",
        "Streu Dünger auf das front field",
        "Fotografía el vineyard",
    ],
)
def test_a_verb_that_no_tool_knows_does_nothing_to_a_place_that_it_knows(request_):
    found = plan(request_, FARM, needed=-99.0)
    assert not found.calls
    assert found.text


@pytest.mark.parametrize(
    "request_", ["Lower the radiator in the study", "Raise the volume of the music in the kitchen"]
)
def test_the_right_verb_is_not_enough_where_the_thing_is_another_one(request_):
    assert called(request_, HOUSE) == []


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ("Put the study awning up", "raise_awning"),
        ("Pull the kitchen awning down", "lower_awning"),
        ("The study awning should go down", "lower_awning"),
    ],
)
def test_up_and_down_are_raised_and_lowered_and_no_reason_to_read(request_, name):
    assert [each for each, _ in called(request_, HOUSE)] == [name]


@pytest.mark.parametrize(
    ("request_", "state"),
    [("Deactivate the storm guard", "off"), ("Enable the storm guard", "on"), ("Turn the storm guard off", "off")],
)
def test_two_options_for_on_and_off_are_meant_by_verbs_that_say_so(request_, state):
    assert called(request_, HOUSE) == [("storm_guard", f'{{"enum":["{state}"]}}')]


def test_opening_is_no_switching_on():
    assert all(name != "storm_guard" for name, _ in called("Open the study window", HOUSE))


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ("Put car A out of service", "out_of_service"),
        ("Put car A back in service", "back_in_service"),
        ("Mets la cabine B hors service", "out_of_service"),
        ("Remets la cabine B en service", "back_in_service"),
    ],
)
def test_out_of_service_is_not_in_service(request_, name):
    assert [each for each, _ in called(request_, LIFT)] == [name]


@pytest.mark.parametrize("request_", ["Keypad lock off", "keypad: lock off please"])
def test_what_a_tool_does_is_not_done_where_it_is_wanted_off(request_):
    assert all(name != "lock_keypad" for name, _ in called(request_, Tools.of([lock_keypad, unlock_keypad])))


@pytest.mark.parametrize(("request_", "floor"), [("Car A to the seventh floor", 7), ("Car A to the twelfth floor", 12)])
def test_an_ordinal_is_no_slip_of_the_pen(request_, floor):
    assert called(request_, LIFT) == [("go_to_floor", f'{{"enum":["A"]}} {{"enum":[{floor}]}}')]


def test_a_letter_that_is_an_option_is_no_word_of_a_language():
    assert called("Manda la cabina A a la planta 5", LIFT) == [("go_to_floor", '{"enum":["A"]} {"enum":[5]}')]


@pytest.mark.parametrize(
    ("request_", "at"),
    [
        ("Close the stall on Tuesdays at 6 pm", "18:00:00"),
        ("Close the stall every Tuesday at ten to ten every night", "21:50:00"),
        ("Jeden Dienstag um halb acht abends schließen", "19:30:00"),
    ],
)
def test_a_time_stays_one_where_its_day_is_an_option(request_, at):
    (call,) = called(request_, Tools.of([close_daily]))
    assert call[1] == f'{{"enum":["tuesday"]}} {{"enum":["{at}"]}}'


@pytest.mark.parametrize(
    "request_", ["Away mode from 1 to 15 August 2026", "Away mode from the 1st to the 15th of August 2026"]
)
def test_the_first_of_two_days_has_the_month_of_the_last(request_):
    assert called(request_, Tools.of([away])) == [("away", '{"enum":["2026-08-01"]} {"enum":["2026-08-15"]}')]


def test_what_an_agent_is_about_is_nothing_strange_and_no_reason_to_act():
    known = Tools.of([start_plowing], about="You drive a tractor")
    assert called("Plow the vineyard with the tractor", known) == called("Plow the vineyard", known) != []
    assert called("Wash the tractor in the vineyard", known) == []


@pytest.mark.parametrize(
    ("word", "known", "is_known"),
    [("window", {"wind"}, False), ("heating", {"heat"}, True), ("temperatur", {"temp"}, True)],
)
def test_a_word_is_a_form_of_another_only_where_its_end_is_one(word, known, is_known):
    assert is_alike(word, known) is is_known


@tool(idempotent=True)
def start_filming(minutes: Annotated[int, Meta(ge=1, le=90)] | None = None) -> str:
    """Film, for some minutes or until it is stopped."""
    return ""


@tool(idempotent=True)
def stop_filming() -> str:
    """Stop to film."""
    return ""


@tool(idempotent=True, effect="read")
def film_state() -> str:
    """Tell whether something is filmed, and for how long."""
    return ""


@tool(idempotent=True)
def notify_below(celsius: Annotated[int, Meta(ge=0, le=99)]) -> str:
    """Send a message once the oven is colder than this."""
    return ""


@tool(idempotent=True, effect="read")
def oven_temperature() -> str:
    """Tell how hot the oven is."""
    return ""


@tool(idempotent=True)
def defrost(minutes: Annotated[int, Meta(ge=1, le=60)]) -> str:
    """Defrost the freezer."""
    return ""


FILM = Tools.of([start_filming, stop_filming, film_state])


def test_the_verb_of_a_pair_alone_starts_it():
    assert [each for each, _ in called("Film for ten minutes", FILM)] == ["start_filming"]


@pytest.mark.parametrize("request_", ["What a lovely film!", "Quel beau film !"])
def test_an_exclamation_is_no_question(request_):
    assert called(request_, FILM) == []


def test_to_be_told_later_is_no_question_now():
    found = called("Let me know when the oven is colder than 80 degrees", Tools.of([notify_below, oven_temperature]))
    assert found == [("notify_below", '{"enum":[80]}')]


def test_an_ordinal_that_nothing_takes_is_asked_about():
    found = plan("Defrost the freezer for 20 minutes, the fifth", Tools.of([defrost]), needed=-99.0)
    assert not found.calls
    assert "fifth" in found.text


@pytest.mark.parametrize("request_", ["Taue das Gefrierfach zehn Minuten ab", "Gefrierfach zehn Minuten abtauen"])
def test_a_verb_and_its_particle_are_one_verb(request_):
    assert "defrost" in said_of(request_)


HARDLY_MEANT = 3.0
"""Log-odds that are needed for a call, more than words and no judge give."""


@pytest.mark.parametrize("request_", ["Car A floor 4", "Car A to the fourth floor"])
def test_an_order_of_which_all_is_explained_is_meant_however_odd(request_):
    assert [call.tools for call in plan(request_, LIFT, needed=HARDLY_MEANT).calls] == [("go_to_floor",)]


@pytest.mark.parametrize(
    "request_", ["Car A floor 4 with a cherry on top", "Is car A on floor 4?", "Car A was on floor 4"]
)
def test_what_is_odd_and_not_all_explained_is_not_meant(request_):
    assert not plan(request_, LIFT, needed=HARDLY_MEANT).calls


def test_a_word_behind_an_article_is_a_thing():
    found = explained(lower_awning, Words.of("Lower the heating in the study").words, {"study"})
    assert (found.undone, found.has_thing) == ((), False)
    assert found.unmeant
