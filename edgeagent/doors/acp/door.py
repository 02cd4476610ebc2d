"""Door of editors: ACP on stdin and stdout. Answers `initialize` before anything else is loaded, then serves sessions.

One thread reads and never waits. What concerns sessions is worked off by a second one, in the order in which it came;
only a cancellation goes past it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from edgeagent.codec.frames import Skipped
from edgeagent.codec.jsonrpc import INVALID_REQUEST, METHOD_NOT_FOUND, Fault, Notification, refusal_of
from edgeagent.core.text import shown
from edgeagent.doors.acp.house import House
from edgeagent.doors.acp.messages import (
    VERSION,
    ClientCapabilities,
    Initialize,
    KnownSession,
    ListSessions,
    NewSession,
    OfSession,
    Prompt,
    SetMode,
    read,
)
from edgeagent.driver.peer import Call, Peer, Refused
from edgeagent.errors import EdgeAgentError
from edgeagent.version import __version__

if TYPE_CHECKING:
    from edgeagent.doors.acp.sessions import Sessions

KINDS: dict[str, type] = {
    "session/new": NewSession,
    "session/load": KnownSession,
    "session/resume": KnownSession,
    "session/list": ListSessions,
    "session/prompt": Prompt,
    "session/set_mode": SetMode,
    "session/close": OfSession,
}
"""The methods that concern sessions, with what each is sent."""


class AcpDoor:
    """One client, from its first message to its last."""

    kinds: ClassVar[Mapping[str, type]] = KINDS
    """What may be asked, beside `initialize`."""

    def __init__(
        self,
        house: House,
        incoming: int,
        write: Callable[[memoryview], int | None],
        tell: Callable[[str], None],
    ) -> None:
        """`tell` takes a sentence for the operator."""
        self._house, self._tell = house, tell
        self._peer = Peer(incoming, write, self, cancels="$/cancel_request")
        self._work: queue.SimpleQueue[tuple[Call | None, Any] | None] = queue.SimpleQueue()
        self._prompts: dict[str, Call] = {}
        """The prompt that is open in each session."""
        self._sessions: Sessions | None = None
        self._client: ClientCapabilities | None = None

    def run(self) -> None:
        """Serve until the client ends, or `stop`; what is outstanding is taken up when its session is loaded again."""
        worker = threading.Thread(target=self._work_off, name="acp sessions", daemon=True)
        worker.start()
        try:
            self._peer.run()
        finally:
            self._work.put(None)
            worker.join()

    def stop(self) -> None:
        """End in good order. From any thread, or a signal."""
        self._peer.stop()

    # -- the owner of the peer -------------------------------------------------------------------------------------

    def asked(self, call: Call) -> None:
        """Answer `initialize`; put what concerns a session into the queue."""
        if call.method == "initialize":
            return call.answer(self._initialized(read(Initialize, call.params)))
        if call.method == "authenticate":
            raise Refused(METHOD_NOT_FOUND, "this agent asks nobody to authenticate")
        if call.method not in self.kinds:
            known = ", ".join(("initialize", *self.kinds))
            raise Refused(METHOD_NOT_FOUND, f"no method {shown(call.method[:80])!r} here; there are: {known}")
        if self._client is None:
            raise Refused(INVALID_REQUEST, "send initialize first")
        params: Any = read(self.kinds[call.method], call.params)
        if isinstance(params, Prompt):
            self._begin_prompt(params.session_id, call)
        self._work.put((call, params))
        return None

    def told(self, note: Notification) -> None:
        """Stop the turn of a session; no other notification means anything here."""
        if note.method != "session/cancel" or self._client is None:
            return
        try:
            name = read(OfSession, note.params).session_id
        except Refused as error:
            self._tell(f"a session/cancel is left out: {error}")
            return
        prompt = self._prompts.get(name)
        if prompt is not None:
            prompt.cancel()
        elif self._sessions is not None:
            self._sessions.cancel(name)

    def skipped(self, found: Skipped) -> Fault | None:
        """Tell the client of what was no message."""
        return refusal_of(found)

    def _begin_prompt(self, name: str, call: Call) -> None:
        """Know the prompt, so that it can be cancelled from now on."""
        self._prompts = {name: each for name, each in self._prompts.items() if not each.is_answered}
        if name in self._prompts:
            raise Refused(INVALID_REQUEST, "a prompt is open in this session: wait for its end, or cancel it")
        self._prompts[name] = call

    def _initialized(self, asked: Initialize) -> dict[str, Any]:
        is_first, self._client = self._client is None, asked.client_capabilities or ClientCapabilities()
        if is_first:
            self._work.put((None, asked))  # The model may take its time to load: it can begin now.
        return {
            "protocolVersion": VERSION,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": False, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": False, "sse": False},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
            },
            "agentInfo": {"name": "edgeagent", "title": "edgeagent", "version": __version__},
            "authMethods": [],
        }

    # -- the thread that works -------------------------------------------------------------------------------------

    def _work_off(self) -> None:
        while (item := self._work.get()) is not None:
            call, params = item
            try:
                sessions = self._loaded()
                if call is not None:
                    sessions.take(call, params)
            # Whatever is wrong with one request, or with the agent's file, is that request's answer.
            except Exception as error:
                if call is not None:
                    call.fail(error)
                elif isinstance(error, EdgeAgentError):
                    self._tell(str(error))
        if self._sessions is not None:
            self._sessions.close()

    def _loaded(self) -> Sessions:
        """The sessions; agent and model are loaded first. Raises what is wrong with them, each time it is tried."""
        if self._sessions is None:
            assert self._client is not None, "nothing is asked before the client has said what it can"
            self._sessions = self._begun(self._client)
        return self._sessions

    def _begun(self, client: ClientCapabilities) -> Sessions:
        from edgeagent.doors.acp.sessions import Sessions  # It brings the runtime, for which nobody need wait yet.

        return Sessions(self._house, client, self._peer, self._tell)
