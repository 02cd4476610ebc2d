"""A session that is served: any thread posts, each word gets its own answer, several doors watch and decide."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from edgeagent.codec.dialect import dialect_called
from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import AskUser, Say
from edgeagent.core.events import ModelAnswered, ModelFailed, UserSaid
from edgeagent.core.step import QUEUE_MAX
from edgeagent.core.values import Usage
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.errors import ConfigError, TraceError
from edgeagent.policy.ready import confirm_before
from edgeagent.runtime.attached import Attached
from edgeagent.runtime.door import Decision, QuietDoor
from edgeagent.runtime.folder import Beginning
from edgeagent.runtime.session import Outside, Session, new_session
from edgeagent.runtime.wiring import drivers_of, step_of
from edgeagent.trace.file import examine_file

SECONDS = 30
"""No test waits so long: it is for the case that one hangs."""


@tool(idempotent=False)
def open_gate(gate: str) -> str:
    """Open a gate."""
    if gate == "rusty":
        raise OSError("it is stuck")
    return f"{gate} is open"


AGENT = Agent("keeper", "You keep gates.", (open_gate,), dialect=dialect_called("plain"), hears=("bell",))
CAREFUL = Agent(
    "careful", "You keep gates.", (open_gate,), (confirm_before("open_gate"),), dialect=dialect_called("plain")
)
CALL = json.dumps({"name": "open_gate", "arguments": {"gate": "north"}})


class Echo(ScriptedModel):
    """Answers with the words it was asked last, as soon as it is let."""

    def __init__(self, *, held: bool = False):
        super().__init__(())
        self.asked, self.may = threading.Semaphore(0), threading.Semaphore(0)
        self._held = held

    def submit(self, effect, post):
        threading.Thread(target=self._answer, args=(effect, post), daemon=True).start()

    def _answer(self, effect, post):
        self.asked.release()
        if self._held and not self.may.acquire(timeout=SECONDS):
            post(ModelFailed(0, effect.effect_id, "time", "never let"))
        post(ModelAnswered(0, effect.effect_id, f"You said: {effect.messages[-1].text}", "end", Usage()))


class Listener(QuietDoor):
    """Keeps what is said and asked, and says when a question has come."""

    def __init__(self):
        self.said, self.told, self.questions = [], [], []
        self.is_asked, self.is_told = threading.Event(), threading.Event()

    def watch(self, event, state, effects):
        self.said += [effect.text for effect in effects if isinstance(effect, Say)]
        self.questions += [effect for effect in effects if isinstance(effect, AskUser)]
        if self.questions:
            self.is_asked.set()
        if self.said:
            self.is_told.set()

    def activity(self, text):
        self.told.append(text)


class Broken(QuietDoor):
    """Fails at the first transition."""

    def watch(self, event, state, effects):
        raise ConnectionError("the line is dead")


def begun(root: Path, model, agent=AGENT, door=None) -> Session:
    doors = Attached(door or QuietDoor())
    drivers = drivers_of(agent, model, doors.person)
    beginning = Beginning(agent_spec="", model="script")
    return new_session(agent, step_of(agent), drivers, root, beginning, Outside(doors))


@pytest.fixture
def serve():
    """A function that serves a session in a thread; afterwards it is closed, and the thread must have ended."""
    served = []

    def start(session: Session) -> Session:
        thread = threading.Thread(target=session.serve)
        thread.start()
        served.append((session, thread))
        return session

    yield start
    for session, thread in served:
        session.close()
        thread.join(SECONDS)
        assert not thread.is_alive()


def test_every_word_from_any_thread_gets_its_own_answer(tmp_path, serve):
    session = serve(begun(tmp_path, Echo()))
    answers = {}

    def say(text):
        answers[text] = session.ask(text, by="ann", door="test").text

    threads = [threading.Thread(target=say, args=(f"word {number}",)) for number in range(QUEUE_MAX)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert answers == {f"word {number}": f"You said: word {number}" for number in range(QUEUE_MAX)}
    said = [r.event for r in examine_file(session.trace_path).records if isinstance(r.event, UserSaid)]
    assert {(each.by, each.door) for each in said} == {("ann", "test")}


def test_without_anyone_who_serves_whoever_says_something_works(tmp_path):
    session = begun(tmp_path, Echo())
    assert session.ask("hello").text == "You said: hello"
    session.close()


def test_a_word_is_recorded_before_it_is_answered(tmp_path, serve):
    session = serve(begun(tmp_path, model := Echo(held=True)))
    word = session.post_words("hello")
    seq = word.recorded.result(SECONDS)
    assert examine_file(session.trace_path).records[seq].event.text == "hello"
    assert not word.answered.done()
    model.may.release()
    assert word.answered.result(SECONDS).text == "You said: hello"


def test_a_word_said_while_a_turn_runs_is_answered_with_its_own_turn(tmp_path, serve):
    session = serve(begun(tmp_path, model := Echo(held=True)))
    words = [session.post_words(text) for text in ("one", "two", "three")]
    words[-1].recorded.result(SECONDS)  # All three are in the state before the first is answered.
    model.may.release(3)
    answers = [word.answered.result(SECONDS) for word in words]
    assert [answer.text for answer in answers] == ["You said: one", "You said: two", "You said: three"]
    assert {answer.outcome.kind for answer in answers} == {"answered"}


def test_a_word_more_than_may_wait_is_refused_to_whoever_posted_it_with_the_limit_and_the_way_out(tmp_path, serve):
    session = serve(begun(tmp_path, model := Echo(held=True)))
    told = []
    session.attach(door := QuietDoor())
    door.activity = told.append
    words = [session.post_words(f"{number}") for number in range(QUEUE_MAX + 2)]
    late = words[-1].answered.result(SECONDS)
    assert late.outcome.kind == "failed"
    said = f"too many words wait for this session: {QUEUE_MAX} is the most; this was not kept, so say it again later"
    assert late.outcome.detail == said
    assert said in late.text
    with pytest.raises(ConfigError, match="say it again later"):
        session.say("and one more")
    assert told == [said, said]
    model.may.release(QUEUE_MAX + 1)
    assert [w.answered.result(SECONDS).outcome.kind for w in words[:-1]] == ["answered"] * (QUEUE_MAX + 1)


def test_words_that_a_cancel_forgets_are_answered_with_that(tmp_path, serve):
    session = serve(begun(tmp_path, model := Echo(held=True)))
    words = [session.post_words("one"), session.post_words("two")]
    words[-1].recorded.result(SECONDS)
    session.cancel("enough")
    assert [w.answered.result(SECONDS).outcome.kind for w in words] == ["cancelled", "cancelled"]
    model.may.release()


def test_a_word_that_is_never_answered_says_so_when_the_session_is_closed(tmp_path, serve):
    session = serve(begun(tmp_path, model := Echo(held=True)))
    words = [session.post_words("one"), session.post_words("two")]
    assert model.asked.acquire(timeout=SECONDS)
    session.close()
    for word in (*words, session.post_words("three")):
        with pytest.raises(TraceError, match="was closed before it answered"):
            word.answered.result(SECONDS)
    model.may.release()


def test_an_answer_names_the_calls_that_ran_and_what_came_of_them(tmp_path):
    rusty = json.dumps({"name": "open_gate", "arguments": {"gate": "rusty"}})
    session = begun(tmp_path, ScriptedModel([CALL, rusty, "One is open."]))
    answer = session.ask("Open both.")
    session.close()
    assert [(c.tool, c.arguments, c.result) for c in answer.calls] == [
        ("open_gate", {"gate": "north"}, "north is open"),
        ("open_gate", {"gate": "rusty"}, None),
    ]
    assert answer.calls[1].error == "raised: OSError: it is stuck"
    assert (answer.outcome.kind, answer.trace) == ("failed", session.trace_path)


def test_a_bell_wakes_a_session_that_is_served(tmp_path, serve):
    session = serve(begun(tmp_path, Echo(), door=(door := Listener())))
    session.post_heard("bell", "ding")
    assert door.is_told.wait(SECONDS)
    assert "ding" in door.said[0]


@pytest.mark.parametrize(("answered", "ran"), [(True, True), (False, False)])
def test_any_door_may_answer_a_question_once(tmp_path, serve, answered, ran):
    session = serve(begun(tmp_path, ScriptedModel([CALL, "Done."]), CAREFUL))
    session.attach(door := Listener())
    word = session.post_words("Open north.")
    assert door.is_asked.wait(SECONDS)
    question = door.questions[0]
    assert session.decide(question.effect_id, answered, question.digest)
    assert not session.decide(question.effect_id, not answered, question.digest), "it is not open any more"
    assert bool(word.answered.result(SECONDS).calls) == ran


def test_a_yes_without_the_digest_of_the_question_is_a_no(tmp_path, serve):
    session = serve(begun(tmp_path, ScriptedModel([CALL, "Done."]), CAREFUL))
    session.attach(door := Listener())
    word = session.post_words("Open north.")
    assert door.is_asked.wait(SECONDS)
    session.decide(door.questions[0].effect_id, True, "")
    assert word.answered.result(SECONDS).calls == ()


def test_a_door_that_was_attached_is_asked_too(tmp_path, serve):
    class Agrees(QuietDoor):
        def decide(self, question):
            return Decision(True, "", question.digest)

    session = serve(begun(tmp_path, ScriptedModel([CALL, "Done."]), CAREFUL))
    session.attach(Agrees())
    assert [call.tool for call in session.ask("Open north.").calls] == ["open_gate"]


def test_an_attached_door_that_fails_is_let_go_of_and_the_session_goes_on(tmp_path, serve):
    session = serve(begun(tmp_path, Echo(), door=(door := Listener())))
    session.attach(Broken())
    assert [session.ask("one").text, session.ask("two").text] == ["You said: one", "You said: two"]
    assert door.told == ["a door is let go of: ConnectionError: the line is dead"]


def test_what_fails_at_the_door_that_opened_the_session_is_its_own(tmp_path):
    with pytest.raises(ConnectionError):
        begun(tmp_path, Echo(), door=Broken())


@pytest.mark.parametrize("waits", ["ask", "attach", "close"])
def test_a_door_that_waits_for_the_session_that_shows_it_something_is_told_so(tmp_path, serve, waits):
    """It would wait for ever."""

    class Waits(QuietDoor):
        def watch(self, event, state, effects):
            {"ask": lambda: session.ask("And?"), "attach": lambda: session.attach(QuietDoor(), "b")}.get(
                waits, session.close
            )()

    session = serve(begun(tmp_path, Echo(), door=(door := Listener())))
    session.attach(Waits())
    assert session.ask("one").text == "You said: one"
    assert "waits for the session that shows it" in door.told[0]


def test_a_door_may_post_words_while_it_is_shown_something(tmp_path, serve):
    class Answers(QuietDoor):
        def watch(self, event, state, effects):
            if any(isinstance(effect, Say) and effect.text == "You said: one" for effect in effects):
                words.append(session.post_words("two"))

    words = []
    session = serve(begun(tmp_path, Echo()))
    session.attach(Answers())
    session.ask("one")
    assert words[0].answered.result(SECONDS).text == "You said: two"
