"""Follow-ups: what only says the difference to the call before."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import pytest
from msgspec import Meta

from edgeagent.core.agent import tool
from edgeagent.request.followup import Earlier
from edgeagent.request.plan import Before, plan
from edgeagent.request.tools import Tools

Zone = Literal["upstairs", "downstairs"]


@tool(idempotent=True)
def set_zone(zone: Zone, celsius: Annotated[float, Meta(ge=5, le=30)]) -> str:
    """Set the temperature of a zone in °C."""
    return ""


@tool(idempotent=True)
def run_mixer(seconds: Annotated[int, Meta(ge=1, le=300)], speed: Literal["slow", "fast"] = "slow") -> str:
    """Run the mixer for some seconds."""
    return ""


@tool(idempotent=True)
def open_hatch(zone: Zone) -> str:
    """Open the hatch of a zone."""
    return ""


@tool(idempotent=True)
def close_hatch(zone: Zone) -> str:
    """Close the hatch of a zone."""
    return ""


@tool(idempotent=False, effect="irreversible")
def drain_pipes(zone: Zone) -> str:
    """Drain the pipes of a zone."""
    return ""


TOOLS = Tools.of([set_zone, run_mixer, open_hatch, close_hatch, drain_pipes])
WARM = Earlier("set_zone", {"zone": "upstairs", "celsius": 20})
MIXED = Earlier("run_mixer", {"seconds": 80, "speed": "fast"})
OPENED = Earlier("open_hatch", {"zone": "upstairs"})


def called(request, earlier):
    """Tool and arguments of what is planned after a call; nothing where something is said instead."""
    found = plan(request, TOOLS, needed=-99.0, before=Before(call=earlier))
    told = [
        (c.tools, {n: json.loads(t)["enum"][0] for _, n, t in c.evidence.narrowed if t != "false"}) for c in found.calls
    ]
    return told[0] if len(told) == 1 else found.text


@pytest.mark.parametrize(
    ("earlier", "request_", "name", "arguments"),
    [
        (WARM, "one degree warmer", "set_zone", {"zone": "upstairs", "celsius": 21}),
        (WARM, "make it two degrees cooler please", "set_zone", {"zone": "upstairs", "celsius": 18}),
        (WARM, "zwei Grad wärmer", "set_zone", {"zone": "upstairs", "celsius": 22}),
        (WARM, "un grado menos", "set_zone", {"zone": "upstairs", "celsius": 19}),
        (WARM, "same for downstairs", "set_zone", {"zone": "downstairs", "celsius": 20}),
        (WARM, "and the other one too", "set_zone", {"zone": "downstairs", "celsius": 20}),
        (MIXED, "half as long", "run_mixer", {"seconds": 40, "speed": "fast"}),
        (MIXED, "twice as long", "run_mixer", {"seconds": 160, "speed": "fast"}),
        (MIXED, "one minute longer", "run_mixer", {"seconds": 140, "speed": "fast"}),
        (MIXED, "and now slow", "run_mixer", {"seconds": 80, "speed": "slow"}),
        (OPENED, "and downstairs as well", "open_hatch", {"zone": "downstairs"}),
        (OPENED, "close it again", "close_hatch", {"zone": "upstairs"}),
        (OPENED, "and shut it again please", "close_hatch", {"zone": "upstairs"}),
        (WARM, "un degré plus froid", "set_zone", {"zone": "upstairs", "celsius": 19}),
        (WARM, "dos grados más frío", "set_zone", {"zone": "upstairs", "celsius": 18}),
    ],
)
def test_what_the_call_before_settles_is_done(earlier, request_, name, arguments):
    assert called(request_, earlier) == ((name,), arguments)


@pytest.mark.parametrize(
    ("earlier", "request_"),
    [
        (WARM, "eleven degrees warmer"),  # out of bounds
        (WARM, "a bit warmer"),
        (WARM, "two degrees Fahrenheit warmer"),
        (WARM, "one degree warmer if it snows"),
        (WARM, "not one degree warmer"),
        (WARM, "should it be one degree warmer?"),
        (WARM, "one degree warmer in the garage"),
        (MIXED, "two degrees warmer"),
        (None, "one degree warmer"),
        (None, "half as long"),
        (None, "and the other one too"),
        (OPENED, "not the other one too"),
        (Earlier("drain_pipes", {"zone": "upstairs"}), "and the other one too"),
        (Earlier("gone", {"zone": "upstairs"}), "and the other one too"),
    ],
)
def test_what_is_open_is_no_call(earlier, request_):
    assert isinstance(called(request_, earlier), str)


def test_a_value_that_would_not_fit_is_told_with_its_bounds():
    assert called("eleven degrees warmer", WARM) == "celsius must be from 5 to 30."


def test_what_cannot_be_taken_back_is_proposed():
    text = called("and the other one too", Earlier("drain_pipes", {"zone": "upstairs"}))
    assert text == "Shall I drain pipes (zone downstairs)?"
