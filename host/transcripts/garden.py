"""The agent of the transcripts: one tool of its own; the others are declared by the host."""

from typing import Literal

from edgeagent import Agent, Budget, tool


@tool(idempotent=True, effect="read")
def read_sensor(sensor: Literal["soil", "air"]) -> str:
    """Read a sensor."""
    return f"{sensor}: 41 %"


agent = Agent("garden", "You water a garden.", (read_sensor,), budget=Budget(seconds=None))
