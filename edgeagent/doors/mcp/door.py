"""Door of programs that speak MCP, on stdin and stdout: answers the greeting before anything else is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeagent.core.names import writable
from edgeagent.doors.mcp.answers import Answers
from edgeagent.doors.mcp.client import Source
from edgeagent.driver.peer import Peer

if TYPE_CHECKING:
    from edgeagent.runtime.open import OpenRequest


class McpDoor:
    """One client, from its first message to its last."""

    def __init__(
        self,
        agent: str,
        file: Path,
        options: Mapping[str, Any],
        incoming: int,
        write: Callable[[memoryview], int | None],
    ) -> None:
        """`agent` is in `file`, after which it is named here: nothing need be loaded. `options`: see `OpenRequest`."""

        def request() -> OpenRequest:
            from edgeagent.runtime.open import OpenRequest

            return OpenRequest(agent=agent, **options)

        self._answers = Answers(Source(writable(f"ask_{file.stem}"), request))
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
