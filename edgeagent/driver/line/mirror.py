"""Views of a console's live line, and a person who may break in: over a socket, a pty or TCP.

A view gets every byte the device sends. Ctrl-] breaks in (the agent pauses) and hands back; what is typed before that
goes nowhere. A view that reads too slowly misses some of it and is told so; it never holds up the line.
"""

from __future__ import annotations

import contextlib
import os
import pty
import selectors
import socket
import threading
import tty
from pathlib import Path

from edgeagent.driver.line.console import Console
from edgeagent.driver.line.port import LinkLost, Moment
from edgeagent.driver.line.run_folder import made_ours, name_of, run_folder
from edgeagent.errors import DriverUnavailable

BREAK_IN = 0x1D
"""Ctrl-], as telnet has it: no console uses it for itself."""

RECENT_BYTES = 4_096
"""What a new view is shown first: the last screen or two."""

VIEW_BYTES_MAX = 256 * 1024
"""What may wait for a view that does not read: a hundred screens."""

WRITTEN_AT_ONCE = 16 * 1024
TYPED_S = 0.5
"""How long the line may take for what a person typed; what it has not taken then is lost, and that is said."""

TAKEN = b"\r\n[edgeagent: you have the console, the agent waits; Ctrl-] hands it back]\r\n"
GIVEN = b"\r\n[edgeagent: handed back to the agent]\r\n"


class _View:
    """One view: where it is written to, what waits for it, and how much it has missed."""

    def __init__(self, connection: socket.socket | None) -> None:
        self.connection = connection
        self.waiting = bytearray()
        self.missed = 0


class Mirror:
    """Serves views of one console from one thread. Close it before the port."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._selector = selectors.DefaultSelector()
        self._views: dict[int, _View] = {}
        self._sockets: list[Path] = []
        self._lock = threading.RLock()
        self._wake_out, self._wake_in = os.pipe()
        self._closing = False
        self._selector.register(self._wake_out, selectors.EVENT_READ, None)
        self._recent = console.port.heard(max(0, console.port.offset - RECENT_BYTES))
        """What was shown last: a view that comes is given this, and from then on what is shown."""
        console.port.watchers.append(self._show)
        self._thread = threading.Thread(target=self._serve, name="console mirror", daemon=True)
        self._thread.start()

    def serve_socket(self, path: Path) -> None:
        """Offer views on a socket that only this user may open."""
        try:
            made_ours(path.parent)
        except OSError as error:
            raise DriverUnavailable(f"no view is offered: {error}") from None
        path.unlink(missing_ok=True)  # Left by a crash: whoever holds the port owns its socket.
        listening = socket.socket(socket.AF_UNIX)
        try:
            listening.bind(str(path))
        except OSError as error:
            listening.close()
            raise DriverUnavailable(f"no view is offered at {path}: {error}; set XDG_RUNTIME_DIR to another") from error
        path.chmod(0o600)
        self._sockets.append(path)
        self._listen(listening)

    def serve_tcp(self, port: int) -> int:
        """Offer views on a port of the loopback (0 picks one); return which. Any user of this machine may connect."""
        listening = socket.create_server(("127.0.0.1", port))
        self._listen(listening)
        return int(listening.getsockname()[1])

    def serve_pty(self) -> str:
        """Offer a view as a pseudo-terminal; return its path."""
        ours, theirs = pty.openpty()
        tty.setraw(theirs)
        os.set_blocking(ours, False)
        # `theirs` stays open, so that a terminal program may come and go.
        self._add(ours, None)
        return os.ttyname(theirs)

    def add_view(self, connection: socket.socket) -> None:
        """Show the line to the other end of this connection, which must not block."""
        self._add(connection.fileno(), connection)

    def close(self) -> None:
        """End all views. Closing twice is fine."""
        if self._closing:
            return
        with contextlib.suppress(ValueError):
            self.console.port.watchers.remove(self._show)
        self._closing = True
        os.write(self._wake_in, b"x")
        self._thread.join(timeout=5)
        if not self._thread.is_alive():  # The pipe outlives the thread: it may end before it is woken.
            os.close(self._wake_out)
            os.close(self._wake_in)
        for path in self._sockets:
            path.unlink(missing_ok=True)
        if self.console.person_has_it:
            self.console.hand_back()

    def _listen(self, listening: socket.socket) -> None:
        listening.listen()
        listening.setblocking(False)
        with self._lock:
            self._selector.register(listening, selectors.EVENT_READ, listening)
        os.write(self._wake_in, b"x")

    def _add(self, view: int, connection: socket.socket | None) -> None:
        with self._lock:  # As one: else it is shown a byte twice, or what comes before what came.
            self._views[view] = _View(connection)
            self._selector.register(view, selectors.EVENT_READ, view)
            self._give(view, self._recent)
        os.write(self._wake_in, b"x")

    def _serve(self) -> None:
        while not self._closing:
            for key, events in self._selector.select():
                if events & selectors.EVENT_WRITE:
                    self._give(key.fd, b"")
                if not events & selectors.EVENT_READ:
                    continue
                if key.fd == self._wake_out:
                    os.read(self._wake_out, 4_096)
                elif isinstance(key.data, socket.socket):
                    self._accept(key.data)
                else:
                    self._hear(key.fd)
        for view in list(self._views):
            self._drop(view)
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, socket.socket):
                key.data.close()
        self._selector.close()

    def _accept(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection, _ = listening.accept()
            connection.setblocking(False)
            self._add(connection.fileno(), connection)

    def _hear(self, view: int) -> None:
        try:
            typed = os.read(view, 1_024)
        except BlockingIOError:
            return
        except OSError:
            typed = b""
        if not typed:
            self._drop(view)
            return
        for portion in _split(typed):
            if portion == bytes([BREAK_IN]):
                self._turn_over()
            elif self.console.person_has_it:
                with contextlib.suppress(LinkLost, ValueError):
                    taken = self._typed(portion)
                    if taken < len(portion):  # It does not read: whoever types must still be heard when they leave.
                        self._tell(
                            f"\r\n[edgeagent: the device does not take {len(portion) - taken} keys]\r\n".encode()
                        )

    def _typed(self, portion: bytes) -> int:
        """Type this as long as the line takes some of it; a slow one is not a deaf one."""
        taken, more = 0, 1
        while more and taken < len(portion):
            more = self.console.person_types(portion[taken:], TYPED_S)
            taken += more
        return taken

    def _turn_over(self) -> None:
        if self.console.person_has_it:
            self.console.hand_back()
        else:
            self.console.break_in()
        self._tell(TAKEN if self.console.person_has_it else GIVEN)

    def _show(self, moment: Moment) -> None:
        if moment.who == "device":
            with self._lock:
                self._recent = (self._recent + moment.data)[-RECENT_BYTES:]
                self._tell(moment.data)
        elif moment.who == "port" and moment.note:
            self._tell(f"\r\n[edgeagent: {moment.note}]\r\n".encode())

    def _tell(self, data: bytes) -> None:
        with self._lock:
            for view in list(self._views):
                self._give(view, data)

    def _give(self, descriptor: int, data: bytes) -> None:
        """Write what waits for this view and this; what it does not take now waits, so much at most."""
        with self._lock:
            view = self._views.get(descriptor)
            if view is None:
                return
            waited = bool(view.waiting)
            if view.missed or len(view.waiting) + len(data) > VIEW_BYTES_MAX:
                view.missed += len(data)
            else:
                view.waiting += data
            try:
                while view.waiting:
                    del view.waiting[: os.write(descriptor, view.waiting[:WRITTEN_AT_ONCE])]
                    if view.missed and len(view.waiting) < VIEW_BYTES_MAX // 2:
                        view.waiting += f"\r\n[edgeagent: {view.missed} bytes not shown: read too slowly]\r\n".encode()
                        view.missed = 0
            except BlockingIOError:
                if view.connection is None:
                    view.waiting.clear()  # A pty without a reader just loses what nobody sees.
            except OSError:
                self._drop(descriptor)
                return
            if waited != bool(view.waiting):
                wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if view.waiting else 0)
                self._selector.modify(descriptor, wanted, descriptor)

    def _drop(self, view: int) -> None:
        with self._lock:
            dropped = self._views.pop(view, None)
            connection = None if dropped is None else dropped.connection
            with contextlib.suppress(KeyError, ValueError, OSError):
                self._selector.unregister(view)
            if connection is not None:
                connection.close()
            if connection is not None and not self._views and self.console.person_has_it:
                self.console.hand_back()  # The person is gone; the agent may go on.


def _split(typed: bytes) -> list[bytes]:
    """Cut what was typed around the key that turns the console over."""
    key = bytes([BREAK_IN])
    parts: list[bytes] = []
    for number, portion in enumerate(typed.split(key)):
        parts += [key] if number else []
        parts += [portion] if portion else []
    return parts


def socket_path(where: str) -> Path:
    """Return where the agent that owns this port offers its views."""
    return run_folder() / f"console-{name_of(where)}.sock"


def attach(where: str) -> socket.socket:
    """Connect to the view of the agent that owns this port. Raises DriverUnavailable when none does."""
    path = socket_path(where)
    connection = socket.socket(socket.AF_UNIX)
    try:
        if path.exists() and path.stat().st_uid != os.getuid():
            raise OSError("it belongs to another user")
        connection.connect(str(path))
    except OSError as error:
        connection.close()
        raise DriverUnavailable(f"no agent of yours shows {where} ({error})") from None
    return connection
