"""Wire: one connection, from bytes to requests and from replies to bytes; h11 frames the bodies.

Laws. Whatever comes in is bounded in bytes and in time. What cannot be read for certain is refused, and the connection
is closed behind it, so that nothing that follows is read as another request. A client that is gone cancels what is done
for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
import traceback
from collections.abc import Awaitable, Callable

import h11
import msgspec

from edgeagent.core.text import shown
from edgeagent.doors.http.head import BARE_LINE_END, Head, read_head
from edgeagent.doors.http.message import Refused, Reply, Request

READ_BYTES = 16_384
LINGER_S = 1.0
"""What a refused client still sends is taken for so long, and for one body: else it would not be shown the refusal."""

SAFE_HEADERS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    (
        "Content-Security-Policy",
        (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
            "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        ),
    ),
)


class WireLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much one connection may take, in bytes and seconds.

    A head fits any client's cookies; a body fits a conversation that fills the largest window several times. A phone
    on a bad line sends a body in a few seconds; who takes nothing for `write_s` is gone.
    """

    head_bytes: int = 16_384
    body_bytes: int = 1_000_000
    head_s: float = 10.0
    body_s: float = 20.0
    idle_s: float = 75.0
    write_s: float = 20.0


Answer = Callable[[Request], Awaitable[Reply]]


class Wire:
    """Serves the requests of one connection, one after the other."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer, limits: WireLimits
    ) -> None:
        self._reader, self._writer, self._answer, self._limits = reader, writer, answer, limits
        self._pending = b""
        self._peer = _peer_of(writer)
        self._is_secure = writer.get_extra_info("ssl_object") is not None
        self.is_idle, self.is_leaving = True, False
        writer.transport.set_write_buffer_limits(high=65_536)

    async def serve(self) -> None:
        """Serve until either end has had enough."""
        try:
            while await self._serve_one():
                pass
        except (OSError, TimeoutError, EOFError):
            self._writer.transport.abort()  # It is gone, or takes nothing any more.
        finally:
            self._writer.close()

    def leave(self) -> None:
        """Take no request more; what is being answered is answered."""
        self.is_leaving = True
        if self.is_idle:
            self._writer.close()

    async def turn_away(self, refused: Refused) -> None:
        """Say why nothing is served here, and close."""
        try:
            await self._refuse(refused)
        finally:
            self._writer.close()

    async def _serve_one(self) -> bool:
        protocol = h11.Connection(h11.SERVER, max_incomplete_event_size=self._limits.head_bytes)
        try:
            raw = await self._head()
            if not raw:
                return False
            self.is_idle = False
            head = read_head(raw)
            request = await self._request(protocol, raw, head)
        except Refused as refused:
            await self._refuse(refused)
            return False
        except h11.RemoteProtocolError as error:
            await self._refuse(Refused(400, "bad_request", f"the body is not framed as HTTP frames it: {error}"))
            return False
        is_done = await self._watched(self._reply(protocol, request))
        self.is_idle = True
        is_over = protocol.our_state is not h11.DONE or protocol.their_state is not h11.DONE
        return is_done and not is_over and not self.is_leaving

    # -- in --------------------------------------------------------------------------------------------------------

    async def _read(self, seconds: float) -> bytes:
        return await asyncio.wait_for(self._reader.read(READ_BYTES), max(0.0, seconds))

    async def _head(self) -> bytes:
        """The next head; empty where none comes. Raises Refused for one that is too long, too slow, or no head."""
        try:
            while not self._pending:
                data = await self._read(self._limits.idle_s)
                if not data:
                    return b""
                self._pending = data
        except TimeoutError:
            return b""
        until = time.monotonic() + self._limits.head_s
        while (end := self._pending.find(b"\r\n\r\n")) < 0:
            if BARE_LINE_END.search(self._pending):
                raise Refused(400, "bad_request", "a line ends in a bare CR or LF; lines end in CRLF")
            if len(self._pending) > self._limits.head_bytes:
                raise self._head_too_long()
            try:
                data = await self._read(until - time.monotonic())
            except TimeoutError:
                raise Refused(408, "too_slow", f"no whole head came within {self._limits.head_s:g} s") from None
            if not data:
                return b""
            self._pending += data
        if end > self._limits.head_bytes:
            raise self._head_too_long()
        head, self._pending = self._pending[: end + 4], self._pending[end + 4 :]
        return head

    def _head_too_long(self) -> Refused:
        return Refused(431, "head_too_long", f"the head has more than {self._limits.head_bytes} bytes")

    async def _request(self, protocol: h11.Connection, raw: bytes, head: Head) -> Request:
        """The whole request. Raises Refused and h11's error."""
        most = self._limits.body_bytes
        if head.length is not None and head.length > most:
            raise Refused(413, "body_too_long", f"the body has {head.length} bytes; {most} are the most")
        protocol.receive_data(raw)
        protocol.next_event()
        if protocol.they_are_waiting_for_100_continue:
            await self._send(protocol.send(h11.InformationalResponse(status_code=100, headers=[])))
        body = await self._body(protocol)
        return Request(head.method, head.path, head.query, head.headers, body, self._peer, self._is_secure)

    async def _body(self, protocol: h11.Connection) -> bytes:
        pieces, size, until = [], 0, time.monotonic() + self._limits.body_s
        protocol.receive_data(self._pending) if self._pending else None
        self._pending = b""
        while not isinstance(event := protocol.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                try:
                    data = await self._read(until - time.monotonic())
                except TimeoutError:
                    raise Refused(408, "too_slow", f"no whole body came within {self._limits.body_s:g} s") from None
                protocol.receive_data(data)
            elif isinstance(event, h11.Data):
                size += len(event.data)
                pieces.append(bytes(event.data))
                if size > self._limits.body_bytes:
                    raise Refused(413, "body_too_long", f"the body has over {self._limits.body_bytes} bytes")
            else:
                raise EOFError
        self._pending = protocol.trailing_data[0]
        return b"".join(pieces)

    # -- out -------------------------------------------------------------------------------------------------------

    async def _watched(self, work: Awaitable[None]) -> bool:
        """Do the work unless the client goes; whether it was done."""
        doing, gone = asyncio.ensure_future(work), asyncio.ensure_future(self._gone())
        try:
            await asyncio.wait({doing, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                return False
            await doing
            return True
        finally:
            for each in (doing, gone):
                each.cancel()
                with contextlib.suppress(asyncio.CancelledError, OSError, TimeoutError):
                    await each

    async def _gone(self) -> None:
        """Return when the client has gone, or sends more requests than can wait; what it sends first is kept."""
        while len(self._pending) <= self._limits.head_bytes:
            data = await self._reader.read(READ_BYTES)
            if not data:
                return
            self._pending += data
        await asyncio.Event().wait()  # The rest waits in its own buffers.

    async def _reply(self, protocol: h11.Connection, request: Request) -> None:
        try:
            reply = await self._answer(request)
        except Refused as refused:
            reply = refused.reply()
        except Exception:  # Ours: it is said on stderr, and the others are served on.
            sys.stderr.write(shown(traceback.format_exc(), lines=True))
            reply = Refused(500, "our_fault", "this failed for a reason that is ours; the server's log has it").reply()
        try:
            await self._write(protocol, reply, is_bare=request.method == "HEAD")
        finally:
            if reply.after is not None:
                reply.after()

    async def _write(self, protocol: h11.Connection, reply: Reply, *, is_bare: bool = False) -> None:
        size = () if reply.pieces is not None else (("Content-Length", str(len(reply.body))),)
        leaving = (("Connection", "close"),) if self.is_leaving else ()
        names = {name for name, _ in reply.headers}
        safe = tuple(each for each in SAFE_HEADERS if each[0] not in names)
        headers = [("Content-Type", reply.kind), *size, *safe, *reply.headers, *leaving]
        start = protocol.send(h11.Response(status_code=reply.status, headers=headers))
        if reply.pieces is None:
            body = protocol.send(h11.Data(data=reply.body)) if reply.body and not is_bare else b""
            await self._send((start or b"") + (body or b"") + (protocol.send(h11.EndOfMessage()) or b""))
            return
        await self._send(start)
        async with contextlib.aclosing(reply.pieces) as pieces:
            while not is_bare and (piece := await anext(pieces, None)) is not None:
                await self._send(protocol.send(h11.Data(data=piece)))
        await self._send(protocol.send(h11.EndOfMessage()))

    async def _send(self, data: bytes | None) -> None:
        """Write and wait until the client takes it. Raises TimeoutError where it does not."""
        if data:
            self._writer.write(data)
            await asyncio.wait_for(self._writer.drain(), self._limits.write_s)

    async def _refuse(self, refused: Refused) -> None:
        """Say why, and let the client read it, though it may still be sending."""
        self.is_leaving = True
        await self._write(h11.Connection(h11.SERVER), refused.reply())
        if self._writer.can_write_eof():
            self._writer.write_eof()
        until, left = time.monotonic() + LINGER_S, self._limits.body_bytes
        with contextlib.suppress(TimeoutError, OSError):
            while left > 0 and (data := await self._read(until - time.monotonic())):
                left -= len(data)


def _peer_of(writer: asyncio.StreamWriter) -> str:
    peer = writer.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) else ""
