"""The small values that events, effects and state are made of.

Field order and tags are append-only: old traces must stay readable.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal

import msgspec
import orjson

Role = Literal["user", "assistant", "tool", "heard", "note"]
"""Who a message is from: the user, the model, a tool, a source outside, or the model itself through a timer."""

Choice = Literal["either", "call", "answer"]
"""What the model may write now: a tool call or an answer, only a call, only an answer."""

Stop = Literal["end", "closed", "limit", "time", "cancelled"]
"""Why a generation ended: the model ended it, the grammar closed, the token limit, the wall time, the user."""

TOKEN_BYTES = 3
"""Bytes per token id in `Message.token_ids`, little-endian: vocabularies are far below 2**24."""


class Part(msgspec.Struct, frozen=True, array_like=True):
    """Where in a tool's result a message begins: `effect_id` is that of the call, `start` a place in `Kept`'s text."""

    effect_id: int
    start: int = 0


class Message(msgspec.Struct, frozen=True, array_like=True):
    """One message of the conversation, as the model will see it.

    `token_ids` are the ids the model itself wrote (`TOKEN_BYTES` each), kept because text that is
    tokenised again may come out differently and then nothing of the prompt's prefix could be reused.
    `tool` names the tool whose result this is, or the source that was heard. `part` is set where the result can be
    read on.
    """

    role: Role
    text: str
    token_ids: bytes = b""
    tool: str = ""
    part: Part | None = None


class Exchange(msgspec.Struct, frozen=True, array_like=True):
    """Everything from a user's word to the answer; context fit keeps or drops it whole.

    `exact_tokens` and `text_bytes` are its size as `core.context` measures it: tokens that are known, and bytes
    whose tokens must be estimated.
    """

    messages: tuple[Message, ...]
    exact_tokens: int
    text_bytes: int


class ToolCall(msgspec.Struct, frozen=True, array_like=True):
    """A call as the model wrote it: a name and a JSON object of arguments, neither of them checked yet."""

    tool: str
    arguments: dict[str, Any]


class Usage(msgspec.Struct, frozen=True, array_like=True):
    """What one model call cost. Tokens, except `micros` (wall time in µs) and `cost` (millionths of the price's unit).

    `prompt` counts all prompt tokens, `evaluated` those that were not already in the model's memory,
    `completion` all written tokens, `forced` those of them that the grammar left no choice about.
    """

    prompt: int = 0
    evaluated: int = 0
    completion: int = 0
    forced: int = 0
    micros: int = 0
    cost: int = 0


class Outcome(msgspec.Struct, frozen=True, array_like=True):
    """How a turn ended. `detail` names the limit, the rule's reason, the failure, or the call whose fate is unknown."""

    kind: Literal["answered", "budget", "refused", "failed", "cancelled", "halted", "unknown"]
    detail: str = ""


class CallMade(msgspec.Struct, frozen=True, array_like=True):
    """A call of this turn that has its result: what the repeat breaker compares with."""

    tool: str
    arguments: str
    answer: str


def call_digest(tool: str, arguments: str) -> str:
    """Return what ties a person's answer to exactly this call: 16 hex digits over tool and canonical arguments."""
    return hashlib.sha256(f"{tool}\n{arguments}".encode()).hexdigest()[:16]


def canonical_json(value: Any) -> str:
    """Return the one JSON text of `value`: keys sorted, no spaces, UTF-8, integers with every digit.

    Raises TypeError on other types, and ValueError for an integer of more digits than Python writes.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError as error:
        if "64-bit" not in str(error):
            raise
        return _written_out(value)  # orjson ends at 64 bits.


def _written_out(value: Any) -> str:
    """As orjson writes it, but for the numbers that it does not."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case list() | tuple():
            return f"[{','.join(map(_written_out, value))}]"
        case dict():
            keys = [(each, orjson.dumps(each).decode()) for each in sorted(value)]
            return f"{{{','.join(f'{name}:{_written_out(value[each])}' for each, name in keys)}}}"
        case _:
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def read_json(text: str | bytes) -> Any:
    """Return the value of JSON that we have written ourselves, integers with every digit. Raises ValueError."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
