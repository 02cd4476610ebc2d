"""Streams of remote models: how long a piece of an answer takes on its way to the screen."""

from __future__ import annotations

from collections.abc import Callable

from bench.codec import body_of, ours
from bench.measure import ratio

BODY = body_of("xllamacpp-chat-text.sse", 100_000)


def test_a_stream_of_chat(benchmark: Callable[..., object], record_figure: Callable[[str, float], None]) -> None:
    """A hundred kilobytes are some 500 tokens, each in an event of its own."""
    benchmark(ours, "chat", BODY)
    record_figure("codec.chat_ratio", ratio(lambda: ours("chat", BODY), inner=2) * 10_000 / len(BODY))
