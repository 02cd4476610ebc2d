"""Feed: who comes in the middle of an answer is told all of it, once."""

from __future__ import annotations

import http.client
import threading
import time

import pytest

from edgeagent.core.events import ModelAnswered
from edgeagent.core.values import Usage
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.runtime.model import Script
from tests.doors.http.serving import ANNE, parsed, serving

WAIT_S = 120


class Halting(ScriptedModel):
    """Writes the first half of an answer, then the second one when it may."""

    halves = (("Good ", "day, "), ("Anne", "."))

    def __init__(self, doors, may):
        super().__init__(())
        self._doors, self._may = doors, may

    def submit(self, effect, post):
        threading.Thread(target=self._write, args=(effect, post), daemon=True).start()

    def _write(self, effect, post):
        first, second = self.halves
        for piece in first:
            self._doors.stream(piece)
        assert self._may.wait(WAIT_S)
        for piece in second:
            self._doors.stream(piece)
        post(ModelAnswered(0, effect.effect_id, "".join(first + second), "end", Usage()))


class Halves(Script):
    """The same for every session."""

    may = threading.Event()

    def driver(self, agent, doors, root, answered, manner=None):
        return Halting(doors, self.may)


class Watching:
    """A stream that is read event by event."""

    def __init__(self, server, session, since=0):
        began = time.monotonic()
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT_S)
        path = f"/api/sessions/{session}/events?since={since}"
        self._connection.request("GET", path, headers={"Authorization": f"Bearer {ANNE}"})
        self._events = parsed(self._connection.getresponse(), lambda: time.monotonic() - began < WAIT_S)
        self.written, self.firsts, self.kinds = "", 0, []

    def until(self, ends):
        """Take events until one of this kind, putting the words together as the page does."""
        for event in self._events:
            data = event["data"]
            self.kinds.append(event["event"])
            if event["event"] == "words":
                self.firsts += data["at"] == 0
                self.written = data["text"] if data["at"] == 0 else self.written + data["text"]
                assert len(self.written) == data["at"] + len(data["text"]), "nothing is missing and nothing doubled"
            elif event["event"] == "record" and data["event"]["type"] == "ModelAnswered":
                assert self.written in ("", data["event"]["text"])
                self.written = ""
            if ends(event):
                break
        return self

    def close(self):
        self._connection.close()


@pytest.fixture
def answering(tmp_path):
    """A server, a session in which half an answer is written, and what lets the model go on."""
    Halves.may.clear()
    with serving(tmp_path, model=Halves(())) as server:
        session = server.opened()
        watching = Watching(server, session)
        server.ask("POST", f"/api/sessions/{session}/words", {"text": "Hello", "wait": False})
        watching.until(lambda event: watching.written == "Good day, ").close()
        yield server, session
        Halves.may.set()


def half_is_told(event):
    return event["event"] == "words"


def is_said(event):
    return any(each["type"] == "Say" for each in event["data"].get("effects", ()))


@pytest.mark.parametrize("since", [0, 2, 1000])
def test_who_comes_in_the_middle_of_an_answer_is_told_all_of_it_once(answering, since):
    server, session = answering
    watching = Watching(server, session, since).until(half_is_told)
    assert watching.written == "Good day, "
    Halves.may.set()
    if since <= 2:
        watching.until(is_said)
        assert (watching.firsts, watching.written) == (1, "")
    else:
        watching.until(lambda event: watching.written == "Good day, Anne.")
        assert (watching.firsts, watching.written) == (1, "Good day, Anne.")
    watching.close()


def test_who_comes_when_it_is_answered_is_told_the_records_alone(answering):
    server, session = answering
    first = Watching(server, session)
    Halves.may.set()
    first.until(is_said).close()
    late = Watching(server, session).until(is_said)
    assert set(late.kinds) == {"record"}
    late.close()


def test_the_next_answer_begins_anew_for_who_was_there_and_for_who_comes(answering):
    server, session = answering
    watching = Watching(server, session)
    Halves.may.set()
    watching.until(is_said)
    Halves.may.clear()
    server.ask("POST", f"/api/sessions/{session}/words", {"text": "And again", "wait": False})
    watching.until(lambda event: watching.written == "Good day, ")
    late = Watching(server, session).until(half_is_told)
    assert (watching.written, late.written) == ("Good day, ", "Good day, ")
    Halves.may.set()
    for each in (watching, late):
        each.until(lambda event: is_said(event) and event["data"]["state"]["turn"] == 2).close()
