"""From where on a call is made, for one agent: found on the real model, kept, used, and not used when it is stale."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.model

AGENT = '''
from edgeagent import Agent, tool

@tool(idempotent=True, examples=["Turn the lamp on.", "Switch the lamp off, please."])
def lamp(on: bool) -> str:
    """Switch the lamp on or off."""
    return "on" if on else "off"

agent = Agent("lamps", "You switch a lamp.", tools=[lamp])
'''


def needed_in(printed: str) -> float:
    rows = [json.loads(line) for line in printed.splitlines()]
    [answer] = [row for row in rows if row.get("event") == "ModelAnswered" and row["scores"]]
    return dict(answer["scores"])["(needed)"]


@pytest.mark.slow
def test_a_calibration_is_kept_and_used_until_the_tools_change(edgeagent, smollm2, tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    options = ("--model", smollm2, "--threads", 1)
    done = edgeagent("calibrate", "agent.py", *options, "--json", timeout=500)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    each = found["thresholds"][""]
    assert (each["unrelated"], each["examples"]) == (60, 2)
    assert each["unrelated_refused"] >= 54 and each["examples_refused"] == 0
    assert Path(found["file"]).is_file()

    told = edgeagent("run", "agent.py", "What is seven times eight?", *options, "--json", timeout=300)
    assert needed_in(told.stdout) == each["needed"]
    assert "calibrate" not in told.stderr

    (tmp_path / "agent.py").write_text(AGENT.replace("on or off", "on"))
    told = edgeagent("run", "agent.py", "What is seven times eight?", *options, timeout=300)
    assert "the tools have changed since; run `edgeagent calibrate` again" in told.stderr


def test_a_damaged_calibration_is_not_used_and_that_is_said(edgeagent, smollm2, tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    options = ("--model", smollm2, "--threads", 1)
    digest = hashlib.sha256(Path(smollm2).read_bytes()).hexdigest()
    file = tmp_path / "state" / "calibrations" / f"lamps-{digest[:8]}.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"tools": "')
    told = edgeagent("run", "agent.py", "Hello!", *options, timeout=300)
    assert f"{file} is not used" in told.stderr


def test_an_agent_without_tools_has_nothing_to_calibrate(edgeagent, smollm2, tmp_path):
    (tmp_path / "agent.py").write_text('from edgeagent import Agent\nagent = Agent("talker", "You talk.")\n')
    done = edgeagent("calibrate", "agent.py", "--model", smollm2, "--threads", 1, timeout=300)
    assert done.returncode == 2
    assert "nothing to calibrate" in done.stderr


def test_a_script_cannot_be_calibrated(edgeagent, script, tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    done = edgeagent("calibrate", "agent.py", "--model", script("x"))
    assert done.returncode == 2
    assert "a script" in done.stderr
