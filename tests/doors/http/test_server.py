"""The server as hostile and clumsy clients find it: each is refused in a typed way, and the next one is served."""

from __future__ import annotations

import json
import os
import socket
import ssl
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edgeagent.doors.http.client import Client, NotNow, read_at
from edgeagent.doors.http.message import Refused
from edgeagent.doors.http.server import Where, handed_over, sockets_for, tls_of
from edgeagent.doors.http.wire import WireLimits
from edgeagent.errors import ConfigError
from tests.doors.http.serving import ANNE, serving
from tests.doors.http.test_head import FIRST_LINES, FORMS

ALIVE = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
QUICK = WireLimits(head_s=0.4, body_s=0.4, idle_s=0.4, write_s=0.4)


def code_of(reply: bytes) -> tuple[int, str]:
    head, _, body = reply.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]["code"]


def replies_in(got: bytes) -> int:
    return got.count(b"HTTP/1.1 ")


def test_every_smuggling_form_gets_one_refusal_and_its_tail_is_never_a_request(server):
    tail = b"3\r\nabc\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    heads = [b"POST /health HTTP/1.1\r\nHost: localhost\r\n" + form for form in FORMS.values()]
    heads += [line + b"\r\nHost: localhost\r\n" for line in FIRST_LINES.values()]
    for head in heads:
        got = server.raw(head + b"\r\n" + tail)
        assert replies_in(got) == 1, (head, got)
        assert code_of(got)[0] in (400, 405, 415, 417), (head, got)
    assert server.raw(ALIVE).startswith(b"HTTP/1.1 200")


CHUNKS = {
    "a size that is none": b"x\r\nabc\r\n0\r\n\r\n",
    "a negative size": b"-3\r\nabc\r\n0\r\n\r\n",
    "a size with 0x": b"0x3\r\nabc\r\n0\r\n\r\n",
    "a chunk that is longer": b"3\r\nabcd\r\n0\r\n\r\n",
    "a chunk without its end": b"3\r\nabcXX0\r\n\r\n",
    "a huge size": b"f" * 30 + b"\r\n",
    "a size with a sign": b"+3\r\nabc\r\n0\r\n\r\n",
    "a blank before the size": b" 3\r\nabc\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS.keys())
def test_a_body_in_bad_chunks_is_refused(server, chunks):
    head = f"POST /api/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ANNE}\r\n"
    got = server.raw(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + ALIVE, ends=True)
    assert replies_in(got) <= 1
    assert not got or code_of(got)[0] == 400


def test_two_requests_in_one_write_are_two(server):
    once = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert replies_in(server.raw(once + ALIVE)) == 2


def test_a_body_of_ten_gigabytes_is_refused_before_it_comes(server):
    got = server.raw(b"POST /api/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10737418240\r\n\r\nabc")
    assert code_of(got) == (413, "body_too_long")


def test_a_body_that_is_streamed_for_ever_is_refused_at_the_limit(server):
    head = b"POST /api/sessions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(head)
        try:
            for _ in range(2_000):
                connection.sendall(chunk)
        except OSError:
            pass  # It has closed; what it said first is still here to be read, where the system kept it.
        else:
            pytest.fail("64 MB were taken")
    assert server.raw(ALIVE).startswith(b"HTTP/1.1 200")


def test_headers_without_end_are_refused(server):
    got = server.raw(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000)
    assert not got or code_of(got) == (431, "head_too_long")
    assert code_of(server.raw(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 100 + b"\r\n")) == (
        431,
        "too_many_headers",
    )


def test_a_body_that_is_not_utf8_is_refused(server):
    status, said = server.ask("POST", "/api/sessions", b'{"agent": "\xff\xfe"}')
    assert (status, said["error"]["code"]) == (400, "bad_body")


def test_a_body_of_another_shape_is_refused_with_the_place(server):
    status, said = server.ask("POST", "/api/sessions", {"agent": 5})
    assert status == 400 and "$.agent" in said["error"]["message"]
    assert server.ask("POST", "/api/sessions", {"agnet": "garden"})[0] == 400
    assert server.ask("POST", "/api/sessions", b"[" * 100_000)[0] == 400


def test_who_sends_a_byte_a_second_is_cut(tmp_path):
    with serving(tmp_path, limits=QUICK) as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            connection.sendall(b"GET /hea")
            assert code_of(read_all(connection)) == (408, "too_slow")
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            connection.sendall(b"POST /api/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
            assert code_of(read_all(connection)) == (408, "too_slow")
        assert server.raw(b"") == b""  # One that says nothing is closed without a word.


def read_all(connection: socket.socket) -> bytes:
    got = b""
    while piece := connection.recv(65536):
        got += piece
    return got


def test_more_connections_than_may_be_are_told_to_come_again(server, monkeypatch):
    monkeypatch.setattr(server.door.server, "most", 1)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as first:
        first.sendall(b"GET")
        while not server.door.server.connections:
            time.sleep(0.01)
        got = server.raw(b"")
    assert code_of(got) == (503, "too_many")
    assert b"Retry-After: 2" in got


def test_head_is_get_without_its_body(server):
    got = server.raw(b"HEAD /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 200") and got.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("path", ["/api/sessions/{session}/events", "/api/agents/garden/lines"])
def test_head_of_a_stream_is_its_head_alone_and_no_fault(server, path, caplog):
    sent = f"HEAD {path.format(session=server.opened())} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    got = server.raw(f"{sent}Authorization: Bearer {ANNE}\r\n\r\n".encode())
    assert got.startswith(b"HTTP/1.1 200") and got.endswith(b"\r\n\r\n") and b"retry" not in got
    while server.door.server.connections:
        time.sleep(0.01)
    assert [each.getMessage() for each in caplog.records if each.name == "asyncio"] == []


def test_every_reply_forbids_scripts_frames_and_guesses(server):
    head = server.raw(ALIVE).partition(b"\r\n\r\n")[0].decode().lower()
    assert "content-security-policy: default-src 'none'" in head
    assert "x-content-type-options: nosniff" in head and "cache-control: no-store" in head


# -- where it listens ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_address_that_others_reach_needs_a_key_and_says_how(host):
    try:
        socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        pytest.skip(f"this machine has no {host}: {error}")
    with pytest.raises(ConfigError, match=r"--keys FILE.*NAME KEY.*chmod 600"):
        sockets_for(Where(host=host, port=0), has_keys=False, environment={})
    for opened in sockets_for(Where(host=host, port=0), has_keys=True, environment={}):
        opened.close()


def test_a_unix_socket_is_its_owners_and_replaces_a_dead_one(tmp_path):
    where = Where(unix=tmp_path / "s")
    for _ in range(2):
        (opened,) = sockets_for(where, has_keys=False, environment={})
        assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
        opened.close()
    (opened,) = sockets_for(where, has_keys=False, environment={})
    opened.listen()
    with opened, pytest.raises(ConfigError, match="another server"):
        sockets_for(where, has_keys=False, environment={})


def test_sockets_that_are_handed_over_to_another_process_are_left_alone():
    assert handed_over({"LISTEN_PID": "1", "LISTEN_FDS": "1"}) == []


def test_half_a_pair_for_tls_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="--tls-key"):
        tls_of(Where(certificate=tmp_path / "c.pem"))
    with pytest.raises(ConfigError, match=r"c\.pem"):
        tls_of(Where(certificate=tmp_path / "c.pem", private_key=tmp_path / "k.pem"))


# -- the command ---------------------------------------------------------------------------------------------------


def start(tmp_path: Path, *more: str, **options) -> subprocess.Popen[str]:
    from tests.doors.http.serving import AGENT

    (tmp_path / "garden.py").write_text(AGENT)
    (tmp_path / "script.json").write_text('["Good day."]')
    command = [sys.executable, "-m", "edgeagent", "serve", str(tmp_path / "garden.py"), *more]
    command += ["--model", f"script:{tmp_path / 'script.json'}", "--state", str(tmp_path / "state")]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.long
def test_the_command_serves_at_a_unix_socket_tells_systemd_and_ends_at_sigterm(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")}
        process = start(tmp_path, "--unix", str(tmp_path / "s"), env=environment)
        assert process.stderr is not None
        assert process.stderr.readline() == f"serving on unix:{tmp_path / 's'}\n"
        assert manager.recv(4096).startswith(b"READY=1\n")
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(tmp_path / "s"))
            connection.sendall(ALIVE)
            assert read_all(connection).startswith(b"HTTP/1.1 200")
        process.terminate()
        assert manager.recv(4096) == b"STOPPING=1"
        assert process.wait(60) == 0
        process.stderr.close()


@pytest.mark.long
def test_the_command_takes_a_socket_that_systemd_has_opened(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as opened:
        port = opened.getsockname()[1]
        number = opened.fileno()
        script = (
            f"import os, sys; os.dup2({number}, 3); os.set_inheritable(3, True); os.environ.update(LISTEN_FDS='1', "
            "LISTEN_PID=str(os.getpid())); os.execv(sys.executable, [sys.executable, '-m', 'edgeagent', *sys.argv[1:]])"
        )
        (tmp_path / "script.json").write_text('["Good day."]')
        from tests.doors.http.serving import AGENT

        (tmp_path / "garden.py").write_text(AGENT)
        command = [sys.executable, "-c", script, "serve", str(tmp_path / "garden.py")]
        command += ["--model", f"script:{tmp_path / 'script.json'}", "--state", str(tmp_path / "state")]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, pass_fds=(number,))
        assert process.stderr is not None
        assert process.stderr.readline() == f"serving on http://127.0.0.1:{port}\n"
        process.terminate()
        assert process.wait(60) == 0
        process.stderr.close()


@pytest.mark.long
def test_the_command_encrypts_with_a_pair_of_files(tmp_path):
    pair = ["-keyout", str(tmp_path / "k.pem"), "-out", str(tmp_path / "c.pem")]
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    try:
        subprocess.run([*made, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", *pair], check=True,
                       capture_output=True)  # fmt: skip
    except FileNotFoundError:
        pytest.skip("openssl is missing, so TLS was NOT tested")
    process = start(
        tmp_path, "--port", "0", "--tls-cert", str(tmp_path / "c.pem"), "--tls-key", str(tmp_path / "k.pem")
    )
    assert process.stderr is not None
    port = int(process.stderr.readline().rpartition(":")[2])
    context = ssl.create_default_context(cafile=str(tmp_path / "c.pem"))
    with (
        socket.create_connection(("localhost", port)) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as c,
    ):
        c.sendall(ALIVE)
        assert c.recv(4096).startswith(b"HTTP/1.1 200")
    at = read_at(f"https://localhost:{port}")
    assert Client(at, None, tmp_path / "c.pem").call("GET", "/health")["ready"]
    with pytest.raises(NotNow, match="name its authority with --tls-ca FILE"):
        Client(at).call("GET", "/health")
    process.terminate()
    assert process.wait(60) == 0
    process.stderr.close()


def test_a_refusal_is_in_the_shape_of_openais_errors():
    reply = Refused(401, "invalid_api_key", "no").reply()
    assert json.loads(reply.body) == {
        "error": {"message": "no", "type": "authentication_error", "param": None, "code": "invalid_api_key"}
    }
