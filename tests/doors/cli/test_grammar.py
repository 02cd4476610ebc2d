"""`edgeagent grammar`: what may be written, as text that is kept and checked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
KEPT = ["gateway.gbnf", "gateway.lark", "greenhouse.gbnf", "greenhouse.lark"]


def grammar(*arguments, cwd=ROOT):
    command = [sys.executable, "-m", "edgeagent", "grammar", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def test_the_grammars_of_the_examples_are_kept_and_up_to_date():
    assert sorted(f.name for f in (ROOT / "grammars").iterdir() if f.suffix != ".md") == KEPT
    done = grammar("--check")
    assert (done.returncode, done.stdout) == (0, "4 grammars are up to date\n"), done.stderr


@pytest.mark.parametrize(("engine", "begin"), [("llguidance", "start: "), ("gbnf", "root ::= ")])
def test_what_may_be_written_is_printed(engine, begin):
    done = grammar("examples/greenhouse.py", "--engine", engine, "--tool", "set_valve")
    assert done.returncode == 0
    assert done.stdout.startswith(begin)
    assert "set_valve" in done.stdout and "notify" not in done.stdout


def test_a_stale_grammar_fails_the_check_with_the_command_that_renews_it(tmp_path):
    grammar("examples/greenhouse.py", "--out", tmp_path)
    (tmp_path / "greenhouse.gbnf").write_text((tmp_path / "greenhouse.gbnf").read_text() + "more")
    done = grammar("--check", "--out", tmp_path)
    assert done.returncode == 6
    file = tmp_path / "greenhouse.gbnf"
    command = f"edgeagent grammar examples/greenhouse.py --engine gbnf --out {tmp_path}"
    assert f"{file} is stale; renew it with: {command}" in done.stderr
    assert grammar(*command.split()[2:]).returncode == 0
    assert grammar("--check", "--out", tmp_path).returncode == 0


def test_a_grammar_that_is_not_there_fails_the_check_of_its_agent(tmp_path):
    done = grammar("examples/gateway.py", "--check", "--out", tmp_path)
    assert done.returncode == 6
    assert "gateway.lark is not there" in done.stderr


def test_what_the_user_said_narrows_what_is_printed(tmp_path):
    (tmp_path / "bank.py").write_text(
        """from typing import Annotated
from edgeagent import Agent, FromUser, tool

@tool(idempotent=False)
def pay(to: Annotated[str, FromUser()], amount: Annotated[int, FromUser()]) -> None:
    'Pay somebody.'

agent = Agent(name="bank", tools=[pay])
"""
    )
    done = grammar(tmp_path / "bank.py", "--said", "Pay Bob 20 euros.")
    assert '"enum":[20]' in done.stdout and '"Bob"' in done.stdout and '"Mallory"' not in done.stdout
    nothing = grammar(tmp_path / "bank.py", "--said", "Pay Bob.")
    assert "pay" not in nothing.stdout and "cannot be called" in nothing.stderr
    assert grammar(tmp_path / "bank.py", "--said", "x", "--check").returncode == 2


def test_an_unknown_tool_is_named_with_those_there_are():
    done = grammar("examples/gateway.py", "--tool", "reboot")
    assert done.returncode == 2
    assert "reboot" in done.stderr and "uptime" in done.stderr


def test_without_an_agent_there_is_nothing_to_print():
    assert grammar().returncode == 2
