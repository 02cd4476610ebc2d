"""The page: what is served of it, how a key becomes a cookie, and what a cookie alone may not do."""

from __future__ import annotations

import http.client
import json
import re

import pytest

from edgeagent.core.effects import AskModel
from edgeagent.core.values import Message
from edgeagent.doors.http import feed
from edgeagent.doors.http.feed import _effect_row
from edgeagent.doors.http.keys import Keys
from edgeagent.doors.http.login import LASTS_S, LOGINS_MAX, Logins, setting
from edgeagent.doors.http.pages import FOLDER
from edgeagent.runtime.logins import LOGINS_NAME
from tests.doors.http.serving import ANNE, BERT, KEYS, serving

PAGE_BYTES_MAX = 100_000
SECRET = b"s" * 32


def logged_in(server, key=ANNE):
    """The cookie that a key is exchanged for, as a browser would send it back, and the header that set it."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("POST", "/api/login", json.dumps({"key": key}))
    reply = connection.getresponse()
    reply.read()
    connection.close()
    header = reply.headers["Set-Cookie"]
    return header.partition(";")[0], header


def test_the_page_is_small_and_names_nothing_of_another_host_and_no_script_of_its_own_lines():
    files = {file.name: file.read_text() for file in FOLDER.iterdir()}
    assert sum(len(text.encode()) for text in files.values()) < PAGE_BYTES_MAX
    for name, text in files.items():
        assert set(re.findall(r"https?://[\w.]+", text)) <= {"http://www.w3.org"}, name
        assert name == "dom.js" or ".textContent = " not in text, "texts are put there escaped"
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", text), name
    html = files["index.html"]
    assert not re.search(r"<style|\son\w+=|\sstyle=|<script(?![^>]*\ssrc=)", html)


def test_every_part_that_the_page_names_is_served_under_a_policy_without_inline_scripts(server):
    status, html = server.ask("GET", "/", key="")
    assert status == 200
    named = set(re.findall(r'"(/page/[\w.]+)"', html))
    named |= {
        f"/page/{part}" for file in FOLDER.glob("*.js") for part in re.findall(r'"\./(\w+\.js)"', file.read_text())
    }
    for path in sorted(named):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("GET", path)
        reply = connection.getresponse()
        assert (reply.status, path) == (200, path) and reply.read()
        policy = reply.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
        connection.close()
    assert {f"/page/{file.name}" for file in FOLDER.iterdir()} - named == {"/page/index.html"}


@pytest.mark.parametrize("name", ["none.js", "..%2Fapi.py", "%2e%2e", "index.html%00", "__init__.py"])
def test_no_other_file_is_served(server, name):
    assert server.ask("GET", f"/page/{name}", key="")[0] in (400, 404)


def test_a_key_becomes_a_cookie_that_no_script_reads_and_no_other_site_sends(server):
    cookie, header = logged_in(server)
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in header.split(";")}
    assert ANNE not in header
    status, me = server.ask("GET", "/api/me", key="", Cookie=cookie)
    assert (status, me["name"]) == (200, "anne")


def test_a_cookie_alone_reads_and_changes_nothing_without_the_pages_token(server):
    cookie, _ = logged_in(server)
    token = server.ask("GET", "/api/me", key="", Cookie=cookie)[1]["token"]
    assert server.ask("GET", "/api/sessions", key="", Cookie=cookie)[0] == 200
    other = server.ask("GET", "/api/me", key="", Cookie=logged_in(server, BERT)[0])[1]["token"]
    for wrong in ({}, {"X_CSRF_Token": ""}, {"X_CSRF_Token": token[:-1]}, {"X_CSRF_Token": other}):
        status, said = server.ask("POST", "/api/sessions", {}, key="", Cookie=cookie, **wrong)
        assert (status, said["error"]["code"]) == (403, "no_token"), wrong
    assert server.ask("POST", "/api/sessions", {}, key="", Cookie=cookie, X_CSRF_Token=token)[0] == 201


def test_a_session_of_another_key_is_not_there_for_a_cookie_either(server):
    session = server.opened(ANNE)
    cookie, _ = logged_in(server, BERT)
    assert server.ask("GET", f"/api/sessions/{session}", key="", Cookie=cookie)[0] == 404


def test_wrong_keys_at_the_log_in_are_counted_like_all_others(server):
    server.door.gate.forget_tries()
    for _ in range(10):
        assert server.ask("POST", "/api/login", {"key": "x" * 30}, key="")[0] == 401
    assert server.ask("POST", "/api/login", {"key": ANNE}, key="")[0] == 429
    server.door.gate.forget_tries()


def test_a_log_in_outlives_a_restart_and_ends_with_its_key(tmp_path):
    with serving(tmp_path) as server:
        cookie, _ = logged_in(server)
    with serving(tmp_path) as server:
        assert server.ask("GET", "/api/me", key="", Cookie=cookie)[0] == 200
    with serving(tmp_path, keys={"anne": "another-" + "k" * 30}) as server:
        assert server.ask("GET", "/api/me", key="", Cookie=cookie)[0] == 401
    with serving(tmp_path, keys={"bert": BERT}) as server:
        assert server.ask("GET", "/api/me", key="", Cookie=cookie)[0] == 401


def test_a_log_in_ends_with_its_time_and_is_no_other_ones_however_it_is_changed(tmp_path):
    now = [1000.0]
    logins = Logins(SECRET, Keys(KEYS), tmp_path, lambda: now[0])
    cookie, other = logins.cookie_for("anne"), logins.cookie_for("bert").split(".")[1]
    assert logins.name_in(cookie) == "anne"
    _, number, expires, seal = cookie.split(".")
    changed = [
        f"bert.{number}.{expires}.{seal}",
        f"anne.{other}.{expires}.{seal}",
        f"anne.{number}.{int(expires) + 1}.{seal}",
        f"anne.{number}.{expires}.{seal[:-1]}",
        f"anne.{number}.{expires}.",
        f"anne.{expires}.{seal}",
    ]
    odd = ["", "anne", "anne.", "...", f"{cookie}.x", f"anne.{number}.{expires}.ü", f"anne.{number}.²{expires}.{seal}"]
    for wrong in [*changed, *odd]:
        assert logins.name_in(wrong) is None, wrong
    assert Logins(b"t" * 32, Keys(KEYS), tmp_path, lambda: now[0]).name_in(cookie) is None
    now[0] += LASTS_S
    assert logins.name_in(cookie) is None


def test_a_stolen_cookie_ends_with_the_log_out_and_stays_ended_over_a_restart(tmp_path):
    with serving(tmp_path) as server:
        stolen, kept = logged_in(server)[0], logged_in(server)[0]
        assert server.ask("GET", "/api/sessions", key="", Cookie=stolen)[0] == 200
        assert server.ask("POST", "/api/logout", key="", Cookie=stolen)[0] == 200
        status, said = server.ask("GET", "/api/sessions", key="", Cookie=stolen)
        assert (status, said["error"]["code"]) == (401, "invalid_api_key")
        assert server.ask("GET", "/api/me", key="", Cookie=kept)[0] == 200, "another log-in of the same key"
    with serving(tmp_path) as server:
        assert server.ask("GET", "/api/me", key="", Cookie=stolen)[0] == 401
        assert server.ask("GET", "/api/me", key="", Cookie=kept)[0] == 200


def test_a_stream_that_a_stolen_cookie_has_opened_ends_with_the_log_out(server, monkeypatch):
    monkeypatch.setattr(feed, "ALIVE_S", 0.05)
    session, cookie = server.opened(), logged_in(server)[0]
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", f"/api/sessions/{session}/events", headers={"Cookie": cookie})
    reply = connection.getresponse()
    assert reply.readline().startswith(b"retry:")
    assert server.ask("POST", "/api/logout", key="", Cookie=cookie)[0] == 200
    reply.read()  # It ends: who may not come in is told no more.
    connection.close()


def test_what_is_no_log_in_ends_none(tmp_path):
    logins = Logins(SECRET, Keys(KEYS), tmp_path)
    cookie = logins.cookie_for("anne")
    for wrong in ("", "anne", cookie[:-1], cookie.replace("anne", "bert")):
        logins.end(wrong)
    assert logins.name_in(cookie) == "anne"


def test_a_key_has_so_many_log_ins_and_one_more_ends_the_oldest(tmp_path):
    logins = Logins(SECRET, Keys(KEYS), tmp_path)
    other = logins.cookie_for("bert")
    cookies = [logins.cookie_for("anne") for _ in range(LOGINS_MAX + 1)]
    assert [logins.name_in(each) for each in cookies] == [None, *["anne"] * LOGINS_MAX]
    assert logins.name_in(other) == "bert"


@pytest.mark.parametrize("content", [b"", b"{", b'{"anne": 3}', b'{"anne": {"x": "y"}}', b"\xff"])
def test_where_it_is_lost_who_was_logged_in_everyone_logs_in_again(tmp_path, content):
    file = tmp_path / LOGINS_NAME
    cookie = Logins(SECRET, Keys(KEYS), tmp_path).cookie_for("anne")
    assert Logins(SECRET, Keys(KEYS), tmp_path).name_in(cookie) == "anne"
    file.write_bytes(content)
    assert Logins(SECRET, Keys(KEYS), tmp_path).name_in(cookie) is None


def test_a_disk_that_takes_nothing_is_said_at_the_log_in_and_at_the_log_out(tmp_path):
    with serving(tmp_path) as server:
        cookie, _ = logged_in(server)
        (tmp_path / LOGINS_NAME).unlink()
        (tmp_path / LOGINS_NAME).mkdir()
        status, said = server.ask("POST", "/api/login", {"key": ANNE}, key="")
        assert (status, said["error"]["code"]) == (503, "not_kept")
        status, said = server.ask("POST", "/api/logout", key="", Cookie=cookie)
        assert (status, said["error"]["code"]) == (503, "not_kept")
        assert server.ask("GET", "/api/me", key="", Cookie=cookie)[0] == 401


def test_over_tls_the_cookie_is_sent_over_tls_alone():
    assert "; Secure" in setting("x", is_secure=True)[1]
    assert "; Secure" not in setting("x", is_secure=False)[1]


def test_without_keys_the_page_needs_no_log_in(tmp_path):
    with serving(tmp_path, keys=None) as server:
        assert server.ask("GET", "/api/me", key="") == (200, {"name": "", "token": "", "has_keys": False})


def test_why_a_call_did_not_run_is_told_with_the_ask_that_follows():
    def told(*texts):
        messages = (Message("user", "x"), Message("assistant", "y"), *(Message("tool", text) for text in texts))
        return _effect_row(AskModel(1, messages, (), "either", 9, 0, 0))["refused"]

    assert told('{"refused":"the valve is open"}', '"ok"', '{"refused":"no"}') == ["the valve is open", "no"]
    assert told('{"refused":"cut off', '{"refused":') == []
