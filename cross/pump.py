"""The smallest agent that can show a call: one tool, few words, so that an emulated CPU is done in a minute."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgeagent import Agent, Budget, tool


@tool(idempotent=True, effect="write", trusted=True)
def set_pump(state: Literal["on", "off"], level: Annotated[int, Meta(ge=0, le=100)]) -> str:
    """Switch the pump and set its level in percent."""
    return f"pump {state} at {level} %"


agent = Agent(
    name="pump",
    system="You control a pump.",
    tools=[set_pump],
    budget=Budget(steps=1, tool_calls=1, completion_tokens=40, seconds=3000),  # no closing words: they cost most
)
