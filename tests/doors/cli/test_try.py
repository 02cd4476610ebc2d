"""`edgeagent try`: what an agent makes of its author's requests, on the real model."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.model, pytest.mark.long]

AGENT = '''
from typing import Literal
from edgeagent import Agent, tool

@tool(idempotent=True, examples=["Turn the lamp on.", "Switch the lamp off, please."])
def switch_lamp(on: bool) -> str:
    """Switch the lamp on or off."""
    raise SystemExit("a tool ran")

@tool(idempotent=True, effect="read")
def read_meter(what: Literal["power", "energy"]) -> str:
    """Read the meter."""
    raise SystemExit("a tool ran")

agent = Agent("lamps", "You switch a lamp.", tools=[switch_lamp, read_meter])
'''
REQUESTS = """
# what I say
Turn the lamp on => switch_lamp(on=True)
Schalte die Lampe aus => switch_lamp(on=False)
Turn the lamp off => switch_lamp(on=True)
Do not turn the lamp on => none
Illuminate the parlour => switch_lamp(on=True)
Read the power meter
"""


@pytest.mark.deep
def test_each_request_is_judged_and_nothing_runs(edgeagent, smollm2, tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "requests.txt").write_text(REQUESTS)
    options = ("--model", smollm2, "--threads", 1)
    done = edgeagent("try", "agent.py", "requests.txt", *options, "--json", timeout=300)
    assert done.returncode == 6, done.stderr
    found = json.loads(done.stdout)
    assert [each["outcome"] for each in found["tried"]][:4] == ["right", "right", "wrong", "right"]
    assert found["tried"][5]["outcome"] is None and found["tried"][5]["calls"] == [["read_meter", {"what": "power"}]]
    assert found["helpful"]["switch_lamp"][:2] == ["illuminate", "parlour"]
    done = edgeagent("try", "agent.py", *options, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "2 right"


def test_a_line_that_names_no_tool_of_the_agent_is_an_error_with_its_place(edgeagent, smollm2, tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "requests.txt").write_text("Turn it on => lamp(on=True)\n")
    done = edgeagent("try", "agent.py", "requests.txt", "--model", smollm2)
    assert done.returncode == 2
    assert "requests.txt, line 1: agent lamps has no tool lamp; it has switch_lamp, read_meter" in done.stderr


def test_requests_that_are_no_text_are_refused_with_the_remedy(edgeagent, smollm2, tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "requests.txt").write_bytes(b"Turn the lamp \xff on")
    done = edgeagent("try", "agent.py", "requests.txt", "--model", smollm2)
    assert done.returncode == 2, done.stderr
    assert "requests.txt cannot be read as text" in done.stderr and "save it as UTF-8" in done.stderr
