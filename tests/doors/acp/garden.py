"""An agent for editors, as a file, with a script for its model; its calls leave lines that can be counted."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

AGENT = '''
import time
from pathlib import Path
from typing import Literal

from edgeagent import Agent, Budget, tool

HERE = Path(__file__).parent


@tool(idempotent=False, effect="write", confirm=True)
def set_valve(valve: Literal["north", "south"], seconds: int) -> str:
    """Open a valve for some seconds."""
    with (HERE / "effects").open("a") as file:
        file.write(f"{valve} {seconds}\\n")
    while (HERE / "hold").exists():
        time.sleep(0.02)
    return f"{valve} is open for {seconds} s"


@tool(idempotent=True, effect="read")
def read_sensor(sensor: Literal["soil", "air"]) -> str:
    """Read a sensor."""
    print("reading", sensor)
    while (HERE / "hold").exists():
        time.sleep(0.02)
    return f"{sensor}: 41 %"


agent = Agent("garden", "You water a garden.", (set_valve, read_sensor), budget=Budget(seconds=None))
'''


def call(tool: str, **arguments: object) -> str:
    """What a model writes to call this tool."""
    return json.dumps({"name": tool, "arguments": arguments})


SENSOR = call("read_sensor", sensor="soil")
VALVE = call("set_valve", valve="north", seconds=30)


class Garden:
    """The agent's folder, and how it is started."""

    def __init__(self, folder: Path, *answers: str) -> None:
        self.folder = folder
        (folder / "garden.py").write_text(AGENT)
        self.write_script(*answers)
        self.env = {**os.environ, "PYTHONPATH": str(ROOT)}

    def write_script(self, *answers: str) -> None:
        """Have the model answer so."""
        (self.folder / "script.json").write_text(json.dumps(answers))

    def command(self, *more: str) -> list[str]:
        """What an editor starts."""
        own = ["--model", f"script:{self.folder / 'script.json'}", "--state", str(self.folder / "state")]
        return [sys.executable, "-m", "edgeagent", "acp", str(self.folder / "garden.py"), *own, *more]

    @property
    def effects(self) -> list[str]:
        """What was done to the world, a line for each time."""
        file = self.folder / "effects"
        return file.read_text().splitlines() if file.exists() else []

    def hold(self) -> None:
        """Have tools wait, once they have done their work."""
        (self.folder / "hold").touch()

    def let_go(self) -> None:
        """Have tools return."""
        (self.folder / "hold").unlink(missing_ok=True)
