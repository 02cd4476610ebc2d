"""Run the program itself, as a user would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def runner(folder):
    """A function that runs the command in this folder and returns the finished process."""
    environment = {
        **os.environ,
        "EDGEAGENT_STATE": str(folder / "state"),
        "EDGEAGENT_GREENHOUSE": str(folder),
        "PYTHONPATH": str(ROOT),
        "NO_COLOR": "1",
    }

    def run(*arguments, stdin="", timeout=120, before=(), **more):
        command = [*before, sys.executable, "-m", "edgeagent", *map(str, arguments)]
        return subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=folder,
            env={**environment, **more},
            check=False,
        )

    return run


def write_script(folder, *answers):
    """Write a model script and return the model's name."""
    file = folder / "script.json"
    file.write_text(json.dumps([a if isinstance(a, str) else json.dumps(a) for a in answers]))
    return f"script:{file}"


@pytest.fixture
def edgeagent(tmp_path):
    """A function that runs the command in a folder of its own and returns the finished process."""
    return runner(tmp_path)


@pytest.fixture
def script(tmp_path):
    """A function that writes a model script and returns the model's name."""
    return lambda *answers: write_script(tmp_path, *answers)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """The state folder after a session of the greenhouse that has ended well; to be copied, not changed."""
    folder = tmp_path_factory.mktemp("recorded")
    read = {"name": "read_sensor", "arguments": {"sensor": "soil_moisture"}}
    model = write_script(folder, read, "It is dry.", "Still dry.")
    ended = runner(folder)("run", ROOT / "examples" / "greenhouse.py", "How dry is it?", "--model", model)
    assert ended.returncode == 0, ended.stderr
    return folder / "state"
