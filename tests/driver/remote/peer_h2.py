"""A server of HTTP/2 on loopback, over TLS, that answers each stream as a test says."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import h2.config
import h2.connection
import h2.errors
import h2.events

HEAD = ((":status", "200"), ("content-type", "text/event-stream"))


class Stream:
    """One request on its way to an answer; what it does may come from any thread."""

    def __init__(self, connection: H2Connection, number: int) -> None:
        self._connection, self.number, self.body, self.was_reset = connection, number, bytearray(), threading.Event()

    def head(self) -> None:
        self._connection.do(lambda h2: h2.send_headers(self.number, HEAD))

    def data(self, data: bytes, *, ends: bool = False) -> None:
        self._connection.do(lambda h2: h2.send_data(self.number, data, end_stream=ends))

    def reset(self, code: int = h2.errors.ErrorCodes.INTERNAL_ERROR) -> None:
        self._connection.do(lambda h2: h2.reset_stream(self.number, code))

    def go_away(self, last: int) -> None:
        """Say which stream is the last that is answered on this connection."""
        self._connection.do(lambda h2: h2.close_connection(last_stream_id=last))

    def go_away_after(self) -> None:
        """Say that this stream is the last, and answer it all the same: `close_connection` would allow nothing more."""
        frame = b"\0\0\x08\x07\0\0\0\0\0" + self.number.to_bytes(4, "big") + bytes(4)
        self._connection.send(frame)

    def hang_up(self) -> None:
        self._connection.close()


class H2Connection:
    """One connection."""

    def __init__(self, plain: socket.socket, tls: ssl.SSLContext, answer: Callable[[Stream], None]) -> None:
        self._socket = tls.wrap_socket(plain, server_side=True)
        self.speaks, self._answer, self._lock = self._socket.selected_alpn_protocol(), answer, threading.Lock()
        self._h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self._streams: dict[int, Stream] = {}

    def do(self, what: Callable[[h2.connection.H2Connection], None]) -> None:
        with self._lock:
            what(self._h2)
            self._socket.sendall(self._h2.data_to_send())

    def send(self, frame: bytes) -> None:
        with self._lock:
            self._socket.sendall(frame)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def serve(self) -> None:
        self.do(lambda h2: h2.initiate_connection())
        while received := self._socket.recv(65536):
            with self._lock:
                events = self._h2.receive_data(received)
            for event in events:
                self._take(event)
            self.do(lambda _: None)

    def _take(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived():
                self._streams[event.stream_id] = Stream(self, event.stream_id)
            case h2.events.DataReceived():
                self._streams[event.stream_id].body += event.data
                self.do(lambda h2: h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id))
            case h2.events.StreamEnded():
                stream = self._streams[event.stream_id]
                threading.Thread(target=self._answered, args=(stream,), daemon=True).start()
            case h2.events.StreamReset():
                self._streams[event.stream_id].was_reset.set()

    def _answered(self, stream: Stream) -> None:
        with contextlib.suppress(OSError, h2.exceptions.ProtocolError):
            self._answer(stream)

    def ended(self) -> None:
        for stream in self._streams.values():
            stream.was_reset.set()


class H2Peer:
    """What was asked of it, and where it is."""

    def __init__(self, certificate: Path, answer: Callable[[Stream, int], None]) -> None:
        self.requests: list[Stream] = []
        self.spoken: list[str | None] = []
        self._answer = answer
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(certificate)
        self._tls.set_alpn_protocols(["h2", "http/1.1"])
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://localhost:{self._server.getsockname()[1]}/v1"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                plain, _ = self._server.accept()
                threading.Thread(target=self._talk, args=(plain,), daemon=True).start()

    def _talk(self, plain: socket.socket) -> None:
        with contextlib.suppress(OSError, h2.exceptions.ProtocolError):
            connection = H2Connection(plain, self._tls, self._asked)
            self.spoken.append(connection.speaks)
            try:
                connection.serve()
            finally:
                connection.ended()
                connection.close()

    def _asked(self, stream: Stream) -> None:
        self.requests.append(stream)
        self._answer(stream, len(self.requests))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


@contextlib.contextmanager
def h2_peer(certificate: Path, answer: Callable[[Stream, int], None]) -> Iterator[H2Peer]:
    """A server that answers each stream so; the number says how many there were."""
    served = H2Peer(certificate, answer)
    try:
        yield served
    finally:
        served.close()
