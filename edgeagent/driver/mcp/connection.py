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
from edgeagent.driver.mcp.alone import (
    BAD_VERSION,
    OURS,
    ROUNDS_MAX,
    STATELESS,
    declining,
    headers_of,
    is_asked,
    mirrored_in,
    with_meta,
)
from edgeagent.driver.mcp.offer import Declared, declared_resource, declared_tool
from edgeagent.driver.unknown import CommandFailed, EffectUnknown
from edgeagent.errors import DriverError, DriverUnavailable, PeerMisbehaved

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The protocol's versions that begin with a greeting and are spoken, newest first."""

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
"""Where an answer says which server gave it, since there is no greeting."""

UNASKED_MAX = 10_000
"""Messages and lines that nobody asked for, between two answers, after which it is a flood."""

PAGES_MAX = 100
OFFERED_MAX = 2_000
"""Of a list: pages, and entries in all."""

NOTES_MAX = 16

MEETING_S = 10.0
"""For it to say whether it knows the version without a greeting."""

ANSWER_S = 5.0
"""For us to write an answer to what it asks."""


INITIALIZED = Notification("notifications/initialized")
"""What ends the greeting."""


class SessionEnded(DriverUnavailable):
    """The server has forgotten us: it was asked for nothing, and can be greeted anew."""


class NoSuchMethod(PeerMisbehaved):
    """It does not know what it was asked for, or not in this version."""


class Wire(Protocol):
    """What carries messages to a server and back. `is_met_alone_first`: it is met without greeting before with one."""

    is_met_alone_first: bool

    def send(self, message: Message, until: float, headers: tuple[str, ...] = ()) -> None:
        """Send one, with these headers where there are any.

        Raises DriverUnavailable if it was not sent; what turns out later is `Connection.unanswered`.
        """

    def begin(self, version: str, until: float) -> None:
        """Speak this version from now on, and say that the greeting is over. Raises DriverUnavailable."""

    def alone(self, version: str) -> None:
        """Speak this version from now on, in which each request stands by itself; "" takes it back."""

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
        self._has_changed = False
        self._has: frozenset[str] = frozenset()
        self._mirrored: dict[str, dict[str, str]] = {}
        self._wire: Wire | None = None

    # -- what we ask -----------------------------------------------------------------------------------------------

    def greet(self, wire: Wire, within_s: float) -> None:
        """Agree on a version. Raises DriverUnavailable, PeerMisbehaved."""
        self._wire, until = wire, time.monotonic() + within_s
        if wire.is_met_alone_first:
            if not self._is_met_alone(until):
                self._meet(wire, until)
            return
        try:
            self._meet(wire, until)
        except NoSuchMethod:
            if not self._is_met_alone(until):
                raise

    def _meet(self, wire: Wire, until: float) -> None:
        """Greet it, which begins a session."""
        capabilities: dict[str, Any] = {"roots": {"listChanged": False}} if self._roots else {}
        asked = {"protocolVersion": VERSIONS[0], "capabilities": capabilities, "clientInfo": OURS}
        said = self._asked("initialize", asked, until - time.monotonic())
        version = said.get("protocolVersion")
        if version not in VERSIONS:
            raise PeerMisbehaved(f"it speaks version {shown(str(version))[:40]}; we speak {', '.join(VERSIONS)}")
        self.version = version
        self._introduced(said, said.get("serverInfo"))
        wire.begin(version, until)

    def _is_met_alone(self, until: float) -> bool:
        """Whether it takes each request by itself, as of the version that knows no greeting."""
        assert self._wire is not None, "it is being greeted"
        self.version = STATELESS
        self._wire.alone(STATELESS)
        said = self._discovered(until)
        versions, meta = said.get("supportedVersions"), said.get("_meta")
        if not isinstance(versions, list) or STATELESS not in versions:
            self.version = ""
            self._wire.alone("")
            return False
        self._introduced(said, meta.get(SERVER_INFO) if isinstance(meta, dict) else None)
        return True

    def _discovered(self, until: float) -> dict[str, Any]:
        """What it says of itself without a greeting; empty where it does not know that."""
        for _ in range(2):
            try:
                answered = self._answered("server/discover", {}, min(MEETING_S, until - time.monotonic()))
            except (DriverUnavailable, EffectUnknown):
                break
            if isinstance(answered, Result):
                return answered.result if isinstance(answered.result, dict) else {}
            supported = answered.data.get("supported") if isinstance(answered.data, dict) else None
            if answered.code != BAD_VERSION or STATELESS not in (supported if isinstance(supported, list) else ()):
                break
        return {}

    def _introduced(self, said: dict[str, Any], info: Any) -> None:
        has = said.get("capabilities")
        self._has = frozenset(has if isinstance(has, dict) else ())
        named = [info.get(key) for key in ("name", "version")] if isinstance(info, dict) else []
        self.about = shown(" ".join(each for each in named if isinstance(each, str)))[:80]

    def offer(self, within_s: float) -> tuple[Declared, ...]:
        """Everything it offers now. Raises DriverUnavailable, PeerMisbehaved."""
        self._has_changed = False
        until = time.monotonic() + within_s
        tools = self._listed("tools", until) if "tools" in self._has else []
        resources = self._listed("resources", until) if "resources" in self._has else []
        found = [declared_tool(each) for each in tools] + [declared_resource(each) for each in resources]
        offered = [each for each in found if each is not None]
        if len({each.name for each in offered}) < len(offered):
            raise PeerMisbehaved("it offers two things under one name")
        return tuple(offered if not self._is_alone else self._without_unfit(offered))

    def _without_unfit(self, offered: list[Declared]) -> list[Declared]:
        """What is offered, without tools that want an argument in what can be no header."""
        mirrored = {each.name: {} if each.is_resource else mirrored_in(each.schema) for each in offered}
        self._mirrored = {name: headers for name, headers in mirrored.items() if headers is not None}
        return [each for each in offered if each.name in self._mirrored]

    def call(self, method: str, params: dict[str, Any], within_s: float) -> Any:
        """Ask for what may have an effect. Raises DriverUnavailable: it was not sent; CommandFailed: the server refused
        it; EffectUnknown: it was sent, and what came of it is not known.
        """
        until = time.monotonic() + within_s
        for _ in range(ROUNDS_MAX):
            answered = self._answered(method, params, until - time.monotonic())
            if isinstance(answered, Fault):
                raise CommandFailed(f"it refuses the call: {shown(answered.message)[:500]} (error {answered.code})")
            if not (self._is_alone and is_asked(answered.result)):
                return answered.result
            self._note("it asked the user for something, and was declined")
            params = declining(params, answered.result)
        raise CommandFailed(f"it has answered {ROUNDS_MAX} times with a question")

    def is_alive(self, within_s: float) -> bool:
        """Whether it answers at all."""
        try:
            self._answered("server/discover" if self._is_alone else "ping", {}, within_s)
        except (DriverUnavailable, EffectUnknown, PeerMisbehaved):
            return False
        return True

    @property
    def has_changed(self) -> bool:
        """Whether it has said that its lists are others now, or could not have said so."""
        return self._has_changed or self._is_alone

    @property
    def _is_alone(self) -> bool:
        return self.version == STATELESS

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
            kind = NoSuchMethod if answered.code in (METHOD_NOT_FOUND, BAD_VERSION) else PeerMisbehaved
            raise kind(f"it answers {method} with: {shown(answered.message)[:200]} (error {answered.code})")
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
            request = self._waiting.ask(method, with_meta(params) if self._is_alone else params, answer)
            self._answers[request.id] = answer
        try:
            self._wire.send(request, until, self._headers_of(request) if self._is_alone else ())
            return answer.result(max(0.0, until - time.monotonic()))
        except FutureTimeout:
            self._say(cancelled(request.id, "it took too long"))
            raise EffectUnknown(f"it did not answer within {round(within_s, 1):g} s") from None
        finally:
            with self._lock:
                self._waiting.give_up(request.id)
                self._answers.pop(request.id, None)

    def _headers_of(self, request: Request) -> tuple[str, ...]:
        called = request.params.get("name") if isinstance(request.params, dict) else None
        return headers_of(request, self._mirrored.get(called, {}) if isinstance(called, str) else {})

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
                    self._has_changed |= each.method.endswith("/list_changed")
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
