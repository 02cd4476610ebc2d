"""A session that was closed and resumed on the real model is the uncut one: same text, same tokens evaluated."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.model

AGENT = """
from edgeagent import Agent, Budget

agent = Agent("talker", "You answer in a few words.", budget=Budget(completion_tokens=40, seconds=None))
"""
FIRST, SECOND = "Name a colour of leaves.", "And one of the sky?"


def answers(printed: str) -> list[dict]:
    """What the model answered and what it cost, without the times."""
    rows = [json.loads(line) for line in printed.splitlines()]
    told = [row for row in rows if row.get("event") == "ModelAnswered"]
    return [{"text": r["text"], **{k: v for k, v in r["usage"].items() if k != "micros"}} for r in told]


@pytest.mark.deep
def test_text_after_resuming_is_that_of_the_uncut_session(edgeagent, smollm2, tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    options = ("--model", smollm2, "--threads", 1, "--context-tokens", 512, "--json")
    uncut = edgeagent("chat", "agent.py", *options, stdin=f"{FIRST}\n{SECOND}\n", timeout=300)
    assert uncut.returncode == 0, uncut.stderr
    first = edgeagent("run", "agent.py", FIRST, *options, timeout=300, EDGEAGENT_STATE=str(tmp_path / "cut"))
    again = ("--model", smollm2, "--threads", 1, "--json")
    second = edgeagent("run", "--continue", SECOND, *again, timeout=300, EDGEAGENT_STATE=str(tmp_path / "cut"))
    assert second.returncode == 0, second.stderr
    cut = answers(first.stdout) + answers(second.stdout)
    assert cut == answers(uncut.stdout)
    assert cut[1]["evaluated"] < cut[1]["prompt"] / 2
