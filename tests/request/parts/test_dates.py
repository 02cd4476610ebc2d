"""Which days and times does a request have, and how are they written down?"""

from __future__ import annotations

import pytest

from edgeagent.request.parts.dates import is_negative, is_past, speaks_of_time, whens_in, written


def texts(request):
    return [when.text for when in whens_in(request)]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("Come on May 3rd, 2031 at noon.", ["May 3rd, 2031 at noon"]),
        ("From 5 June 2030 to 9 June 2030.", ["5 June 2030", "9 June 2030"]),
        ("Wake me at 7:15 am tomorrow.", ["7:15 am tomorrow"]),
        ("Call on Monday morning.", ["Monday morning"]),
        ("A concert in April 2031.", ["April 2031"]),
        ("You may 2 times.", []),
        ("Route 10.1.2.3 is up.", []),
    ],
)
def test_days_and_times_are_found_as_they_are_said(said, found):
    assert texts(said) == found


@pytest.mark.parametrize(
    ("description", "form", "expected"),
    [
        ("When? Format: YYYY-MM-DD.", None, "2030-06-05"),
        ("The day (MM/DD/YYYY).", None, "06/05/2030"),
        ("The day, day-month-year.", None, "05-06-2030"),
        ("For example 2020-01-31.", None, "2030-06-05"),
        ("", "date", "2030-06-05"),
        ("The day.", None, "2030-06-05"),
    ],
)
def test_a_day_is_written_in_the_form_that_is_asked_for(description, form, expected):
    [when] = whens_in("On June 5, 2030.")
    assert written(when, description, form=form) == expected


@pytest.mark.parametrize("said", ["On Friday.", "Tomorrow.", "On June 5."])
def test_a_day_without_a_date_is_not_guessed(said):
    [when] = whens_in(said)
    assert written(when, "As YYYY-MM-DD.") is None
    assert written(when, "The day.") == when.text


def test_a_time_is_written_in_24_hours_where_that_is_asked_for():
    [when] = whens_in("At 6:05 pm.")
    assert (written(when, "As HH:MM."), written(when, "When.")) == ("18:05", "6:05 pm")


def test_a_date_that_can_only_be_read_one_way_is_read_so():
    first, second = whens_in("Between 25/12/2030 and 12/26/2030.")
    assert [written(each, "YYYY-MM-DD") for each in (first, second)] == ["2030-12-25", "2030-12-26"]


@pytest.mark.parametrize("said", ["Wake me at 6.", "Water it this evening.", "Every Tuesday.", "On the third of May."])
def test_a_request_speaks_of_time_where_a_word_or_a_number_could_be_one(said):
    assert speaks_of_time(said)


@pytest.mark.parametrize("said", ["Set a timer for the pasta.", "Dinner with Alex, please.", "Remind me to call Bo."])
def test_a_request_without_any_such_word_does_not(said):
    assert not speaks_of_time(said)


def test_a_length_of_time_below_zero_is_seen():
    assert is_negative("A timer for minus 5 minutes.")
    assert is_negative("A timer for -5 min")
    assert not is_negative("The 10-15 minutes timer, and minus 5 degrees.")


def test_a_time_that_is_over_is_seen():
    assert is_past("Remind me yesterday at 4pm.")
    assert is_past("It rang an hour ago.")
    assert not is_past("Remind me on Friday at 4pm, at last.")
