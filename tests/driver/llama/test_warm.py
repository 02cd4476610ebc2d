"""What a driver leaves on the disk for the next one: the conversation, the agent's prefix, the tools' texts."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("llama_cpp")

from edgeagent.codec.dialect import Plain
from edgeagent.core.effects import AskModel
from edgeagent.core.values import Message
from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.judge import SEQUENCES
from edgeagent.driver.llama.kv import TEXTS_FOLDER
from edgeagent.driver.llama.model import LlamaDriver
from examples.greenhouse import agent as greenhouse

pytestmark = pytest.mark.model

AGENT = dataclasses.replace(greenhouse, dialect=Plain())
SECRET = bytes(range(32))
FIRST, SECOND = "Tell the operator that the boiler is cold.", "It is far too dark in here."


def ask(text, choice="either"):
    return AskModel(1, (Message("user", text),), AGENT.tool_names, choice, 48, 0, 7)


class Kept:
    """A driver that keeps its memory (a session's own by number, the agent's in one folder), and what it did."""

    def __init__(self, model: Path, root: Path, passes: list, session, agent=AGENT, secret=SECRET):
        self.passes, self.driver = passes, LlamaDriver.load(model, agent, threads=1)
        self.engine = self.driver._engine
        self.driver.keep_warm(root / "sessions" / session / "kv", root / "kv", secret)
        self.warm = self.driver.wake()

    def answer(self, text):
        """The event, and how many tokens of the tools' texts were evaluated for it."""
        self.passes.clear()
        event = self.driver.answer(ask(text))
        return event, sum(step.following < 0 for part in self.passes for step in part)

    def places(self):
        """The tokens that each sequence beside the conversation holds."""
        return [self.engine.kept(place) for place in range(1, SEQUENCES)]

    def close(self):
        self.driver.close()


@pytest.fixture(scope="module")
def passes():
    """What the model evaluates, part by part."""
    made = []
    with pytest.MonkeyPatch.context() as patch:
        decode_steps = Engine._decode_steps
        patch.setattr(Engine, "_decode_steps", lambda engine, part: made.append(part) or decode_steps(engine, part))
        yield made


@pytest.fixture
def kept_in(smollm2, tmp_path, passes):
    """Loads a driver; what it keeps lies under `tmp_path`."""
    with contextlib.ExitStack() as stack:

        def load(*named, **more):
            made = Kept(smollm2, tmp_path, passes, *named, **more)
            stack.callback(made.close)
            return made

        yield load


@pytest.fixture(scope="module")
def session_before(smollm2, passes, tmp_path_factory):
    """A session that ended: what it left on the disk, and what stood beside its conversation."""
    root = tmp_path_factory.mktemp("before")
    before = Kept(smollm2, root, passes, "one")
    before.answer(FIRST)
    before.driver.answer(ask(FIRST, "answer"))  # In the model's own words, which stay in the conversation's memory.
    places = before.places()
    before.close()
    assert sum(map(bool, places)) == len(AGENT.tools) + 1
    return root, places


@pytest.fixture
def left(session_before, tmp_path):
    """What stood beside the conversation of the session before, whose files are this test's own."""
    root, places = session_before
    shutil.copytree(root, tmp_path, dirs_exist_ok=True)
    return places


@pytest.fixture(scope="module")
def uncut(smollm2, passes, tmp_path_factory):
    """A session that no disk has helped: how much it evaluated for the first answer; what it answers where it began.

    The last is what it answers as its conversation's second.
    """
    kept = Kept(smollm2, tmp_path_factory.mktemp("uncut"), passes, "other")
    _, cold = kept.answer(FIRST)
    second, _ = kept.answer(SECOND)
    prefix = kept.driver.prepared.prefix_tokens()
    kept.engine.align(kept.engine.kept()[:prefix], keep_last=False)  # As it is where a session begins.
    fresh, _ = kept.answer(SECOND)
    kept.close()
    return SimpleNamespace(cold=cold, prefix=prefix, fresh=fresh, second=second)


@pytest.mark.deep
def test_the_next_run_evaluates_no_tools_text_and_judges_as_the_uncut_one(kept_in, left, uncut):
    restored = kept_in("two")
    assert restored.warm == uncut.prefix
    assert restored.places() == left
    event, evaluated = restored.answer(SECOND)
    assert (uncut.cold > 100, evaluated) == (True, 0)
    assert (event.scores, event.text) == (uncut.fresh.scores, uncut.fresh.text)


@pytest.mark.deep
def test_a_run_that_was_answered_without_the_model_leaves_prefix_and_texts_too(kept_in):
    first = kept_in("one")
    event, _ = first.answer("Open a valve.")
    held, places = first.engine.kept(), first.places()
    first.close()
    second = kept_in("two")
    assert event.usage.forced == event.usage.completion
    assert (second.engine.kept(), second.places()) == (held, places)


def test_a_session_that_goes_on_has_its_own_memory_and_the_texts(kept_in, left):
    resumed = kept_in("one")
    assert resumed.warm == len(resumed.engine.kept()) > resumed.driver.prepared.prefix_tokens() > 0
    assert resumed.places() == left
    assert resumed.answer(SECOND)[1] == 0


def test_a_session_that_goes_on_is_judged_as_the_uncut_one(kept_in, left, uncut):
    event, _ = kept_in("one").answer(SECOND)
    assert (event.scores, event.text) == (uncut.second.scores, uncut.second.text)


@pytest.mark.deep
def test_what_was_asked_in_other_sessions_makes_no_difference(kept_in, left):
    fresh, _ = kept_in("other", secret=bytes(32)).answer(SECOND)
    later, _ = kept_in("two").answer(SECOND)
    assert (later.scores, later.text) == (fresh.scores, fresh.text)


def test_texts_that_are_already_kept_are_not_written_again(kept_in, left, tmp_path):
    [file] = (tmp_path / "kv" / TEXTS_FOLDER).glob("*.kv")
    written = file.stat().st_mtime_ns
    again = kept_in("two")
    again.answer(SECOND)
    again.close()
    assert file.stat().st_mtime_ns == written


@pytest.mark.deep
def test_texts_of_a_changed_tool_are_not_used(kept_in, left):
    changed = [dataclasses.replace(each, examples=("Do it again.",)) for each in AGENT.tools]
    other = kept_in("two", dataclasses.replace(AGENT, tools=changed))
    assert other.warm > 0  # Examples are no part of the system text.
    assert not any(other.places())
    assert other.answer(SECOND)[1] > 0


@pytest.mark.deep
def test_damaged_texts_are_a_miss_and_are_written_anew(kept_in, left, tmp_path):
    [file] = (tmp_path / "kv" / TEXTS_FOLDER).glob("*.kv")
    file.write_bytes(file.read_bytes()[:-1])
    other = kept_in("two")
    assert other.warm > 0 and not any(other.places())
    other.answer(FIRST)
    other.close()
    assert kept_in("three").places() == left


def test_texts_of_another_machines_key_are_a_miss(kept_in, left):
    other = kept_in("two", secret=bytes(32))
    assert (other.warm, any(other.places())) == (0, False)


def test_texts_are_restored_where_the_conversation_was_lost(kept_in, left, tmp_path):
    for file in (tmp_path / "kv").glob("*.kv"):
        file.unlink()
    other = kept_in("two")
    assert (other.warm, other.places()) == (0, left)
