"""Acts that must never be: generated requests to agents with hands, by words alone and with a judge that wants to act.

What is asked here of each kind: a value that is said and does not fit, a question, a prohibition or an exception, the
opposite of what a tool does, words that have nothing to do with any tool.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
from typing import Annotated, Literal

import pytest
from msgspec import Meta

from edgeagent.core.agent import tool
from edgeagent.request.language import ENGLISH
from edgeagent.request.plan import Before, plan
from edgeagent.request.said import Spoken
from edgeagent.request.tools import Tools

pytestmark = pytest.mark.long


@tool(idempotent=True)
def set_voltage(channel: Annotated[int, Meta(ge=1, le=2)], volts: Annotated[float, Meta(ge=0, le=10)]) -> str:
    """Set the output voltage of a channel in volts."""
    return ""


@tool(idempotent=True)
def set_output(channel: Literal[1, 2], on: bool) -> str:
    """Switch the output of a channel on or off."""
    return ""


@tool(idempotent=True, effect="read")
def measure_current(channel: Literal[1, 2]) -> str:
    """Measure what a channel is drawing, in amperes."""
    return ""


BENCH = Tools.of([set_voltage, set_output, measure_current])


@tool(idempotent=True)
def start_belt(belt: Literal["A", "B"], speed: Annotated[int, Meta(ge=1, le=60)] = 10) -> str:
    """Start a conveyor belt, at a speed in rpm."""
    return ""


@tool(idempotent=True)
def stop_belt(belt: Literal["A", "B"]) -> str:
    """Stop a conveyor belt."""
    return ""


@tool(idempotent=True, effect="read")
def read_belt(belt: Literal["A", "B"]) -> str:
    """Tell whether a conveyor belt is running."""
    return ""


@tool(idempotent=False, effect="irreversible")
def cancel_print() -> str:
    """Cancel the running print."""
    return ""


BELTS = Tools.of([start_belt, stop_belt, read_belt, cancel_print])


@tool(idempotent=True)
def lock_door(door: Literal["front", "garage"]) -> str:
    """Lock a door."""
    return ""


@tool(idempotent=True)
def unlock_door(door: Literal["front", "garage"]) -> str:
    """Unlock a door."""
    return ""


@tool(idempotent=True)
def set_oven(celsius: Annotated[int, Meta(ge=50, le=250)], minutes: Annotated[int, Meta(ge=1, le=300)]) -> str:
    """Heat the oven to a temperature in degrees Celsius for some minutes."""
    return ""


@tool(idempotent=True)
def schedule_reboot(at: dt.time) -> str:
    """Restart the router at a time of day."""
    return ""


HOME = Tools.of([lock_door, unlock_door, set_oven, schedule_reboot])
ALL = (BENCH, BELTS, HOME)


class Eager:
    """A judge to which every request sounds like every tool, as a small model's may."""

    def request_behind(self, request, texts):
        return {name: -20.0 if name.startswith("(") else -2.0 for name in texts}

    def values_of(self, tool, argument, values):
        return [-1.0 for _ in values]


def acts(request, tools):
    """The calls that change something, with or without a judge, however low the odds that are needed."""
    found = []
    for judge, needed in itertools.product((None, Eager()), (None, -99.0)):
        for call in plan(request, tools, judge, needed=needed).calls:
            if any(tools.by_name[name].effect != "read" for name in call.tools):
                found.append((call.tools, {name: json.loads(text) for _, name, text in call.evidence.narrowed}))
    return found


def arguments(request, tools):
    """The one value of each argument of the one call that is planned by words."""
    (call,) = plan(request, tools, needed=-99.0).calls
    values = {name: json.loads(text) for _, name, text in call.evidence.narrowed}
    return call.tools[0], {name: value["enum"][0] for name, value in values.items() if value}


# -- values that do not fit ----------------------------------------------------------------------------------------

VOLTAGES = (
    "24 V",
    "40 volts",
    "11 V",
    "-3 V",
    "10.5 volts",
    "12",
    "sixty volts",
    "24000 mV",
    "two hundred volts",
    "1 kV",
)
ORDERS = (
    "Put {} on channel one",
    "Set the voltage to {} on channel 2",
    "Set channel 1 to {}",
    "channel 2: {}",
    "Please set the output voltage of channel 1 to {}.",
    "I want {} on channel 2",
    "Can you set {} on channel 1?",
    "set voltage {} channel 2",
    "Raise the voltage of channel 1 to {}",
    "volts: {}, channel: 2",
)
CHANNELS = ("3", "three", "0", "7", "12", "twenty")
CHANNEL_ORDERS = (
    "Switch channel {} off",
    "Switch channel {} on, please",
    "Turn the output of channel {} on",
    "turn off channel {}",
    "Set channel {} to 5 V",
    "Put 2.5 volts on channel {}",
    "Set the voltage of channel {} to 4 volts",
)
OVENS = ("300", "20", "1000", "three hundred", "10", "251", "49")
OVEN_ORDERS = (
    "Heat the oven to {} degrees for 20 minutes",
    "Oven to {} degrees Celsius for half an hour",
    "set the oven to {} °C for 45 minutes",
    "Set the oven at {} degrees for an hour",
    "Please heat the oven to {} degrees for ninety minutes.",
)
SPEEDS = ("61", "100", "0", "two hundred", "75 rpm", "seventy", "600 rpm")
SPEED_ORDERS = (
    "Start belt A at a speed of {}",
    "Start belt B with speed {}",
    "start belt A at speed {}",
    "belt A: start, speed {}",
)
UNFIT = [
    *((BENCH, order.format(value)) for order in ORDERS for value in VOLTAGES),
    *((BENCH, order.format(value)) for order in CHANNEL_ORDERS for value in CHANNELS),
    *((HOME, order.format(value)) for order in OVEN_ORDERS for value in OVENS),
    *((BELTS, order.format(value)) for order in SPEED_ORDERS for value in SPEEDS),
    *((HOME, f"Restart the router at {at}") for at in ("25:00", "7:75", "31 o'clock", "24:30", "99:99", "13 pm")),
    *((HOME, f"Heat the oven to 180 degrees for {minutes}") for minutes in ("10 hours", "301 minutes", "0 minutes")),
]


@pytest.mark.parametrize(("tools", "request_"), UNFIT, ids=[text for _, text in UNFIT])
def test_a_value_that_is_said_and_does_not_fit_is_never_replaced(tools, request_):
    assert acts(request_, tools) == []


def test_there_are_two_hundred_such_values():
    assert len(UNFIT) >= 200


# -- questions -----------------------------------------------------------------------------------------------------

ABOUT = (
    "channel 1 drawing",
    "the voltage of channel 2",
    "5 V on channel 1",
    "channel 2 on",
    "belt A running",
    "belt B at a speed of 20",
    "the print cancelled",
    "the front door locked",
    "the oven at 200 degrees for 20 minutes",
    "the reboot at 03:30",
)
QUESTIONS = (
    "What is {}?",
    "What is {}, please?",
    "Is {}, ok?",
    "hey, why is {}, thanks?",
    "What's {}?",
    "Is {}?",
    "is {}",
    "Why is {}?",
    "When was {}?",
    "Since when is {}?",
    "How is {}?",
    "Was {}?",
    "Do you know whether {}?",
    "Can you tell me if it is {}?",
    "Tell me, is {}?",
    "Should {} be?",
    "So what would happen with {}?",
    "I wonder why it is {}",
    "{}?",
    "Did somebody set {}?",
    "Has anyone turned {}?",
    "What happens if I set {}?",
    "Who set {}?",
    "Why did you start {}",
    "What does it mean to stop {}?",
)
ASKED = [(tools, question.format(what)) for question in QUESTIONS for what in ABOUT for tools in ALL]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_never_changes_anything(question):
    for what in ABOUT:
        for tools in ALL:
            assert acts(question.format(what), tools) == [], question.format(what)


def test_there_are_two_hundred_such_questions():
    assert len(ASKED) >= 200


@pytest.mark.parametrize(
    ("request_", "tools"),
    [
        ("Channel 1 is at 5 V", BENCH),
        ("The output of channel 2 was switched off", BENCH),
        ("I set the voltage of channel 1 to 5 V", BENCH),
        ("Belt A is stopped", BELTS),
        ("Somebody stopped belt B", BELTS),
        ("The front door is locked", HOME),
        ("They locked the garage door", HOME),
        ("The oven was at 200 degrees for 20 minutes", HOME),
    ],
)
def test_a_report_changes_nothing(request_, tools):
    assert acts(request_, tools) == []


@pytest.mark.parametrize("order", ["I want belt A to stop", "I'd like you to stop belt A", "It is late: stop belt A"])
def test_a_wish_and_an_order_behind_a_report_are_orders(order):
    assert arguments(order, BELTS) == ("stop_belt", {"belt": "A"})


@pytest.mark.parametrize(
    "order",
    [
        "Can you stop belt A?",
        "Could you please stop belt A?",
        "Would you stop belt A, please?",
        "Stop belt A, will you?",
        "please stop belt A",
        "Stop belt A!",
        "Would you mind stopping belt A?",
    ],
)
def test_an_order_that_is_put_as_a_question_is_an_order(order):
    assert arguments(order, BELTS) == ("stop_belt", {"belt": "A"})


# -- prohibitions, exceptions, conditions --------------------------------------------------------------------------

PLAIN = (
    (BENCH, "set channel 1 to 5 V"),
    (BENCH, "switch channel 2 off"),
    (BELTS, "start belt A"),
    (BELTS, "stop belt B"),
    (BELTS, "cancel the print"),
    (HOME, "unlock the front door"),
    (HOME, "heat the oven to 200 degrees for 20 minutes"),
    (HOME, "restart the router at 03:30"),
)
DENIALS = (
    "do not {}",
    "Don't {}!",
    "please dont {}",
    "Never {}",
    "Whatever you do, don't {}",
    "Under no circumstances {}",
    "You must not {}",
    "It would be better not to {}",
    "I said not to {}",
    "hold on, {}",
    "Wait, {}",
    "Hold off: {}",
    "Never mind, {}",
    "{} unless somebody is there",
    "{}, except today",
    "If it gets cold, {}",
    "{} only if I say so",
    "Anything but {}",
    "Nobody should {}",
    "We can't {}",
    "Avoid that you {}",
    "There is no need to {}",
    "When I leave the house, {}",
    "No, {}",
)
DENIED = [(tools, form.format(order)) for form in DENIALS for tools, order in PLAIN]


@pytest.mark.parametrize(("tools", "request_"), DENIED, ids=[text for _, text in DENIED])
def test_what_is_denied_excepted_or_conditional_is_never_done(tools, request_):
    assert acts(request_, tools) == []


@pytest.mark.parametrize(("tools", "order"), PLAIN, ids=[order for _, order in PLAIN])
def test_the_same_orders_without_it_are_done(tools, order):
    assert acts(order.capitalize(), tools)


@pytest.mark.parametrize(
    ("request_", "left"),
    [
        ("Start all belts except belt A", "B"),
        ("start everything but belt B", ""),
        ("Stop both belts, not belt A", "B"),
        ("stop all the belts but A", ""),
        ("Stop all belts, but not belt A, if you can", ""),
        ("stop every belt besides belt B", "A"),
        ("Stop all belts except the one in the hall", ""),
    ],
)
def test_of_an_exception_what_is_left_is_done_or_nothing(request_, left):
    assert {values["belt"]["enum"][0] for _, values in acts(request_, BELTS)} == ({left} if left else set())


@pytest.mark.parametrize(
    ("request_", "belt"),
    [
        ("Start belt A, not belt B", "A"),
        ("Not belt A, belt B: stop it", "B"),
        ("Stop belt B instead of belt A", "B"),
        ("start not belt B but belt A", ""),
        ("Do not start belt A, belt B", ""),
        ("Start belt A, not", ""),
        ("Start belt A, not before belt B has stopped", ""),
    ],
)
def test_of_a_contrast_what_is_meant_is_done_or_nothing(request_, belt):
    assert {values["belt"]["enum"][0] for _, values in acts(request_, BELTS)} == ({belt} if belt else set())


@pytest.mark.parametrize(
    "request_",
    ["Whatever you do, do not cancel the print.", "I told you never to cancel it", "better not to cancel the print"],
)
def test_what_is_denied_with_the_tools_own_verb_is_confirmed_as_not_done(request_):
    assert plan(request_, BELTS.only(["cancel_print"]), needed=-99.0).text == ENGLISH.sentences.nothing_done


@pytest.mark.parametrize(
    ("request_", "wanted"),
    [
        ("Start belt A and whatever you do, do not cancel the print", [("start_belt",)]),
        ("I told you never to cancel the print, and start belt A", [("start_belt",)]),
        ("Stop belt A and start belt B if it is safe", []),
        ("Stop belt A and belt B", []),
        ("Start belt A; is belt B running?", [("start_belt",)]),
    ],
)
def test_of_two_parts_only_the_one_that_is_plainly_ordered_is_done(request_, wanted):
    found = [names for names, _ in acts(request_, BELTS)]
    assert set(found) <= set(wanted)


def test_a_yes_to_a_proposal_is_the_call_that_was_proposed_and_a_no_is_none():
    request = "If it gets cold, stop belt A"
    said = plan(request, BELTS, needed=-99.0).text
    assert said == "Shall I stop belt (belt A)?"
    for yes in ("yes", "Yes, please!", "ok", "do it", "y"):
        (call,) = plan(yes, BELTS, needed=-99.0, before=Before(request, said)).calls
        assert (call.tools, call.evidence.narrowed) == (("stop_belt",), (("stop_belt", "belt", '{"enum":["A"]}'),))
    for no in ("no", "No thanks", "don't", "never mind"):
        assert plan(no, BELTS, needed=-99.0, before=Before(request, said)).text == ENGLISH.sentences.nothing_done


@pytest.mark.parametrize(
    ("answer", "before"),
    [
        ("yes", Before()),
        ("yes", Before("If it gets cold, stop belt A", "Shall I stop belt (belt B)?")),
        ("yes", Before("Do not stop belt A", "Understood: nothing was done.")),
        ("yes", Before("Stop a belt", "Which belt: A or B?")),
        ("yes but not now", Before("If it gets cold, stop belt A", "Shall I stop belt (belt A)?")),
        ("yes?", Before("Hello", "Shall I stop belt (belt A)?")),
    ],
)
def test_a_yes_to_anything_else_changes_nothing(answer, before):
    found = plan(answer, BELTS, Eager(), needed=-99.0, before=before).calls
    assert all(BELTS.by_name[name].effect == "read" for call in found for name in call.tools)


@pytest.mark.parametrize(
    "order", ["two volts higher on channel 1", "Set channel 2 half a volt higher", "1 V less on channel 1"]
)
def test_a_value_that_is_only_compared_is_never_taken_for_the_value_itself(order):
    assert acts(order, BENCH) == []


def test_what_it_is_is_asked_for_and_not_guessed():
    @tool(idempotent=True)
    def block_device(device: str) -> str:
        """Cut a device off from the internet."""
        return ""

    tools = Tools.of([block_device])
    assert plan("Please block it now", tools, needed=-99.0).text == "Which device?"
    assert plan("Please block the tablet now", tools, needed=-99.0).calls


# -- opposites -----------------------------------------------------------------------------------------------------

VERBS = {
    ("start_belt", "stop_belt"): ("Start belt A", "start up belt A", "Begin with belt A", "Turn belt A on"),
    ("stop_belt", "start_belt"): ("Stop belt A", "Halt belt A", "Turn belt A off", "switch off belt A", "Kill belt A"),
    ("lock_door", "unlock_door"): ("Lock the garage door", "please lock the garage"),
    ("unlock_door", "lock_door"): ("Unlock the garage door", "garage: unlock"),
}


@pytest.mark.parametrize(
    ("request_", "opposite"), [(text, names[1]) for names, texts in VERBS.items() for text in texts]
)
def test_the_opposite_of_what_is_asked_is_never_done_even_where_it_is_all_there_is(request_, opposite):
    for tools in (BELTS, HOME):
        if opposite in tools.by_name:
            assert all((opposite,) != names for names, _ in acts(request_, tools))
            assert acts(request_, tools.only([opposite])) == []


# -- words that have nothing to do with it -------------------------------------------------------------------------

UNRELATED = [
    f"{begin} {end}"
    for begin in (
        "Tell me",
        "Write",
        "Sing",
        "Explain",
        "Recommend",
        "Translate",
        "Compose",
        "Imagine",
        "Guess",
        "Draw",
    )
    for end in (
        "a joke about penguins.",
        "the capital of Portugal.",
        "something nice for my sister.",
        "a haiku.",
        "how photosynthesis works.",
        "seventeen times twelve.",
        "good night in Japanese.",
        "a good book.",
        "the plot of Hamlet.",
        "me your favourite colour.",
    )
]


def test_words_that_speak_of_no_tool_make_no_call_by_words():
    assert len(UNRELATED) >= 100
    for request in UNRELATED:
        for tools in ALL:
            calls = plan(request, tools).calls
            assert all(tools.by_name[name].effect == "read" for call in calls for name in call.tools), request


# -- what is said is used ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "tools", "wanted"),
    [
        ("Switch channel 2 off", BENCH, ("set_output", {"channel": 2, "on": False})),
        ("Switch channel one on", BENCH, ("set_output", {"channel": 1, "on": True})),
        ("Put a voltage of 2.5 V on channel two", BENCH, ("set_voltage", {"channel": 2, "volts": 2.5})),
        ("Set the voltage of channel 1 to 500 mV", BENCH, ("set_voltage", {"channel": 1, "volts": 0.5})),
        ("Start belt B at 45 rpm", BELTS, ("start_belt", {"belt": "B", "speed": 45})),
        ("Restart the router at 06:45", HOME, ("schedule_reboot", {"at": "06:45:00"})),
        ("Restart the router at 6:45 am", HOME, ("schedule_reboot", {"at": "06:45:00"})),
        ("Restart the router at 7 pm", HOME, ("schedule_reboot", {"at": "19:00:00"})),
        ("Restart the router at 4 in the morning", HOME, ("schedule_reboot", {"at": "04:00:00"})),
        ("Restart the router at noon", HOME, ("schedule_reboot", {"at": "12:00:00"})),
        (
            "Heat the oven to two hundred and ten degrees for an hour and a half",
            HOME,
            ("set_oven", {"celsius": 210, "minutes": 90}),
        ),
        ("Heat the oven to 180 degrees for half an hour", HOME, ("set_oven", {"celsius": 180, "minutes": 30})),
        ("Heat the oven to 90 degrees for a couple of hours", HOME, ("set_oven", {"celsius": 90, "minutes": 120})),
    ],
)
def test_the_argument_that_stands_by_a_value_gets_it(request_, tools, wanted):
    assert arguments(request_, tools) == wanted


@pytest.mark.parametrize(
    ("request_", "tools"),
    [
        ("Stop belt A in 20 minutes", BELTS),
        ("Lock the front door at 23:30", HOME),
        ("Stop belt B for 5 s", BELTS),
        ("Switch channel 2 off after 30 seconds", BENCH),
        ("Set channel 1 to 5 V with a limit of 250 mA", BENCH),
        ("Start belt A at 20 rpm for two hours", BELTS),
        ("Cancel the print at 7 pm", BELTS),
        ("Start belt A at half speed", BELTS),
        ("Lock the front door a quarter", HOME),
    ],
)
def test_a_value_that_is_said_and_has_no_argument_is_asked_about(request_, tools):
    assert acts(request_, tools) == []
    assert "What is " in plan(request_, tools, needed=-99.0).text


@tool(idempotent=True)
def block_device(device: str, until: dt.datetime | None = None) -> str:
    """Cut a device off from the internet, until a time."""
    return ""


@pytest.mark.parametrize("until", ["2026-12-03T08:00", "tomorrow", "9 pm", "next Friday at 7:30"])
def test_a_time_that_cannot_be_given_as_it_must_be_is_not_left_out(until):
    assert acts(f"Block the tv until {until}", Tools.of([block_device])) == []


def test_a_time_with_its_zone_is_given_as_it_is_said():
    found = arguments("Block the tv until 2026-12-03T08:00+01:00", Tools.of([block_device]))
    assert found == ("block_device", {"device": "tv", "until": "2026-12-03T08:00:00+01:00"})


@pytest.mark.parametrize(
    ("request_", "tools"),
    [
        ("Switch channel 2", BENCH),
        ("Set the output of channel 1", BENCH),
        ("Restart the router", HOME),
        ("Restart the router tonight", HOME),
        ("Restart the router at 7", HOME),
        ("Start a belt", BELTS),
        ("Lock a door", HOME),
    ],
)
def test_what_must_be_given_and_is_not_said_is_asked_for(request_, tools):
    assert acts(request_, tools) == []
    assert plan(request_, tools, needed=-99.0).text.endswith("?")


# -- several objects, lengths of time, opposites -------------------------------------------------------------------

Room = Literal["kitchen", "bath", "hall"]


@tool(idempotent=True)
def lamp(room: Room, fade: dt.timedelta | None = None) -> str:
    """Light the lamp of a room, at once or slowly."""
    return ""


@tool(idempotent=True)
def add_guest(name: str) -> str:
    """Add a guest."""
    return ""


@tool(idempotent=True)
def remove_guest(name: str) -> str:
    """Remove a guest."""
    return ""


@tool(idempotent=True)
def alarm(length: dt.timedelta) -> str:
    """Mute the alarm for a while."""
    return ""


@tool(idempotent=True, effect="read")
def pump_state() -> str:
    """Show the state of the pump."""
    return ""


GUESTS = Tools.of([add_guest, remove_guest, lamp, alarm, pump_state])


def calls_of(request):
    return [
        (
            call.tools[0],
            {name: json.loads(text)["enum"][0] for _, name, text in call.evidence.narrowed if text != "false"},
        )
        for call in plan(request, GUESTS, needed=-99.0).calls
    ]


@pytest.mark.parametrize(
    "said",
    ["Light the lamps in the kitchen and the bath", "light the lamp of the kitchen, and that of the bath"],
)
def test_one_verb_with_several_objects_is_a_call_for_each(said):
    assert calls_of(said) == [("lamp", {"room": "kitchen"}), ("lamp", {"room": "bath"})]


@pytest.mark.parametrize(
    "said", ["Light the lamp in the kitchen or the bath", "Light all lamps but those of kitchen and bath"]
)
def test_what_is_open_or_excepted_is_not_done_for_each(said):
    assert calls_of(said) == []


@pytest.mark.parametrize(
    ("said", "length"),
    [
        ("Mute the alarm for 15 minutes", "PT15M"),
        ("Mute the alarm for half an hour", "PT30M"),
        ("mute the alarm for 90 s", "PT1M30S"),
        ("Mute the alarm for two hours", "PT2H"),
    ],
)
def test_a_length_of_time_is_taken_from_the_request(said, length):
    assert calls_of(said) == [("alarm", {"length": length})]


def test_an_optional_length_of_time_is_given_where_it_is_said():
    assert calls_of("Light the lamp in the hall over ten seconds") == [("lamp", {"room": "hall", "fade": "PT10S"})]


def test_where_nothing_tells_a_tool_from_its_opposite_it_is_asked_which():
    told = plan("The guest Ada", GUESTS, needed=-99.0)
    assert not told.calls
    assert "add guest or remove guest" in told.text


@pytest.mark.parametrize("said", ["Turn the pump off", "If it rains, the pump's state"])
def test_an_order_to_change_something_is_not_answered_by_reading(said):
    assert calls_of(said) == []


@tool(idempotent=False)
def next_track() -> str:
    """Go to the next track."""
    return ""


@tool(idempotent=False)
def previous_track() -> str:
    """Go to the previous track."""
    return ""


@tool(idempotent=True)
def arm_alarm() -> str:
    """Arm the alarm."""
    return ""


@tool(idempotent=True)
def disarm_alarm() -> str:
    """Disarm the alarm."""
    return ""


PAIRS = Tools.of([next_track, previous_track, arm_alarm, disarm_alarm])
OF_PAIRS = [
    ("Go back to the previous track", "previous_track"),
    ("Zurück zum vorherigen Titel", "previous_track"),
    ("Vuelve a la canción anterior", "previous_track"),
    ("Reviens au morceau précédent", "previous_track"),
    ("Torna al brano precedente", "previous_track"),
    ("Spiel den nächsten Titel", "next_track"),
    ("Pon la canción siguiente", "next_track"),
    ("Passe au morceau suivant", "next_track"),
    ("Disarm the alarm", "disarm_alarm"),
    ("Désarme l'alarme", "disarm_alarm"),
    ("Desarma la alarma", "disarm_alarm"),
    ("Arme l'alarme", "arm_alarm"),
    ("Disattiva l'allarme", "disarm_alarm"),
    ("Deaktiviere den Alarm", "disarm_alarm"),
]


@pytest.mark.parametrize(("said", "name"), OF_PAIRS)
def test_of_two_opposites_the_other_one_is_never_called(said, name):
    assert [call.tools[0] for call in plan(said, PAIRS, needed=-99.0).calls] in ([name], [])


@pytest.mark.parametrize("said", [said for said, name in OF_PAIRS if name.endswith("track")])
def test_the_next_and_the_previous_one_are_told_apart_in_five_languages(said):
    (call,) = plan(said, PAIRS, needed=-99.0).calls
    assert call.tools == (dict(OF_PAIRS)[said],)


@pytest.mark.parametrize(
    "said",
    ["and the lamp in the hall too", "And the kitchen lamp as well", "now do the same with the lamp in the bath"],
)
def test_what_follows_from_something_said_before_is_asked_about(said):
    assert calls_of(said) == []


def test_a_statement_reads_nothing_where_it_is_not_clear_that_it_asks_for_it():
    told = plan("This pump looks lovely", GUESTS, needed=0.0)
    assert not told.calls


@pytest.mark.parametrize(
    "said",
    [
        "Disarm the alarm and go to the next track? No, better not.",
        "Go to the previous track. No, wait, better not",
        "Pon la canción siguiente y desarma la alarma? No, mejor no.",
        "Spiel den nächsten Titel? Nein, lieber nicht.",
        "Passe au morceau suivant ? Non, plutôt pas.",
        "Torna al brano precedente? No, meglio di no.",
    ],
)
def test_what_a_no_takes_back_is_not_done(said):
    assert plan(said, PAIRS, needed=-99.0).calls == ()


@tool(idempotent=True)
def key_lock(on: bool) -> str:
    """Lock or unlock the keys of the panel."""
    return ""


@tool(idempotent=False)
def ring(at: dt.time, day: dt.date | None = None) -> str:
    """Ring the bell at a time."""
    return ""


@tool(idempotent=False)
def tell_desk(text: str) -> str:
    """Send a message to the front desk."""
    return ""


@tool(idempotent=True)
def fill(tub: Literal["small", "big"], share: Annotated[int, Meta(ge=0, le=100)] = 50) -> str:
    """Fill a tub to so many percent."""
    return ""


HOUSE = Tools.of([key_lock, ring, tell_desk, fill])


@pytest.mark.parametrize(
    ("request_", "on"),
    [
        ("Lock the keys", True),
        ("unlock the keys", False),
        ("turn the key lock off", False),
        ("enable the key lock", True),
        ("switch on the key lock", True),
    ],
)
def test_what_a_tool_is_named_for_is_on(request_, on):
    assert arguments(request_, HOUSE) == ("key_lock", {"on": on})


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ("Tell the front desk that the door is not locked", "the door is not locked"),
        ("Message to the front desk: we need two more chairs", "we need two more chairs"),
        ("Tell the front desk: may we stay longer?", "may we stay longer"),
    ],
)
def test_what_a_message_denies_or_asks_is_the_messages(request_, text):
    assert arguments(request_, HOUSE) == ("tell_desk", {"text": text})


def test_a_day_and_a_time_in_one_phrase_are_two_arguments():
    now = dt.datetime(2026, 3, 4, 10, 15, tzinfo=dt.UTC)
    (call,) = plan("Ring the bell tomorrow at 5:15 am", HOUSE, needed=-99.0, spoken=Spoken(now=now)).calls
    assert {name: json.loads(text)["enum"] for _, name, text in call.evidence.narrowed} == {
        "at": ["05:15:00"],
        "day": ["2026-03-05"],
    }


@pytest.mark.parametrize("request_", ["Fill the small one", "fill the small one of them", "Fill the small one, please"])
def test_one_is_no_number_where_it_stands_for_a_thing(request_):
    assert arguments(request_, HOUSE)[1]["tub"] == "small"


# -- what nothing takes --------------------------------------------------------------------------------------------


@tool(idempotent=False)
def order_lunch(dishes: list[Literal["soup", "salad", "bread"]]) -> str:
    """Order lunch."""
    return ""


@tool(idempotent=True)
def open_flap(flap: Literal["north", "south"]) -> str:
    """Open a flap."""
    return ""


@tool(idempotent=True, effect="read")
def flap_temperature(flap: Literal["north", "south"]) -> str:
    """Tell how warm it is at a flap."""
    return ""


@tool(idempotent=True)
def aim_mast(target: str) -> str:
    """Point the mast at a place."""
    return ""


@tool(idempotent=True, effect="read")
def mast_place() -> str:
    """Tell at what place the mast points."""
    return ""


MAST = Tools.of([order_lunch, open_flap, flap_temperature, aim_mast, mast_place])


def test_what_stands_in_a_row_of_options_and_is_none_is_asked_about():
    assert arguments("Order lunch: soup, salad and bread", MAST)[1] == {"dishes": ["soup", "salad", "bread"]}
    assert plan("Order lunch: soup, fried fish and bread", MAST, needed=-99.0).text == "What is fried fish for?"


@pytest.mark.parametrize(
    "request_", ["Is the north flap open?", "When did you open the south flap?", "Should we open the north flap?"]
)
def test_a_question_about_what_only_other_tools_do_is_not_answered_with_another_state(request_):
    assert not plan(request_, MAST, needed=-99.0).calls


def test_an_order_is_not_answered_by_a_tool_that_reads_where_another_takes_what_is_named():
    assert arguments("Point the mast at Brest", MAST) == ("aim_mast", {"target": "Brest"})


@pytest.mark.parametrize("request_", ["Open the north flap twice", "open the north flap, two times"])
def test_how_often_is_asked_about_where_no_argument_takes_it(request_):
    assert plan(request_, MAST, needed=-99.0).calls == ()


@pytest.mark.parametrize(
    ("request_", "flap"),
    [
        ("Don't open the north flap, open the south one", "south"),
        ("Do not touch the south flap, just open the north flap", "north"),
        ("Don't open the north flap, leave it shut", ""),
        ("Never mind, open the north flap", ""),
        ("Don't open the north flap, the south flap", ""),
    ],
)
def test_what_is_ordered_behind_what_is_denied_is_done(request_, flap):
    assert {values["flap"]["enum"][0] for _, values in acts(request_, MAST)} == ({flap} if flap else set())
