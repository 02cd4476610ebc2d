"""The agent that is offered in these tests: a write that asks first, a read, and a tool that wants a user's words."""

AGENT = '''
from pathlib import Path
from typing import Annotated, Literal

from edgeagent import Agent, FromUser, tool
from edgeagent.policy.rules import at_most

HERE = Path(__file__).parent


@tool(idempotent=False, effect="write", confirm=True)
def set_valve(valve: Literal["north", "south"], seconds: int) -> str:
    """Open a valve for some seconds."""
    with (HERE / "effects").open("a") as file:
        file.write(f"{valve} {seconds}\\n")
    return f"{valve} is open for {seconds} s"


@tool(idempotent=True, effect="read")
def read_sensor(sensor: Literal["soil", "air"]) -> dict:
    """Read a sensor."""
    print("this must not be on the line")
    return {"sensor": sensor, "percent": 41}


@tool(idempotent=True, effect="read")
def find(words: Annotated[str, FromUser()]) -> str:
    """Find what the user named."""
    return words


RULES = [at_most(2, "set_valve", per="session", because="twice is enough")]
agent = Agent("garden", "You water a garden.", (set_valve, read_sensor, find), policies=RULES)
'''
