"""What can be said, how it reads, and what is refused with advice."""

from __future__ import annotations

import math

import pytest

from edgeagent.errors import ConfigError
from edgeagent.policy import rules
from edgeagent.policy.fact import Fact
from edgeagent.policy.monitor import Monitor
from edgeagent.policy.words import (
    acts,
    arg,
    at_least,
    call,
    clock,
    confident,
    confirmed,
    denied,
    historically,
    k_of,
    last_events,
    last_seconds,
    once,
    previously,
    returned,
    said,
    since,
    tainted,
    window,
)

EVERY = (
    call("pay") & (arg("amount") <= 100),
    ~(returned("a", "b") | said("stop")),
    call("pay").implies(once(confirmed("pay"), "turn")),
    since(~denied(), previously(call()), "5 min"),
    historically(~acts(), last_events(3)),
    at_least(3, tainted("turn"), last_seconds(2.5)),
    k_of(2, call("a"), call("b"), clock("08:00", "18:30", 60)),
    arg("to.address").among("a@b.c", 7, True, None) | arg("name").matches("[a-z]+") | arg("x").from_user(),
    arg("n") != 4,
    call("pay").implies(confident(0.6)),
)


def value(f, fact):
    monitor = Monitor([f], acting=("pay",))
    return monitor.values(monitor.start(), fact)[0]


def pay(**arguments):
    return Fact("called", "pay").with_call(arguments, None, None)


@pytest.mark.parametrize("each", EVERY, ids=repr)
def test_a_formula_prints_as_the_text_that_makes_it(each):
    assert repr(eval(repr(each), vars(rules))) == repr(each)  # The digest of an agent is taken over this text.


@pytest.mark.parametrize("each", EVERY, ids=repr)
def test_a_formula_can_be_read_aloud(each):
    text = each.explain()
    assert text
    assert "object at" not in text


@pytest.mark.parametrize("name", ["eventually", "until", "always", "following"])
def test_a_formula_that_needs_the_future_is_refused_with_the_advice_to_use_a_deadline(name):
    with pytest.raises(ConfigError, match="deadline"):
        getattr(rules, name)(call("a"))


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("turn", rules.TURN),
        ("60 s", last_seconds(60)),
        ("last 2 h", last_seconds(7200)),
        ("5 events", last_events(5)),
    ],
)
def test_a_window_can_be_written_in_words(text, made):
    assert window(text) == made


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: window("yesterday"),
        lambda: last_seconds(0),
        lambda: last_events(0),
        lambda: clock("25:00", "26:00"),
        lambda: said("("),
        lambda: arg("a").matches("["),
        lambda: arg("a") <= "high",
        lambda: arg("a").__le__(math.nan),
        lambda: arg("a") == [1],
        lambda: arg("a").among(),
        lambda: at_least(0, call()),
        lambda: at_least(1001, call()),
        lambda: k_of(3, call(), said()),
        lambda: call("a") & arg("b"),
        lambda: bool(call("a") and said()),
        lambda: 1 <= arg("a") <= 5,
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_written(wrong):
    with pytest.raises(ConfigError):
        wrong()


@pytest.mark.parametrize(
    ("condition", "holds", "fails"),
    [
        (arg("n") <= 5, 5, 6),
        (arg("n") < 5, 4, 5),
        (arg("n") >= 5, 5.0, 4.9),
        (arg("n") > 5, 6, 5),
        (arg("n") == 5, 5, "5"),
        (arg("n") == 1, 1, True),
        (arg("n") != 5, 6, 5),
        (arg("n").among(1, "a"), "a", True),
        (arg("n").matches("[a-z]+"), "abc", "abc1"),
        (arg("n").present(), None, ...),
        (arg("n") <= 5, 0, True),
        (arg("n") <= 5, 0, "0"),
    ],
)
def test_arguments_are_compared_as_json_values(condition, holds, fails):
    assert value(condition, pay(n=holds))
    assert not value(condition, pay(n=fails) if fails is not ... else pay(m=1))


def test_a_comparison_of_an_argument_that_is_not_given_is_false():
    assert not value(arg("n") <= 5, pay())
    assert not value(arg("n") != 5, pay())
    assert not value(arg("n") <= 5, Fact("said"))


@pytest.mark.parametrize(("told", "holds"), [(0.6, True), (0.59, False), (None, False)])
def test_a_call_of_which_nobody_said_how_sure_it_is_counts_as_unsure(told, holds):
    assert value(confident(0.6), Fact("called", "pay").with_call({}, None, None, told)) is holds


def test_what_is_no_call_is_not_sure():
    assert not value(confident(0), Fact("said"))


def test_a_nested_argument_is_reached_by_its_path():
    assert value(arg("to.name") == "bob", pay(to={"name": "bob"}))
    assert not value(arg("to.name") == "bob", pay(to="bob"))


def test_the_clock_goes_over_midnight():
    night = clock("22:00", "06:00")
    at = [minutes * 60_000 for minutes in (21 * 60 + 59, 22 * 60, 0, 5 * 60 + 59, 6 * 60)]
    assert [value(night, Fact("said", at_ms=t)) for t in at] == [False, True, True, True, False]


def test_what_the_user_said_is_searched_for_the_pattern():
    assert value(said("sto+p"), Fact("said", text="please stop now"))
    assert not value(said("sto+p"), Fact("said", text="go on"))
