"""What an operator says of one server: `[mcp.NAME]` in edgeagent.toml. Values; nothing is started here.

Law: what is not said is the strictest. Nothing is admitted that `allow` does not name; a call cannot be undone, must
not be made twice, and a person is asked before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import msgspec

from edgeagent.core.agent import ToolEffect
from edgeagent.core.names import is_writable
from edgeagent.core.values import canonical_json
from edgeagent.errors import ConfigError

if TYPE_CHECKING:
    from edgeagent.driver.remote.endpoint import Endpoint

NAME_MAX = 32
"""Characters of a server's name: it stands before each of its tools' names, of which a model writes 64."""

START_S = 60.0
"""For a server to start and say what it has: an interpreter with a large library takes 20 s on a small board."""

CONNECT_S = 10.0

_OF_URL = ("credential", "ca", "proxy", "socket", "plain_http")
_PLACES = {
    True: "the server is asked at its `url`, and nothing is started",
    False: "it is for a server that is asked at a `url`, and this one is started by its `command`",
}

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One server. `command` is started beside the agent, with this machine's rights; it is no sandbox. Or it is there
    already, at `url`, and is asked over HTTP with a `credential`; what belongs to such a way is as for models.

    `allow` are names of tools, or patterns as a shell has them; `resource:PATTERN` allows reading what has such a URI.
    `effect` is one for all or a table by pattern, the first that fits counts; `idempotent` is true, false or the
    patterns of those that are. `confirm` says whether a person is asked before each call: by itself before all but
    reads, where no rule guards them. `about` are words of the operator's own in the place of a tool's description: with
    them nothing that the server wrote reaches the model unasked. `environment` names variables that it is given,
    `folder` is where it runs, `roots` are folders that it is told it may work in.
    """

    command: tuple[str, ...] = ()
    url: str = ""
    credential: str = ""
    ca: str = ""
    proxy: str = ""
    socket: str = ""
    plain_http: bool = False
    allow: tuple[str, ...] = ()
    effect: ToolEffect | dict[str, ToolEffect] = "irreversible"
    idempotent: bool | tuple[str, ...] = False
    confirm: bool | None = None
    about: dict[str, str] = {}
    timeout_s: Seconds = 30.0
    start_s: Seconds = START_S
    environment: tuple[str, ...] = ()
    folder: str = ""
    roots: tuple[str, ...] = ()

    def allows(self, name: str) -> bool:
        """Whether the operator lists this tool, or `resource:URI`."""
        return _fits(name, self.allow)

    def effect_of(self, name: str) -> ToolEffect:
        """What a call of this tool does to the world."""
        if isinstance(self.effect, str):
            return self.effect
        return next((effect for pattern, effect in self.effect.items() if fnmatchcase(name, pattern)), "irreversible")

    def is_idempotent(self, name: str) -> bool:
        """Whether running it twice does no more than running it once."""
        return self.idempotent if isinstance(self.idempotent, bool) else _fits(name, self.idempotent)

    def asks_before(self, name: str) -> bool:
        """Whether a person is asked before every call of this tool."""
        return self.effect_of(name) != "read" if self.confirm is None else self.confirm

    @property
    def where(self) -> str:
        """Digest of what is run or asked: another command is another server, which nobody has approved."""
        told = [self.url, self.socket] if self.url else [*self.command, self.folder]
        return hashlib.sha256(canonical_json(told).encode()).hexdigest()[:16]

    @property
    def endpoint(self) -> Endpoint:
        """Where it is asked."""
        from edgeagent.driver.remote.endpoint import Endpoint

        told = {name: getattr(self, name) for name in ("url", *_OF_URL)}
        return Endpoint(model="", connect_s=min(CONNECT_S, self.start_s), **told)


def check_server(name: str, server: ServerSettings, where: str) -> None:
    """Refuse a server that could not be run, or of which nothing would be admitted. Raises ConfigError."""
    if not is_writable(name) or len(name) > NAME_MAX:
        raise ConfigError(f"{where}: a server's name is a letter, then up to {NAME_MAX - 1} letters, digits, - and _")
    _check_way(server, where)
    if not server.allow:
        raise ConfigError(
            f'{where}.allow is missing: nothing of a server is admitted unless it is listed, as in allow = ["read_*"]; '
            'with allow = ["-"] `edgeagent check` shows what it has'
        )


def _check_way(server: ServerSettings, where: str) -> None:
    """Refuse what could neither be run nor asked, and what belongs to the other of the two. Raises ConfigError."""
    if server.url:
        _check_url(server, where)
    elif not server.command or not all(server.command):
        raise ConfigError(
            f'{where}.command is missing: write the program and its arguments, command = ["program", "-x"]; or, for a '
            'server that is asked over HTTP, url = "https://host/mcp"'
        )
    others = ("command", "environment") if server.url else _OF_URL
    for key in others:
        if getattr(server, key):
            raise ConfigError(f"{where}.{key} has no place here: {_PLACES[bool(server.url)]}")


def _check_url(server: ServerSettings, where: str) -> None:
    from edgeagent.driver.remote.endpoint import check_endpoint
    from edgeagent.driver.remote.secret import check_reference

    if server.credential:
        check_reference(server.credential, f"{where}.credential")
    check_endpoint(server.endpoint, where, "url", "mcp")


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
