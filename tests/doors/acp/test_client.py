"""Client: what a turn's tools ask of the editor or host, and what is left of it when the turn is cancelled."""

from __future__ import annotations

import json
import os

import pytest

from edgeagent.doors.acp.client import COMMAND, READ, Client
from edgeagent.driver.peer import Peer
from edgeagent.errors import DriverUnavailable

SOON = 60.0
CANCEL = "$/cancel_request"


class Editor:
    """An editor that is shown what is asked of it, and stops the turn in the very moment a method is sent."""

    def __init__(self, stops_at: str) -> None:
        self.methods: list[str] = []
        self._stops_at, self._incoming = stops_at, os.pipe()
        self.peer = Peer(self._incoming[0], self._take, owner=None, cancels=CANCEL)
        self.client = Client(self.peer, lambda: "s", ("/work",))

    def _take(self, body: memoryview) -> int:
        message = json.loads(bytes(body))
        self.methods.append(message["method"])
        if message["method"] == self._stops_at:
            self.client.stop()
        return len(body)

    def close(self) -> None:
        self.peer.stop()
        self.peer.run()
        for each in self._incoming:
            os.close(each)


@pytest.fixture
def editor():
    made = Editor("fs/read_text_file")
    yield made
    made.close()


def test_what_is_cancelled_while_it_is_being_sent_is_taken_back_at_once(editor):
    with pytest.raises(DriverUnavailable, match="cancelled"):
        editor.client.asked_for("fs/read_text_file", {"path": "/work/a"}, SOON)
    assert editor.methods == ["fs/read_text_file", CANCEL]


def test_a_tool_that_is_late_asks_nothing_until_the_next_turn(editor):
    read, run = editor.client.tools((READ, COMMAND))
    editor.client.stop()
    for late in (lambda: read(path="/work/a"), lambda: run(command="make")):
        with pytest.raises(DriverUnavailable, match="cancelled"):
            late()
    assert editor.methods == []
    editor.client.begin()
    with pytest.raises(DriverUnavailable, match="cancelled"):
        read(path="/work/a")
    assert editor.methods == ["fs/read_text_file", CANCEL]
