"""JSON-RPC 2.0, both ways: bytes → requests, notifications, results and faults, and back; and who waits for which.

What is no message is skipped and recorded (`Skipped`), never raised: programs print texts on the same line. Whether the
other side is told is the owner's to decide (`refusal_of`). It knows no transport and no method's meaning, but for the
two that belong to the protocol's users alike: cancellation and progress.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from edgeagent.codec.frames import Framing, Lengths, Skipped, skipped
from edgeagent.codec.json_text import read_any, write
from edgeagent.core.text import readable

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603

BATCH_MAX = 100
"""Messages of one batch that are read."""

WAITING_MAX = 1024
"""Requests of ours that may wait for an answer at once; above it the oldest is given up."""

Id = int | str
Params = dict[str, Any] | list[Any] | None


class Request(msgspec.Struct, frozen=True):
    """A request: it wants one Result or Fault with its id."""

    id: Id
    method: str
    params: Params = None


class Notification(msgspec.Struct, frozen=True):
    """A request that wants no answer."""

    method: str
    params: Params = None


class Result(msgspec.Struct, frozen=True):
    """The answer to a request."""

    id: Id
    result: Any


class Fault(msgspec.Struct, frozen=True):
    """The answer that says why there is none. `id` is None where the request could not be read."""

    id: Id | None
    code: int
    message: str
    data: Any = None


Message = Request | Notification | Result | Fault


class Batch(msgspec.Struct, frozen=True):
    """Messages that came together; the answers to its requests go back together."""

    messages: tuple[Message | Skipped, ...]


Incoming = Message | Batch | Skipped

# -- bytes → messages ------------------------------------------------------------------------------------------------


class Reader:
    """Reader of one stream. Without `batches` a batch is refused, as newer protocols want it."""

    def __init__(self, framing: Framing, *, batches: bool = False) -> None:
        self._framing = framing
        self._batches = batches

    def feed(self, chunk: bytes) -> list[Incoming]:
        """Return the messages that these bytes complete."""
        return [self._read(each) for each in self._framing.feed(chunk)]

    def close(self) -> list[Incoming]:
        """Return the last message, if it needs no end: the stream has ended."""
        return [self._read(each) for each in self._framing.close()]

    def _read(self, frame: bytes | Skipped) -> Incoming:
        return frame if isinstance(frame, Skipped) else read(frame, batches=self._batches)


def read(frame: bytes, *, batches: bool = False) -> Incoming:
    """Return what a whole frame holds. Without `batches` one is refused, as newer protocols want it."""
    value = read_any(frame.removeprefix(b"\xef\xbb\xbf"))
    if value is None:
        return skipped("it is no JSON", frame)
    if not isinstance(value, list):
        return message_of(value)
    if not batches:
        return skipped("it is a batch, and none is taken here", frame, INVALID_REQUEST)
    if not 0 < len(value) <= BATCH_MAX:
        return skipped(f"it is a batch of {len(value)}; 1 to {BATCH_MAX} are taken", frame, INVALID_REQUEST)
    return Batch(tuple(message_of(each) for each in value))


def message_of(value: Any) -> Message | Skipped:
    """Return the message that a JSON value is. Fields that nobody knows are left out."""
    if not isinstance(value, dict):
        return _invalid("it is no object", value)
    message_id, method, params = value.get("id"), value.get("method"), value.get("params")
    has_id = isinstance(message_id, int | str) and not isinstance(message_id, bool)
    if value.get("jsonrpc") != "2.0":
        return _invalid("it is no JSON-RPC 2.0", value)
    if "id" in value and not has_id and not (message_id is None and "error" in value):
        return _invalid("its id is neither an integer nor a text", value)
    if "method" in value:
        if not isinstance(method, str) or {"result", "error"} & value.keys():
            return _invalid("its method is no text, or it is an answer as well", value)
        if "params" in value and not isinstance(params, dict | list):
            return _invalid("its parameters are neither an object nor a list", value)
        return Request(message_id, method, params) if has_id else Notification(method, params)  # type: ignore[arg-type] # has_id says what it is
    if has_id and "result" in value and "error" not in value:
        return Result(message_id, value["result"])  # type: ignore[arg-type] # the same
    error = value.get("error")
    if "result" in value or "id" not in value or not isinstance(error, dict):
        return _invalid("it is neither a request nor an answer", value)
    code, said = error.get("code"), error.get("message")
    if not isinstance(code, int) or isinstance(code, bool):
        return _invalid("its error has no code", value)
    return Fault(message_id, code, readable(said) if isinstance(said, str) else "", error.get("data"))


def _invalid(why: str, value: Any) -> Skipped:
    message_id = value.get("id") if isinstance(value, dict) else None
    told = message_id if isinstance(message_id, int | str) and not isinstance(message_id, bool) else None
    return skipped(why, write(value), INVALID_REQUEST, told)


# -- messages → bytes ------------------------------------------------------------------------------------------------


def body_of(message: Message | Batch) -> bytes:
    """Return the bytes of a message without a frame. No line feed stands in JSON but as an escape."""
    if isinstance(message, Batch):
        return write([_fields(each) for each in message.messages if not isinstance(each, Skipped)])
    return write(_fields(message))


def encode(message: Message | Batch, framing: Framing) -> bytes:
    """Return the bytes of a message in its frame."""
    body = body_of(message)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body) if isinstance(framing, Lengths) else body + b"\n"


def _fields(message: Message) -> dict[str, Any]:
    fields: dict[str, Any] = {"jsonrpc": "2.0"}
    if not isinstance(message, Notification):
        fields["id"] = message.id
    match message:
        case Result():
            fields["result"] = message.result
        case Fault():
            data = {} if message.data is None else {"data": message.data}
            fields["error"] = {"code": message.code, "message": message.message} | data
        case Request() | Notification():
            fields |= {"method": message.method} | ({} if message.params is None else {"params": message.params})
    return fields


def refusal_of(found: Skipped) -> Fault:
    """Return what the protocol wants said of bytes that are no message."""
    return Fault(found.id, found.code, found.why)


# -- who waits for what ----------------------------------------------------------------------------------------------


class Waiting:
    """Requests of ours that wait for an answer, with what the owner remembers of each. No id is used twice."""

    def __init__(self, waiting_max: int = WAITING_MAX) -> None:
        self._most = waiting_max
        self._next = 1
        self._by_id: dict[Id, Any] = {}

    def ask(self, method: str, params: Params = None, remembered: Any = True) -> Request:
        """Return the request to send."""
        request = Request(self._next, method, params)
        self._next += 1
        if len(self._by_id) >= self._most:
            del self._by_id[next(iter(self._by_id))]
        self._by_id[request.id] = remembered
        return request

    def answered(self, answer: Result | Fault) -> Any:
        """Return what was remembered of the request; None if its id waits for nothing: late, doubled or made up."""
        return None if answer.id is None else self._by_id.pop(answer.id, None)

    def give_up(self, request_id: Id) -> None:
        """Wait no longer: an answer that still comes changes nothing."""
        self._by_id.pop(request_id, None)

    def close(self) -> list[Any]:
        """Wait for nothing more; return what was remembered of each."""
        remembered, self._by_id = list(self._by_id.values()), {}
        return remembered


# -- cancellation and progress ---------------------------------------------------------------------------------------

_CANCELS = {"notifications/cancelled": "requestId", "$/cancelRequest": "id", "$/cancel_request": "requestId"}
"""How MCP, editors and ACP say that a request is wanted no longer, and where its id stands."""

_PROGRESS = {"notifications/progress": "progressToken", "$/progress": "token"}


class Progress(msgspec.Struct, frozen=True):
    """How far a request has come, by the token that it was sent with; counts are None where they are not told."""

    token: Id
    done: float | None = None
    total: float | None = None
    message: str = ""


def cancelled(request_id: Id, reason: str = "", method: str = "notifications/cancelled") -> Notification:
    """Return the notification that a request of ours is wanted no longer."""
    return Notification(method, {_CANCELS[method]: request_id} | ({"reason": reason} if reason else {}))


def cancelled_id(message: Notification) -> Id | None:
    """Return the id of the request that a notification cancels; None if it cancels none."""
    return _id_in(message.params, _CANCELS.get(message.method, ""))


def progress_in(message: Notification) -> Progress | None:
    """Return the progress that a notification tells; None if it tells none."""
    token = _id_in(message.params, _PROGRESS.get(message.method, ""))
    if token is None or not isinstance(message.params, dict):
        return None
    said = message.params.get("value", message.params)
    said = said if isinstance(said, dict) else {}
    text = said.get("message")
    done, total = (_count(said.get(name)) for name in ("progress", "total"))
    return Progress(token, done, total, readable(text) if isinstance(text, str) else "")


def with_progress(params: Mapping[str, Any], token: Id) -> dict[str, Any]:
    """Return MCP's parameters that ask for progress under a token."""
    meta = params.get("_meta")
    return {**params, "_meta": {**(meta if isinstance(meta, Mapping) else {}), "progressToken": token}}


def _id_in(params: Params, name: str) -> Id | None:
    found = params.get(name) if isinstance(params, dict) and name else None
    return found if isinstance(found, int | str) and not isinstance(found, bool) else None


def _count(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
