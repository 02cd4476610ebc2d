"""What newcomers said on their first day, to agents of their own: the right act or a question, never another act."""

from __future__ import annotations

import datetime as dt
import json
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from edgeagent.core.agent import tool
from edgeagent.request.language import ENGLISH
from edgeagent.request.plan import Plan, plan
from edgeagent.request.said import Spoken
from edgeagent.request.tools import Tools

NOW = dt.datetime(2026, 5, 13, 16, 20, tzinfo=dt.timezone(dt.timedelta(hours=2)))
Channel = Annotated[int, Meta(ge=1, le=2)]
Amps = Annotated[float, Meta(ge=0, le=3)]


@tool(idempotent=True)
def set_voltage(channel: Channel, volts: Annotated[float, Meta(ge=0, le=32)], limit_amps: Amps | None = None) -> str:
    """Set the output voltage of a channel, with a current limit in amperes."""
    return ""


@tool(idempotent=True)
def set_output(channel: Channel, on: bool) -> str:
    """Switch the output of a channel on or off."""
    return ""


@tool(idempotent=True, effect="read")
def measure(channel: Channel) -> str:
    """Measure voltage and current of a channel."""
    return ""


SUPPLY = Tools.of([set_voltage, set_output, measure])


@tool(idempotent=True)
def block_device(device: Literal["tv", "tablet"], until: dt.datetime | None = None) -> str:
    """Block a device from the internet, until a time if one is given."""
    return ""


@tool(idempotent=True)
def unblock_device(device: Literal["tv", "tablet"]) -> str:
    """Unblock a device."""
    return ""


ROUTER = Tools.of([block_device, unblock_device])


@tool(idempotent=True)
def schedule_charging(start: dt.time, amps: Annotated[int, Meta(ge=6, le=32)] = 16) -> str:
    """Schedule charging of the car, starting at a time of day, with a current in amps."""
    return ""


@tool(idempotent=True)
def set_target(percent: Annotated[int, Meta(ge=20, le=100)]) -> str:
    """Set the target charge level of the car battery."""
    return ""


@tool(idempotent=True)
def start_charging() -> str:
    """Start charging the car now."""
    return ""


@tool(idempotent=True)
def stop_charging() -> str:
    """Stop charging the car."""
    return ""


@tool(idempotent=True, effect="read")
def price(day: dt.date) -> str:
    """Tell what electricity costs on a day."""
    return ""


@tool(idempotent=True, effect="read")
def battery() -> str:
    """Tell the charge level of the car battery."""
    return ""


CAR = Tools.of([schedule_charging, set_target, price, battery])


class Eager:
    """A judge to which every request sounds like every tool, as a small model's may."""

    def request_behind(self, request: str, texts: Any) -> dict[str, float]:
        return {name: -20.0 if name.startswith("(") else -2.0 for name in texts}

    def values_of(self, tool: str, argument: str, values: Any) -> list[float]:
        return [-1.0 for _ in values]


def plans(said: str, tools: Tools) -> list[Plan]:
    """What is planned by words alone, and with a judge that wants to act."""
    return [plan(said, tools, judge, needed=-99.0, spoken=Spoken(now=NOW)) for judge in (None, Eager())]


def calls_of(planned: Plan) -> list[tuple[str, dict[str, Any]]]:
    return [(call.tools[0], given(call.evidence.narrowed)) for call in planned.calls]


def given(narrowed: tuple[tuple[str, str, str], ...]) -> dict[str, Any]:
    return {name: json.loads(text)["enum"][0] for _, name, text in narrowed if text != "false"}


@pytest.mark.parametrize(
    ("said", "tools", "called", "arguments"),
    [
        ("Put 24 V on channel one", SUPPLY, "set_voltage", {"channel": 1, "volts": 24}),
        ("Put thirty volts on channel two", SUPPLY, "set_voltage", {"channel": 2, "volts": 30}),
        ("Switch channel 2 off", SUPPLY, "set_output", {"channel": 2, "on": False}),
        ("Switch off the second channel", SUPPLY, "set_output", {"channel": 2, "on": False}),
        (
            "Put 5 V on channel 1 with a limit of 250 mA",
            SUPPLY,
            "set_voltage",
            {"channel": 1, "volts": 5, "limit_amps": 0.25},
        ),
        (
            "Set channel 2 to 3.3 V at most 100 mA",
            SUPPLY,
            "set_voltage",
            {"channel": 2, "volts": 3.3, "limit_amps": 0.1},
        ),
        (
            "Block the tv until 2026-12-03T08:00",
            ROUTER,
            "block_device",
            {"device": "tv", "until": "2026-12-03T08:00:00+02:00"},
        ),
        (
            "Block the tablet until 2026-12-03 20:15",
            ROUTER,
            "block_device",
            {"device": "tablet", "until": "2026-12-03T20:15:00+02:00"},
        ),
        (
            "Schedule charging starting at 23:30 with 10 amps",
            CAR,
            "schedule_charging",
            {"start": "23:30:00", "amps": 10},
        ),
        ("Schedule charging with 8 amps starting at 6:15", CAR, "schedule_charging", {"start": "06:15:00", "amps": 8}),
        ("What does electricity cost tomorrow?", CAR, "price", {"day": "2026-05-14"}),
        ("What did electricity cost yesterday?", CAR, "price", {"day": "2026-05-12"}),
    ],
)
def test_what_is_said_is_what_is_called(said: str, tools: Tools, called: str, arguments: dict[str, Any]) -> None:
    for planned in plans(said, tools):
        assert calls_of(planned) == [(called, arguments)]


@pytest.mark.parametrize(
    ("said", "tools", "told"),
    [
        ("Set the voltage to 40 on channel 2", SUPPLY, "volts must be from 0 to 32."),
        ("Set channel 1 to 33 V", SUPPLY, "volts must be from 0 to 32."),
        ("Measure channel three", SUPPLY, "channel must be from 1 to 2."),
        ("Put 5 volts on channel 1 with a limit of 5 A", SUPPLY, "limit amps must be from 0 to 3."),
        ("Block the tv for 2 hours", ROUTER, "What is 2 hours for?"),
        ("What does electricity cost?", CAR, "Which day?"),
    ],
)
def test_what_does_not_fit_or_is_not_said_is_told_and_nothing_is_called(said: str, tools: Tools, told: str) -> None:
    by_words, judged = plans(said, tools)
    assert (by_words.calls, by_words.text) == ((), told)
    assert judged.calls == ()


def test_a_voltage_beyond_the_supply_s_is_never_made_another() -> None:
    for planned in plans("Put 33 V on channel one", SUPPLY):
        assert planned.calls == ()
        assert planned.text


@pytest.mark.parametrize("said", ["What is channel 1 drawing?", "What is on channel 1?", "Is channel 1 at 5 volts?"])
def test_a_question_about_a_channel_only_measures(said: str) -> None:
    for planned in plans(said, SUPPLY):
        assert {name for name, _ in calls_of(planned)} <= {"measure"}


@pytest.mark.parametrize("said", ["Turn off the lights", "Switch the lights off", "Dim the lamp", "Dim a radio"])
@pytest.mark.parametrize("tools", [SUPPLY, ROUTER, CAR], ids=["supply", "router", "car"])
def test_what_no_tool_is_about_is_done_by_none(said: str, tools: Tools) -> None:
    for planned in plans(said, tools):
        assert planned.calls == ()


# -- to end what a tool does ---------------------------------------------------------------------------------------


@tool(idempotent=True)
def charge_car() -> str:
    """Charge the car."""
    return ""


@tool(idempotent=True)
def water_garden() -> str:
    """Water the garden."""
    return ""


@tool(idempotent=True)
def start_recording() -> str:
    """Start recording."""
    return ""


@tool(idempotent=True)
def music(command: Literal["play", "pause", "next"]) -> str:
    """Control what is playing."""
    return ""


@tool(idempotent=True)
def heating(on: bool) -> str:
    """The heating of the house."""
    return ""


@tool(idempotent=True)
def set_charging(mode: Literal["on", "off"]) -> str:
    """The charging of the car."""
    return ""


@pytest.mark.parametrize(
    ("said", "tools"),
    [
        ("Stop charging the car", CAR),
        ("Stop charging the car", Tools.of([schedule_charging, start_charging, battery])),
        ("Cancel the charging", CAR),
        ("End charging", Tools.of([start_charging])),
        ("Stop charging the car", Tools.of([charge_car, battery])),
        ("Stop watering the garden", Tools.of([water_garden])),
        ("Finish watering", Tools.of([water_garden])),
        ("Quit recording", Tools.of([start_recording])),
    ],
)
def test_to_stop_what_no_tool_stops_is_said_to_be_beyond_them(said: str, tools: Tools) -> None:
    for planned in plans(said, tools):
        assert (planned.calls, planned.text) == ((), ENGLISH.sentences.no_tool)


@pytest.mark.parametrize(
    ("said", "called", "arguments"),
    [
        ("Stop charging the car", "stop_charging", {}),
        ("Finish charging", "stop_charging", {}),
        ("Start charging the car", "start_charging", {}),
        ("Stop playing music", "music", {"command": "pause"}),
        ("Pause the music", "music", {"command": "pause"}),
    ],
)
def test_a_tool_that_ends_it_is_called(said: str, called: str, arguments: dict[str, Any]) -> None:
    for planned in plans(said, Tools.of([start_charging, stop_charging, music])):
        assert calls_of(planned) == [(called, arguments)]


@pytest.mark.parametrize("said", ["Stop heating", "Stop the heating"])
def test_what_has_a_switch_is_never_switched_on_to_stop_it(said: str) -> None:
    for planned in plans(said, Tools.of([heating])):
        assert all(arguments == {"on": False} for _, arguments in calls_of(planned))
    for planned in plans("Stop charging", Tools.of([set_charging])):
        assert all(arguments == {"mode": "off"} for _, arguments in calls_of(planned))
