"""Everything hostile at a server whose real model is writing: refused by name, and the answer comes whole."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time

import pytest

from edgeagent.doors.http.wire import WireLimits
from edgeagent.runtime.config import ModelSettings
from edgeagent.runtime.model import load_model
from tests.doors.http.serving import ANNE, serving
from tests.doors.http.test_head import FIRST_LINES, FORMS
from tests.doors.http.test_server import ALIVE, CHUNKS, code_of, replies_in

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + ANNE.encode() + b"\r\n"
TAIL = b"3\r\nabc\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
BODIES = {
    "ten gigabytes": b"Content-Length: 10737418240\r\n\r\nabc",
    "bad UTF-8": b'Content-Length: 16\r\n\r\n{"model": "\xff\xfe" }',
    "no JSON": b"Content-Length: 5\r\n\r\n[[[[[",
    "deep JSON": b"Content-Length: 100000\r\n\r\n" + b"[" * 100_000,
    "a lone surrogate": b'Content-Length: 19\r\n\r\n{"model": "\\ud800"}',
    "a number that fits nothing": b'Content-Length: 18\r\n\r\n{"model": 1e99999}',
    "a name twice": b'Content-Length: 26\r\n\r\n{"model": "a","model": "b"}',
    "nothing": b"Content-Length: 0\r\n\r\n",
    "half of what was said": b'Content-Length: 99\r\n\r\n{"model": ',
}


def hostile():
    """What is sent, by name."""
    yield from ((name, HEAD + form + b"\r\n" + TAIL) for name, form in FORMS.items())
    yield from ((f"line: {name}", line + b"\r\nHost: localhost\r\n\r\n" + TAIL) for name, line in FIRST_LINES.items())
    yield from ((f"body: {name}", HEAD + b"Connection: close\r\n" + body) for name, body in BODIES.items())
    yield from ((f"chunks: {name}", HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + c) for name, c in CHUNKS.items())
    yield "headers without end", HEAD + b"X: y\r\n" * 20_000


class Story(threading.Thread):
    """A client that is being answered meanwhile."""

    def __init__(self, server, key=ANNE):
        super().__init__(daemon=True)
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
        body = {"model": "garden:model", "stream": True, "max_tokens": 60, "temperature": 0}
        body["messages"] = [{"role": "user", "content": "Tell me a long story about a garden."}]
        self._connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Authorization": f"Bearer {key}"})
        self.first, self.got = threading.Event(), b""

    def run(self):
        reply = self._connection.getresponse()
        while line := reply.readline():
            self.got += line
            self.first.set()
        self.first.set()
        self._connection.close()


@pytest.mark.model
@pytest.mark.deep
def test_while_a_model_writes_every_hostile_form_is_refused_and_the_answer_comes_whole(tmp_path, capsys):
    model = load_model(ModelSettings(name="smollm2"), shared=True)
    wrong, statuses = [], []
    try:
        with serving(tmp_path, model=model, limits=WireLimits(head_s=1.0, body_s=1.0)) as server:
            story = Story(server)
            story.start()
            assert story.first.wait(300)
            for name, sent in hostile():
                got = server.raw(sent, ends=name.startswith("chunks"))
                statuses.append(code_of(got)[0] if got else 0)
                if replies_in(got) > 1 or (got and not 400 <= statuses[-1] < 500):
                    wrong.append((name, got[:200]))
            assert server.raw(ALIVE).startswith(b"HTTP/1.1 200")
            story.join(300)
            again = Story(server)
            again.start()
            again.join(300)
    finally:
        model.close()
    assert wrong == []
    assert story.got.rstrip().endswith(b"data: [DONE]") and words(story.got) == words(again.got)
    with capsys.disabled():
        counted = ", ".join(f"{statuses.count(each)} x {each or 'closed'}" for each in sorted(set(statuses)))
        print(f"\n{len(statuses)} hostile requests at a model that writes: {counted}")


def words(got):
    rows = [json.loads(line[6:]) for line in got.splitlines() if line.startswith(b"data: {")]
    return "".join(row["choices"][0]["delta"].get("content", "") for row in rows if row["choices"])


def test_who_takes_nothing_is_cut_and_holds_nobody_up(tmp_path):
    with serving(tmp_path, limits=WireLimits(write_s=0.3)) as server, socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        deaf.settimeout(60)
        deaf.connect(("127.0.0.1", server.port))
        asks = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300
        sending = threading.Thread(target=_sent, args=(deaf, asks), daemon=True)
        sending.start()
        while not server.door.server.connections:
            time.sleep(0.01)
        assert server.raw(ALIVE).startswith(b"HTTP/1.1 200"), "others are served meanwhile"
        until = time.monotonic() + 120
        while server.door.server.connections:
            assert time.monotonic() < until, "it is still there"
            time.sleep(0.05)
        sending.join(60)


def _sent(connection, asks):
    with contextlib.suppress(OSError):  # It was cut.
        connection.sendall(asks)
