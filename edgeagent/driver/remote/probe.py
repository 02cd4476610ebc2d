"""Probe of an endpoint: is it reached, is the key taken, which models has it, and what does the model's server support?

Costs some twenty tokens. What comes back is untrusted, and only looked at.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from edgeagent.codec.apis import Api, api_called
from edgeagent.codec.conversation import AnswerShape, Conversation, FromUser, ToolOffer
from edgeagent.codec.failures import failure_of
from edgeagent.codec.json_text import read_object
from edgeagent.core.text import shown
from edgeagent.driver.remote.endpoint import Endpoint
from edgeagent.driver.remote.exchange import Asked, Exchange, Result
from edgeagent.driver.remote.scrub import Scrub
from edgeagent.driver.remote.secret import Secret
from edgeagent.driver.remote.transport import How, Progress, Request, Transport
from edgeagent.errors import ModelError

PROBE_S = 60.0
"""The most that one question of the probe takes."""

TOKENS_MAX = 24
"""Of each answer; some servers refuse less than 16."""

LISTED_MAX = 8
"""Models that are named of those that a server has."""

COLOUR = {"type": "object", "properties": {"colour": {"type": "string", "enum": ["red"]}}, "required": ["colour"]}


@dataclass(frozen=True)
class Finding:
    """One thing that was tried, whether it works, and what was found."""

    what: str
    works: bool
    found: str


def probe(endpoint: Endpoint) -> Iterator[Finding]:
    """Try an endpoint. Raises ModelError if it cannot be asked at all."""
    transport = Transport()
    try:
        listed = _models(endpoint, transport)
        yield listed
        api = api_called(endpoint.api)
        begun, told = time.monotonic(), list[str]()
        question = Conversation(model=endpoint.model, turns=(FromUser("Say yes."),), max_tokens=TOKENS_MAX)
        said = _asked(endpoint, api, question, transport, told.append)
        if said.reply is None:
            raise ModelError(f"{said.why} ({said.how}); {listed.found}")
        yield Finding("words", True, f"it answers in {time.monotonic() - begun:.1f} s")
        if endpoint.stream:
            yield Finding("stream", len(told) > 1, f"the answer came in {len(told)} pieces")
        usage = said.reply.usage
        counted = usage is not None and usage.prompt > 0 and usage.completion > 0
        yield Finding("usage", counted, "it counts tokens" if counted else "tokens are taken from the bytes")
        yield _tools(endpoint, api, question, transport)
        yield _schema(endpoint, api, question, transport)
    finally:
        transport.close()


def _tools(endpoint: Endpoint, api: Api, question: Conversation, transport: Transport) -> Finding:
    offer = ToolOffer("paint", "Paint the wall.", {**COLOUR, "additionalProperties": False})
    wanted = replace(question, turns=(FromUser("Paint the wall red."),), tools=(offer,), choice="call")
    result = _asked(endpoint, api, wanted, transport)
    if result.reply is None:
        return Finding("tools", False, result.why)
    calls = result.reply.calls
    good = bool(calls) and calls[0].tool == "paint" and read_object(calls[0].arguments) is not None
    return Finding("tools", good, "it calls tools" if good else "it was to call a tool, and did not")


def _schema(endpoint: Endpoint, api: Api, question: Conversation, transport: Transport) -> Finding:
    shape = AnswerShape("colour", {**COLOUR, "additionalProperties": False})
    result = _asked(endpoint, api, replace(question, answer=shape), transport)
    if result.reply is None:
        return Finding("schema", False, result.why)
    held = read_object(result.reply.text) == {"colour": "red"}
    return Finding("schema", held, "it is held to a schema" if held else "it took a schema, and did not keep to it")


def _asked(
    endpoint: Endpoint,
    api: Api,
    question: Conversation,
    transport: Transport,
    on_text: Callable[[str], None] | None = None,
) -> Result:
    """What comes of one question."""
    limits = {"max_tokens": 0} if "max_tokens" in endpoint.omit else {}
    whole = replace(question, stream=endpoint.stream, limit_name=endpoint.limit_name, extra=endpoint.extra, **limits)
    results: queue.SimpleQueue[Result] = queue.SimpleQueue()
    asked = Asked(endpoint, api, api.encode(whole), time.monotonic() + PROBE_S, may_retry=False)
    Exchange(asked, transport, on_text, results.put).start()
    return results.get()


class _Listing:
    """A `Receiver` of the list of models."""

    def __init__(self) -> None:
        self.status, self.headers, self.content = 0, dict[str, str](), bytearray()
        self.scrub = Scrub(None)
        self.over: queue.SimpleQueue[tuple[How, str]] = queue.SimpleQueue()

    def begun(self, secret: Secret | None) -> None:
        self.scrub = Scrub(secret)

    def head(self, status: int, headers: dict[str, str]) -> None:
        self.status, self.headers = status, headers

    def body(self, piece: bytes) -> Progress:
        self.content += piece
        return "event"

    def ended(self, how: How, why: str) -> None:
        self.over.put((how, why))


def _models(endpoint: Endpoint, transport: Transport) -> Finding:
    """Whether the server has the model; not every server lists them. Raises ModelError where it is not reached."""
    listing, api = _Listing(), api_called(endpoint.api)
    headers = tuple(f"{name}: {value}" for name, value in api.headers)
    until = time.monotonic() + PROBE_S
    transport.start(Request(endpoint, "/models", None, listing, until, headers=headers, carries=api.credential))
    how, why = listing.over.get()
    if how != "done":
        raise ModelError(f"{endpoint.origin}: {listing.scrub.text(why)} ({how})")
    value = read_object(bytes(listing.content))
    if listing.status != 200 or value is None:
        failure = failure_of(listing.status, listing.headers, bytes(listing.content))
        if failure.kind == "credential":
            raise ModelError(f"{endpoint.origin}: {listing.scrub.text(failure.text)}; name the right key")
        return Finding("models", True, f"{endpoint.origin} is reached; it does not list its models")
    data = value.get("data")
    rows = data if isinstance(data, list) else []
    names = [str(each["id"]) for each in rows if isinstance(each, dict) and "id" in each]
    told = ", ".join(shown(listing.scrub.text(name))[:80] for name in names[:LISTED_MAX])
    more = f" and {len(names) - LISTED_MAX} more" * (len(names) > LISTED_MAX)
    has = endpoint.model in names
    return Finding("models", has or not names, f"{endpoint.origin} has {told or 'nothing that it names'}{more}")
