"""Whatever a server does, the ask ends within its deadline in a failure that says what happened; memory stays small."""

from __future__ import annotations

import queue
import socket
import time
import tracemalloc

import pytest

from edgeagent.codec.apis import api_called
from edgeagent.core.events import ModelAnswered, ModelFailed
from edgeagent.driver.remote import transport
from edgeagent.driver.remote.endpoint import Endpoint
from edgeagent.driver.remote.exchange import Asked, Exchange
from edgeagent.driver.remote.model import RemoteModel
from tests.driver.remote.asking import SECOND, ask, asking
from tests.driver.remote.peer import OK, chunk, peer, refusing, saying

PIECE = chunk({"content": "dry "})


def failed(answer, *, needs: str, reason: str = "unavailable", asked_for=None, **more) -> ModelFailed:
    """The failure that this server's answer comes to. Only what will never come is waited for in short."""
    with peer(answer) as served, asking(served.url, **more) as asked:
        event = asked.event(asked_for)
    assert isinstance(event, ModelFailed), event
    assert needs in event.message
    assert event.reason == reason
    return event


def stalling(*first: bytes):
    def stall(connection, _):
        for each in first:
            connection.sendall(each)
        while connection.recv(65536):  # Until the client has gone.
            pass

    return stall


def test_no_answer_at_all():
    failed(stalling(), needs="nothing of an answer came in 0.3 s", first_event_s=0.3)


def test_headers_alone_are_no_answer():
    failed(stalling(OK), needs="nothing of an answer came in 0.3 s", first_event_s=0.3)


def test_comments_and_blank_lines_are_no_answer_however_many_come():
    def pings(connection, _):
        connection.sendall(OK)
        while True:
            connection.sendall(b": ping\n\n")
            time.sleep(0.02)

    failed(pings, needs="nothing of an answer came in 0.3 s", first_event_s=0.3)


def test_silence_in_the_middle():
    failed(stalling(OK, PIECE), needs="said nothing for 0.3 s", reason="engine", idle_s=0.3)


def test_half_a_frame_and_then_silence():
    failed(stalling(OK + PIECE[:30]), needs="nothing of an answer came in 0.3 s", first_event_s=0.3)


def test_half_a_frame_and_then_the_end():
    failed(OK + PIECE + PIECE[:30], needs="no JSON object", reason="engine")


def test_an_end_without_an_answer():
    failed(OK, needs="ended before its end")


def test_a_connection_that_is_closed_at_once():
    failed(lambda connection, _: connection.close(), needs="http://127.0.0.1")


def test_a_connection_that_is_reset_in_the_middle():
    def resets(connection, _):
        connection.sendall(OK + PIECE)
        while not asked.shown:
            time.sleep(0.01)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()

    with peer(resets) as served, asking(served.url) as asked:
        event = asked.event()
    assert (event.reason, served.url.removesuffix("/v1") in event.message) == ("engine", True)


def test_a_content_length_that_is_too_long():
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\nConnection: close\r\n\r\n"
    failed(head + b'{"choices": [{"message": {"content": "Dry."}, "finish_reason": "stop"}]}', needs="http://127")


def test_a_content_length_that_is_too_short():
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 30\r\n\r\n"
    failed(head + b'{"choices": [{"message": {"content": "Dry."}}]}', needs="http://127")


def test_a_content_length_that_is_none():
    failed(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}", needs="http://127")


def test_chunks_that_are_none():
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    failed(head + b"zz\r\n" + PIECE, needs="http://127")


@pytest.mark.parametrize("piece", [b"x" * 65536, PIECE * 400, b"data: " + b"y" * 65536], ids=["blob", "events", "line"])
def test_an_endless_body_ends_at_a_bound_and_takes_little_memory(piece, monkeypatch):
    monkeypatch.setattr(transport, "RESPONSE_BYTES_MAX", 1 << 20)

    def pours(connection, _):
        connection.sendall(OK)
        while True:
            connection.sendall(piece)

    tracemalloc.start()
    try:
        with peer(pours) as served, asking(served.url) as asked:
            event = asked.event()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(event, ModelFailed)
    assert "more than 1 MB" in event.message or "larger" in event.message
    assert most < 24 << 20


def test_endless_headers():
    def pours(connection, _):
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            connection.sendall(b"X-More: " + b"x" * 1000 + b"\r\n")

    failed(pours, needs="http://127")


def test_a_page_of_html_from_a_proxy():
    page = b"<html><head><title>Log in to the guest network</title></head></html>"
    failed(refusing(200, page, "Content-Type: text/html"), needs="Log in to the guest network")
    failed(refusing(502, page, "Content-Type: text/html", "Retry-After: 900"), needs="Log in to the guest network")


def test_no_http_at_all():
    failed(b"SSH-2.0-OpenSSH_9.2\r\n", needs="http://127")


def test_an_error_in_the_place_of_a_stream():
    failed(refusing(200, b'{"error": {"message": "the model is not loaded"}}'), needs="the model is not loaded")


def test_a_key_that_is_refused():
    failed(refusing(401, b'{"error": {"message": "Wrong key."}}'), needs="Wrong key.")


def test_a_model_that_there_is_not():
    failed(refusing(404, b'{"error": {"message": "no model m"}}'), needs="no model m")


def test_a_prompt_that_is_too_long_is_asked_again_with_less():
    said = b'{"error": {"code": 400, "message": "request (3031 tokens) exceeds the available context size"}}'
    failed(refusing(400, said), needs="3031 tokens", reason="context_full")


def test_too_many_requests_for_ever_end_after_some_attempts():
    with peer(refusing(429, b"{}", "retry-after-ms: 20")) as served, asking(served.url) as asked:
        event = asked.event()
    assert event.reason == "unavailable"
    assert len(served.requests) == 4


def test_the_wait_that_a_server_asks_for_is_kept():
    def answer(connection, number):
        connection.sendall(refusing(429, b"{}", "retry-after-ms: 300") if number == 1 else saying("Dry."))

    with peer(answer) as served, asking(served.url) as asked:
        assert asked.event().text == "Dry."
    assert served.asked_at[1] - served.asked_at[0] >= 0.3


def test_a_wait_that_is_longer_than_the_turn_has_is_not_waited_for():
    with peer(refusing(503, b"{}", "Retry-After: 3600")) as served, asking(served.url) as asked:
        assert asked.event().reason == "unavailable"
    assert len(served.requests) == 1


def test_an_ask_is_cancelled_while_it_waits_to_be_sent_again():
    with peer(refusing(429, b"{}", "retry-after-ms: 50000")) as served, asking(served.url) as asked:
        asked.driver.submit(ask(timeout_ms=60_000), asked.events.put)
        assert served.gone.wait(60)  # It has been answered.
        asked.driver.cancel(1)
        assert asked.events.get(timeout=60).stop == "cancelled"
    assert len(served.requests) == 1


def test_an_ask_that_is_cancelled_before_it_is_sent_is_cancelled():
    with peer(stalling()) as served:
        model = RemoteModel(Endpoint(url=served.url, model="m"))
        results: queue.SimpleQueue = queue.SimpleQueue()
        asked = Asked(model.endpoint, api_called("chat"), b"{}", time.monotonic() + 60)
        exchange = Exchange(asked, model.transport, None, results.put)
        exchange.cancel()
        exchange.start()
        assert results.get(timeout=60).how == "cancelled"
        model.close()


def test_what_has_begun_is_never_asked_again():
    with peer(OK + PIECE) as served, asking(served.url) as asked:
        assert asked.event().reason == "engine"
    assert len(served.requests) == 1


def test_an_error_of_the_server_is_not_asked_again():
    with peer(refusing(500, b"{}")) as served, asking(served.url) as asked:
        assert asked.event().reason == "unavailable"
    assert len(served.requests) == 1


def test_one_of_several_models_is_not_asked_twice():
    with peer(refusing(429, b"{}", "retry-after-ms: 1")) as served, asking(served.url, driver=SECOND) as asked:
        assert asked.event().reason == "unavailable"
    assert len(served.requests) == 1


def test_the_time_of_the_turn_ends_a_wait_for_the_answer():
    failed(stalling(), needs="the time of the turn", reason="time", asked_for=ask(timeout_ms=200))


def test_a_wait_that_would_end_after_the_turn_is_not_waited_for():
    def answer(connection, number):
        connection.sendall(refusing(429, b"{}", f"retry-after-ms: {20 if number == 1 else 55_000}"))

    with peer(answer) as served, asking(served.url) as asked:
        assert asked.event(ask(timeout_ms=50_000)).reason == "unavailable"
    assert len(served.requests) == 2


def test_words_that_came_until_the_time_was_over_are_kept():
    passed_s = [0.0]

    def goes_on(connection, _):
        connection.sendall(OK + PIECE + PIECE)
        while "".join(asked.shown) != "dry dry ":
            time.sleep(0.01)
        passed_s[0] = 60.0  # All that the turn had.
        stalling(b": ping\n\n")(connection, _)

    with peer(goes_on) as served, asking(served.url, clock=lambda: time.monotonic() + passed_s[0]) as asked:
        event = asked.event()
    assert isinstance(event, ModelAnswered)
    assert (event.text, event.stop) == ("dry dry ", "time")


def test_a_redirection_is_not_followed_and_its_target_is_sent_nothing(monkeypatch):
    monkeypatch.setenv("REMOTE_TEST_KEY", "canary-0123456789")
    for status in (301, 302, 303, 307, 308):
        with peer(saying("I am another.")) as other:
            head = refusing(status, b"", f"Location: {other.url}/chat/completions")
            with peer(head) as served, asking(served.url, credential="env:REMOTE_TEST_KEY") as asked:
                assert "it redirects elsewhere" in asked.event().message
            assert other.accepted == 0


def test_nobody_listens():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with asking(url, driver=SECOND) as asked:
            assert asked.event().reason == "unavailable"


def test_a_host_that_there_is_not():
    with asking("https://no-such-host.invalid/v1", driver=SECOND) as asked:
        assert asked.event().reason == "unavailable"


def test_a_server_that_takes_connections_and_never_speaks_tls():
    with (
        peer(stalling()) as served,
        asking(served.url.replace("http:", "https:"), driver=SECOND, connect_s=0.5) as asked,
    ):
        assert asked.event().reason == "unavailable"
