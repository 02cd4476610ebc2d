"""Testing of agents: a session whose model says what the test says, in a folder of its own. Needs no weights.

from edgeagent.testing import call, scripted

def test_the_valve_is_opened():
    with scripted(AGENT, [call("set_valve", valve="north"), "It is open."]) as session:
        assert session.ask("Open the north valve.").calls[0].result == "open"
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from tempfile import TemporaryDirectory
from typing import Any

from edgeagent.core.agent import Agent
from edgeagent.core.values import canonical_json
from edgeagent.runtime import library
from edgeagent.runtime.model import Script
from edgeagent.runtime.session import Session


@contextlib.contextmanager
def scripted(agent: Agent | str, answers: Sequence[str], **options: Any) -> Iterator[Session]:
    """Open a session whose model writes these answers, one each time it is asked; then close it and remove its trace.

    A call is written by `call`. After the last answer the model is unavailable, which the outcome says. `options` are
    those of `edgeagent.open`: `decide`, `seed`, `max_steps` and the others. Tools, rules, budget and trace are real.
    """
    with (
        TemporaryDirectory(prefix="edgeagent-") as folder,
        library.open(agent, Script(answers), **{"state": folder, **options}) as session,
    ):
        yield session


def call(tool: str, **arguments: Any) -> str:
    """What the model writes to call a tool."""
    return canonical_json({"name": tool, "arguments": arguments})
