"""`edgeagent sessions prune`, as a user would run it."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def two(edgeagent, tmp_path, script):
    """The command, in a folder where two sessions have ended."""
    (tmp_path / "agent.py").write_text('from edgeagent import Agent\nagent = Agent("a", "You talk.")\n')
    for _ in range(2):
        assert edgeagent("run", "agent.py", "Hi", "--model", script("Hello.")).returncode == 0
    return edgeagent


def rows(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_dry_run_shows_what_would_go_and_removes_nothing(two, tmp_path):
    done = two("sessions", "prune", "--keep", 1, "--dry-run", "--json")
    *items, total = rows(done)
    assert [i["kind"] for i in items] == ["session"]
    assert items[0]["removed"] is False
    assert total["freed"] == items[0]["bytes"] > 0
    assert len(list((tmp_path / "state" / "sessions").iterdir())) == 2


def test_nothing_goes_without_a_yes(two, tmp_path):
    done = two("sessions", "prune", "--keep", 0)
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert done.stdout.count("goes:") == 2
    assert len(list((tmp_path / "state" / "sessions").iterdir())) == 2


def test_with_a_yes_it_goes_and_what_is_freed_is_said(two, tmp_path):
    done = two("sessions", "prune", "--to-size", "1kB", "--yes")
    assert done.returncode == 0
    assert "freed 0.0 MB" in done.stdout
    assert list((tmp_path / "state" / "sessions").iterdir()) == []
    assert two("sessions", "prune", "--to-size", "1kB").returncode == 0  # Nothing is left to ask about.


def test_a_measure_that_is_none_is_refused_with_an_example(two):
    done = two("sessions", "prune", "--older-than", "soon")
    assert done.returncode == 2
    assert "30d" in done.stderr


def test_show_says_what_a_turn_writes(two):
    session = rows(two("sessions", "list", "--json"))[0]["id"]
    shown = rows(two("sessions", "show", session, "--json"))[0]
    assert 100 < shown["bytes_a_turn"] < 2_000
    assert shown["bytes_a_close"] > 0
