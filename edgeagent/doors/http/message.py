"""Messages of HTTP as values: a request that was read, a reply that will be written, a refusal. Knows no connection."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

JSON, TEXT, EVENTS = "application/json", "text/plain; charset=utf-8", "text/event-stream"


class Request(msgspec.Struct, frozen=True):
    """A whole request. Headers' names are in small letters; `peer` is an address, '' of a unix socket."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    peer: str = ""
    is_secure: bool = False

    def as_json(self, kind: type[T]) -> T:
        """The body as a value of this type. Raises Refused, saying where it is wrong."""
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Refused(400, "bad_body", f"the body is not what this route takes: {error}") from None


class Reply(msgspec.Struct, frozen=True):
    """What is answered: a whole body, or with `pieces` one that goes on until they end.

    `after` is called when it is over, whether or not it was written.
    """

    status: int
    body: bytes = b""
    kind: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    pieces: AsyncGenerator[bytes, None] | None = None
    after: Callable[[], None] | None = None


class Refused(Exception):
    """A request that is not served: the status, a code for programs, a sentence for people."""

    def __init__(self, status: int, code: str, message: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, headers
        self.param: str | None = None
        """The field that is meant, where it is one."""

    def reply(self) -> Reply:
        """The refusal in the shape that clients of OpenAI's protocol read."""
        kind = "server_error" if self.status >= 500 else _TYPES.get(self.status, "invalid_request_error")
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return as_json({"error": error}, self.status, self.headers)


_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def as_json(value: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """A reply whose body is this value as JSON."""
    return Reply(status, msgspec.json.encode(value), headers=headers)
