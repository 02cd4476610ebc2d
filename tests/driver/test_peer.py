"""Peer: two programs that ask each other over pipes, at once and in any order."""

from __future__ import annotations

import os
import threading
from functools import partial

import pytest

from edgeagent.codec.frames import Skipped
from edgeagent.codec.json_text import read_any
from edgeagent.codec.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, Fault, Notification, refusal_of
from edgeagent.driver.peer import BUSY, CALLS_MAX, Call, Peer, Refused
from edgeagent.errors import ConfigError, DriverUnavailable

SOON = 60.0
"""The bound of what must happen."""


class Kept:
    """An owner that keeps what comes, and answers what it is told to."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.notes: list[Notification] = []
        self.skips: list[Skipped] = []
        self.came = threading.Semaphore(0)

    def asked(self, call: Call) -> None:
        if call.method == "echo":
            return call.answer(call.params)
        if call.method == "unknown":
            raise Refused(METHOD_NOT_FOUND, "no such method", {"method": "unknown"})
        if call.method == "ours":
            raise ConfigError("a key is wrong")
        if call.method == "bug":
            raise ZeroDivisionError("by nothing")
        self.calls.append(call)
        return self.came.release()

    def told(self, note: Notification) -> None:
        self.notes.append(note)
        self.came.release()

    def skipped(self, found: Skipped) -> Fault | None:
        self.skips.append(found)
        return refusal_of(found)

    def next(self) -> None:
        assert self.came.acquire(timeout=SOON)


class Ends:
    """Two peers on two pipes, each read by a thread; or one, and the bare ends of its pipes."""

    def __init__(self, *, both: bool = True, **options) -> None:
        (self.here_in, self.far_out), (self.far_in, self.here_out) = os.pipe(), os.pipe()
        self.here, self.far = Kept(), Kept()
        self.peer = Peer(self.here_in, partial(os.write, self.here_out), self.here, **options)
        self.other = Peer(self.far_in, partial(os.write, self.far_out), self.far, **options)
        self.threads = [threading.Thread(target=each.run) for each in (self.peer, self.other)[: 1 + both]]
        for each in self.threads:
            each.start()

    def send(self, text: bytes) -> None:
        os.write(self.far_out, text + b"\n")

    def line(self):
        found = b""
        while not found.endswith(b"\n"):
            found += os.read(self.far_in, 1)
        return read_any(found)

    def close(self) -> None:
        self.peer.stop()
        self.other.stop()
        for each in self.threads:
            each.join(SOON)
            assert not each.is_alive()
        for each in (self.here_in, self.here_out, self.far_in, self.far_out):
            os.close(each)


@pytest.fixture
def ends():
    made = Ends()
    yield made
    made.close()


@pytest.fixture
def bare():
    made = Ends(both=False, batches=True)
    yield made
    made.close()


def test_both_sides_ask_each_other_at_once(ends):
    here = [ends.peer.ask("echo", {"n": n}) for n in range(50)]
    far = [ends.other.ask("echo", [n]) for n in range(50)]
    assert [each.wait(SOON) for each in here] == [{"n": n} for n in range(50)]
    assert [each.wait(SOON) for each in far] == [[n] for n in range(50)]


def test_an_answer_may_come_later_and_from_another_thread(ends):
    first, second = ends.peer.ask("later"), ends.peer.ask("echo", {})
    assert second.wait(SOON) == {}
    ends.far.next()
    threading.Thread(target=ends.far.calls[0].answer, args=("done",)).start()
    assert first.wait(SOON) == "done"


def test_only_the_first_answer_to_a_request_goes_out(bare):
    bare.send(b'{"jsonrpc":"2.0","id":1,"method":"later"}')
    bare.here.next()
    bare.here.calls[0].answer(1)
    bare.here.calls[0].answer(2)
    bare.send(b'{"jsonrpc":"2.0","id":2,"method":"echo","params":[]}')
    assert [bare.line()["id"], bare.line()["id"]] == [1, 2]


@pytest.mark.parametrize(
    ("method", "code", "said"),
    [("unknown", METHOD_NOT_FOUND, "no such method"), ("ours", INTERNAL_ERROR, "a key is wrong")],
)
def test_what_an_owner_raises_is_the_answer(ends, method, code, said):
    with pytest.raises(Refused, match=said) as refused:
        ends.peer.ask(method).wait(SOON)
    assert refused.value.code == code


def test_a_bug_of_ours_ends_one_request_and_no_other(ends):
    with pytest.raises(Refused, match="ZeroDivisionError"):
        ends.peer.ask("bug").wait(SOON)
    assert ends.peer.ask("echo", {}).wait(SOON) == {}


def test_a_request_that_is_given_up_is_cancelled_on_the_other_side():
    made = Ends(cancels="$/cancel_request")
    asked, done = made.peer.ask("later"), threading.Event()
    made.far.next()
    made.far.calls[0].on_cancel(done.set)
    asked.give_up("no time")
    assert done.wait(SOON)
    assert made.far.calls[0].is_cancelled
    made.close()


def test_a_cancellation_that_came_first_is_noticed_when_somebody_cares(bare):
    bare.send(b'{"jsonrpc":"2.0","id":"a","method":"later"}')
    bare.send(b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"a"}}')
    bare.send(b'{"jsonrpc":"2.0","id":2,"method":"echo","params":[]}')
    bare.line()
    seen: list[bool] = []
    bare.here.calls[0].on_cancel(lambda: seen.append(True))
    assert seen == [True]


def test_who_waits_is_told_when_the_other_side_has_gone(ends):
    asked = ends.peer.ask("later")
    ends.far.next()
    ends.other.stop()
    os.close(ends.far_out)
    with pytest.raises(DriverUnavailable, match="has gone"):
        asked.wait(SOON)
    ends.far_out = os.dup(ends.far_in)
    with pytest.raises(DriverUnavailable):
        ends.peer.ask("echo").wait(SOON)
    assert not ends.peer.tell("x")


def test_requests_that_are_open_are_cancelled_when_the_other_side_has_gone(bare):
    gone = threading.Event()
    bare.send(b'{"jsonrpc":"2.0","id":1,"method":"later"}')
    bare.here.next()
    bare.here.calls[0].on_cancel(gone.set)
    os.close(bare.far_out)
    bare.far_out = os.dup(bare.far_in)
    assert gone.wait(SOON)


def test_a_last_message_without_its_line_end_counts(bare):
    os.write(bare.far_out, b'{"jsonrpc":"2.0","method":"last"}')
    os.close(bare.far_out)
    bare.far_out = os.dup(bare.far_in)
    bare.here.next()
    assert bare.here.notes == [Notification("last")]


def test_no_more_requests_are_open_than_may_be(bare):
    for number in range(CALLS_MAX + 1):
        bare.send(b'{"jsonrpc":"2.0","id":%d,"method":"later"}' % number)
    refused = bare.line()
    assert (refused["id"], refused["error"]["code"]) == (CALLS_MAX, BUSY)
    bare.here.calls[0].answer(None)
    bare.line()
    bare.send(b'{"jsonrpc":"2.0","id":"again","method":"echo","params":[]}')
    assert bare.line()["result"] == []


def test_an_id_that_is_open_is_not_answered_for_another(bare):
    bare.send(b'{"jsonrpc":"2.0","id":1,"method":"later"}')
    bare.send(b'{"jsonrpc":"2.0","id":1,"method":"echo","params":[]}')
    found = bare.line()
    assert (found["id"], found["error"]["code"]) == (None, INVALID_REQUEST)


def test_the_answers_to_a_batch_go_back_together(bare):
    bare.send(
        b'[{"jsonrpc":"2.0","id":1,"method":"later"},{"jsonrpc":"2.0","method":"n"},7,'
        b'{"jsonrpc":"2.0","id":2,"method":"echo","params":[]}]'
    )
    bare.here.next()
    bare.here.next()
    bare.here.calls[0].answer("at last")
    found = bare.line()
    assert {each["id"]: each.get("result") for each in found} == {None: None, 2: [], 1: "at last"}


def test_what_is_no_message_is_told_to_the_owner_who_may_answer(bare):
    bare.send(b"Server listening on stdio")
    assert bare.line() == {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "it is no JSON"}}
    assert [each.text for each in bare.here.skips] == ["Server listening on stdio"]


def test_an_answer_that_nobody_waits_for_changes_nothing(bare):
    asked = bare.peer.ask("x")
    bare.line()
    for answer in (b'{"jsonrpc":"2.0","id":99,"result":1}', b'{"jsonrpc":"2.0","id":1,"result":2}') * 2:
        bare.send(answer)
    assert asked.wait(SOON) == 2
