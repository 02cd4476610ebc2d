"""Door of programs that speak MCP, on stdin and stdout: answers the greeting before anything else is loaded.

One thread reads and never waits. Calls of tools are worked off by a second one, words to the agent by a third, each in
the order in which they came; only a cancellation goes past them.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from edgeagent.codec.frames import Skipped
from edgeagent.codec.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Fault, Notification, refusal_of
from edgeagent.core.text import shown
from edgeagent.doors.mcp.offered import Offered
from edgeagent.driver.peer import Call, Peer, Refused
from edgeagent.errors import DriverUnavailable
from edgeagent.runtime.door import Decision, QuietDoor
from edgeagent.version import __version__

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The protocol's versions that are spoken, newest first; up to 2025-03-26 messages may come together."""

NO_SUCH_RESOURCE, CANCELLED = -32002, -32800

Work = queue.SimpleQueue[Callable[[], None] | None]


class McpDoor:
    """One client, from its first message to its last."""

    def __init__(
        self,
        agent: str,
        options: Mapping[str, Any],
        incoming: int,
        write: Callable[[memoryview], int | None],
        tell: Callable[[str], None],
    ) -> None:
        """`options` are those of `OpenRequest`; `tell` takes a sentence for the operator."""
        self._tell = tell
        self._peer = Peer(incoming, write, self, batches=True, cancels="notifications/cancelled")
        self._asks = False
        self._is_greeted = False
        self._offered = Offered(agent, options, Questions(self._decide), tell)
        self._works: dict[str, Work] = {"tools": queue.SimpleQueue(), "words": queue.SimpleQueue()}

    def run(self) -> None:
        """Serve until the client ends, or `stop`."""
        threads = [
            threading.Thread(target=_work_off, args=(work,), name=f"mcp {name}", daemon=True)
            for name, work in self._works.items()
        ]
        for thread in threads:
            thread.start()
        try:
            self._peer.run()
        finally:
            for work in self._works.values():
                work.put(None)
            for thread in threads:
                thread.join()
            self._offered.close()

    def stop(self) -> None:
        """End in good order. From any thread, or a signal."""
        self._peer.stop()

    # -- the owner of the peer -------------------------------------------------------------------------------------

    def asked(self, call: Call) -> None:
        """Answer what needs nothing, and put the rest into its queue."""
        params = {} if call.params is None else call.params
        if not isinstance(params, dict):
            raise Refused(INVALID_PARAMS, "params must be an object")
        if call.method == "initialize":
            return call.answer(self._greeted(params))
        if call.method == "ping":
            return call.answer({})
        if not self._is_greeted:
            raise Refused(INVALID_REQUEST, "send initialize first")
        do, work = self._answers(call, params)
        self._works[work].put(partial(_answered, call, do))
        return None

    def told(self, note: Notification) -> None:
        """No notification but a cancellation means anything here."""

    def skipped(self, found: Skipped) -> Fault | None:
        """Tell the client of what was no message."""
        return refusal_of(found)

    def _answers(self, call: Call, params: dict[str, Any]) -> tuple[Callable[[], Any], str]:
        """What answers a request, and in which queue it waits."""
        offered = self._offered
        match call.method:
            case "tools/list":
                return lambda: {"tools": offered.tools()}, "tools"
            case "tools/call":
                name, arguments = _text(params, "name"), params.get("arguments") or {}
                if not isinstance(arguments, dict):
                    raise Refused(INVALID_PARAMS, "arguments must be an object")
                if name == offered.ask_name:
                    return partial(offered.ask, call, arguments), "words"
                return partial(offered.call, call, name, arguments), "tools"
            case "resources/list":
                return lambda: {"resources": offered.resources()}, "tools"
            case "resources/templates/list":
                return lambda: {"resourceTemplates": []}, "tools"
            case "resources/read":
                uri = _text(params, "uri")
                return lambda: self._read(uri), "tools"
            case _:
                raise Refused(METHOD_NOT_FOUND, f"no method {shown(call.method[:80])!r} here")

    def _read(self, uri: str) -> dict[str, Any]:
        text = self._offered.read(uri)
        if text is None:
            raise Refused(NO_SUCH_RESOURCE, f"there is no resource {shown(uri[:200])!r}")
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}

    def _greeted(self, params: dict[str, Any]) -> dict[str, Any]:
        wanted, can = params.get("protocolVersion"), params.get("capabilities")
        self._asks, self._is_greeted = isinstance(can, dict) and "elicitation" in can, True
        return {
            "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {"listChanged": False}, "resources": {}},
            "serverInfo": {"name": "edgeagent", "version": __version__},
        }

    def _decide(self, question: str) -> bool:
        """Ask the client's user, where there is one to be asked."""
        if not self._asks:
            return False
        schema = {"type": "object", "properties": {"run": {"type": "boolean", "title": "Run exactly this"}}}
        asked = {"message": question, "requestedSchema": {**schema, "required": ["run"]}}
        try:
            said = self._peer.ask("elicitation/create", asked).wait()
        except (DriverUnavailable, Refused):
            return False
        content = said.get("content") if isinstance(said, dict) and said.get("action") == "accept" else None
        return isinstance(content, dict) and content.get("run") is True


class Questions(QuietDoor):
    """The end of a session where the client's user decides; silence, and nobody to be asked, is a no."""

    def __init__(self, decide: Callable[[str], bool]) -> None:
        self._decide = decide

    def decide(self, question: Any) -> Decision:
        """Put the question as it is recorded; only a yes to it is one."""
        text = f"{shown(question.because)}\n{question.tool}({shown(question.arguments)})"
        return Decision(self._decide(text), "decided by the client's user", question.digest)


def _text(params: dict[str, Any], name: str) -> str:
    if not isinstance(params.get(name), str):
        raise Refused(INVALID_PARAMS, f"{name} must be a text")
    return str(params[name])


def _answered(call: Call, do: Callable[[], Any]) -> None:
    if call.is_cancelled:
        return call.refuse(CANCELLED, "it was cancelled before it began")
    return call.answer(do())


def _work_off(work: Work) -> None:
    while (do := work.get()) is not None:
        try:
            do()
        # Whatever is wrong with one request is that request's answer.
        except Exception as error:
            call = do.args[0] if isinstance(do, partial) else None
            assert isinstance(call, Call), "whoever puts it there names its request"
            call.fail(error)
