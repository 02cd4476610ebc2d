"""Sessions from Python: ask, decide, stream, two agents on one loaded model, asyncio: `python examples/library.py`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from typing import Annotated, Literal

import msgspec

import edgeagent
from edgeagent import Agent, tool

Bed = Literal["north", "south"]


@tool(idempotent=True, effect="read", trusted=True, examples=["How wet is the south bed?"])
def moisture(bed: Bed) -> dict[str, object]:
    """Measure how wet the soil of a bed is."""
    return {"bed": bed, "wet": {"north": 31, "south": 64}[bed], "unit": "%"}


@tool(idempotent=True, effect="write", trusted=True, confirm=True, examples=["Open the south valve for a minute."])
def open_valve(valve: Bed, seconds: Annotated[int, msgspec.Meta(ge=1, le=600)]) -> str:
    """Open a water valve for some seconds."""
    return f"{valve} is open for {seconds} s"


GARDENER = Agent("gardener", "You look after a garden.", (moisture, open_valve))
GREETER = Agent("greeter", "You greet people in one short sentence.")


async def at_once(model: edgeagent.Model, state: str) -> list[str]:
    """Ask two agents at the same time."""
    both = (edgeagent.open_async(agent, model, state=state) for agent in (GARDENER, GREETER))
    async with next(both) as gardener, next(both) as greeter:
        answers = await asyncio.gather(gardener.ask("How wet is the south bed?"), greeter.ask("Good morning!"))
        return [answer.text for answer in answers]


def main(name: str = "smollm2") -> None:
    """Show each way once."""
    model = edgeagent.load(name)
    with tempfile.TemporaryDirectory() as state:
        with edgeagent.open(GARDENER, model, state=state, decide=lambda asked: "north" in asked.arguments) as session:
            answer = session.ask("How wet is the north bed?")
            print("ask:", answer.text, answer.calls[0].result)
            print("decide:", session.ask("Open the north valve for 30 seconds.").calls[0].result)
        with edgeagent.open(GREETER, model, state=state) as session:
            print("stream:", *session.stream("Hello!"), sep="|")
        print("asyncio:", asyncio.run(at_once(model, state)))
    model.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
