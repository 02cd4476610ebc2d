"""Server: the sockets that are listened on, how many connections there may be, and how all of it ends in good order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

import msgspec

from edgeagent.doors.http.gate import is_loopback
from edgeagent.doors.http.message import Refused
from edgeagent.doors.http.wire import Answer, Wire, WireLimits
from edgeagent.errors import ConfigError

CONNECTIONS_MAX = 128
"""A page has two, a client one; each costs some 100 kB at most, and what is above is told to come again."""

BACKLOG = 64
LEAVE_S = 10.0
"""What is being answered when the server ends is given so long."""

LISTEN_FD = 3
"""The first descriptor that systemd hands over (sd_listen_fds(3))."""


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """Where to listen, and as whom."""

    host: str = "127.0.0.1"
    port: int = 8383
    unix: Path | None = None
    certificate: Path | None = None
    private_key: Path | None = None


class Server:
    """Serves connections on some sockets."""

    def __init__(
        self, answer: Answer, limits: WireLimits | None = None, connections_max: int = CONNECTIONS_MAX
    ) -> None:
        self._answer, self._limits, self.most = answer, limits or WireLimits(), connections_max
        self._wires: dict[Wire, asyncio.Task[None]] = {}
        self._servers: list[asyncio.Server] = []

    @property
    def connections(self) -> int:
        """How many there are."""
        return len(self._wires)

    async def listen(self, sockets: list[socket.socket], tls: ssl.SSLContext | None) -> None:
        """Serve what comes on these sockets; a unix socket is never encrypted."""
        for each in sockets:
            if each.family == socket.AF_UNIX:
                started = await asyncio.start_unix_server(self._serve, sock=each, backlog=BACKLOG)
            else:
                started = await asyncio.start_server(self._serve, sock=each, backlog=BACKLOG, ssl=tls)
            self._servers.append(started)

    async def leave(self) -> None:
        """Take nobody more in, let what is being answered end, and close."""
        for server in self._servers:
            server.close()
        for wire in list(self._wires):
            wire.leave()
        if self._wires:
            _, late = await asyncio.wait(list(self._wires.values()), timeout=LEAVE_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = Wire(reader, writer, self._answer, self._limits)
        if len(self._wires) >= self.most:
            many = f"{self.most} connections are open; come again in a moment"
            with contextlib.suppress(OSError, TimeoutError):
                await wire.turn_away(Refused(503, "too_many", many, (("Retry-After", "2"),)))
            return
        task = asyncio.current_task()
        assert task is not None, "asyncio runs each connection in a task"
        self._wires[wire] = task
        try:
            with contextlib.suppress(asyncio.CancelledError):  # The server leaves; nothing above this waits for it.
                await wire.serve()
        finally:
            del self._wires[wire]


# -- sockets -------------------------------------------------------------------------------------------------------


def sockets_for(where: Where, *, has_keys: bool, environment: Mapping[str, str] = os.environ) -> list[socket.socket]:
    """The sockets to listen on: those that systemd hands over, or else one at the address, or at the path.

    Raises ConfigError, also for an address that others reach where there are no keys.
    """
    handed = handed_over(environment)
    found = handed or [_unix(where.unix) if where.unix is not None else _tcp(where)]
    for each in found:
        name = each.getsockname()
        if not has_keys and each.family != socket.AF_UNIX and not is_loopback(name[0]):
            for opened in found:
                opened.close()
            raise ConfigError(
                f"{name[0]} is reached from other machines, so a key is needed: say --keys FILE, where FILE holds a "
                "line `NAME KEY` for each who may come in and nobody else may read it (chmod 600); or stay on 127.0.0.1"
            )
    return found


def handed_over(environment: Mapping[str, str]) -> list[socket.socket]:
    """The sockets that systemd has opened for this process. Raises ConfigError for what is no socket."""
    if environment.get("LISTEN_PID") != str(os.getpid()) or not environment.get("LISTEN_FDS", "").isdecimal():
        return []
    found = []
    for descriptor in range(LISTEN_FD, LISTEN_FD + int(environment["LISTEN_FDS"])):
        try:
            os.set_inheritable(descriptor, False)
            found.append(socket.socket(fileno=descriptor))
        except OSError as error:
            raise ConfigError(f"LISTEN_FDS: descriptor {descriptor} is no socket ({error.strerror})") from None
    return found


def _tcp(where: Where) -> socket.socket:
    opened = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM)[0]
        opened = socket.socket(family, kind, protocol)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
    except OSError as error:
        if opened is not None:
            opened.close()
        raise ConfigError(f"cannot listen on {where.host} port {where.port}: {error.strerror}; try another") from None
    return opened


def _unix(path: Path) -> socket.socket:
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket():
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
                is_alive = trial.connect_ex(str(path)) == 0
            if is_alive:
                opened.close()
                raise ConfigError(f"{path} is another server's, which still answers: end it, or say another --unix")
            path.unlink()
        mask = os.umask(0o177)  # For its owner only.
        try:
            opened.bind(str(path))
        finally:
            os.umask(mask)
    except OSError as error:
        opened.close()
        raise ConfigError(f"cannot listen at {path}: {error.strerror or error}; say another --unix PATH") from None
    return opened


def tls_of(where: Where) -> ssl.SSLContext | None:
    """How connections are encrypted; None where they are not. Raises ConfigError."""
    if where.certificate is None and where.private_key is None:
        return None
    if where.certificate is None or where.private_key is None:
        raise ConfigError("TLS needs a pair: --tls-cert FILE with the certificate, and --tls-key FILE with its key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(where.certificate, where.private_key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"TLS with {where.certificate} and {where.private_key}: {error}") from None
    return context
