"""The docs say what is there: every command, every setting, and examples that run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from edgeagent.doors.cli.main import VERBS
from edgeagent.errors import ExitCode
from edgeagent.runtime.config import ModelSettings

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_command_is_documented(verb):
    assert f"`edgeagent {verb}" in README


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_command_has_a_help_page(verb):
    done = subprocess.run(
        [sys.executable, "-m", "edgeagent", verb, "--help"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert "Usage:" in done.stdout


def test_every_exit_code_is_documented():
    for code in ExitCode:
        assert re.search(rf"\b{int(code)} \w", README), code


def test_the_example_of_the_readme_runs(tmp_path):
    (tmp_path / "garden.py").write_text(blocks("python")[0])
    call = {"name": "set_valve", "arguments": {"valve": "north", "seconds": 30}}
    (tmp_path / "script.json").write_text(json.dumps([json.dumps(call), "It is open."]))
    command = [sys.executable, "-m", "edgeagent", "run", "garden.py", "Open it.", "--model", "script:script.json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "EDGEAGENT_STATE": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, input="", check=True)
    assert done.stdout == "It is open.\n"
    assert '"north is open for 30 s"' in done.stderr


def test_the_settings_of_the_readme_are_settings():
    settings = tomllib.loads(blocks("toml")[0])
    assert set(settings["model"]) <= set(ModelSettings.__struct_fields__)


def test_no_doc_names_a_file_that_is_not_there():
    for page in [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for name in re.findall(r"`((?:edgeagent|examples|bench|tests|traces|docs)/[\w./-]+\.\w+)`", page.read_text()):
            assert (ROOT / name).exists(), f"{page.name} names {name}"


def test_every_dependency_says_why_it_is_there():
    text = (ROOT / "pyproject.toml").read_text()
    listed = re.findall(r'^    "[a-z][\w-]*[>=<][^"]*",(.*)$', text, re.MULTILINE)
    above = text.count("placeholder, so there it is left out")
    assert sum("#" not in rest for rest in listed) <= above
