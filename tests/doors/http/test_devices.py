"""Screens of devices over HTTP: what a real line prints is shown and followed, and nothing is typed by looking."""

from __future__ import annotations

import contextlib
import http.client
import time

import pytest

pytest.importorskip("serial", reason="pyserial is not installed: pip install edgeagent[serial]")

from tests.doors.http.pty_device import PASSWORD, PtyDevice
from tests.doors.http.serving import ANNE, BERT, parsed, serving

pytestmark = pytest.mark.long

WAIT_S = 120
CALL = '{"name": "show_version", "arguments": {}}'
PATH = "/api/agents/switches"


@pytest.fixture
def device(tmp_path):
    found = PtyDevice(tmp_path)
    yield found
    found.close()


@pytest.fixture
def server(tmp_path, device):
    with serving(tmp_path / "served", (CALL, "It runs 1.2."), agent=device.agent(tmp_path)) as running:
        yield running


def called(server):
    """Have the agent call its device once, which opens the line."""
    session = server.opened()
    status, answer = server.ask("POST", f"/api/sessions/{session}/words", {"text": "Which firmware is it?"})
    assert (status, answer["text"]) == (200, "It runs 1.2."), answer


@contextlib.contextmanager
def watched(server, place=""):
    """The stream of lines."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT_S)
    connection.request("GET", f"{PATH}/lines?since={place}", headers={"Authorization": f"Bearer {ANNE}"})
    reply = connection.getresponse()
    yield parsed(reply, lambda: time.monotonic() - began < WAIT_S)
    reply.close()
    connection.close()


def lines_until(events, text):
    """The texts of the lines up to one with this text, and the place behind them."""
    found = []
    for event in events:
        found += [line["text"] for line in event["data"]["lines"]]
        if any(text in each for each in (*found, event["data"]["begun"])):
            return found, event["id"]
    raise AssertionError(found)


def test_looking_opens_nothing_and_types_nothing(server, device):
    status, said = server.ask("GET", f"{PATH}/devices")
    (row,) = said["devices"]
    assert (status, row["device"], row["is_open"], row["lines"], row["begun"]) == (200, device.where, False, [], "")
    with watched(server) as events:
        first = next(events)
    assert (first["event"], first["data"]["is_open"]) == ("lines", False)
    device.prints(b"nobody listens yet\r\n")
    assert device.typed == b""


def test_what_a_device_prints_is_shown_and_followed_without_a_key_more_being_typed(server, device):
    called(server)
    typed = device.typed
    assert b"show version" in typed
    (row,) = server.ask("GET", f"{PATH}/devices")[1]["devices"]
    assert row["is_open"] and "firmware 1.2" in [line["text"] for line in row["lines"]]
    assert row["begun"] == "sw1# "
    with watched(server) as events:
        _, place = lines_until(events, "firmware 1.2")
        device.prints(b"\r\nport 3 is down\r\n")
        lines_until(events, "port 3 is down")
    device.prints(b"port 4 is down\r\n")
    with watched(server, place) as events:
        again, _ = lines_until(events, "port 4 is down")
    assert "firmware 1.2" not in again and again.count("port 3 is down") == 1, "behind the place, each line once"
    assert device.typed == typed, "looking types nothing"


def test_health_counts_how_devices_stand_and_the_metrics_name_them(server, device):
    assert server.ask("GET", "/health", key="")[1]["devices"] == {"closed": 1}
    called(server)
    assert server.ask("GET", "/health", key="")[1]["devices"] == {"open": 1}
    assert f'edgeagent_device_open{{device="{device.where}"}} 1.0' in server.ask("GET", "/metrics")[1]
    device.close()
    with watched(server) as events:
        lines_until(events, "link lost")
    status, said = server.ask("GET", "/health", key="")
    assert (status, said["devices"]) == (200, {"lost": 1})
    (row,) = server.ask("GET", f"{PATH}/devices")[1]["devices"]
    assert (row["is_open"], row["is_lost"]) == (False, True)


def test_a_password_is_never_shown_though_the_device_echoes_it(server, device):
    called(server)
    assert PASSWORD.encode() in device.typed
    _, said = server.ask("GET", f"{PATH}/devices")
    assert PASSWORD not in str(said) and "*" * len(PASSWORD) in str(said)


def test_the_bytes_of_a_device_pass_the_consoles_own_list(server, device):
    called(server)
    hostile = b"\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b]52;c;aGk=\x07\x1b[5i\xff\xe2\x80\xae<b>50%\r100%\x1b[6n\x00"
    device.prints(b"\r\n" + hostile + b"\r\nthat was all\r\n")
    with watched(server) as events:
        texts, _ = lines_until(events, "that was all")
    line = texts[texts.index("that was all") - 1]
    assert line == "100%" + r"red\x1b]52;c;aGk=\x07\x1b[5i\xff\u202e<b>50%"[4:]


def test_a_place_of_another_run_of_the_server_gives_everything_that_is_kept(server):
    called(server)
    with watched(server, "0a0b0c0d.9999") as events:
        texts, _ = lines_until(events, "firmware 1.2")
    assert "firmware 1.2" in texts


@pytest.mark.parametrize("place", ["1.x", "a.-1", "a.²", "a." + "9" * 20, "." * 600])
def test_what_is_no_place_is_refused(server, place):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT_S)
    headers = {"Authorization": f"Bearer {ANNE}", "Last-Event-ID": place.encode()}
    connection.request("GET", f"{PATH}/lines", headers=headers)
    with connection.getresponse() as reply:
        assert reply.status == 400
    connection.close()


def test_the_devices_of_no_agent_are_404_and_those_of_an_agent_without_any_none(tmp_path, server):
    assert server.ask("GET", "/api/agents/nobody/devices")[0] == 404
    with serving(tmp_path / "plain") as plain:
        said = plain.ask("GET", "/api/agents/garden/devices", key=BERT)[1]
    assert said["devices"] == []
