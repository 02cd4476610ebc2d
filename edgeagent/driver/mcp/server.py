"""One server of the operator's: started when it is first needed, held to what was approved, started again, stopped.

Laws: a tool that its server now declares otherwise than it was approved is not called. A call whose end was not seen is
unknown, and the very same is not made again in this session unless that does no harm. A server that dies is started
again at the next call, after a pause that grows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from edgeagent.core.values import canonical_json
from edgeagent.driver.mcp.connection import Connection, SessionEnded, Wire
from edgeagent.driver.mcp.content import error_of, resource_of, value_of
from edgeagent.driver.mcp.offer import Declared
from edgeagent.driver.mcp.pipe import Pipe
from edgeagent.driver.mcp.settings import ServerSettings
from edgeagent.driver.unknown import CommandFailed, EffectUnknown, UnknownEffects
from edgeagent.errors import DriverError, DriverUnavailable, PeerMisbehaved

PAUSES_S = (0.0, 1.0, 2.0, 5.0, 15.0, 60.0)
"""Before a start, by how many in a row have come to nothing."""

ALIVE_S = 5.0
"""For an answer to whether it lives, after it did not answer in time."""


class Server:
    """One server. Any thread may call it."""

    def __init__(
        self,
        name: str,
        settings: ServerSettings,
        approved: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`approved` gives the digest of each tool and resource that may be used."""
        self.name = name
        self._settings, self._approved, self._clock = settings, dict(approved), clock
        self._unknown = UnknownEffects(PeerMisbehaved)
        self._starting = threading.Lock()
        self._connection: Connection | None = None
        self._declared: dict[str, str] = {}
        self._failures, self._not_before = 0, 0.0
        self._is_doubtful = self._is_closed = False
        self._notes: list[str] = []

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Call a tool. Raises DriverUnavailable, CommandFailed, EffectUnknown, PeerMisbehaved."""
        server = self._settings
        harmless = server.is_idempotent(tool) and server.effect_of(tool) == "read"
        key = (tool, canonical_json(arguments))
        self._unknown.check(key)

        def called(connection: Connection) -> Any:
            return self._unknown.noted(key, lambda: self._called(connection, tool, arguments), harmless=harmless)

        return self._on_new_session(tool, called)

    def read(self, uri: str, resource: str) -> Any:
        """Read a resource, approved under the name `resource`. Raises as `call`."""
        asked = self._on_new_session(resource, lambda c: self._asked(c, "resources/read", {"uri": uri}))
        return resource_of(asked)

    def offer(self) -> tuple[Declared, ...]:
        """Start it, if it does not run, and say everything that it offers. Raises DriverUnavailable, PeerMisbehaved."""
        with self._starting:
            return self._started().offer(self._settings.start_s)

    def about(self) -> str:
        """What it calls itself, which version it speaks, and its memory or place; empty while it does not run."""
        connection, wire = self._connection, self._wire
        if connection is None or wire is None:
            return ""
        return f"{connection.about or 'without a name'}, protocol {connection.version}, {wire.standing()}"

    def take_notes(self) -> tuple[str, ...]:
        """What befell it since this was last asked: its starts, what it wrote that was no message."""
        notes, self._notes = self._notes, []
        if self._connection is not None:
            notes += self._connection.take_notes()
        return tuple(f"{self.name}: {note}" for note in notes)

    def close(self) -> None:
        """Stop it. Nothing is started afterwards."""
        with self._starting:
            self._is_closed = True
            self._stop()

    # -- within ----------------------------------------------------------------------------------------------------

    _wire: Wire | None = None

    def _on_new_session(self, tool: str, do: Callable[[Connection], Any]) -> Any:
        """Do something with the server; once more, greeted anew, where it has forgotten us and so did nothing."""
        try:
            return do(self._ready(tool))
        except SessionEnded:
            return do(self._ready(tool))

    def _ready(self, tool: str) -> Connection:
        """The server, running and as approved. Raises DriverUnavailable, PeerMisbehaved; then nothing was called."""
        with self._starting:
            try:
                connection = self._started()
                if connection.has_changed:
                    self._declared = _digests(connection.offer(self._settings.start_s))
            except PeerMisbehaved as error:
                raise DriverUnavailable(f"{tool} was not called: {error}") from None
        if tool not in self._declared:
            raise DriverUnavailable(f"{tool} was not called: {self.name} does not offer it any more")
        if self._declared[tool] != self._approved.get(tool):
            raise DriverUnavailable(
                f"{tool} was not called: {self.name} declares it otherwise than it was approved; look with "
                "`edgeagent check` and approve it again, for a new session"
            )
        return connection

    def _started(self) -> Connection:
        if self._is_closed:
            raise DriverUnavailable(f"{self.name} is stopped")
        connection = self._connection
        if connection is not None and connection.why_lost is None and self._is_doubtful:
            self._is_doubtful = not connection.is_alive(min(ALIVE_S, self._settings.timeout_s))
        if connection is not None and connection.why_lost is None and not self._is_doubtful:
            return connection
        if connection is not None:
            self._note(connection.why_lost or "it answered nothing any more")
            self._stop()
            self._failed()
        left = self._not_before - self._clock()
        if left > 0:
            raise DriverUnavailable(f"{self.name} has ended; it is started again in {left:.0f} s at the earliest")
        return self._start()

    def _start(self) -> Connection:
        server = self._settings
        connection = Connection(self.name, server.roots)
        try:
            wire = self._wired(connection)
            try:
                connection.greet(wire, server.start_s)
                self._declared = _digests(connection.offer(server.start_s))
            except BaseException:
                wire.close()
                raise
        except DriverError as error:
            self._failed()
            raise type(error)(f"{self.name} does not start: {error}") from None
        self._connection, self._wire, self._is_doubtful = connection, wire, False
        self._note(f"started: {self.about()}")
        return connection

    def _wired(self, connection: Connection) -> Wire:
        """The program, started; or the way to where it is. Raises DriverUnavailable."""
        server = self._settings
        if server.url:
            return _web(self.name, server, connection)
        folder = Path(server.folder) if server.folder else None
        return Pipe(server.command, folder, server.environment, connection.incoming, connection.lost)

    def _stop(self) -> None:
        if self._connection is not None:
            self._notes += self._connection.take_notes()
            if self._is_doubtful and self._wire is not None:
                self._wire.kill()
            self._connection.close()
        self._connection = self._wire = None

    def _failed(self) -> None:
        self._not_before = self._clock() + PAUSES_S[min(self._failures, len(PAUSES_S) - 1)]
        self._failures += 1

    def _called(self, connection: Connection, tool: str, arguments: dict[str, Any]) -> Any:
        result = self._asked(connection, "tools/call", {"name": tool, "arguments": arguments})
        wrong = error_of(result)
        if wrong is not None:
            raise CommandFailed(wrong)
        return value_of(result)

    def _asked(self, connection: Connection, method: str, params: dict[str, Any]) -> Any:
        try:
            result = connection.call(method, params, self._settings.timeout_s)
        except DriverUnavailable as error:
            raise type(error)(f"{self.name} was not asked: {error}") from None
        except EffectUnknown as error:
            self._is_doubtful = True
            raise EffectUnknown(f"{self.name} was asked, and what it did is unknown: {error}") from None
        self._failures = 0
        return result

    def _note(self, note: str) -> None:
        self._notes.append(note)


def _digests(offer: tuple[Declared, ...]) -> dict[str, str]:
    return {each.name: each.digest for each in offer}


def _web(name: str, server: ServerSettings, connection: Connection) -> Wire:
    try:
        from edgeagent.driver.mcp.web import Web
    except ImportError as error:
        raise DriverUnavailable(f"a server at a url needs pycurl ({error}): pip install 'edgeagent[remote]'") from None
    return Web(name, server.endpoint, connection)
