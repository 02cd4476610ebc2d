"""A server that speaks HTTP/2, over TLS: streamed, cancelled, reset, and gone."""

from __future__ import annotations

import threading

import h2.errors
import pytest

from edgeagent.core.events import ModelAnswered, ModelFailed
from tests.driver.remote.asking import SECOND, ask, asking
from tests.driver.remote.peer import OK, chunk, saying
from tests.driver.remote.peer_h2 import h2_peer
from tests.driver.remote.test_tls import certificate

WHOLE = saying("It is dry.").removeprefix(OK)
BEGUN = chunk({"role": "assistant"}) + chunk({"content": "It "})
HELD_S = 60.0


@pytest.fixture
def file(tmp_path):
    """A certificate for localhost."""
    return certificate(tmp_path, "localhost")


def answering(stream, _number):
    stream.head()
    stream.data(WHOLE, ends=True)


def test_an_answer_is_streamed_as_it_is_written(file):
    has_shown = threading.Event()

    def in_two(stream, _number):
        stream.head()
        stream.data(BEGUN)
        assert has_shown.wait(HELD_S)
        stream.data(chunk({"content": "is dry."}) + chunk({}, "stop") + b"data: [DONE]\n\n", ends=True)

    with h2_peer(file, in_two) as served, asking(served.url, ca=str(file)) as asked:
        asked.driver.submit(ask(timeout_ms=0), asked.events.put)
        while "".join(asked.shown) != "It ":
            threading.Event().wait(0.01)
        has_shown.set()
        event = asked.events.get(timeout=HELD_S)
    assert (event.text, served.spoken) == ("It is dry.", ["h2"])


def test_a_request_larger_than_the_window_arrives_whole(file):
    with h2_peer(file, answering) as served, asking(served.url, ca=str(file)) as asked:
        event = asked.event(ask("Water it well. " * 20_000, timeout_ms=0), wait_s=HELD_S)
        assert event.text == "It is dry."
        assert served.requests[0].body.count(b"Water it well.") == 20_000


def test_an_ask_that_is_cancelled_in_mid_stream_resets_the_stream(file):
    def begins(stream, _number):
        stream.head()
        stream.data(BEGUN)

    with h2_peer(file, begins) as served, asking(served.url, ca=str(file)) as asked:
        asked.driver.submit(ask(timeout_ms=0), asked.events.put)
        while not asked.shown:
            threading.Event().wait(0.01)
        asked.driver.cancel(1)
        event = asked.events.get(timeout=HELD_S)
        assert served.requests[0].was_reset.wait(HELD_S)
    assert (type(event), event.stop) == (ModelAnswered, "cancelled")


def test_a_stream_that_is_reset_in_the_middle_fails_and_is_not_asked_for_again(file):
    def breaks(stream, _number):
        stream.head()
        stream.data(BEGUN)
        stream.reset()

    with h2_peer(file, breaks) as served, asking(served.url, ca=str(file)) as asked:
        event = asked.event(ask(timeout_ms=0), wait_s=HELD_S)
        assert len(served.requests) == 1
    assert (type(event), event.reason) == (ModelFailed, "engine")


def test_a_stream_that_is_reset_before_an_answer_leaves_room_for_another_model(file):
    resets = h2_peer(file, lambda stream, _: stream.reset())
    with resets as served, asking(served.url, ca=str(file), driver=SECOND) as asked:
        event = asked.event(ask(timeout_ms=0), wait_s=HELD_S)
    assert (type(event), event.reason) == (ModelFailed, "unavailable")


def test_a_stream_that_was_refused_is_sent_again(file):
    def once(stream, number):
        if number == 1:
            stream.reset(h2.errors.ErrorCodes.REFUSED_STREAM)
        else:
            answering(stream, number)

    with h2_peer(file, once) as served, asking(served.url, ca=str(file)) as asked:
        assert asked.event(ask(timeout_ms=0), wait_s=HELD_S).text == "It is dry."
        assert len(served.requests) == 2


def test_an_answer_that_was_begun_is_read_to_its_end_when_the_server_says_that_it_goes(file):
    def last(stream, _number):
        stream.head()
        stream.data(BEGUN)
        stream.go_away_after()
        stream.data(chunk({"content": "is dry."}) + chunk({}, "stop") + b"data: [DONE]\n\n", ends=True)

    with h2_peer(file, last) as served, asking(served.url, ca=str(file)) as asked:
        assert asked.event(ask(timeout_ms=0), wait_s=HELD_S).text == "It is dry."
        assert asked.event(ask(effect_id=2, timeout_ms=0), wait_s=HELD_S).text == "It is dry."
        assert len(served.spoken) == 2  # The next one takes a new connection.


def test_a_server_that_goes_in_the_middle_of_an_answer_fails_the_ask(file):
    def goes(stream, _number):
        stream.head()
        stream.data(BEGUN)
        stream.go_away(stream.number)
        stream.hang_up()

    with h2_peer(file, goes) as served, asking(served.url, ca=str(file)) as asked:
        event = asked.event(ask(timeout_ms=0), wait_s=HELD_S)
        assert len(served.requests) == 1
    assert (type(event), event.reason) == (ModelFailed, "engine")
    assert event.spent is not None


def test_a_server_that_goes_before_it_answers_anything_is_not_reached_or_asked_again(file):
    def once(stream, number):
        if number == 1:
            stream.go_away(0)
            stream.hang_up()
        else:
            answering(stream, number)

    with h2_peer(file, once) as served, asking(served.url, ca=str(file)) as asked:
        event = asked.event(ask(timeout_ms=0), wait_s=HELD_S)
    assert isinstance(event, ModelAnswered) or event.reason == "unavailable"
