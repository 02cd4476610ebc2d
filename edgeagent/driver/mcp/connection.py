"""One connection with a server: the greeting, what we ask and what it answers, and what it may ask of us.

Laws: an answer counts only for the request whose id it bears. Nothing that a server says by itself changes anything but
that its lists are read again. What it asks of us is declined, but for which folders it may work in and whether we live.
A flood ends it.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Any, Protocol, assert_never

from edgeagent.codec.frames import Skipped
from edgeagent.codec.jsonrpc import (
    METHOD_NOT_FOUND,
    Batch,
    Fault,
    Id,
    Incoming,
    Message,
    Notification,
    Request,
    Result,
    Waiting,
    cancelled,
)
from edgeagent.core.text import shown
from edgeagent.driver.mcp.offer import Declared, declared_resource, declared_tool
from edgeagent.driver.unknown import CommandFailed, EffectUnknown
from edgeagent.errors import DriverError, DriverUnavailable, PeerMisbehaved
from edgeagent.version import __version__

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The protocol's versions that are spoken, newest first."""

UNASKED_MAX = 10_000
"""Messages and lines that nobody asked for, between two answers, after which it is a flood."""

PAGES_MAX = 100
OFFERED_MAX = 2_000
"""Of a list: pages, and entries in all."""

NOTES_MAX = 16

ANSWER_S = 5.0
"""For us to write an answer to what it asks."""


INITIALIZED = Notification("notifications/initialized")
"""What ends the greeting."""


class SessionEnded(DriverUnavailable):
    """The server has forgotten us: it was asked for nothing, and can be greeted anew."""


class Wire(Protocol):
    """What carries messages to a server and back."""

    def send(self, message: Message, until: float) -> None:
        """Send one. Raises DriverUnavailable if it was not sent; what turns out later is `Connection.unanswered`."""

    def begin(self, version: str, until: float) -> None:
        """Speak this version from now on, and say that the greeting is over. Raises DriverUnavailable."""

    def kill(self) -> None:
        """End it now."""

    def standing(self) -> str:
        """What it holds in this machine's memory, or where it is; to be shown."""

    def close(self) -> None:
        """End it."""


class Connection:
    """A server that runs. `incoming` and `lost` are called by the wire; the rest any thread may call."""

    def __init__(self, name: str, roots: Sequence[str] = ()) -> None:
        self._name, self._roots = name, tuple(roots)
        self._waiting = Waiting()
        self._lock = threading.Lock()
        self._answers: dict[Id, Future[Result | Fault]] = {}
        self._unasked = 0
        self._notes: list[str] = []
        self._lost: str | None = None
        self.version = ""
        self.about = ""
        self.has_changed = False
        """Whether it has said that its lists are others now."""
        self._has: frozenset[str] = frozenset()
        self._wire: Wire | None = None

    # -- what we ask -----------------------------------------------------------------------------------------------

    def greet(self, wire: Wire, within_s: float) -> None:
        """Agree on a version. Raises DriverUnavailable, PeerMisbehaved."""
        self._wire = wire
        capabilities: dict[str, Any] = {"roots": {"listChanged": False}} if self._roots else {}
        ours = {"name": "edgeagent", "version": __version__}
        asked = {"protocolVersion": VERSIONS[0], "capabilities": capabilities, "clientInfo": ours}
        said = self._asked("initialize", asked, within_s)
        version = said.get("protocolVersion")
        if version not in VERSIONS:
            raise PeerMisbehaved(f"it speaks version {shown(str(version))[:40]}; we speak {', '.join(VERSIONS)}")
        has, info = said.get("capabilities"), said.get("serverInfo")
        self.version, self._has = version, frozenset(has if isinstance(has, dict) else ())
        named = [info.get(key) for key in ("name", "version")] if isinstance(info, dict) else []
        self.about = shown(" ".join(each for each in named if isinstance(each, str)))[:80]
        wire.begin(version, time.monotonic() + within_s)

    def offer(self, within_s: float) -> tuple[Declared, ...]:
        """Everything it offers now. Raises DriverUnavailable, PeerMisbehaved."""
        self.has_changed = False
        until = time.monotonic() + within_s
        tools = self._listed("tools", until) if "tools" in self._has else []
        resources = self._listed("resources", until) if "resources" in self._has else []
        found = [declared_tool(each) for each in tools] + [declared_resource(each) for each in resources]
        offered = [each for each in found if each is not None]
        if len({each.name for each in offered}) < len(offered):
            raise PeerMisbehaved("it offers two things under one name")
        return tuple(offered)

    def call(self, method: str, params: dict[str, Any], within_s: float) -> Any:
        """Ask for what may have an effect. Raises DriverUnavailable: it was not sent; CommandFailed: the server refused
        it; EffectUnknown: it was sent, and what came of it is not known.
        """
        answered = self._answered(method, params, within_s)
        if isinstance(answered, Fault):
            raise CommandFailed(f"it refuses the call: {shown(answered.message)[:500]} (error {answered.code})")
        return answered.result

    def is_alive(self, within_s: float) -> bool:
        """Whether it answers at all."""
        try:
            self._answered("ping", {}, within_s)
        except (DriverUnavailable, EffectUnknown, PeerMisbehaved):
            return False
        return True

    @property
    def why_lost(self) -> str | None:
        """Why there is nobody any more; None while there is."""
        return self._lost

    def take_notes(self) -> tuple[str, ...]:
        """What befell the connection since this was last asked."""
        with self._lock:
            notes, self._notes = tuple(self._notes), []
        return notes

    def close(self) -> None:
        """End the server."""
        if self._wire is not None:
            self._wire.close()

    def _asked(self, method: str, params: dict[str, Any], within_s: float) -> dict[str, Any]:
        """Ask for what changes nothing."""
        try:
            answered = self._answered(method, params, within_s)
        except EffectUnknown as error:
            raise DriverUnavailable(str(error)) from None
        if isinstance(answered, Fault):
            raise PeerMisbehaved(f"it answers {method} with: {shown(answered.message)[:200]} (error {answered.code})")
        if not isinstance(answered.result, dict):
            raise PeerMisbehaved(f"its answer to {method} is no object")
        return answered.result

    def _listed(self, what: str, until: float) -> list[Any]:
        """All pages of a list."""
        entries: list[Any] = []
        cursor: dict[str, Any] = {}
        for _ in range(PAGES_MAX):
            page = self._asked(f"{what}/list", cursor, until - time.monotonic())
            found = page.get(what)
            if not isinstance(found, list):
                raise PeerMisbehaved(f"its answer to {what}/list has no list")
            entries += found
            if not isinstance(page.get("nextCursor"), str) or len(entries) > OFFERED_MAX:
                break
            cursor = {"cursor": page["nextCursor"]}
        else:
            raise PeerMisbehaved(f"its list of {what} has more than {PAGES_MAX} pages")
        if len(entries) > OFFERED_MAX:
            raise PeerMisbehaved(f"its list of {what} has more than {OFFERED_MAX} entries")
        return entries

    def _answered(self, method: str, params: dict[str, Any], within_s: float) -> Result | Fault:
        until, answer = time.monotonic() + within_s, Future[Result | Fault]()
        with self._lock:
            if self._lost is not None or self._wire is None:
                raise DriverUnavailable(self._lost or "it was not started")
            request = self._waiting.ask(method, params, answer)
            self._answers[request.id] = answer
        try:
            self._wire.send(request, until)
            return answer.result(max(0.0, until - time.monotonic()))
        except FutureTimeout:
            self._say(cancelled(request.id, "it took too long"))
            raise EffectUnknown(f"it did not answer within {within_s:g} s") from None
        finally:
            with self._lock:
                self._waiting.give_up(request.id)
                self._answers.pop(request.id, None)

    def _say(self, message: Message) -> None:
        """Tell it something that nothing depends on."""
        with contextlib.suppress(DriverUnavailable):
            if self._wire is not None:
                self._wire.send(message, time.monotonic() + ANSWER_S)

    # -- what comes ------------------------------------------------------------------------------------------------

    def incoming(self, found: Iterable[Incoming]) -> None:
        """Take what it has written."""
        for each in () if self._lost is not None else found:
            if isinstance(each, Batch):
                self.incoming(each.messages)
                continue
            match each:
                case Result() | Fault():
                    self._take_answer(each)
                case Skipped():
                    self._take_skipped(each)
                case Request():
                    self._answer(each)
                case Notification():
                    self.has_changed |= each.method.endswith("/list_changed")
                    self._count()
                case _:
                    assert_never(each)

    def lost(self, why: str) -> None:
        """Take that there is nobody any more."""
        with self._lock:
            self._lost = self._lost or why
            answers = list(self._answers.values())
        for answer in answers:
            _fail(answer, EffectUnknown(self._lost))

    def unanswered(self, request_id: Id, error: DriverError) -> None:
        """Take that no answer comes to a request: DriverUnavailable if it was not taken, EffectUnknown if it was."""
        with self._lock:
            waits = self._answers.get(request_id)
        if waits is not None:
            _fail(waits, error)

    def _take_answer(self, answer: Result | Fault) -> None:
        with self._lock:
            waits: Future[Result | Fault] | None = self._waiting.answered(answer)
        if waits is None:
            self._note("it answered what nobody had asked")
            self._count()
            return
        self._unasked = 0
        with contextlib.suppress(InvalidStateError):
            waits.set_result(answer)

    def _take_skipped(self, skipped: Skipped) -> None:
        self._note(f"it wrote what is no message ({skipped.why}): {skipped.text[:80]}")
        claimed = _ID.search(skipped.text)
        if "longer than" in skipped.why and claimed:
            with self._lock:
                waits = self._answers.get(int(claimed[1]))
            if waits is not None:
                _fail(waits, EffectUnknown(f"its answer cannot be read: {skipped.why}"))
        self._count()

    def _answer(self, request: Request) -> None:
        """What it asks of us."""
        match request.method:
            case "ping":
                answer: Message = Result(request.id, {})
            case "roots/list" if self._roots:
                roots = [{"uri": Path(root).as_uri(), "name": Path(root).name} for root in self._roots]
                answer = Result(request.id, {"roots": roots})
            case "elicitation/create":
                self._note("it asked the user for something, and was declined")
                answer = Result(request.id, {"action": "decline"})
            case _:
                self._note(f"it asked for {shown(request.method)[:40]}, and was refused")
                answer = Fault(request.id, METHOD_NOT_FOUND, "not allowed here")
        self._count()
        self._say(answer)

    def _note(self, note: str) -> None:
        with self._lock:
            if note not in self._notes and len(self._notes) < NOTES_MAX:
                self._notes.append(note)

    def _count(self) -> None:
        self._unasked += 1
        if self._unasked > UNASKED_MAX and self._wire is not None:
            self._note(f"it wrote {UNASKED_MAX} messages that nobody had asked for, and was ended")
            self.lost("it wrote without end, and was ended")
            self._wire.kill()


_ID = re.compile(r'"id"\s*:\s*(\d{1,15})\s*[,}]')
"""Which request a message that is too long says it answers."""


def _fail(answer: Future[Result | Fault], error: Exception) -> None:
    with contextlib.suppress(InvalidStateError):  # It has just come.
        answer.set_exception(error)
