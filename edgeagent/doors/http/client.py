"""Client: what a shell says to a served agent, over TCP, TLS or a unix socket, with the library's own http.client.

A stream of events goes on where it was cut: it asks for what is behind the last record that it has had.
"""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote, urlsplit

from edgeagent.errors import ConfigError, DriverUnavailable, EdgeAgentError, PeerMisbehaved

REPLY_S = 60.0
"""How long a reply is waited for; opening a session reads its whole trace, which takes seconds on a small board."""

SILENT_S = 45.0
"""A stream that says nothing for so long is dead: the server says every 15 s that it lives."""

RETRY_S = 1.5
LINE_BYTES_MAX = 16 << 20
"""More than a record with everything in it takes."""

FORMS = "http://HOST:PORT, https://HOST:PORT or unix:PATH"


class At(NamedTuple):
    """Where a server is: an address, or the path of a unix socket."""

    scheme: str
    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f"unix:{self.path}"
        return f"{self.scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def read_at(text: str) -> At:
    """Where `--at` points to. Raises ConfigError, without repeating what may be a key."""
    if text.startswith("unix:") and len(text) > len("unix:"):
        return At("unix", "localhost", 0, text.removeprefix("unix:"))
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        url, port = urlsplit(""), None
    is_bare = url.path in ("", "/") and not url.query and not url.fragment and "@" not in url.netloc
    if url.scheme not in ("http", "https") or not url.hostname or not is_bare:
        raise ConfigError(f"--at is no address of a server: write {FORMS}, without a path or a key")
    return At(url.scheme, url.hostname, port or 8383)


class Refusal(ConfigError):
    """The server did not do what was asked; `status` and `code` are its own."""

    def __init__(self, message: str, status: int, code: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class NotNow(DriverUnavailable):
    """The server is not reached, or cannot do it at this moment."""


class Sent(NamedTuple):
    """One event of a stream; what has no number is not sent again."""

    kind: str
    number: int | None
    row: dict[str, Any]


class Client:
    """Asks one server; each ask has a connection of its own. `key` puts the key behind what a header begins with."""

    def __init__(self, at: At, key: Callable[[str], str] | None = None, authority: Path | None = None) -> None:
        self.at = at
        self._key, self._authority = key, authority

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """What the server replies. Raises Refusal, NotNow and PeerMisbehaved."""
        connection = self._connection(REPLY_S)
        try:
            with self._sent(connection, method, path, body) as reply:
                return _read_json(reply.read(LINE_BYTES_MAX))
        except (OSError, http.client.HTTPException) as error:
            raise NotNow(f"{self.at} has not replied: {error or type(error).__name__}") from None
        finally:
            connection.close()

    def stream(self, session: str, since: int, told: Callable[[str], None], patience_s: float) -> Stream:
        """The events of a session from a record on, connected already. Raises what `call` does."""
        return Stream(self, session, since, told, patience_s)

    def listening(self, path: str, last: int | None) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """A reply that goes on; with the connection, to be closed."""
        connection = self._connection(SILENT_S)
        more = {} if last is None else {"Last-Event-ID": str(last)}
        try:
            return connection, self._sent(connection, "GET", path, None, **more)
        except BaseException:
            connection.close()
            raise

    def _connection(self, seconds: float) -> http.client.HTTPConnection:
        if self.at.scheme == "unix":
            return _UnixConnection(self.at.path, seconds)
        if self.at.scheme == "http":
            return http.client.HTTPConnection(self.at.host, self.at.port, timeout=seconds)
        import ssl

        try:
            context = ssl.create_default_context(cafile=self._authority)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"--tls-ca {self._authority} is no file of certificates (PEM): {error}") from None
        return http.client.HTTPSConnection(self.at.host, self.at.port, timeout=seconds, context=context)

    def _sent(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Any, **headers: str
    ) -> http.client.HTTPResponse:
        """Send; return the reply, whose body is not read yet."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self._key is not None:
            given["Authorization"] = self._key("Bearer ")
        try:
            connection.request(method, path, None if body is None else json.dumps(body).encode(), given)
            reply = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise NotNow(self._unreached(error)) from None
        if reply.status >= 400:
            raise self._refusal(reply)
        return reply

    def _unreached(self, error: Exception) -> str:
        name = type(error).__name__
        if name == "SSLCertVerificationError":
            return f"{self.at}: its certificate is not vouched for: {error}; name its authority with --tls-ca FILE"
        reason = getattr(error, "strerror", None) or str(error) or name
        return f"{self.at} is not reached: {reason}. Is `edgeagent serve` running there, and is --at right?"

    def _refusal(self, reply: http.client.HTTPResponse) -> EdgeAgentError:
        try:
            error = json.loads(reply.read(LINE_BYTES_MAX))["error"]
            message, code = str(error["message"]), str(error["code"])
        except (ValueError, KeyError, TypeError):
            return PeerMisbehaved(f"{self.at} replied {reply.status} and no reason: is it an `edgeagent serve`?")
        if reply.status in (429, 503):
            return NotNow(f"{self.at}: {message}")
        remedy = ": give a key with --key env:NAME or --key file:PATH" if reply.status == 401 else ""
        return Refusal(f"{self.at}: {message}{remedy}", reply.status, code)


class Stream:
    """The events of one session, each once; a connection that is lost is made again until patience ends."""

    def __init__(
        self, client: Client, session: str, since: int, told: Callable[[str], None], patience_s: float
    ) -> None:
        self._client, self._session, self._since = client, session, since
        self._told, self._patience_s = told, patience_s
        self._had: int | None = None
        self._connection, self._reply = self._connected()

    def __iter__(self) -> Iterator[Sent]:
        """Yield for ever. Raises Refusal, PeerMisbehaved, and NotNow when the server stays away."""
        lost_at: float | None = None
        while True:
            try:
                if lost_at is not None:
                    self._connection, self._reply = self._connected()
                    self._told(f"{self._client.at} is back")
                    lost_at = None
                for sent in events_in(self._reply):
                    if sent.number is not None:
                        if self._had is not None and sent.number <= self._had:
                            continue
                        self._had = sent.number
                    yield sent
                reason: Exception | str = "the stream has ended"
            except (NotNow, OSError, http.client.HTTPException) as error:
                reason = error
            self.close()
            now = time.monotonic()
            if lost_at is None:
                lost_at = now
                self._told(f"the connection to {self._client.at} is lost ({reason}); trying again")
            elif now - lost_at > self._patience_s:
                raise NotNow(f"{self._client.at} has not come back for {self._patience_s:g} s: {reason}")
            time.sleep(RETRY_S)

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def _connected(self) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        path = f"/api/sessions/{quote(self._session, safe='')}/events?since={self._since}"
        return self._client.listening(path, self._had)


def events_in(lines: BinaryIO | http.client.HTTPResponse) -> Iterator[Sent]:
    """Server-sent events, as the specification has them read. Raises PeerMisbehaved."""
    found: dict[str, str] = {}
    while line := lines.readline(LINE_BYTES_MAX):
        if not line.endswith(b"\n"):
            return  # It was cut off here.
        text = line.rstrip(b"\r\n").decode(errors="replace")
        if text:
            name, _, value = text.partition(":")
            value = value.removeprefix(" ")
            found[name] = f"{found[name]}\n{value}" if name == "data" and name in found else value
        elif "data" in found:
            number, row = found.get("id", ""), _read_json(found["data"].encode())
            yield Sent(found.get("event", "message"), int(number) if number.isdecimal() else None, row)
            found = {}
        else:
            found = {}


def _read_json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise PeerMisbehaved("the reply is no JSON: is it of an `edgeagent serve`, or a proxy's own page?") from None


class _UnixConnection(http.client.HTTPConnection):
    """A connection to a unix socket."""

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        """Connect to the path."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
