"""The agents that scenarios are played with."""

from __future__ import annotations

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent, tool
from edgeagent.core.budget import Budget
from edgeagent.policy.ready import (
    at_most,
    confirm_before,
    cooldown,
    guard,
    halt_when,
    lock_after_no,
    never,
    no_effect_after_untrusted,
    only_between,
    quorum,
    requires_before,
)
from edgeagent.policy.words import arg, at_least, confirmed, failed, once, said


@tool(idempotent=False)
def pay(to: str, amount: int) -> None:
    """Pay someone."""


@tool(idempotent=True, effect="read")
def fetch(page: str) -> str:
    """Read a page that anyone may have written."""
    return page


@tool(idempotent=True, effect="read", trusted=True)
def balance() -> int:
    """Read the balance."""
    return 0


@tool(idempotent=True)
def valve(open: bool, seconds: int = 30) -> None:
    """Move a valve."""


@tool(idempotent=True, effect="read", trusted=True)
def sensor(name: str) -> float:
    """Read a sensor."""
    return 0.0


def agent(name, *rules, **more):
    more = {"budget": Budget(steps=12, tool_calls=12, repeats=None), **more}
    return Agent(name=name, tools=(pay, fetch, balance, valve, sensor), policies=rules, dialect=Plain(), **more)


def boss(name, *rules, below=(), budget=None, trusted=False):
    """An agent that may pay, read pages, and ask a researcher (with the rules `below`) who may pay and read too."""
    researcher = Agent(name="research", tools=(fetch, pay), policies=below, budget=Budget(repeats=None))
    return Agent(
        name=name,
        tools=(researcher.as_tool(description="Find something out.", trusted=trusted), fetch, pay),
        policies=rules,
        budget=budget or Budget(steps=12, tool_calls=12, repeats=None),
        dialect=Plain(),
    )


def chain(name, *rules):
    """Three agents, each asking the next; only the last one has a tool that does something."""
    last = Agent(name="clerk", tools=(pay,), budget=Budget(repeats=None))
    middle = Agent(name="desk", tools=(last.as_tool(description="Let it be done."), fetch), budget=Budget(repeats=None))
    tools = (middle.as_tool(description="Have it done."),)
    return Agent(name=name, tools=tools, policies=rules, budget=Budget(repeats=None), dialect=Plain())


AGENTS = {
    a.name: a
    for a in (
        agent("payer", confirm_before("pay"), guard("pay", arg("amount") <= 100)),
        agent("locked", confirm_before("pay"), lock_after_no("pay")),
        agent("careful", no_effect_after_untrusted(), at_most(2, "fetch")),
        agent("strict", no_effect_after_untrusted(verdict="refuse")),
        agent("ordered", requires_before("pay", "balance", within="turn"), at_most(1, "pay", per="session")),
        agent("asked-in-turn", confirm_before("fetch"), requires_before("pay", confirmed("fetch"), within="turn")),
        agent("resting", cooldown("valve", 60), guard("valve", arg("seconds") <= 60)),
        agent("office", only_between("pay", "08:00", "18:00", utc_offset_minutes=60)),
        agent("quorum", quorum(2, "valve", *(at_least(1, failed(n)) for n in ("sensor", "fetch", "balance")))),
        agent("tripwire", never("pay", when=arg("to") == "mallory", verdict="halt", because="mallory was paid")),
        agent("fragile", halt_when(at_least(2, failed(), "turn"), because="two failures in a turn")),
        agent("quoting", guard("pay", arg("to").from_user() & arg("amount").from_user())),
        agent("counted", budget=Budget(steps=12, tool_calls=12, calls_of={"fetch": 2}, repeats=2)),
        boss("boss", at_most(3, "fetch", per="session"), below=(at_most(2, "fetch"),)),
        boss("boss-strict", no_effect_after_untrusted("pay", verdict="refuse")),
        boss("boss-careful", below=(no_effect_after_untrusted(), guard("pay", arg("amount") <= 100))),
        boss("boss-trusts", below=(no_effect_after_untrusted(),), trusted=True),
        boss("boss-asks", confirm_before("pay")),
        boss("boss-quotes", guard("pay", arg("to").from_user())),
        boss("boss-halts", below=(never("pay", verdict="halt", because="nobody below may pay"),)),
        boss("boss-poor", budget=Budget(steps=4, tool_calls=3, repeats=None)),
        boss("boss-counts", budget=Budget(steps=12, tool_calls=12, repeats=None, calls_of={"fetch": 1})),
        agent("listening", no_effect_after_untrusted("pay", within="turn"), hears=("pump", "mail"), timers=True),
        agent(
            "hearsay",
            guard("pay", arg("to").from_user()),
            guard("valve", once(said("open"), "session")),
            hears=("pump",),
        ),
        chain("chain", no_effect_after_untrusted("pay"), at_most(1, "pay")),
        agent("brief", confirm_before("pay"), budget=Budget(seconds=20, repeats=None)),
    )
}
