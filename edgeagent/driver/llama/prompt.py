"""Which tokens put a conversation to the model: the template's markup as markup, everybody's words as words.

Law: what a user, a tool or the model wrote can never become markup, whatever it spells; and what the model wrote goes
back as the very tokens it wrote, so that the next prompt begins with what is in memory. Where words stand in a rendered
template is told by marks around them, drawn by chance for each prompt: who looked for the words would find those of the
template that spell the same.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from edgeagent.core.values import TOKEN_BYTES
from edgeagent.errors import ModelError

MARK_BYTES = 12
"""Of chance in a mark: nobody who does not know it can write it."""


class Renders(Protocol):
    """What is needed of a chat template."""

    def render(self, messages: list[dict[str, Any]], **variables: Any) -> str:
        """The prompt's text."""


class Tokens(Protocol):
    """What is needed of a model's vocabulary."""

    @property
    def bos_token(self) -> str: ...
    @property
    def eos_token(self) -> str: ...
    @property
    def adds_bos(self) -> bool: ...

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


def prompt_tokens(
    chat: Sequence[Mapping[str, str]], template: Renders, tokens: Tokens, written: Sequence[bytes] = ()
) -> list[int]:
    """The tokens of a conversation, for the model to go on.

    `written` are the ids of the last messages, empty for those that the model did not write. What the template trims is
    trimmed. Raises ModelError when it alters a message beyond that, or leaves one out.
    """
    mark, bos = secrets.token_hex(MARK_BYTES), tokens.bos_token
    marked = [{**each, "content": _marked(each["content"], mark, place)} for place, each in enumerate(chat)]
    rendered = template.render(marked, add_generation_prompt=True, bos_token=bos, eos_token=tokens.eos_token)
    begins = bool(bos) and rendered.startswith(bos)
    result = tokens.tokenize("", special=True, bos=True) if tokens.adds_bos and not begins else []
    packed = [*([b""] * (len(chat) - len(written))), *written]
    missing = {place for place, each in enumerate(chat) if each["content"].strip()}
    markup, *found = re.split(rf"{mark}b(\d+)e(.*?){mark}z", rendered, flags=re.DOTALL)
    for number, text, after in zip(found[::3], found[1::3], found[2::3], strict=True):
        place = int(number)
        words, ids = chat[place]["content"], packed[place]
        if text != words.strip() or mark in markup:
            raise _altered(words)
        before, behind = words[: -len(words.lstrip())], words[len(words.rstrip()) :]
        if markup.endswith(before) and after.startswith(behind):
            markup, after = markup[: len(markup) - len(before)], after[len(behind) :]  # noqa: PLW2901
        else:
            words, ids = text, b""  # The template has trimmed it.
        result += tokens.tokenize(markup, special=True, bos=False) + _written(words, ids, tokens)
        markup = after
        missing.discard(place)
    if missing or mark in markup:
        raise _altered(chat[min(missing, default=-1)]["content"])
    return result + tokens.tokenize(markup, special=True, bos=False)


def _marked(words: str, mark: str, place: int) -> str:
    """The words between two marks, white space around them outside, so that a template trims it as ever."""
    core = words.strip()
    return words.replace(core, f"{mark}b{place}e{core}{mark}z", 1) if core else words


def _altered(words: str) -> ModelError:
    return ModelError(f"the chat template alters what is said: {words.strip()[:40]!r} is not in the prompt it made")


def _written(text: str, packed: bytes, tokens: Tokens) -> list[int]:
    ids = unpack_ids(packed)
    if ids and tokens.detokenize(ids) == text.encode():
        return ids
    return tokens.tokenize(text, special=False, bos=False)


def now_here() -> datetime:
    """The time and the zone of this machine: what `tomorrow` means to who speaks to it."""
    return datetime.now().astimezone()
