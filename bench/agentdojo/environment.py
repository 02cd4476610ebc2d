"""AgentDojo in an environment of its own, made on demand under the user's cache; and the process that runs there.

AgentDojo wants the client libraries of six model vendors. Its suites, tools and checks need none of them, so it is
installed without its dependencies, plus the few that the offline part imports.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

AGENTDOJO = "agentdojo==0.1.35"
NEEDS = ("pydantic[email]>=2.7.1", "docstring-parser>=0.15", "deepdiff>=8.6.1", "pyyaml>=6.0.1", "rich>=13.7.1")
READY = "ready-1"


def folder() -> Path:
    """Where the environment is kept."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "edgeagent" / "bench" / AGENTDOJO.replace("==", "-")


def python() -> Path:
    """The interpreter of AgentDojo's environment, made if it is not there. Raises CalledProcessError offline."""
    home = folder()
    inside = home / "bin" / "python"
    if not (home / READY).exists():
        print(f"Installing {AGENTDOJO} into {home}", file=sys.stderr)
        venv.create(home, with_pip=True, clear=True)
        pip = [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *NEEDS], check=True, stdout=sys.stderr)
        subprocess.run([*pip, "--no-deps", AGENTDOJO], check=True, stdout=sys.stderr)
        (home / READY).touch()
    return inside


class World:
    """The process that holds one AgentDojo world at a time."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("world.py")
        self._process = subprocess.Popen(
            [str(python()), "-I", str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, op: str, **request: Any) -> Any:
        """Send one request and return its answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": op, **request}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"AgentDojo's process ended at {op} {request}; its own words are above")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)
        self._process.stdout.close()
