"""Which tokens put a conversation to the model: the template's markup as markup, everybody's words as words.

Law: what a user, a tool or the model wrote can never become markup, whatever it spells; and what the model wrote goes
back as the very tokens it wrote, so that the next prompt begins with what is in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from edgeagent.core.values import TOKEN_BYTES
from edgeagent.errors import ModelError


class Words(NamedTuple):
    """One message's text, and the ids it was written with if the model wrote it."""

    text: str
    token_ids: bytes = b""


class Tokens(Protocol):
    """What is needed of a vocabulary."""

    def tokenize(self, text: str, *, special: bool, bos: bool) -> list[int]:
        """The text's tokens; with `special`, markup in it becomes markup."""

    def detokenize(self, tokens: Sequence[int]) -> bytes:
        """The bytes that the tokens spell."""


def pack_ids(token_ids: Sequence[int]) -> bytes:
    """Token ids as `Message.token_ids` holds them."""
    return b"".join(token.to_bytes(TOKEN_BYTES, "little") for token in token_ids)


def unpack_ids(packed: bytes) -> list[int]:
    """The ids in `Message.token_ids`."""
    return [int.from_bytes(packed[i : i + TOKEN_BYTES], "little") for i in range(0, len(packed), TOKEN_BYTES)]


def prompt_tokens(rendered: str, words: Sequence[Words], tokens: Tokens, *, bos: bool) -> list[int]:
    """The tokens of a rendered template whose messages are `words`, in order.

    A message that the template has trimmed is found trimmed. Raises ModelError when the template has altered one beyond
    that: its words could then pass for markup.
    """
    result = tokens.tokenize("", special=True, bos=True) if bos else []
    markup_from = 0
    for each in words:
        if not each.text.strip():
            continue
        begin, text, ids = _find(rendered, each, markup_from)
        result += tokens.tokenize(rendered[markup_from:begin], special=True, bos=False)
        result += _written(text, ids, tokens)
        markup_from = begin + len(text)
    return result + tokens.tokenize(rendered[markup_from:], special=True, bos=False)


def _find(rendered: str, words: Words, begin: int) -> tuple[int, str, bytes]:
    at = rendered.find(words.text, begin)
    if at >= 0:
        return at, words.text, words.token_ids
    trimmed = words.text.strip()
    at = rendered.find(trimmed, begin)
    if at < 0:
        raise ModelError(f"the chat template alters what is said: {trimmed[:40]!r} is not in the prompt it made")
    return at, trimmed, b""


def _written(text: str, packed: bytes, tokens: Tokens) -> list[int]:
    ids = unpack_ids(packed)
    if ids and tokens.detokenize(ids) == text.encode():
        return ids
    return tokens.tokenize(text, special=False, bos=False)
