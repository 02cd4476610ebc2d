"""Endpoint of a model behind a network: where it is, what it speaks, and whether it may be spoken to at all."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

import msgspec

from edgeagent.codec.conversation import ApiName, LimitName
from edgeagent.codec.subset import Subset
from edgeagent.errors import ConfigError

AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
)
"""Where systems keep whom they trust: a curl that was built elsewhere looks in other places."""


Calls = Literal["own", "schema", "object", "grammar"]
"""Who decides about calls, and what holds the model to one: the model itself, by its server's tools; or this device,
by the JSON Schema of the answer, by the older form of that, or by a grammar of llama.cpp."""

SECONDS_MAX = 86_400


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A server and one model of it. Times are seconds; `first_event_s` runs until something of the answer has come.

    `omit` are fields of a request that this server refuses, `extra` those that it is sent besides, `schemas` the subset
    that schemas are sent in at first.
    """

    url: str
    model: str
    api: ApiName = "chat"
    credential: str = ""
    ca: str = ""
    proxy: str = ""
    socket: str = ""
    plain_http: bool = False
    here: bool | None = None
    stream: bool = True
    calls: Calls = "own"
    schemas: Subset = "full"
    limit_name: LimitName = "max_tokens"
    omit: tuple[str, ...] = ()
    extra: Mapping[str, Any] = {}
    connect_s: float = 10.0
    first_event_s: float = 120.0
    idle_s: float = 60.0

    @property
    def is_here(self) -> bool:
        """Whether what is sent to it stays on this device: a unix socket or a loopback address, unless it is said."""
        return self.here if self.here is not None else bool(self.socket) or is_loopback(urlsplit(self.url).hostname)

    @property
    def is_loopback(self) -> bool:
        """Whether no network lies between."""
        return bool(self.socket) or is_loopback(urlsplit(self.url).hostname)

    @property
    def origin(self) -> str:
        """The server, as it is named to a person: nothing of the path."""
        parts = urlsplit(self.url)
        return self.socket or f"{parts.scheme}://{parts.netloc}"

    def address(self, path: str) -> str:
        """The address of a path below the endpoint's own."""
        return self.url.rstrip("/") + path if path else self.url


def is_loopback(host: str | None) -> bool:
    """Whether a host is this machine by its very name; what a name resolves to is not asked."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def check_endpoint(endpoint: Endpoint, where: str, key: str = "endpoint", example: str = "v1") -> Endpoint:
    """The endpoint, if it may be spoken to. Raises ConfigError naming the `key` that its address has, and `where`."""
    try:
        parts = urlsplit(endpoint.url)
        _ = parts.port
    except ValueError as error:
        raise ConfigError(f"{where}.{key}: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"{where}.{key} is no address; write it as https://host/{example}, or http://127.0.0.1:8080/{example}"
        )
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ConfigError(f"{where}.{key}: a user, a query or a # has no place there; name a key with `credential`")
    _check_plain(endpoint, parts, where, key)
    for name in ("connect_s", "first_event_s", "idle_s"):
        if not 0 < getattr(endpoint, name) <= SECONDS_MAX:
            raise ConfigError(f"{where}.{name} must be more than 0 seconds, and {SECONDS_MAX} at most")
    if endpoint.ca and not Path(endpoint.ca).is_file():
        raise ConfigError(f"{where}.ca: there is no file {endpoint.ca}; name one with certificates in PEM")
    proxy = urlsplit(endpoint.proxy)
    if endpoint.proxy and (proxy.username is not None or not proxy.hostname):
        raise ConfigError(f"{where}.proxy: write it as http://host:port, without a user")
    return endpoint


def _check_plain(endpoint: Endpoint, parts: SplitResult, where: str, key: str) -> None:
    """Refuse to speak in the clear over a network, unless the operator says so."""
    if parts.scheme == "http" and not (endpoint.is_loopback or endpoint.plain_http):
        raise ConfigError(
            f"{where}.{key}: {parts.hostname} is not this machine, and over http everybody between reads along; "
            f"use https, or say {where}.plain_http = true"
        )


def authorities(endpoint: Endpoint, environment: str | None) -> str:
    """The file of certificates that vouch for the server; empty for what curl itself knows."""
    if endpoint.ca or environment:
        return endpoint.ca or environment or ""
    return next((each for each in AUTHORITIES if Path(each).is_file()), "")
