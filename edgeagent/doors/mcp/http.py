"""MCP over HTTP, as routes of the serve door: which clients there are, whose each is, and where its messages go.

A client begins with `initialize` and is known by a random id from then on, to its own key alone. What is answered to
one POST is one stream, and goes on while nobody reads it; one that is answered at once needs no stream.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from edgeagent.codec.frames import Skipped
from edgeagent.codec.jsonrpc import Batch, Fault, Incoming, Request, body_of, read, refusal_of
from edgeagent.doors.http.message import EVENTS, JSON, Refused, Reply
from edgeagent.doors.http.queue import Places
from edgeagent.doors.http.routes import Call, Route
from edgeagent.doors.mcp.answers import VERSIONS, Answers
from edgeagent.doors.mcp.client import Source
from edgeagent.doors.mcp.stateless import Alone, is_stateless, status_of, wrong
from edgeagent.doors.mcp.stream import Stream
from edgeagent.driver.peer import Talk
from edgeagent.runtime.session import Session

CLIENTS_MAX, CLIENTS_OF_KEY_MAX = 32, 8
"""Clients that are known at once; each that has called a tool has a thread or two, and a session of the runtime."""

OPEN_MAX = 8
"""Requests of one client that may be open at once: each may hold a connection."""

STREAMS_MAX = 16
"""Streams of one client that are kept for being read again."""

IDLE_S = 1_800.0
"""A client that was not heard of for so long is forgotten; it begins again, as the protocol wants."""

AT_ONCE_S = 10.0
"""An answer that takes longer is streamed, so that those in between see that it goes on."""

BATCHES = VERSIONS[2:]
OLDEST = "2025-03-26"
"""What is spoken over HTTP where no version is said."""


class HttpClient:
    """One client: what it is answered, and the streams by which it is."""

    def __init__(self, who: str, source: Source) -> None:
        self.who, self.id, self.ask_name = who, secrets.token_urlsafe(24), source.ask_name
        self.answers = Answers(source)
        self.talk = Talk(self.answers, cancels="notifications/cancelled")
        self.own = Stream(0, ends=False)
        """What belongs to no request."""
        self.streams: dict[int, Stream] = {0: self.own}
        self._next = 1
        self.used = time.monotonic()

    @property
    def open(self) -> int:
        """How many of its POSTs have no answer yet."""
        return sum(not each.is_over for each in self.streams.values()) - 1

    @property
    def is_connected(self) -> bool:
        """Whether a connection waits for something of it."""
        return any(each.is_read for each in self.streams.values())

    def stream(self) -> Stream:
        """One more."""
        over = [number for number, each in self.streams.items() if each.is_over]
        for number in over[: max(0, len(self.streams) - STREAMS_MAX)]:
            del self.streams[number]
        made = self.streams[self._next] = Stream(self._next, ends=True)
        self._next += 1
        return made

    def leave(self) -> None:
        """Cancel what runs for it, and end its streams."""
        self.talk.end()
        for each in self.streams.values():
            each.end()

    async def close(self) -> None:
        """End all of it."""
        self.leave()
        await asyncio.to_thread(self.answers.close)


class McpRoutes:
    """The routes. `source_of` says how sessions of an agent are opened for a key. The event loop's thread calls it."""

    def __init__(self, names: Callable[[], list[str]], source_of: Callable[[str, str], Source], places: Places) -> None:
        self._names, self._source_of, self._places = names, source_of, places
        self._clients: dict[str, HttpClient] = {}
        self._alone: dict[tuple[str, str], str] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def table(self) -> tuple[Route, ...]:
        """Every route."""
        return tuple(self._rows("/mcp", "mcp")) + tuple(self._rows("/mcp/{agent}", "mcp_agent"))

    def _rows(self, path: str, name: str) -> Iterator[Route]:
        yield Route(
            "POST", path, name, "Messages of MCP, and the answers to them.", self._post,
            gives=(JSON, EVENTS), refusals=(404, 406, 415),
        )  # fmt: skip
        yield Route(
            "GET", path, f"{name}_events", "What the server says by itself, or a stream from `Last-Event-ID` on.",
            self._get, gives=(EVENTS,), refusals=(404, 406),
        )  # fmt: skip
        yield Route("DELETE", path, f"{name}_end", "End a session of MCP.", self._delete, refusals=(404,))

    @property
    def count(self) -> int:
        """How many clients there are."""
        return len(self._clients)

    @property
    def talks(self) -> list[Session]:
        """The sessions in which a model is asked."""
        return [talk for each in self._clients.values() if (talk := each.answers.talk) is not None]

    def end_streams(self) -> None:
        """Let everyone go who waits for an answer: what runs is cancelled."""
        for each in self._clients.values():
            each.leave()

    async def close(self) -> None:
        """End all."""
        clients, self._clients = list(self._clients.values()), {}
        await asyncio.gather(*(each.close() for each in clients), *self._closing)

    # -- routes ----------------------------------------------------------------------------------------------------

    async def _post(self, call: Call) -> Reply:
        headers = call.request.headers
        if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            raise Refused(415, "bad_type", f"messages of MCP are {JSON}")
        _check_accepts(headers.get("accept", "*/*"), JSON, EVENTS)
        known = self._clients.get(headers.get("mcp-session-id", ""))
        version = known.answers.version if known is not None else headers.get("mcp-protocol-version", OLDEST)
        message = read(call.request.body, batches=version in BATCHES)
        if isinstance(message, Skipped):
            return _told(refusal_of(message), 400)
        if is_stateless(headers, message):
            return await self._answer_alone(call, message)
        _check_version(headers)
        if "mcp-session-id" not in headers:
            return await self._greet(call, message)
        return await self._take(self._client(call), message)

    async def _get(self, call: Call) -> Reply:
        _check_accepts(call.request.headers.get("accept", "*/*"), EVENTS)
        _check_version(call.request.headers)
        client, last = self._client(call), call.request.headers.get("last-event-id", "0-0")
        number, _, since = last.partition("-")
        if not (number.isascii() and number.isdecimal() and since.isascii() and since.isdecimal() and len(last) < 32):
            raise Refused(400, "bad_number", "Last-Event-ID is none of this server")
        stream = client.streams.get(int(number))
        if stream is None:
            raise Refused(400, "bad_number", "what was behind Last-Event-ID is not kept any more")
        return Reply(200, kind=EVENTS, pieces=stream.events(int(since)))

    async def _delete(self, call: Call) -> Reply:
        client = self._client(call)
        del self._clients[client.id]
        self._end(client)
        return Reply(200, b"{}")

    # -- clients ---------------------------------------------------------------------------------------------------

    def _client(self, call: Call) -> HttpClient:
        """Whom a request is from. Raises Refused, the same for another key's as for none."""
        session = call.request.headers.get("mcp-session-id")
        if session is None:
            raise Refused(400, "no_session", "send initialize first, and Mcp-Session-Id from then on")
        client = self._clients.get(session)
        if client is None or client.who != call.who:
            raise Refused(404, "no_such_session", "there is no such session: begin one with initialize")
        client.used = time.monotonic()
        return client

    async def _greet(self, call: Call, message: Incoming) -> Reply:
        if not isinstance(message, Request) or message.method != "initialize":
            raise Refused(400, "no_session", "send initialize first, and Mcp-Session-Id from then on")
        self._make_room(call.who)
        client = HttpClient(call.who, self._source_of(call.who, self._agent(call)))
        self._clients[client.id] = client
        return await self._take(client, message, (("Mcp-Session-Id", client.id),))

    def _agent(self, call: Call) -> str:
        names, named = self._names(), call.parts.get("agent", "")
        if not named and len(names) > 1:
            raise Refused(404, "no_such_agent", f"several agents are served: say /mcp/NAME of {', '.join(names)}")
        if named and named not in names:
            raise Refused(404, "no_such_agent", f"there is no agent {named[:80]!r}; there are: {', '.join(names)}")
        return named or names[0]

    def _make_room(self, who: str) -> None:
        """Forget who was not heard of for long, and where there are too many the one that rests longest; in need one
        that only listens, or has something open and is gone."""
        now = time.monotonic()
        resting = [each for each in self._clients.values() if not (each.open and each.is_connected)]
        resting.sort(key=lambda each: (each.open > 0, each.is_connected, each.used))
        for each in [each for each in resting if not each.open and not each.is_connected and now - each.used > IDLE_S]:
            self._forget(each)
        mine = [each for each in self._clients.values() if each.who == who]
        if len(mine) < CLIENTS_OF_KEY_MAX and len(self._clients) < CLIENTS_MAX:
            return
        among = [each for each in resting if each.id in self._clients]
        found = [each for each in among if each.who == who] or (among if len(mine) < CLIENTS_OF_KEY_MAX else [])
        if not found:
            many = "as many clients as may be have something open; come again in a moment"
            raise Refused(429, "too_many_sessions", many, (("Retry-After", "10"),))
        self._forget(found[0])

    def _forget(self, client: HttpClient) -> None:
        del self._clients[client.id]
        self._end(client)

    def _end(self, client: HttpClient) -> None:
        task = asyncio.get_running_loop().create_task(client.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    # -- messages --------------------------------------------------------------------------------------------------

    async def _take(self, client: HttpClient, message: Incoming, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
        parts = message.messages if isinstance(message, Batch) else (message,)
        if not any(isinstance(each, Request | Skipped) for each in parts):
            client.talk.take(message, client.own.send)
            return Reply(202, headers=headers)
        stream = self._stream(client, parts)
        client.talk.take(message, stream.send)
        answer = await stream.only(AT_ONCE_S)
        if answer is not None:
            return Reply(200, answer, headers=headers)
        primes = client.answers.version >= "2025-11-25"
        return Reply(200, kind=EVENTS, headers=headers, pieces=stream.events(0, primes=primes))

    def _stream(self, client: HttpClient, parts: Sequence[Any]) -> Stream:
        """A stream for the answer to these. Raises Refused where too much is open."""
        if client.open >= OPEN_MAX:
            raise Refused(429, "too_many_requests", f"{OPEN_MAX} requests are open: wait for an answer")
        held = ExitStack()
        if any(_is_asking(each, client.ask_name) for each in parts):
            held.enter_context(self._places.one())
        stream = client.stream()
        stream.on_over = held.close
        return stream

    async def _answer_alone(self, call: Call, message: Incoming) -> Reply:
        """Answer a request that belongs to no session; who closes the connection has cancelled it."""
        if not isinstance(message, Request):
            return Reply(202)
        if (fault := wrong(call.request.headers, message)) is not None:
            return _told(fault, status_of(fault))
        client = self._standing(call)
        stream = self._stream(client, (message,))
        alone = Alone(message, client.answers, stream)
        talk = Talk(alone)

        def leave() -> None:
            talk.end()
            stream.end()

        try:
            talk.take(message, alone.send)
            answer = await stream.only(AT_ONCE_S)
        except asyncio.CancelledError:
            leave()
            raise
        if answer is not None:
            return Reply(200 if alone.fault is None else status_of(alone.fault), answer)
        return Reply(200, kind=EVENTS, pieces=stream.events(0), after=leave)

    def _standing(self, call: Call) -> HttpClient:
        """The one that all requests without a session share, of a key with an agent."""
        whose = call.who, self._agent(call)
        client = self._clients.get(self._alone.get(whose, ""))
        if client is None:
            self._make_room(call.who)
            client = HttpClient(call.who, self._source_of(*whose))
            self._clients[client.id], self._alone[whose] = client, client.id
        client.used = time.monotonic()
        return client


def _is_asking(message: Any, ask_name: str) -> bool:
    """Whether the model will be asked."""
    params = message.params if isinstance(message, Request) and message.method == "tools/call" else None
    return isinstance(params, dict) and params.get("name") == ask_name


def _check_accepts(accepts: str, *kinds: str) -> None:
    taken = {each.partition(";")[0].strip().lower() for each in accepts.split(",")}
    for kind in kinds:
        if not taken & {kind, "*/*", f"{kind.partition('/')[0]}/*"}:
            raise Refused(
                406, "not_acceptable", f"an answer may be {' or '.join(kinds)}: say in Accept that you take it"
            )


def _check_version(headers: Mapping[str, str]) -> None:
    if headers.get("mcp-protocol-version", OLDEST) not in VERSIONS:
        raise Refused(400, "bad_version", f"MCP-Protocol-Version is one of {', '.join(VERSIONS)}")


def _told(fault: Fault, status: int) -> Reply:
    return Reply(status, body_of(fault))
