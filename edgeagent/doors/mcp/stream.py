"""Stream: messages to one client that belong together, each with a number, as server-sent events.

A client whose connection breaks asks for what is behind the last number it has had. Only the event loop's thread
touches a stream, but for `send`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable

from edgeagent.codec.jsonrpc import Batch, Fault, Message, Result, body_of

KEPT_MAX, KEPT_BYTES_MAX = 64, 4 << 20
"""Messages of one stream, and bytes of them, that are kept for who reads slowly or comes again."""

ALIVE_S = 15.0
RETRY_MS = 1_500


class Stream:
    """The messages of one request, or those that belong to none. `number` is its own among those of the client."""

    def __init__(self, number: int, *, ends: bool) -> None:
        """One that `ends` does so with its answer."""
        self.number, self._ends = number, ends
        self.is_over = False
        self.on_over: Callable[[], None] = lambda: None
        """Called once when it has had its answer."""
        self._loop = asyncio.get_running_loop()
        self._kept: deque[tuple[int, bytes]] = deque()
        self._next = 1
        self._came = asyncio.Event()
        self._reader = 0
        self._watching = 0

    @property
    def is_read(self) -> bool:
        """Whether a connection waits for what comes."""
        return self._watching > 0

    def send(self, message: Message | Batch) -> bool:
        """Send a message; whether it can still be. From any thread."""
        if self.is_over:
            return False
        try:
            self._loop.call_soon_threadsafe(self._put, message)
        except RuntimeError:  # The server has gone.
            return False
        return True

    def end(self) -> None:
        """Nothing more comes."""
        if not self.is_over:
            self.is_over = True
            self.on_over()
        self._wake()

    def _put(self, message: Message | Batch) -> None:
        if self.is_over:
            return
        self._kept.append((self._next, body_of(message)))
        self._next += 1
        while len(self._kept) > KEPT_MAX or (
            len(self._kept) > 1 and sum(len(each) for _, each in self._kept) > KEPT_BYTES_MAX
        ):
            self._kept.popleft()
        if self._ends and isinstance(message, Result | Fault | Batch):
            self.end()
        self._wake()

    def _wake(self) -> None:
        came, self._came = self._came, asyncio.Event()
        came.set()

    async def only(self, seconds: float) -> bytes | None:
        """The answer, where it comes first and within this time; None where a stream is to be read."""
        self._watching += 1
        try:
            if not self._kept and not self.is_over:
                await asyncio.wait_for(self._came.wait(), seconds)
        except TimeoutError:
            return None
        finally:
            self._watching -= 1
        return self._kept[0][1] if self.is_over and len(self._kept) == 1 else None

    async def events(self, since: int, *, primes: bool = False) -> AsyncGenerator[bytes, None]:
        """What is behind this number, and then what comes. Who reads later has the stream; who had it is let go.

        One that `primes` begins with an event that holds nothing but its number.
        """
        self._reader += 1
        self._watching += 1
        reader, last = self._reader, since
        self._wake()
        try:
            prime = f"id: {self.number}-{since}\ndata: \n\n" if primes else "\n"
            yield f"retry: {RETRY_MS}\n{prime}".encode()
            while reader == self._reader:
                for number, body in [each for each in self._kept if each[0] > last]:
                    yield f"id: {self.number}-{number}\nevent: message\ndata: ".encode() + body + b"\n\n"
                    last = number
                if self._kept and self._kept[-1][0] > last:
                    continue
                if self.is_over:
                    return
                try:
                    await asyncio.wait_for(self._came.wait(), ALIVE_S)
                except TimeoutError:
                    yield b": alive\n\n"
        finally:
            self._watching -= 1
