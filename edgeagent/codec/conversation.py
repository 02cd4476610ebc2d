"""Conversation with a remote model, and what comes back: the values that all three APIs are written from and read to.

Whatever a server sends that we have no name for is kept (`Kept`) and goes back in the same API's next request as it
came: signatures of reasoning and vendors' own fields are only worth something unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from edgeagent.codec.failures import Failure
from edgeagent.codec.json_text import read_any
from edgeagent.core.values import Choice, Usage

ApiName = Literal["chat", "responses", "messages"]
"""OpenAI's chat completions, OpenAI's responses, Anthropic's messages."""

Reason = Literal["end", "calls", "limit", "filtered", "refused", "other"]
"""Why a reply ended: said all, wants calls made, the token limit, the server's filter, the model refused, another."""

LimitName = Literal["max_tokens", "max_completion_tokens"]
"""How chat completions name the token limit: the first everywhere but where OpenAI's own reasoning models are."""


class Call(msgspec.Struct, frozen=True, array_like=True):
    """A call as the model wrote it: the server's id, the tool, and the arguments' raw text, checked by nobody yet."""

    id: str
    tool: str
    arguments: str


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """What an assistant's message was in its own API, as JSON text; no other API is shown it."""

    api: ApiName
    body: str


class FromUser(msgspec.Struct, frozen=True, array_like=True, tag="user"):
    """What the user said."""

    text: str


class FromModel(msgspec.Struct, frozen=True, array_like=True, tag="model"):
    """What the model said and called before. `kept`, if it is of the same API, is sent in place of the rest."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    kept: Kept | None = None


class FromTool(msgspec.Struct, frozen=True, array_like=True, tag="tool"):
    """What a call came to."""

    call_id: str
    text: str
    failed: bool = False


def kept_of(turn: FromModel, api: ApiName) -> Any:
    """Return what the model's message was in this API, or None if it came by another one."""
    return read_any(turn.kept.body) if turn.kept is not None and turn.kept.api == api else None


Turn = FromUser | FromModel | FromTool
"""One message of a conversation."""


class ToolOffer(msgspec.Struct, frozen=True):
    """A tool that the model may call. `strict` asks the server to hold the arguments to the schema."""

    name: str
    about: str
    schema: Mapping[str, Any]
    strict: bool = False


class AnswerShape(msgspec.Struct, frozen=True):
    """The JSON Schema that the answer must fit, under a name."""

    name: str
    schema: Mapping[str, Any]
    strict: bool = True


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a remote model. What an API cannot carry is named by its `Api.lacks`, and left out.

    `only` names the one tool that must be called. `max_tokens` 0 means the server's own limit. `temperature` None
    leaves it out: the newest models of OpenAI and Anthropic refuse it. `extra` are further fields of the request's top
    level, as the operator wrote them; they come last and win.
    """

    model: str
    turns: tuple[Turn, ...]
    system: str = ""
    tools: tuple[ToolOffer, ...] = ()
    choice: Choice = "either"
    only: str = ""
    parallel: bool = True
    answer: AnswerShape | None = None
    max_tokens: int = 0
    limit_name: LimitName = "max_tokens"
    temperature: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stream: bool = True
    extra: Mapping[str, Any] = {}


class Text(msgspec.Struct, frozen=True, gc=False):
    """The next piece of the answer."""

    text: str


class Reasoning(msgspec.Struct, frozen=True, gc=False):
    """The next piece of what the model thinks aloud; never part of the answer."""

    text: str


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """The next piece of a refusal that the model has written as such."""

    text: str


class CallBegun(msgspec.Struct, frozen=True, gc=False):
    """Call number `index` of this reply has begun."""

    index: int
    id: str
    tool: str


class CallArguments(msgspec.Struct, frozen=True, gc=False):
    """The next piece of the arguments of call number `index`."""

    index: int
    text: str


class Ended(msgspec.Struct, frozen=True, gc=False):
    """The reply is whole; nothing follows. `said` is the server's own word for the reason."""

    reason: Reason
    said: str = ""


Delta = Text | Reasoning | Refusal | CallBegun | CallArguments | Usage | Ended | Failure
"""What a stream gives. The last one is Ended or Failure, and exactly one of them."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A whole reply, streamed or not. `model` and `id` are what the server says of itself, untrusted like the rest."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: tuple[Call, ...] = ()
    usage: Usage | None = None
    ended: Ended = Ended("end")
    model: str = ""
    id: str = ""
    kept: Kept | None = None

    def turn(self) -> FromModel:
        """The reply as a message of the conversation that goes on."""
        return FromModel(self.text or self.refusal, self.calls, self.kept)
