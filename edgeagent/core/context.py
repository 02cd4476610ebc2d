"""What of the conversation fits into the model's window.

The system text and the running turn are never dropped. Oldest whole exchanges go first, and more of them
than strictly needed: every drop changes the prompt's beginning, which the model must then read again.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgeagent.core.values import TOKEN_BYTES, Exchange, Message

MESSAGE_TOKENS = 8
"""Tokens of markup around a message in the templates we know (ChatML 5, Gemma 4, Llama 3 5), with a margin."""

KEEP_AFTER_DROP = 0.6
"""When something must go, keep at most this share of the room, so that the next turns fit without another drop."""

DENSITY_MAX = 200
"""Two tokens a byte: more than any tokenizer with byte fallback can make."""


def exchange_of(messages: tuple[Message, ...]) -> Exchange:
    """Close a turn: its messages with their size, so that it need not be measured again."""
    return Exchange(messages, *_size(messages))


def tokens_of(messages: Iterable[Message], density: int) -> int:
    """Tokens of messages: exact for what the model wrote, else from the bytes. `density` is tokens per 100 bytes."""
    exact, text_bytes = _size(messages)
    return exact + estimate(text_bytes, density)


def estimate(text_bytes: int, density: int) -> int:
    """Tokens of so many bytes of text, rounded up."""
    return -(-text_bytes * density // 100)


def fit(past: tuple[Exchange, ...], room: int, density: int) -> tuple[Exchange, ...]:
    """Return the newest exchanges of `past` that fit into `room` tokens, in order; all of them if they fit."""
    exact = text_bytes = 0
    for exchange in past:
        exact += exchange.exact_tokens
        text_bytes += exchange.text_bytes
    if exact + estimate(text_bytes, density) <= room:
        return past
    sizes = [exchange.exact_tokens + estimate(exchange.text_bytes, density) for exchange in past]
    kept, total = 0, 0
    for size in reversed(sizes):
        if total + size > room * KEEP_AFTER_DROP:
            break
        kept, total = kept + 1, total + size
    return past[len(past) - kept :]


def _size(messages: Iterable[Message]) -> tuple[int, int]:
    """Tokens that are known, and bytes whose tokens must be estimated."""
    exact = text_bytes = 0
    for message in messages:
        exact += MESSAGE_TOKENS
        if message.token_ids:
            exact += len(message.token_ids) // TOKEN_BYTES
        else:
            text_bytes += len(message.text.encode())
    return exact, text_bytes


def density_from(prompt_tokens: int, prompt_bytes: int) -> int:
    """Tokens per 100 bytes as the model has counted them, rounded up with a margin of a tenth."""
    return min(DENSITY_MAX, -(-prompt_tokens * 110 // max(1, prompt_bytes)))
