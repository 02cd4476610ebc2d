"""APIs of remote models, by name: where each is asked, what it wants beside the body, and its two directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from edgeagent.codec import chat, messages, responses
from edgeagent.codec.conversation import ApiName, Conversation, Reply
from edgeagent.codec.failures import Failure
from edgeagent.codec.reading import Reading
from edgeagent.codec.stream import Stream, decoded
from edgeagent.errors import ConfigError


class Api(msgspec.Struct, frozen=True):
    """One API. `path` follows the endpoint's address (which ends in `/v1`); `lacks` are fields that it cannot carry."""

    name: ApiName
    path: str
    encode: Callable[[Conversation], bytes]
    reading: Callable[[], Reading]
    credential: Literal["authorization", "x-api-key"] = "authorization"
    headers: tuple[tuple[str, str], ...] = ()
    lacks: frozenset[str] = frozenset()

    def stream(self) -> Stream:
        """Begin to read a streamed reply: feed it the body as it comes, then close it."""
        return Stream(self.reading())

    def decode(self, body: bytes) -> Reply | Failure:
        """Read the body of a response with status 200 that was not streamed."""
        return decoded(self.reading(), body)


APIS: dict[str, Api] = {
    each.name: each
    for each in (
        Api("chat", "/chat/completions", chat.encode, chat.ChatReading),
        Api("responses", "/responses", responses.encode, responses.ResponsesReading, lacks=frozenset({"seed", "stop"})),
        Api(
            "messages",
            "/messages",
            messages.encode,
            messages.MessagesReading,
            credential="x-api-key",
            headers=(("anthropic-version", "2023-06-01"),),
            lacks=frozenset({"seed"}),
        ),
    )
}


def api_called(name: str) -> Api:
    """Return the API of that name. Raises ConfigError."""
    if name not in APIS:
        raise ConfigError(f"no API is called {name!r}; there are: {', '.join(APIS)}")
    return APIS[name]
