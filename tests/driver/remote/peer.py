"""A server on loopback that answers as a test says, byte by byte: good, broken or hostile."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator

Answer = Callable[[socket.socket, int], None]
"""Answers request number so-and-so on this connection; raises OSError where the client has gone."""

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


class Peer:
    """What was sent to it, and where it is."""

    def __init__(self, answer: Answer, socket_path: str = "", tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._answer, self.requests, self.accepted = answer, [], 0
        self.asked_at: list[float] = []
        self.gone = threading.Event()
        self._server = socket.socket(socket.AF_UNIX) if socket_path else socket.socket()
        self._server.bind(socket_path or ("127.0.0.1", 0))
        self._server.listen()
        self.url = "http://localhost/v1" if socket_path else f"http://127.0.0.1:{self._server.getsockname()[1]}/v1"
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def bodies(self) -> list[dict]:
        """The JSON bodies of the requests."""
        return [json.loads(each.partition(b"\r\n\r\n")[2]) for each in self.requests]

    def close(self) -> None:
        """Take no more connections."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                self.accepted += 1
                threading.Thread(target=self._begin, args=(connection,), daemon=True).start()

    def _begin(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self._talk(connection if self._tls is None else self._tls.wrap_socket(connection, server_side=True))

    def _talk(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            self.asked_at.append(time.monotonic())
            self.requests.append(_request(connection))
            self._answer(connection, len(self.requests))
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
        self.gone.set()


def _request(connection: socket.socket) -> bytes:
    """One request, read whole."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += _more(connection)
    head, _, body = got.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        body += _more(connection)
    return head + b"\r\n\r\n" + body


def _more(connection: socket.socket) -> bytes:
    """What comes next; ConnectionError where the client has gone, for whom it would be waited for ever."""
    if not (received := connection.recv(65536)):
        raise ConnectionError("the client has gone in the middle of its request")
    return received


@contextlib.contextmanager
def peer(answer: Answer | bytes, socket_path: str = "", tls: ssl.SSLContext | None = None) -> Iterator[Peer]:
    """A server that answers so, or always with these bytes."""
    served = Peer(answer if callable(answer) else lambda connection, _: connection.sendall(answer), socket_path, tls)
    try:
        yield served
    finally:
        served.close()


def chunk(delta: dict, finish: str | None = None, **more) -> bytes:
    """One event of a streamed chat completion."""
    value = {"id": "1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def saying(text: str, **usage: int) -> bytes:
    """A whole streamed answer in words, a word an event."""
    words = b"".join(chunk({"content": each}) for each in text.replace(" ", " \0").split("\0"))
    told = {"usage": {"prompt_tokens": 10, "completion_tokens": 4, **usage}}
    return OK + chunk({"role": "assistant"}) + words + chunk({}, "stop", **told) + b"data: [DONE]\n\n"


def calling(*calls: tuple[str, str]) -> bytes:
    """A whole streamed answer of calls: tool and arguments, the latter in pieces."""
    events = []
    for index, (tool, arguments) in enumerate(calls):
        begun = {"index": index, "id": f"c{index}", "type": "function", "function": {"name": tool, "arguments": ""}}
        events.append(chunk({"tool_calls": [begun]}))
        events += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments[at : at + 3]}}]})
            for at in range(0, len(arguments), 3)
        ]
    return OK + b"".join(events) + chunk({}, "tool_calls") + b"data: [DONE]\n\n"


def refusing(status: int, body: bytes = b"{}", *headers: str) -> bytes:
    """An answer with an error's status."""
    lines = [f"HTTP/1.1 {status} No", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body
