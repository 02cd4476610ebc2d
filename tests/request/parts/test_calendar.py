"""Days that are named by when they are said."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from edgeagent.core.agent import tool
from edgeagent.request.plan import plan
from edgeagent.request.said import Spoken
from edgeagent.request.tools import Tools

NOW = dt.datetime(2031, 5, 14, 16, 20, tzinfo=dt.timezone(dt.timedelta(hours=2)))  # a Wednesday


@tool(idempotent=True)
def close_shop(day: dt.date) -> str:
    """Close the shop on a day."""
    return ""


@tool(idempotent=True)
def start_backup(at: dt.datetime) -> str:
    """Start a backup at a time."""
    return ""


def given(request, one, now=NOW):
    calls = plan(request, Tools.of([one]), needed=-99.0, spoken=Spoken(now=now)).calls
    return [json.loads(text)["enum"] for call in calls for _, _, text in call.evidence.narrowed]


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("today", "2031-05-14"),
        ("tomorrow", "2031-05-15"),
        ("the day after tomorrow", "2031-05-16"),
        ("on Friday", "2031-05-16"),
        ("this Sunday", "2031-05-18"),
        ("on 3 June", "2031-06-03"),
        ("on March 3", "2032-03-03"),
        ("on 2031-07-01", "2031-07-01"),
    ],
)
def test_a_day_is_the_one_that_is_meant_when_it_is_said(said, day):
    assert given(f"Close the shop {said}", close_shop) == [[day]]


@pytest.mark.parametrize("said", ["next Friday", "on Wednesday", "soon", "next month", "on 31 February"])
def test_a_day_that_may_be_either_is_asked_for(said):
    assert given(f"Close the shop {said}", close_shop) == []


def test_without_a_clock_nobody_knows_what_tomorrow_is():
    assert given("Close the shop tomorrow", close_shop, now=None) == []


@pytest.mark.parametrize(
    ("said", "at"),
    [
        ("at 18:30", "2031-05-14T18:30:00+02:00"),
        ("at 7 am", "2031-05-15T07:00:00+02:00"),
        ("tomorrow at 9:15", "2031-05-15T09:15:00+02:00"),
        ("on Friday at noon", "2031-05-16T12:00:00+02:00"),
        ("2031-06-01T08:00Z", "2031-06-01T08:00:00Z"),
    ],
)
def test_a_time_is_the_next_one_in_the_zone_of_who_says_it(said, at):
    assert given(f"Start a backup {said}", start_backup) == [[at]]


@pytest.mark.parametrize(
    ("request_", "one", "value"),
    [
        ("Schließe den Laden morgen", close_shop, "2031-05-15"),
        ("Schließe den Laden am Freitag", close_shop, "2031-05-16"),
        ("Starte ein Backup morgen um halb acht", start_backup, "2031-05-15T07:30:00+02:00"),
        ("Cierra la tienda mañana", close_shop, "2031-05-15"),
        ("Cierra la tienda el 3 de junio", close_shop, "2031-06-03"),
        ("Ferme le magasin demain", close_shop, "2031-05-15"),
        ("Ferme le magasin le 3 juin", close_shop, "2031-06-03"),
    ],
)
def test_days_are_named_in_other_languages_too(request_, one, value):
    assert given(request_, one) == [[value]]
