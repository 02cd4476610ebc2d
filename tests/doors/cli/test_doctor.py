"""`edgeagent doctor` as a person and a program see it."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.long

AGENT = 'from edgeagent import Agent\n\nagent = Agent("a", "You help.")\n'


def test_no_model_is_bad_has_a_remedy_and_exit_code_6(edgeagent, tmp_path):
    done = edgeagent("doctor", "--json", EDGEAGENT_MODELS=str(tmp_path / "models"))
    rows = {row["about"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 6, done.stderr
    assert rows["models"]["verdict"] == "bad"
    assert rows["models"]["remedy"].startswith("edgeagent model pull ")
    assert {row["verdict"] for row in rows.values()} <= {"good", "bad", "unknown"}
    assert {"cpu", "llama.cpp", "memory", "state", "disk", "clock", "time zone", "serial", "systemd"} <= set(rows)


def test_a_person_reads_the_remedy_below_what_is_bad(edgeagent, tmp_path):
    done = edgeagent("doctor", EDGEAGENT_MODELS=str(tmp_path / "models"))
    lines = done.stdout.splitlines()
    bad = next(i for i, line in enumerate(lines) if line.startswith("BAD  models"))
    assert lines[bad + 1].strip().startswith("→ edgeagent model pull")


def test_an_agent_is_one_line(edgeagent, tmp_path, script):
    (tmp_path / "a.py").write_text(AGENT)
    (tmp_path / "edgeagent.toml").write_text(f'[model]\nname = "{script("Hello.")}"\n')
    assert "ok   agent          every check is good" in edgeagent("doctor", "a.py").stdout
    (tmp_path / "a.py").write_text("import nothing_that_there_is\n")
    done = edgeagent("doctor", "a.py")
    assert "BAD  agent          agent: a.py, line 1: ModuleNotFoundError" in done.stdout
    assert "→ edgeagent check a.py" in done.stdout


def test_wrong_settings_do_not_hide_the_board(edgeagent, tmp_path):
    (tmp_path / "a.py").write_text(AGENT)
    (tmp_path / "edgeagent.toml").write_text("[model]\nnmae = 1\n")
    done = edgeagent("doctor", "a.py")
    assert done.returncode == 6
    assert "cpu" in done.stdout
    assert "there is no key model.nmae" in done.stdout
