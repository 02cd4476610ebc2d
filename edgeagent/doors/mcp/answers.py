"""What one client of MCP is answered, from its greeting on, whatever carries the messages.

Whoever hands messages on never waits. Calls of tools are worked off by one thread, words to the agent by another, each
in the order in which they came; only a cancellation goes past them.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from edgeagent.codec.frames import Skipped
from edgeagent.codec.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Fault, Notification, refusal_of
from edgeagent.core.text import shown
from edgeagent.doors.mcp.client import LEVELS, Client, Source
from edgeagent.driver.peer import Call, Refused
from edgeagent.version import __version__

if TYPE_CHECKING:
    from edgeagent.doors.mcp.offered import Offered
    from edgeagent.runtime.session import Session

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The protocol's versions that are spoken, newest first; up to 2025-03-26 messages may come together."""

CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": False},
    "resources": {},
    "prompts": {},
    "completions": {},
}
SERVER = {"name": "edgeagent", "version": __version__}

NO_SUCH_RESOURCE, CANCELLED = -32002, -32800

COMPLETED_MAX = 100
"""Values of a completion, as the protocol bounds them."""

TOOLS, WORDS = "tools", "words"
"""The queues in which requests wait."""

Do = Callable[[], Any]
Work = queue.SimpleQueue[Callable[[], None] | None]


class Answers:
    """One client: the owner of a `Talk`."""

    def __init__(self, source: Source) -> None:
        self.version = VERSIONS[0]
        """What was agreed upon."""
        self._is_greeted = False
        self._client = Client()
        self._source, self._loading = source, threading.Lock()
        self._loaded: Offered | None = None
        self._works: dict[str, tuple[Work, threading.Thread]] = {}
        self._is_closed = False

    @property
    def talk(self) -> Session | None:
        """The session in which the model is asked, once there is one."""
        return None if self._loaded is None else self._loaded.talk

    def close(self) -> None:
        """Wait until what runs has ended, and close its sessions. Cancel it before."""
        self._is_closed = True
        for work, _ in self._works.values():
            work.put(None)
        for _, thread in self._works.values():
            thread.join()
        if self._loaded is not None:
            self._loaded.close()

    @property
    def _offered(self) -> Offered:
        """What is offered; the threads that work load it, so that a greeting waits for nothing."""
        with self._loading:
            if self._loaded is None:
                from edgeagent.doors.mcp.offered import Offered

                self._loaded = Offered(self._source)
            return self._loaded

    # -- the owner of the talk -------------------------------------------------------------------------------------

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
        if call.method == "logging/setLevel":
            return call.answer(self._levelled(params))
        return self.asked_by(call, self._client, params)

    def asked_by(self, call: Call, client: Client, params: dict[str, Any]) -> None:
        """Put a request of a client into its queue."""
        do, work = self._answers(call, client, params)
        self._put(work, partial(_answered, call, do))

    def told(self, note: Notification) -> None:
        """No notification but a cancellation means anything here."""

    def skipped(self, found: Skipped) -> Fault | None:
        """Tell the client of what was no message."""
        return refusal_of(found)

    def _put(self, name: str, do: Callable[[], None]) -> None:
        if self._is_closed:
            raise Refused(INVALID_REQUEST, "this session has ended")
        if name not in self._works:
            work: Work = queue.SimpleQueue()
            thread = threading.Thread(target=_work_off, args=(work,), name=f"mcp {name}", daemon=True)
            self._works[name] = work, thread
            thread.start()
        self._works[name][0].put(do)

    def _answers(self, call: Call, client: Client, params: dict[str, Any]) -> tuple[Do, str]:
        """What answers a request, and in which queue it waits."""
        match call.method:
            case "tools/list":
                return lambda: {"tools": self._offered.tools()}, TOOLS
            case "tools/call":
                name, arguments = _text(params, "name"), _arguments(params)
                if name == self._source.ask_name:
                    return lambda: self._offered.ask(call, client, arguments), WORDS
                return lambda: self._offered.call(call, client, name, arguments), TOOLS
            case "resources/list":
                return lambda: {"resources": self._offered.resources()}, TOOLS
            case "resources/templates/list":
                return lambda: {"resourceTemplates": self._offered.templates()}, TOOLS
            case "resources/read":
                uri = _text(params, "uri")
                return lambda: self._read(uri), TOOLS
            case "prompts/list":
                return lambda: {"prompts": self._offered.prompts()}, TOOLS
            case "prompts/get":
                name, arguments = _text(params, "name"), _arguments(params)
                return lambda: self._prompt(name, arguments), TOOLS
            case "completion/complete":
                return lambda: self._completed(params), TOOLS
            case _:
                raise Refused(METHOD_NOT_FOUND, f"no method {shown(call.method[:80])!r} here")

    def _read(self, uri: str) -> dict[str, Any]:
        found = self._offered.read(uri)
        if found is None:
            raise Refused(NO_SUCH_RESOURCE, f"there is no resource {shown(uri[:200])!r}", {"uri": uri[:200]})
        return {"contents": [found]}

    def _prompt(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        found = self._offered.prompt(name, arguments)
        if found is None:
            known = self._source.ask_name
            raise Refused(INVALID_PARAMS, f"there is one prompt, {known}, and its argument is text")
        return found

    def _completed(self, params: dict[str, Any]) -> dict[str, Any]:
        about, argument = params.get("ref"), params.get("argument")
        if not isinstance(about, dict) or not isinstance(argument, dict):
            raise Refused(INVALID_PARAMS, "ref and argument must be objects")
        is_prompt = about.get("type") == "ref/prompt"
        if is_prompt and about.get("name") != self._source.ask_name:
            raise Refused(INVALID_PARAMS, f"there is one prompt: {self._source.ask_name}")
        begun = str(argument.get("value", ""))
        values = [] if is_prompt else self._offered.completed(_text(about, "uri"), begun)
        more = len(values) > COMPLETED_MAX
        return {"completion": {"values": values[:COMPLETED_MAX], "total": len(values), "hasMore": more}}

    def _levelled(self, params: dict[str, Any]) -> dict[str, Any]:
        level = _text(params, "level")
        if level not in LEVELS:
            raise Refused(INVALID_PARAMS, f"level is one of {', '.join(LEVELS)}")
        self._client.level = LEVELS.index(level)
        return {}

    def _greeted(self, params: dict[str, Any]) -> dict[str, Any]:
        wanted, can = params.get("protocolVersion"), params.get("capabilities")
        self._client.asks, self._is_greeted = isinstance(can, dict) and "elicitation" in can, True
        self.version = wanted if wanted in VERSIONS else VERSIONS[0]
        return {
            "protocolVersion": self.version,
            "capabilities": CAPABILITIES | {"logging": {}},
            "serverInfo": SERVER,
        }


def _text(params: dict[str, Any], name: str) -> str:
    if not isinstance(params.get(name), str):
        raise Refused(INVALID_PARAMS, f"{name} must be a text")
    return str(params[name])


def _arguments(params: dict[str, Any]) -> dict[str, Any]:
    arguments = params.get("arguments") or {}
    if not isinstance(arguments, dict):
        raise Refused(INVALID_PARAMS, "arguments must be an object")
    return arguments


def _answered(call: Call, do: Do) -> None:
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
