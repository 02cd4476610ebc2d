"""What is told of an answer while it is written, and what it came to: between the threads that write and the reply."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a chat came to: words, or calls as the protocol shows them; `more` is what this server says besides."""

    text: str
    calls: tuple[dict[str, Any], ...] = ()
    finish: str
    usage: dict[str, Any]
    more: dict[str, Any] = {}


class Told:
    """Pieces of an answer in their order. `put` and `end` may be called from any thread; the loop's takes them."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pieces: asyncio.Queue[str | None] = asyncio.Queue()

    def put(self, piece: str) -> None:
        """Tell a piece."""
        if piece:
            self._put(piece)

    def end(self) -> None:
        """Tell that nothing follows."""
        self._put(None)

    def _put(self, piece: str | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._pieces.put_nowait, piece)

    async def next(self) -> str | None:
        """The next piece; None at the end."""
        return await self._pieces.get()

    async def next_within(self, seconds: float) -> str | None:
        """The next piece; None at the end, and an empty one where none comes in that time."""
        try:
            return await asyncio.wait_for(self._pieces.get(), seconds)
        except TimeoutError:
            return ""

    async def rest(self) -> None:
        """Take everything up to the end."""
        while await self.next() is not None:
            pass


def usage_row(prompt: int, evaluated: int, completion: int) -> dict[str, Any]:
    """Tokens as the protocol counts them; what was in memory already counts as cached."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": max(0, prompt - evaluated)},
    }
