"""Comparisons that could never apply do not load."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
import pytest

from edgeagent.core.agent import Agent, tool
from edgeagent.errors import ConfigError
from edgeagent.policy.guard import RuleGuard
from edgeagent.policy.rules import (
    acts,
    arg,
    at_least,
    call,
    confirm_before,
    confirmed,
    guard,
    never,
    once,
    requires_before,
    returned,
    rule,
    said,
    untrusted,
)
from edgeagent.policy.table import rules_from_table


@dataclass
class Account:
    limit: float
    name: str
    above: Account | None = None


class Order(msgspec.Struct, rename="camel"):
    unit_price: float


@tool(idempotent=False)
def pay(
    to: Account,
    amount: Decimal,
    day: datetime.date,
    lines: list[Order],
    first: Order,
    currency: Literal["EUR", "USD"],
    count: int | None = None,
    share: Annotated[int, msgspec.Meta(ge=0, le=50)] = 0,
    rank: Literal[1, 2, 3] | None = None,
    urgent: bool = False,
    notes: dict[str, int] | None = None,
    anything: Any = None,
) -> str:
    """Pay."""
    return ""


@tool(idempotent=True, effect="read")
def fetch(page: str) -> str:
    """Fetch."""
    return page


AGENT = Agent(name="office", tools=(pay, fetch))


@pytest.mark.parametrize(
    ("when", "said"),
    [
        (arg("to.limti") > 100, r"pay\.to has no limti; it has: above, limit, name"),
        (arg("to.above.limti") > 100, r"pay\.to\.above has no limti"),
        (arg("sum") > 100, "pay has no sum; it has: amount, anything, count"),
        (arg("first.unit_price") > 5, r"pay\.first has no unit_price; it has: unitPrice"),
        (arg("amount") > 100, r"pay\.amount: it is written as text, as a Decimal"),
        (arg("amount") == 100, r"pay\.amount is never 100; it is written as text"),
        (arg("day") > 5, r"pay\.day: it is written as text"),
        (arg("lines.unitPrice") > 5, r"pay\.lines is a list, and a rule does not look into lists"),
        (arg("lines") > 5, r"pay\.lines: it is written as a list"),
        (arg("to") == "Bob", r"pay\.to is never 'Bob'; it is written as a record"),
        (arg("currency") == "EURO", r"pay\.currency is never 'EURO'; it is written as one of 'EUR', 'USD'"),
        (arg("currency").among("EUR", "GBP"), r"pay\.currency is never 'GBP'"),
        (arg("currency.name") == "EUR", r"pay\.currency is text and has no name"),
        (arg("count").matches("[0-9]+"), r"pay\.count: it is written as a number or null"),
        (arg("urgent").from_user(), r"pay\.urgent: it is written as a truth value"),
        (arg("urgent") == 1, r"pay\.urgent is never 1"),
        (arg("share") > 50, r"pay\.share is never .*at least 0 and at most 50"),
        (arg("share") >= 51, r"pay\.share is never"),
        (arg("share") < 0, r"pay\.share is never"),
        (arg("rank") > 3, r"pay\.rank is never .*one of 1, 2, 3"),
        (arg("currency").matches("EU"), r"pay\.currency is never .*one of 'EUR', 'USD'"),
        (arg("page") == "x", "pay has no page"),
        (arg("to.limit").present() & ~(arg("to.nam") == "x"), r"pay\.to has no nam"),
    ],
)
def test_a_comparison_that_can_never_apply_is_refused_with_what_there_is(when, said):
    for each in (never("pay", when=when), guard("pay", when), confirm_before("pay", when=when)):
        with pytest.raises(ConfigError, match=said):
            RuleGuard([each], AGENT)


@pytest.mark.parametrize(
    "when",
    [
        arg("to.limit") > 100,
        arg("to.above.above.limit") > 100,
        arg("first.unitPrice") <= 5,
        arg("amount").matches("[0-9]+"),
        arg("amount") == "100",
        arg("currency") != "EUR",
        arg("count") == None,  # noqa: E711  # a comparison that yields a formula
        arg("count") < 5,
        arg("share") >= 50,
        arg("share") <= 0,
        arg("rank") > 2,
        arg("currency").matches("E.."),
        arg("urgent") == True,  # noqa: E712  # a comparison that yields a formula
        arg("notes.whatever") > 5,
        arg("anything.at.all") > 5,
        arg("to").from_user(),
        arg("lines").present(),
        once(call("fetch") & (arg("page") == "x")),
        at_least(2, call("fetch") & arg("page").matches("x.*")),
    ],
)
def test_a_comparison_that_may_apply_loads(when):
    RuleGuard([never("pay", when=when)], AGENT)


@pytest.mark.parametrize(
    "when", [returned("pay"), call("fetch"), said("now"), untrusted(), confirmed("pay"), said() & call("pay")]
)
def test_a_rule_that_asks_for_two_things_that_never_are_at_once_does_not_load(when):
    for each in (never("pay", when=when), confirm_before("pay", when=when)):
        with pytest.raises(ConfigError, match="can never object to a call"):
            RuleGuard([each], AGENT)
    RuleGuard([never("pay", when=once(when))], AGENT)


def test_a_comparison_must_apply_to_the_tool_that_its_position_is_about():
    with pytest.raises(ConfigError, match="fetch has no amount; it has: page"):
        RuleGuard([requires_before("pay", returned("fetch") & (arg("amount") == "5"))], AGENT)


def test_a_rule_of_several_tools_loads_when_it_applies_to_one():
    RuleGuard([never("pay", "fetch", when=arg("count") > 5), rule(~(arg("page") == "x"), because="no x")], AGENT)


def test_an_operators_rule_is_held_to_the_same():
    row = {"rule": "never", "tool": "pay", "when": {"argument": "to.limti", "above": 100}}
    with pytest.raises(ConfigError, match=r"pay\.to has no limti"):
        RuleGuard(rules_from_table({"rules": [row]}), AGENT)


def test_a_rule_on_acts_waits_where_nothing_acts_yet():
    @tool(idempotent=True, effect="read")
    def look() -> str:
        """Look."""

    RuleGuard([rule(~acts(), because="nothing is to act")], Agent("watcher", tools=[look]))
