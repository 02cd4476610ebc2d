"""What `import edgeagent` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import edgeagent


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_everything_named_is_there_once():
    assert len(set(edgeagent.__all__)) == len(edgeagent.__all__)
    assert all(hasattr(edgeagent, name) for name in edgeagent.__all__)


def test_the_front_door_brings_no_engine_and_no_drawing():
    heavy = {"numpy", "llama_cpp", "llguidance", "rich", "click", "cbor2", "jinja2", "serial", "pydantic", "attrs"}
    assert not heavy & modules_after("import edgeagent")


def test_the_front_door_imports_few_modules():
    added = modules_after("import edgeagent") - modules_after("pass")
    assert len(added) < 160, len(added)


def test_help_imports_no_verb():
    code = "\n".join(
        (
            "from click.testing import CliRunner",
            "from edgeagent.doors.cli.main import cli",
            "CliRunner().invoke(cli, ['--help'])",
        )
    )
    verbs = {
        "cbor2",
        "edgeagent.trace",
        "edgeagent.doors.cli.run",
        "edgeagent.doors.cli.chat",
        "edgeagent.doors.cli.model",
        "numpy",
        "llama_cpp",
        "rich",
    }
    assert not verbs & modules_after(code)
