"""One ask of a remote model, and the one event that answers it."""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Iterator

from edgeagent.codec.dialect import dialect_called
from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import AskModel
from edgeagent.core.values import Message
from edgeagent.driver.remote.endpoint import Endpoint
from edgeagent.driver.remote.model import Price, RemoteModel


@tool(idempotent=True, effect="write")
def set_valve(valve: str, seconds: int = 60) -> str:
    """Open a valve for some seconds."""
    return valve


@tool(idempotent=True, effect="read", trusted=True)
def look() -> str:
    """Look at the bed."""
    return "dry"


AGENT = Agent("garden", "You water a garden.", (set_valve, look), dialect=dialect_called("plain"))


def ask(text: str = "Open the north valve.", *, effect_id: int = 1, **more) -> AskModel:
    """What step asks in the first turn."""
    fields = {
        "messages": (Message("user", text),),
        "tools": AGENT.tool_names,
        "choice": "either",
        "max_tokens": 64,
        "timeout_ms": 60_000,
        "seed": 7,
    }
    return AskModel(effect_id=effect_id, **{**fields, **more})


SECOND = {"is_last": False}
"""How a driver is made that another one stands behind."""


class Asked:
    """A driver on an endpoint, with what it showed and posted."""

    def __init__(self, model: RemoteModel, agent: Agent = AGENT, **driver) -> None:
        self.shown: list[str] = []
        self.events: queue.Queue = queue.Queue()
        self.driver = model.driver(agent, self.shown.append, **driver)

    def event(self, asked: AskModel | None = None, wait_s: float = 60):
        """The event that answers the ask; there is no second one."""
        self.driver.submit(asked or ask(), self.events.put)
        return self.events.get(timeout=wait_s)


@contextlib.contextmanager
def asking(
    url: str,
    *,
    price: Price | None = None,
    agent: Agent = AGENT,
    driver: dict | None = None,
    clock=time.monotonic,
    **more,
) -> Iterator[Asked]:
    """A driver of the model at this address."""
    model = RemoteModel(Endpoint(url=url, model="m", **more), price, clock=clock)
    asked = Asked(model, agent, **(driver or {}))
    try:
        yield asked
        assert asked.events.empty()
    finally:
        asked.driver.close()
        model.close()
