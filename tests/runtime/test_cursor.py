"""What a door has not had is delivered when it comes back: once, in order, after a kill too."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edgeagent.core.effects import Say
from edgeagent.errors import ConfigError
from edgeagent.runtime import session as session_module
from edgeagent.runtime.attached import Attached
from edgeagent.runtime.cursor import deliveries
from edgeagent.runtime.door import QuietDoor
from edgeagent.runtime.folder import Beginning, directories
from edgeagent.runtime.resume import resume_session
from edgeagent.runtime.session import Outside, Session, new_session
from edgeagent.runtime.wiring import drivers_of, step_of
from edgeagent.trace.check import fold
from edgeagent.trace.file import examine_file

from . import served
from .served import AGENT, DOORS, SESSIONS, Counting

KILLS = 12


class Reader(QuietDoor):
    """Keeps what is said; may die while it is shown something."""

    def __init__(self, *, dies_at: str = "") -> None:
        self.said, self._dies_at = [], dies_at

    def watch(self, event, state, effects):
        for effect in effects:
            if isinstance(effect, Say):
                if effect.text == self._dies_at:
                    raise ConnectionError("gone")
                self.said.append(effect.text)


def start(root: Path, door=None, name: str = "") -> Session:
    doors = Attached(door or QuietDoor(), name)
    drivers = drivers_of(AGENT, Counting(), doors.person)
    return new_session(AGENT, step_of(AGENT), drivers, root, Beginning(agent_spec="", model="script"), Outside(doors))


def reopen(directory: Path, door=None, name: str = "") -> Session:
    doors = Attached(door or QuietDoor(), name)
    drivers = drivers_of(AGENT, Counting(), doors.person)
    return resume_session(directory, AGENT, step_of(AGENT), drivers, outside=Outside(doors))


def test_a_new_door_begins_now(tmp_path):
    session = start(tmp_path)
    session.ask("one")
    session.attach(late := Reader(), "late")
    answer = session.ask("two")
    session.close()
    assert late.said == [answer.text]


def test_a_door_that_comes_back_is_shown_what_it_has_missed_in_order(tmp_path):
    session = start(tmp_path)
    session.attach(first := Reader(), "radio")
    seen = session.ask("one").text
    session.detach(first)
    missed = [session.ask("two").text, session.ask("three").text]
    session.attach(again := Reader(), "radio")
    last = session.ask("four").text
    session.close()
    assert (first.said, again.said) == ([seen], [*missed, last])


def test_a_door_that_comes_back_after_a_restart_is_shown_what_it_has_missed(tmp_path):
    session = start(tmp_path)
    session.attach(Reader(), "radio")
    session.close()
    session = reopen(session.directory)
    missed = session.ask("one").text
    session.close()
    session = reopen(session.directory)
    session.attach(radio := Reader(), "radio")
    session.close()
    assert radio.said == [missed]


def test_the_door_that_opens_a_session_has_a_place_too_if_it_has_a_name(tmp_path):
    one, two = "answer 3", "answer 7"
    session = start(tmp_path, screen := Reader(dies_at=two), "screen")
    session.ask("one")
    with pytest.raises(ConnectionError):
        session.ask("two")
    session.close()
    session = reopen(session.directory, again := Reader(), "screen")
    session.close()
    assert (screen.said, again.said) == ([one], [two])


def test_what_a_door_did_not_acknowledge_is_delivered_again(tmp_path):
    session = start(tmp_path)
    session.ask("one")
    session.attach(Reader(dies_at="answer 7"), "radio")
    two = session.ask("two").text
    session.close()
    session = reopen(session.directory)
    session.attach(radio := Reader(), "radio")
    session.close()
    assert radio.said == [two]


def test_a_place_outlives_the_rotation_of_its_trace(tmp_path, monkeypatch):
    monkeypatch.setattr(session_module, "ROTATE_AT_BYTES", 1)
    session = start(tmp_path)
    session.attach(Reader(), "radio")
    seen = session.ask("zero").text
    session.close()
    session = reopen(session.directory)
    missed = [session.ask("one").text, session.ask("two").text]
    assert len(examine_file(session.trace_path).records) == 0, "it has been rotated"
    session.attach(radio := Reader(), "radio")
    session.close()
    assert radio.said == missed
    assert seen not in radio.said


def test_a_place_that_does_not_fit_its_trace_begins_at_the_beginning(tmp_path):
    """A power cut took records that were delivered, and others came in their place."""
    session = start(tmp_path)
    session.attach(Reader(), "radio")
    session.ask("one")
    session.close()
    record = examine_file(session.trace_path).records[1]
    session.trace_path.write_bytes(session.trace_path.read_bytes()[: record.offset])
    (session.directory / "snapshot.cbor").unlink()
    session = reopen(session.directory)
    others = [session.ask("uno").text, session.ask("due").text]
    session.attach(radio := Reader(), "radio")
    session.close()
    assert radio.said == others


@pytest.mark.parametrize("content", [b"", b"{", b'{"seq": -1}', b'{"seq": 3, "head": "beef"}'])
def test_a_damaged_place_costs_a_repetition_and_no_answer(tmp_path, content):
    session = start(tmp_path)
    session.attach(Reader(), "radio")
    answer = session.ask("one").text
    session.close()
    (session.directory / "doors" / "radio").write_bytes(content)
    session = reopen(session.directory)
    session.attach(radio := Reader(), "radio")
    session.close()
    assert radio.said == [answer]


@pytest.mark.parametrize("name", ["../../x", "a/b", ".", "a" * 65])
def test_a_name_that_is_no_file_is_refused(tmp_path, name):
    session = start(tmp_path)
    with pytest.raises(ConfigError, match="door name"):
        session.attach(Reader(), name)
    session.close()


@pytest.mark.long
def test_killed_at_random_every_answer_reaches_every_door_once(tmp_path):
    """SIGKILL, again and again, while three sessions serve two doors each; then they are left to finish."""
    chance = random.Random(14)
    command = [sys.executable, served.__file__, str(tmp_path)]
    for _ in range(KILLS):
        process = subprocess.Popen([*command, str(served.NO_END)], stderr=subprocess.PIPE)
        before = sum(each.stat().st_size for each in tmp_path.rglob("trace.cbor"))
        while process.poll() is None and sum(each.stat().st_size for each in tmp_path.rglob("trace.cbor")) <= before:
            time.sleep(0.005)
        time.sleep(chance.random() * 0.05)
        process.kill()
        complaint = process.communicate()[1]
        assert process.returncode == -signal.SIGKILL, complaint
    rounds = max(served.words_in(directory / "trace.cbor") for directory in directories(tmp_path)) + 1
    assert subprocess.run([*command, str(rounds)], capture_output=True, check=True, text=True).stderr == ""
    assert len(directories(tmp_path)) == SESSIONS
    for directory in directories(tmp_path):
        records = examine_file(directory / "trace.cbor").records
        fold(lambda state, event: step_of(AGENT)(AGENT, state, event), records)
        said = [
            f"{effect.effect_id} {effect.text}"
            for each in deliveries(directory / "trace.cbor", lambda s, e: step_of(AGENT)(AGENT, s, e), 0)
            for effect in each.effects
            if isinstance(effect, Say)
        ]
        assert len(said) == rounds
        for name in DOORS:
            assert (tmp_path / f"{directory.name}.{name}").read_text().splitlines() == said
