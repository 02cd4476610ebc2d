"""Meaning beside words: it may choose what is read and what is asked, and never by itself what is changed."""

from __future__ import annotations

from collections.abc import Mapping

from edgeagent.core.agent import Tool, tool
from edgeagent.request.plan import plan
from edgeagent.request.tools import Tools


@tool(idempotent=True, effect="write")
def start_pump() -> None:
    """Start the pump."""


@tool(idempotent=True, effect="write")
def stop_pump() -> None:
    """Stop the pump."""


@tool(idempotent=True, effect="read")
def list_devices() -> str:
    """List the devices that are connected."""
    return ""


@tool(idempotent=True, effect="read")
def get_speed() -> str:
    """Show how fast the link is."""
    return ""


class Nearest:
    """An embedder to which one text is nearer than all others."""

    digest = "test"

    def __init__(self, name: str) -> None:
        self.name = name

    def alike(self, request: str, texts: Mapping[str, str]) -> Mapping[str, float]:
        """One is near."""
        return {name: 0.9 if name == self.name else 0.8 for name in texts}


def tools(*each: Tool, near: str) -> Tools:
    return Tools.of(each, Nearest(near))


def test_what_words_leave_open_is_read_by_meaning() -> None:
    for near in ("list_devices", "get_speed"):
        (call,) = plan("Who is there?", tools(list_devices, get_speed, near=near), needed=-99.0).calls
        assert call.tools == (near,)


def test_what_words_leave_open_is_asked_and_not_changed_by_meaning() -> None:
    planned = plan("rest the pump", tools(start_pump, stop_pump, near="start_pump"), needed=-99.0)
    assert not planned.calls
    assert planned.text.endswith("Shall I start pump?")


def test_an_order_in_the_tools_own_words_is_carried_out_whatever_is_near() -> None:
    planned = plan("Stop the pump", tools(start_pump, stop_pump, near="start_pump"), needed=-99.0)
    assert [call.tools for call in planned.calls] in ([("stop_pump",)], [])
