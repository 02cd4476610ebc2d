"""Door of programs that speak MCP, on stdin and stdout: answers the greeting before anything else is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from edgeagent.doors.mcp.answers import Answers
from edgeagent.doors.mcp.offered import Source
from edgeagent.driver.peer import Peer
from edgeagent.runtime.open import OpenRequest
from edgeagent.runtime.wiring import agent_path


class McpDoor:
    """One client, from its first message to its last."""

    def __init__(
        self, agent: str, options: Mapping[str, Any], incoming: int, write: Callable[[memoryview], int | None]
    ) -> None:
        """`options` are those of `OpenRequest`. The agent is asked under its file's name: nothing need be loaded."""
        self._answers = Answers(Source(agent_path(agent).stem, OpenRequest(agent=agent, **options)))
        self._peer = Peer(incoming, write, self._answers, batches=True, cancels="notifications/cancelled")

    def run(self) -> None:
        """Serve until the client ends, or `stop`."""
        try:
            self._peer.run()
        finally:
            self._answers.close()

    def stop(self) -> None:
        """End in good order. From any thread, or a signal."""
        self._peer.stop()
