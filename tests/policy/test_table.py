"""Rules in edgeagent.toml: the same as in Python, and errors that name line and key."""

from __future__ import annotations

import tomllib

import pytest

from edgeagent.errors import ConfigError
from edgeagent.policy.ready import (
    at_most,
    confirm_before,
    confirm_below,
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
from edgeagent.policy.stays import stays_here
from edgeagent.policy.table import KEYS, RULES, rules_from_table
from edgeagent.policy.words import arg, at_least, confident, confirmed, failed, once, returned, said, tainted

TEXT = """
[model]
name = "smollm2"

[[policy.rules]]
rule = "at_most"
n = 3
tool = "fetch"
per = "turn"
because = "three pages are enough"

[[policy.rules]]
rule = "guard"
tool = ["pay", "order"]
require = { any = [{ argument = "amount", at_most = 100 }, { confirmed = "pay", within = "turn" }] }
verdict = "ask"

[[policy.rules]]
rule = "requires_before"
tool = "pay"
before = "balance"
within = "5 min"

[[policy.rules]]
rule = "requires_before"
tool = "pay"
before = { not = { said = "stop" } }

[[policy.rules]]
rule = "never"
tool = "pay"
when = { all = [{ argument = "to", one_of = ["eve", "mallory"] }, { tainted = true }] }

[[policy.rules]]
rule = "confirm_before"
tool = "pay"

[[policy.rules]]
rule = "no_effect_after_untrusted"

[[policy.rules]]
rule = "cooldown"
tool = "valve"
seconds = 60

[[policy.rules]]
rule = "only_between"
tool = "valve"
start = "08:00"
end = "18:00"
utc_offset_minutes = 60

[[policy.rules]]
rule = "quorum"
k = 1
tool = "valve"
of = [{ returned = "a" , within = "session" }, { argument = "to", from_user = true }]

[[policy.rules]]
rule = "lock_after_no"
tool = "pay"

[[policy.rules]]
rule = "halt_when"
when = { failed = [], within = "turn", times = 3 }

[[policy.rules]]
rule = "confirm_below"
probability = 0.6
tool = "pay"

[[policy.rules]]
rule = "never"
tool = "valve"
when = { not = { confident = 0.9 } }

[[policy.rules]]
rule = "stays_here"
of = "sensitive"
tool = "balance"
"""


def rules(text):
    return rules_from_table(tomllib.loads(text)["policy"], text=text)


def test_a_table_says_the_same_as_python():
    assert list(map(repr, rules(TEXT))) == [
        repr(at_most(3, "fetch", per="turn", because="three pages are enough")),
        repr(guard(("pay", "order"), (arg("amount") <= 100) | once(confirmed("pay"), "turn"), verdict="ask")),
        repr(requires_before("pay", "balance", within="5 min")),
        repr(requires_before("pay", ~said("stop"))),
        repr(never("pay", when=arg("to").among("eve", "mallory") & tainted())),
        repr(confirm_before("pay")),
        repr(no_effect_after_untrusted()),
        repr(cooldown("valve", 60)),
        repr(only_between("valve", "08:00", "18:00", utc_offset_minutes=60)),
        repr(quorum(1, "valve", once(returned("a"), "session"), arg("to").from_user())),
        repr(lock_after_no("pay")),
        repr(halt_when(at_least(3, failed(), "turn"))),
        repr(confirm_below(0.6, "pay")),
        repr(never("valve", when=~confident(0.9))),
        repr(stays_here(of="sensitive", tools=["balance"])),
    ]


def test_every_ready_rule_can_be_written_as_a_table():
    assert set(RULES) == {r.name for r in rules(TEXT)}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('rule = "at_most"', 'rule = "at_least"', "line 6: policy.rules[0].rule: there is no rule 'at_least'"),
        ("n = 3", "n = 'three'", "line 7: policy.rules[0].n: is 'three'; it must be a whole number"),
        ("n = 3\n", "", "line 5: policy.rules[0].n: is missing"),
        ('per = "turn"', 'per = "day"', "line 9: policy.rules[0].per: window 'day'"),
        ("seconds = 60", "seconds = true", "line 44: policy.rules[7].seconds: is True"),
        (
            "seconds = 60",
            "minutes = 1\nseconds = 60",
            "line 44: policy.rules[7].minutes: the rule cooldown has no such",
        ),
        ('start = "08:00"', 'start = "8"', "line 49: policy.rules[8].start: time of day '8'"),
        ("at_most = 100", 'at_most = "much"', "line 15: policy.rules[1].require: arg('amount') <= 'much'"),
        ("at_most = 100", "most = 100", "line 15: policy.rules[1].require: argument 'amount' needs exactly one of"),
        ('{ said = "stop" }', '{ said = "(" }', "line 27: policy.rules[3].before: said('(')"),
        (
            'rule = "lock_after_no"',
            'rule = "lock_after_no"\nverdict = "ask"',
            "policy.rules[10].verdict: lock_after_no",
        ),
        ("times = 3", "time = 3", "policy.rules[11].when: time is unknown"),
        (
            "probability = 0.6",
            "probability = 60",
            "policy.rules[12].rule: confident(60.0): a probability is from 0 to 1",
        ),
        ("confident = 0.9", "confident = true", "policy.rules[13].when: confident(True): a probability is from 0 to 1"),
        ('verdict = "ask"', 'verdict = "maybe"', "line 16: policy.rules[1].verdict: is 'maybe'"),
    ],
)
def test_an_error_names_line_and_key(old, new, says):
    assert TEXT.count(old) == 1
    with pytest.raises(ConfigError) as caught:
        rules(TEXT.replace(old, new))
    assert str(caught.value).startswith("edgeagent.toml, line ")
    assert says in str(caught.value)


@pytest.mark.parametrize(("name", "key"), [(name, key) for name, keys in KEYS.items() for key in keys])
def test_every_key_of_a_rule_is_read(name, key):
    tables = {row["rule"]: row for row in tomllib.loads(TEXT)["policy"]["rules"]}
    with pytest.raises(ConfigError, match=rf"\.{key}: "):
        rules_from_table({"rules": [tables[name] | {key: object()}]})


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ('rule = "never"\ntools = "pay"', "line 3: policy.rules[0].tools: .* it has tool, when, because, verdict"),
        (
            'rule = "guard"\ntool = "pay"\nrequires = {}',
            "line 4: policy.rules[0].requires: .* it has tool, require, because",
        ),
        ('rule = "cooldown"\ntool = "pay"\nsecs = 3', "line 4: policy.rules[0].secs: .* it has tool, seconds, because"),
        ('rule = "at_most"\nmax = 3', "line 3: policy.rules[0].max: .* it has n, tool, per, because, verdict"),
        ('rule = "quorum"\nreason = "x"', "line 3: policy.rules[0].reason: .* it has k, tool, of, because, verdict"),
    ],
)
def test_an_unknown_key_is_named_before_a_missing_one(row, says):
    with pytest.raises(ConfigError, match=says.replace("[", r"\[")):
        rules(f"[[policy.rules]]\n{row}\n")


def test_an_unknown_key_of_the_section_is_refused():
    with pytest.raises(ConfigError, match=r"line 2: policy.rule is unknown; write \[\[policy.rules\]\]"):
        rules("[policy]\nrule = 3\n")


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "0", "1e300", "100000000000000000000"])
def test_a_window_that_no_clock_can_hold_is_refused_by_name(seconds):
    with pytest.raises(ConfigError, match=r"policy.rules\[0\].rule: last_seconds"):
        rules(f"[[policy.rules]]\nrule = 'cooldown'\ntool = 'valve'\nseconds = {seconds}\n")
