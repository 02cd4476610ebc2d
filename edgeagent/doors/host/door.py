"""Door of hosts: the door of editors that knows more methods; on stdio for one host, at a unix socket for several."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from edgeagent.doors.acp.door import KINDS, AcpDoor
from edgeagent.doors.acp.house import House
from edgeagent.doors.acp.messages import ClientCapabilities, Initialize
from edgeagent.doors.host.messages import ASKED, CALL_TOOL, RECORD
from edgeagent.errors import ConfigError

if TYPE_CHECKING:
    from edgeagent.doors.acp.sessions import Sessions

HOSTS_MAX = 16
"""Hosts at one socket at once; another one is turned away."""


class HostDoor(AcpDoor):
    """One host, from its first message to its last."""

    kinds: ClassVar[dict[str, type]] = KINDS | {name: sent for name, (sent, _) in ASKED.items()}

    def _initialized(self, asked: Initialize) -> dict[str, Any]:
        answer = super()._initialized(asked)
        ours = {"asked": sorted(ASKED), "asksHost": [CALL_TOOL], "tellsHost": [RECORD]}
        answer["agentCapabilities"]["_meta"] = {"edgeagent": ours}
        return answer

    def _begun(self, client: ClientCapabilities) -> Sessions:
        from edgeagent.doors.host.sessions import HostSessions  # It brings the runtime, as the editors' does.

        return HostSessions(self._house, client, self._peer, self._tell)


class Listener:
    """A unix socket where hosts come in, each served by a thread of its own."""

    def __init__(self, house: House, path: Path, tell: Callable[[str], None]) -> None:
        """Listen. Raises ConfigError where that cannot be."""
        self._house, self._tell = house, tell
        self._socket, self._path = _listening(path), path
        self._doors: dict[threading.Thread, HostDoor] = {}
        self._changing = threading.Lock()
        self._is_over = False

    def run(self) -> None:
        """Let hosts in until `stop`; then let all of them go."""
        try:
            while not self._is_over:
                with contextlib.suppress(OSError):  # `stop` closed it, or who came has gone again.
                    self._let_in(self._socket.accept()[0])
        finally:
            with self._changing:
                doors = dict(self._doors)
            for thread, door in doors.items():
                door.stop()
                thread.join()
            with contextlib.suppress(OSError):
                self._path.unlink()

    def stop(self) -> None:
        """End in good order. From any thread, or a signal."""
        self._is_over = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _let_in(self, came: socket.socket) -> None:
        with self._changing:
            if len(self._doors) >= HOSTS_MAX:
                self._tell(f"a host is turned away: {HOSTS_MAX} are here")
                came.close()
                return
            door = HostDoor(self._house, came.fileno(), came.send, self._tell)
            thread = threading.Thread(target=self._serve, args=(door, came), name="host", daemon=True)
            self._doors[thread] = door
        thread.start()

    def _serve(self, door: HostDoor, came: socket.socket) -> None:
        try:
            door.run()
        finally:
            came.close()
            with self._changing:
                self._doors.pop(threading.current_thread(), None)


def _listening(path: Path) -> socket.socket:
    """A socket that only its owner can open. One that a dead process left is taken over."""
    made = socket.socket(socket.AF_UNIX)
    try:
        with _owner_only():
            try:
                made.bind(str(path))
            except OSError:
                if not _is_left_over(path):
                    raise
                path.unlink()
                made.bind(str(path))
        made.listen(HOSTS_MAX)
    except OSError as error:
        made.close()
        raise ConfigError(f"cannot listen at {path}: {error.strerror or error}; give another --unix PATH") from None
    return made


@contextlib.contextmanager
def _owner_only() -> Iterator[None]:
    before = os.umask(0o177)
    try:
        yield
    finally:
        os.umask(before)


def _is_left_over(path: Path) -> bool:
    """Whether there is a socket that nobody listens at."""
    with socket.socket(socket.AF_UNIX) as trying:
        try:
            trying.connect(str(path))
        except ConnectionRefusedError:
            return path.is_socket()
        except OSError:
            return False
    return False
