"""Run the program itself, as a user would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def edgeagent(tmp_path):
    """A function that runs the command in a folder of its own and returns the finished process."""
    environment = {
        **os.environ,
        "EDGEAGENT_STATE": str(tmp_path / "state"),
        "EDGEAGENT_GREENHOUSE": str(tmp_path),
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
            cwd=tmp_path,
            env={**environment, **more},
            check=False,
        )

    return run


@pytest.fixture
def script(tmp_path):
    """A function that writes a model script and returns the model's name."""

    def write(*answers):
        file = tmp_path / "script.json"
        file.write_text(json.dumps([a if isinstance(a, str) else json.dumps(a) for a in answers]))
        return f"script:{file}"

    return write
