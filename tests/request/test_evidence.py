"""What does a request say of a tool's arguments?"""

from __future__ import annotations

import json
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from edgeagent.core.agent import tool
from edgeagent.grammar.calls import lowered_call
from edgeagent.request.evidence import settled
from edgeagent.request.findings import evidence_of
from edgeagent.request.mood import forbids
from edgeagent.shape.admits import admits
from edgeagent.shape.nodes import Foreign
from edgeagent.shape.pointer import Document
from edgeagent.shape.types import Shape
from examples.greenhouse import agent


def limits(name, request):
    return {argument: json.loads(text) for _, argument, text in evidence_of(agent.by_name[name], request).narrowed}


def missing(name, request):
    return evidence_of(agent.by_name[name], request).missing


@pytest.mark.parametrize(
    "request_text",
    ["Do not open the valve.", "don't open it", "Please don’t.", "Never open it.", "No, do not do that."],
)
def test_a_request_that_begins_with_a_negation_forbids(request_text):
    assert forbids(request_text)


@pytest.mark.parametrize(
    "request_text",
    ["Don't forget to close the valve.", "Open it, do not close it.", "Is it done?", "Donate 5 euros.", ""],
)
def test_other_requests_do_not(request_text):
    assert not forbids(request_text)


def test_options_and_truth_values_are_those_that_the_request_names():
    assert limits("set_valve", "Open the North valve.")["valve"] == {"enum": ["north"]}
    assert limits("set_valve", "Open the north valve.")["open"] == {"enum": [True]}
    assert limits("set_valve", "Shut the mist valve.")["open"] == {"enum": [False]}
    assert limits("set_valve", "Turn the mist off.")["open"] == {"enum": [False]}
    assert limits("read_sensor", "What is the air temperature?")["sensor"] == {"enum": ["air_temp"]}


def test_what_is_said_both_ways_is_not_narrowed():
    assert "open" not in limits("set_valve", "Open or close the north valve?")


def test_a_number_goes_to_the_argument_it_is_said_with():
    found = limits("set_setpoint", "18.5 degrees on channel 2")
    assert found == {"channel": {"enum": [2]}, "celsius": {"enum": [18.5]}}


def test_bare_numbers_go_where_they_are_allowed():
    assert limits("set_setpoint", "Put 2 at 20.") == {"channel": {"enum": [2]}, "celsius": {"enum": [20]}}


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("2 minutes", 120), ("90 s", 90), ("a minute", 60), ("two minutes", 120), ("0.1 hours", 360), ("30", 30)],
)
def test_a_number_is_converted_into_the_unit_of_the_argument(said, seconds):
    assert limits("set_valve", f"Open the north valve for {said}.")["seconds"] == {"enum": [seconds]}


def test_a_number_in_another_unit_is_no_evidence():
    assert "celsius" in missing("set_setpoint", "Set channel 2 to 70 percent.")


@pytest.mark.parametrize(
    ("said", "celsius"), [("70 degrees Fahrenheit", 21.1), ("77 °F", 25), ("20 degrees", 20), ("20 °C", 20)]
)
def test_a_temperature_is_converted_from_its_scale(said, celsius):
    assert limits("set_setpoint", f"Set channel 2 to {said}.")["celsius"] == {"enum": [celsius]}


def test_a_temperature_of_another_scale_that_does_not_fit_is_out_of_bounds():
    assert missing("set_setpoint", "Set channel 2 to 200 °F.") == "celsius must be from 5 to 40."


def test_an_ordinal_before_the_name_of_an_argument_is_its_number():
    assert limits("set_setpoint", "Set the third channel to 20 degrees.")["channel"] == {"enum": [3]}


def test_a_digit_inside_a_word_is_no_number():
    assert limits("read_sensor", "What is the CO2 level?") == {"sensor": {"enum": ["co2"]}, "samples": False}


def test_an_optional_argument_is_given_only_on_evidence():
    assert evidence_of(agent.by_name["set_valve"], "Open the north valve for 30 seconds.").given == ("seconds",)
    assert limits("set_valve", "Open the north valve.")["seconds"] is False


@pytest.mark.parametrize(
    ("request_text", "to", "text"),
    [
        ("Tell the operator that the mist valve is stuck.", "operator", "the mist valve is stuck"),
        ("Message the operator: the mist valve is stuck", "operator", "the mist valve is stuck"),
        ("Send the operator a message saying hello world", "operator", "hello world"),
        ("Send a message to Bob: come at once", "Bob", "come at once"),
    ],
)
def test_what_is_told_is_a_message_as_a_whole_and_whom_it_is_told_stands_before_it(request_text, to, text):
    assert limits("notify", request_text) == {"to": {"enum": [to]}, "text": {"enum": [text]}}


def test_what_a_required_argument_lacks_is_asked_for():
    assert missing("set_valve", "Open a valve.") == "Which valve: north, south or mist?"
    assert missing("set_setpoint", "Make it warmer.") == "Which channel (from 0 to 15)? Which celsius (from 5 to 40)?"
    assert missing("set_setpoint", "Set channel 2.") == "Which celsius (from 5 to 40)?"
    assert missing("set_setpoint", "Set it to 20.")


def test_a_number_out_of_bounds_is_said():
    assert missing("set_setpoint", "Set channel 2 to 90 degrees.") == "celsius must be from 5 to 40."
    assert missing("set_setpoint", "Set channel 2 to minus 10 degrees.") == "celsius must be from 5 to 40."
    assert missing("set_valve", "Open the north valve for 9000 seconds.") == "seconds must be from 1 to 600."


def settled_by_words(name, request):
    found = evidence_of(agent.by_name[name], request)
    found = settled(found, {})
    return {argument: json.loads(text)["enum"] for _, argument, text in found.narrowed}


def test_a_text_is_a_part_of_the_request():
    found = evidence_of(agent.by_name["notify"], "Say hello to Bob.")
    parts = {each.argument: [candidate.value for candidate in each.candidates] for each in found.open}
    assert (parts["to"][0], parts["text"][0]) == ("Bob", "hello to Bob")
    assert not {"say", "to", "Say hello"} & {*parts["to"], *parts["text"]}


def test_two_texts_are_never_the_same_part_while_there_is_another():
    assert settled_by_words("notify", "Tell Bob hello.") == {"to": ["Bob"], "text": ["hello"]}


def test_the_model_decides_between_parts_where_it_is_sure():
    found = evidence_of(agent.by_name["notify"], "Tell Bob hello.")
    rows = {each.argument: [each.value for each in each.candidates] for each in found.open}
    likes = {name: [0.0 if value == "hello" and name == "to" else -40.0 for value in row] for name, row in rows.items()}
    limits = {argument: json.loads(text) for _, argument, text in settled(found, likes).narrowed}
    assert limits["to"] == {"enum": ["hello"]}


def test_what_stands_in_quotation_marks_is_the_text():
    assert limits("send_line", "Send 'set fan 3' to the controller.")["line"] == {"enum": ["set fan 3"]}


def test_a_possessive_belongs_to_no_part():
    assert "Maria" in limits("send_line", "Send Maria's name.")["line"]["enum"]


def test_a_long_request_is_not_cut_into_parts():
    assert "line" not in limits("send_line", "word " * 200)


def test_texts_with_a_form_of_their_own_are_what_has_it_and_long_ones_stay_free():
    @tool(idempotent=True)
    def file(
        path: Annotated[str, Meta(pattern="^/")], due_date: str, body: Annotated[str, Meta(max_length=2000)]
    ) -> None:
        """Write something."""

    found = evidence_of(file, "Write a poem about the sea to /tmp/poem by Friday.")
    assert found.narrowed == (("file", "path", '{"enum":["/tmp/poem"]}'), ("file", "due_date", '{"enum":["Friday"]}'))
    assert dict(found.why) == {"path": "of its form", "due_date": "day", "body": "free"}


def test_a_text_of_which_nothing_is_left_is_asked_for():
    assert missing("notify", "Tell Maria.") == "Which text?"
    assert missing("notify", "Tell Maria that the pump leaks.") == ""


def reminder():
    @tool(idempotent=True)
    def remind(message: str, time: str) -> None:
        """Create a reminder."""

    return remind


@pytest.mark.parametrize(
    ("request_text", "asked"),
    [
        ("Remind me to water the roses.", "Which time?"),
        ("Remind me to water the roses in -5 minutes.", "time must not be negative."),
        ("Remind me yesterday at 4pm to water the roses.", "time must not be in the past."),
        ("Remind me tomorrow at 4pm to water the roses.", ""),
    ],
)
def test_a_time_that_is_not_said_or_cannot_be_meant_is_asked_for(request_text, asked):
    assert evidence_of(reminder(), request_text).missing == asked


@pytest.mark.parametrize(
    "request_text",
    ["Recuérdame regar las rosas mañana a las cuatro.", "Erinnere mich morgen um vier ans Gießen.", "明天提醒我浇花"],
)
def test_what_cannot_be_read_is_not_missed(request_text):
    assert evidence_of(reminder(), request_text).missing == ""


def test_a_past_time_is_a_question_only_to_what_is_still_to_come():
    @tool(idempotent=True)
    def sales(time: str) -> None:
        """Count what was sold."""

    assert evidence_of(sales, "What was sold yesterday?").missing == ""


def test_an_option_that_is_named_is_no_text_beside_it():
    @tool(idempotent=True)
    def reply(sender: Literal["Maya", "Leo"], text: str) -> None:
        """Answer a message."""

    assert evidence_of(reply, "Answer Maya.").missing == "Which text?"
    found = evidence_of(reply, "Answer Maya that dinner is ready.")
    found = held_to(settled(found, {}))
    assert found["text"] == {"enum": ["dinner is ready"]}


def test_an_option_is_named_by_another_verb_for_it():
    @tool(idempotent=True)
    def tasks(action: Literal["add", "delete"], task: str) -> None:
        """Manage tasks."""

    assert held_to(evidence_of(tasks, "Remove the task roses."))["action"] == {"enum": ["delete"]}


def test_what_is_unsaid_and_how_far_a_value_leads_says_how_sure_a_call_is():
    @tool(idempotent=True)
    def mix(alpha: int, beta: int) -> None:
        """Mix."""

    sure, other = evidence_of(mix, "Mix alpha 2 and beta 18.").sure, evidence_of(mix, "Mix 2 and 18 gently, Bo.").sure
    assert sure["lead"] > other["lead"]
    assert sure["said"] > other["said"]
    assert sure["unsaid"] == 0 < other["unsaid"]
    assert evidence_of(mix, "").sure == {}


def test_shares_and_large_numbers_are_read_as_they_are_meant():
    @tool(idempotent=True)
    def invest(amount: int, rate: float, first_year: int, last_year: int) -> None:
        """Invest."""

    found = evidence_of(invest, "Invest an amount of 2 million at 5% from 1990 to 2,005.").narrowed
    told = {argument: json.loads(text)["enum"] for _, argument, text in found}
    assert told == {"amount": [2_000_000], "rate": [0.05], "first_year": [1990], "last_year": [2005]}


def test_the_limits_leave_a_grammar():
    request = "Open the north valve for 30 seconds."
    found = evidence_of(agent.by_name["set_valve"], request)
    schema = lowered_call(agent.by_name["set_valve"], found.narrowed, found.given).schema
    assert sorted(schema["required"]) == ["open", "seconds", "valve"]


def test_a_tool_without_arguments_needs_nothing():
    @tool(idempotent=True)
    def stop() -> None:
        """Stop."""

    found = evidence_of(stop, "Stop at once.")
    assert (found.narrowed, found.missing, found.given) == ((), "", ())


def test_arguments_of_every_type_are_survived():
    @tool(idempotent=True)
    def many(
        a: list[int], b: dict[str, float], c: int | None, d: Literal[1, 2], e: Annotated[float, Meta(gt=0)] = 1.0
    ) -> None:
        """Take many things."""

    assert evidence_of(many, "e is 0.5 and a is 3").given == ("e",)


def test_an_argument_that_may_be_null_is_looked_into():
    @tool(idempotent=True)
    def lights(color: Literal["red", "green"] | None = None, percent: int | None = None) -> None:
        """Light up."""

    assert evidence_of(lights, "Red lights at 40 percent.").given == ("color", "percent")
    assert evidence_of(lights, "Lights!").narrowed == (("lights", "color", "false"), ("lights", "percent", "false"))


# -- laws ----------------------------------------------------------------------------------------------------------

SCHEMAS = {
    "rooms": {"type": "integer", "minimum": 1, "maximum": 20},
    "price": {"type": "number", "description": "In dollars."},
    "minutes": {"type": "integer"},
    "city": {"type": "string"},
    "guest": {"type": "string", "maxLength": 12},
    "day": {"type": "string", "format": "date"},
    "color": {"enum": ["red", "green"]},
    "smoking": {"type": "boolean"},
    "floors": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
    "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"},
}
SAID = (
    "3 rooms",
    "for 40 minutes",
    "at $250.5",
    "2 hours",
    "in New York",
    "for Ada Lovelace",
    "on May 3, 2031",
    "not red",
    "green",
    "no smoking",
    "floors 1, 2 and 7",
    "code AB-12",
    "99",
    "'the blue one'",
    "50%",
    "tomorrow",
)
requests = st.lists(st.sampled_from(SAID), max_size=6).map(lambda said: f"Book {' '.join(said)}.")
names = st.lists(st.sampled_from(sorted(SCHEMAS)), min_size=1, unique=True)


class Point(Struct):
    x: int


def made(properties, required):
    def book() -> None:
        """Book something."""

    schema = {"type": "object", "properties": {name: SCHEMAS[name] for name in properties}, "required": required}
    named = tool(idempotent=True)(book)
    vars(named)["parameters"] = Shape(book, schema, Foreign(schema, lambda *_: ""), {})
    return named


def held_to(found):
    return {name: json.loads(text) for _, name, text in found.narrowed}


@given(names, names, requests)
def test_no_value_is_outside_the_schema_and_none_is_given_that_was_not_said(properties, required, request_text):
    found = evidence_of(made(properties, [n for n in required if n in properties]), request_text)
    for name, limit in held_to(found).items():
        for value in limit["enum"] if limit else ():
            assert admits(SCHEMAS[name], value, Document(SCHEMAS[name]))
    assert set(found.given) <= held_to(found).keys()


@given(st.text(max_size=80) | st.text("0123456789.,-+*/^=()[]{}'\"% aex", max_size=60))
def test_no_request_is_too_strange(request_text):
    found = evidence_of(made(sorted(SCHEMAS), ["city", "floors", "rooms"]), request_text)
    for name, limit in held_to(found).items():
        for value in limit["enum"] if limit else ():
            assert admits(SCHEMAS[name], value, Document(SCHEMAS[name]))


@pytest.mark.parametrize("request_text", ["[" * 5000, "(1e999)", "'" * 3000, "1 " * 3000, "a b " * 3000])
def test_requests_without_measure_are_survived(request_text):
    evidence_of(made(sorted(SCHEMAS), ["city", "floors", "rooms"]), request_text)


def test_a_list_whose_items_are_declared_elsewhere_is_left_alone():
    @tool(idempotent=True)
    def draw(points: list[Point]) -> None:
        """Draw."""

    assert evidence_of(draw, "Draw (3, 4) and [5, 6].").narrowed == ()


@given(names, requests)
def test_the_same_request_says_the_same(properties, request_text):
    assert evidence_of(made(properties, properties), request_text) == evidence_of(
        made(properties, properties), request_text
    )


@given(requests, st.integers(0, 1000))
def test_settled_evidence_holds_each_open_argument_to_one_of_its_parts(request_text, seed):
    found = evidence_of(made(["city", "guest"], ["city", "guest"]), request_text)
    likes = {each.argument: [-((seed * 7 + n) % 11) for n, _ in enumerate(each.candidates)] for each in found.open}
    after = held_to(settled(found, likes))
    for each in found.open:
        [value] = after[each.argument]["enum"]
        assert value in [candidate.value for candidate in each.candidates]


@given(st.permutations([3, 14, 15, 92]))
def test_each_number_goes_to_one_argument_while_there_is_one_for_each(numbers):
    @tool(idempotent=True)
    def mix(alpha: int, beta: int, gamma: int, delta: int) -> None:
        """Mix."""

    listed = ", then ".join(map(str, numbers))
    dealt = [limit["enum"] for limit in held_to(evidence_of(mix, f"Mix {listed}.")).values()]
    assert dealt == [[number] for number in numbers]


@pytest.mark.parametrize(
    ("said", "samples"),
    [
        ("Read the soil moisture sensor 5 times.", [5]),
        ("Read the humidity sensor three times.", [3]),
        ("Lies den Sensor soil_moisture 4 Mal.", [4]),
    ],
)
def test_how_often_is_not_which_one(said, samples):
    assert held_to(evidence_of(agent.by_name["read_sensor"], said))["samples"] == {"enum": samples}


def test_why_tells_of_every_argument_what_it_was_held_to():
    found = evidence_of(agent.by_name["set_valve"], "Open the north valve for 30 seconds.")
    assert dict(found.why) == {"valve": "named", "open": "said so", "seconds": "number"}
    found = evidence_of(agent.by_name["set_valve"], "Open the north valve.")
    assert dict(found.why)["seconds"] == "left out"
