"""`edgeagent policy`: rules in sentences, and what they would have stopped."""

from __future__ import annotations

import json

import pytest

AGENT = '''
from edgeagent import Agent, tool
from edgeagent.policy.rules import arg, at_most, guard

@tool(idempotent=False)
def pay(amount: int) -> str:
    """Pay."""
    return "paid"

agent = Agent(name="payer", tools=[pay], policies=RULES)
'''
OLD, NEW = "[at_most(3, 'pay')]", "[at_most(3, 'pay'), guard('pay', arg('amount') <= 100)]"
TOML = """
[[policy.rules]]
rule = "cooldown"
tool = "pay"
seconds = 60
because = "slowly"
"""
PAY = {"name": "pay", "arguments": {"amount": 500}}


@pytest.fixture
def agent(tmp_path):
    """A function that writes the agent file with these rules."""

    def write(rules, name="agent.py"):
        file = tmp_path / name
        file.write_text(AGENT.replace("RULES", rules))
        return file

    return write


def test_explain_says_each_rule_its_memory_and_its_tools(edgeagent, agent, tmp_path):
    (tmp_path / "edgeagent.toml").write_text(TOML)
    done = edgeagent("policy", "explain", agent(NEW))
    assert done.returncode == 0, done.stderr
    assert "guard: when pay is called, this must hold: amount <= 100; otherwise the call is refused" in done.stdout
    assert "touches pay; remembers 1 row, 128 bits" in done.stdout
    assert "slowly" in done.stdout


def test_explain_in_json_is_one_object_a_rule(edgeagent, agent):
    done = edgeagent("policy", "explain", agent(NEW), "--json")
    assert [json.loads(line)["rule"] for line in done.stdout.splitlines()] == ["at_most", "guard"]


def test_a_rule_about_an_unknown_tool_is_a_usage_error(edgeagent, agent):
    done = edgeagent("policy", "explain", agent("[at_most(3, 'sell')]"))
    assert done.returncode == 2
    assert "names the tool sell; its tools are: pay" in done.stderr


def test_new_rules_are_tried_on_what_was_recorded(edgeagent, agent, script, tmp_path):
    edgeagent("run", agent(OLD), "pay", "--model", script(PAY, "Done."))
    [trace] = (tmp_path / "state").rglob("trace.cbor")
    old, new = agent(OLD), agent(NEW, "new.py")
    fine = edgeagent("policy", "test", old, trace)
    assert (fine.returncode, "0 of 1 calls" in fine.stdout) == (0, True), fine.stderr
    stopped = edgeagent("policy", "test", new, trace, "--recorded-with", old)
    assert stopped.returncode == 3
    assert 'refuse pay{"amount":500} (pay is only allowed when amount <= 100)' in stopped.stdout


def test_an_operators_rule_holds_in_a_run_and_in_its_replay(edgeagent, agent, script, tmp_path):
    config = tmp_path / "edgeagent.toml"
    config.write_text(TOML.replace('rule = "cooldown"', 'rule = "never"').replace("seconds = 60\n", ""))
    done = edgeagent("run", agent(OLD), "pay", "--model", script(PAY, "I may not."))
    assert done.returncode == 3, done.stderr
    config.unlink()
    assert edgeagent("replay").stdout.startswith("identical")


def test_a_resumed_session_stays_under_the_rules_it_began_with(edgeagent, agent, script, tmp_path):
    config = tmp_path / "edgeagent.toml"
    config.write_text(TOML.replace('rule = "cooldown"', 'rule = "never"').replace("seconds = 60\n", ""))
    edgeagent("run", agent(OLD), "pay", "--model", script(PAY, "I may not."))
    config.unlink()
    again = edgeagent("run", agent(OLD), "pay", "--continue", "--model", script("", "", PAY, "I may not."))
    assert "the rules in edgeagent.toml have changed; this session stays under those it began with" in again.stderr
    assert again.returncode == 3, again.stderr
