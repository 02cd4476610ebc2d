"""A real server in this process, and plain ways to speak to it: `Serving`."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from edgeagent.doors.http.door import HttpDoor, Opening
from edgeagent.doors.http.keys import Keys
from edgeagent.doors.http.server import Where
from edgeagent.doors.http.wire import WireLimits
from edgeagent.runtime.model import Model, Script
from edgeagent.runtime.notify import Notifier

AGENT = '''
from typing import Literal
from edgeagent import Agent, tool

@tool(idempotent=False, effect="write", confirm=True)
def set_valve(valve: Literal["north", "south"], seconds: int) -> str:
    """Open a valve for some seconds."""
    return f"{valve} is open for {seconds} s"

agent = Agent("garden", "You water a garden.", (set_valve,))
'''
CALL = '{"name": "set_valve", "arguments": {"valve": "north", "seconds": 30}}'
ANNE, BERT = "anne-" + "a" * 30, "bert-" + "b" * 30
KEYS = {"anne": ANNE, "bert": BERT}


class Serving:
    """A server that runs, and a client of it."""

    def __init__(self, door: HttpDoor) -> None:
        self.door = door
        name = door.sockets[0].getsockname()
        self.port = 0 if isinstance(name, str) else name[1]

    def ask(self, method: str, path: str, body: Any = None, key: str = ANNE, **headers: str) -> tuple[int, Any]:
        """Send one request; return the status and what was answered."""
        sent = {"Authorization": f"Bearer {key}"} if key else {}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            payload = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, payload, sent | {k.replace("_", "-"): v for k, v in headers.items()})
            reply = connection.getresponse()
            text = reply.read()
            is_json = reply.headers.get_content_type() == "application/json"
            return reply.status, json.loads(text) if is_json else text.decode()
        finally:
            connection.close()

    def raw(self, sent: bytes, *, ends: bool = False) -> bytes:
        """Send bytes as they are; return everything that comes until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(sent)
            if ends:
                connection.shutdown(socket.SHUT_WR)
            got = b""
            try:
                while piece := connection.recv(65536):
                    got += piece
            except ConnectionResetError:
                pass
            return got

    def opened(self, key: str = ANNE) -> str:
        """A new session of this key's."""
        status, shown = self.ask("POST", "/api/sessions", {}, key)
        assert status == 201, shown
        return shown["id"]

    def events(
        self, session: str, since: int = 0, *, until: str, key: str = ANNE, **headers: str
    ) -> list[dict[str, Any]]:
        """The events of a session, up to the first record whose effects hold one of this type."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {"Authorization": f"Bearer {key}"} | {k.replace("_", "-"): v for k, v in headers.items()}
        found = []
        with closing(connection):
            connection.request("GET", f"/api/sessions/{session}/events?since={since}", headers=sent)
            began = time.monotonic()
            for event in parsed(connection.getresponse(), lambda: time.monotonic() - began < 60):
                found.append(event)
                if any(effect["type"] == until for effect in event["data"].get("effects", [])):
                    break
        return found


def parsed(reply: Iterator[bytes], goes_on: Callable[[], bool]) -> Iterator[dict[str, Any]]:
    """Server-sent events as a browser reads them."""
    event: dict[str, Any] = {}
    for line in reply:
        assert goes_on(), f"what was waited for has not come; last was {event}"
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if not name and event.get("data"):
            yield {**event, "data": json.loads(event["data"])}
            event = {}
        elif name in ("id", "event", "data"):
            event[name] = value


@contextmanager
def serving(
    root: Path,
    answers: tuple[str, ...] = (CALL, "It is open."),
    *,
    keys: dict[str, str] | None = KEYS,
    limits: WireLimits | None = None,
    model: Model | None = None,
    config: Path | None = None,
    unix: Path | None = None,
    agent: str = AGENT,
) -> Iterator[Serving]:
    """Serve one agent on a free port until the block ends."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "garden.py").write_text(agent)
    opening = Opening(
        agents=(str(root / "garden.py"),),
        root=root,
        config=config,
        where=Where(port=0, unix=unix),
        keys=None if keys is None else Keys(keys),
        limits=limits or WireLimits(),
    )
    door = HttpDoor(opening, model or Script(answers), Notifier({}), print)
    ready = threading.Event()
    thread = threading.Thread(target=door.run, args=(ready.set,))
    thread.start()
    try:
        assert ready.wait(60)
        yield Serving(door)
    finally:
        door.stop()
        thread.join(60)
        assert not thread.is_alive()
