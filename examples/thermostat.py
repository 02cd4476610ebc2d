"""A board that describes its own tools: the agent gets exactly those, typed, and asks before it writes.

    make firmware && build/firmware/thermostat            # prints where its line is, e.g. /dev/pts/3
    EDGEAGENT_BOARD=/dev/pts/3 edgeagent run examples/thermostat.py "Set the thermostat to 21.5 degrees."

docs/firmware.md shows the board's side.
"""

from __future__ import annotations

import os

from edgeagent import Agent, Budget
from edgeagent.driver.device.board_tools import Board

board = Board(os.environ.get("EDGEAGENT_BOARD", "usb:1a86:7523"))

agent = Agent(
    name="thermostat",
    system="You look after a thermostat. Use the tools; say what they returned.",
    tools=board.tools,
    budget=Budget(steps=4, tool_calls=3),
)
