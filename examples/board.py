"""A board on a serial console: the agent may use exactly the commands that `board.toml` lists.

    EDGEAGENT_BOARD=usb:1a86:7523 edgeagent run examples/board.py "What U-Boot version is this board running?"

`edgeagent device list` shows how your board can be named. docs/first-board.md starts an emulated one.
"""

from __future__ import annotations

import os
from pathlib import Path

from edgeagent import Agent, Budget
from edgeagent.driver.device.device import device_tools

BOARD = os.environ.get("EDGEAGENT_BOARD", "usb:1a86:7523")

agent = Agent(
    name="board",
    system="You look after a board over its serial console. Use the tools; say what they returned.",
    tools=device_tools(BOARD, Path(__file__).with_name("board.toml")),
    budget=Budget(steps=4, tool_calls=3),
)
