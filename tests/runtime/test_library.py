"""Sessions from Python: opened, asked, streamed, decided, several at once, with asyncio and without."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import edgeagent
from edgeagent import Agent, Decision, QuietDoor, tool
from edgeagent.core.events import ModelAnswered, UserSaid
from edgeagent.core.values import Usage, call_digest
from edgeagent.doors.http.feed import questions_in
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.errors import ConfigError
from edgeagent.runtime.config import ModelSettings
from edgeagent.runtime.model import Script
from edgeagent.testing import call, scripted
from edgeagent.trace.file import examine_file

ROOT = Path(__file__).parents[2]


@tool(idempotent=False, confirm=True)
def pay(euros: int) -> str:
    """Pay."""
    return f"paid {euros}"


PAYER = Agent("payer", "You pay.", (pay,))
PAY = call("pay", euros=5)


class Writing(ScriptedModel):
    """Writes its answers letter by letter, as a model does."""

    def __init__(self, answers, doors):
        super().__init__(answers)
        self._doors = doors

    def submit(self, effect, post):
        threading.Thread(target=self._write, args=(effect, post), daemon=True).start()

    def _write(self, effect, post):
        text = next(self._script)
        for letter in text:
            self._doors.stream(letter)
        post(ModelAnswered(0, effect.effect_id, text, "end", Usage()))


class WritingScript(Script):
    def driver(self, agent, doors, root, answered):
        return Writing(self._answers[answered:], doors)


@tool(idempotent=True)
def measured(value: int) -> object:
    """Measure."""
    return [value, -value, -0.0, 0.1 + 0.2]


@tool(idempotent=False)
def done() -> object:
    """Do something whose result nobody can show."""
    return (n for n in range(3))


def test_whole_numbers_of_any_size_come_back_with_every_digit():
    for value in (2**53 + 1, 2**63, 2**64, 2**70 + 1, 2**200 + 1, -(2**63) - 1):
        with scripted(Agent("meter", tools=(measured,)), [call("measured", value=value), "Done."]) as session:
            (called,) = session.ask("Measure.").calls
        assert (called.arguments, called.result) == ({"value": value}, [value, -value, -0.0, 0.1 + 0.2])
        assert str(called.result[2]) == "-0.0"


def test_a_call_whose_result_cannot_be_shown_says_that_it_was_done_and_why_nobody_sees_it():
    with scripted(Agent("doer", tools=(done,)), [call("done"), "Done."]) as session:
        (called,) = session.ask("Do it.").calls
    assert (called.result, called.error) == (None, "")
    assert "generator" in called.unshown


def open_writing(tmp_path, *answers, **more):
    return edgeagent.open(PAYER, WritingScript(answers), state=tmp_path, **more)


def test_the_question_that_a_callback_decides_is_what_will_run():
    asked = []
    with scripted(PAYER, [PAY, "Paid."], decide=lambda question: asked.append(question) or True) as session:
        answer = session.ask("Pay five.")
    assert [(question.tool, question.arguments) for question in asked] == [("pay", '{"euros":5}')]
    assert [called.result for called in answer.calls] == ["paid 5"]


@pytest.mark.parametrize("decide", [None, lambda question: False, lambda question: Decision(False, "not today")])
def test_without_a_yes_nothing_runs(decide):
    with scripted(PAYER, [PAY, "I may not."], decide=decide) as session:
        assert session.ask("Pay five.").calls == ()


def test_a_callback_that_fails_is_a_no():
    with scripted(PAYER, [PAY, "I may not."], decide=lambda question: 1 / 0) as session:
        answer = session.ask("Pay five.")
    assert answer.calls == ()
    assert "division by zero" in answer.outcome.detail


def test_the_pieces_of_a_stream_are_the_answer_without_its_calls(tmp_path):
    with open_writing(tmp_path, PAY, "  It is paid.\n\nThank you.  ", decide=lambda question: True) as session:
        pieces = list(session.stream("Pay five."))
        said = session.state.past[-1].messages[-1].text.strip()
    assert "".join(pieces) == said == "It is paid.\n\nThank you."
    assert len(pieces) > 10


def test_a_stream_is_of_its_own_turn_only(tmp_path):
    with open_writing(tmp_path, "one", "two", "three") as session:
        serving = threading.Thread(target=session.serve)
        serving.start()
        words = [session.post_words("first")]
        second = "".join(session.stream("second"))
        words.append(session.post_words("third"))
        texts = [word.answered.result(30).text for word in words]
    serving.join(30)
    assert (texts, second) == (["one", "three"], "two")


def test_an_answer_that_begins_like_a_call_comes_whole(tmp_path):
    with open_writing(tmp_path, "<b>hello</b>") as session:
        assert list(session.stream("Hello.")) == ["<b>hello</b>"]


def test_a_stream_that_nobody_reads_to_its_end_does_no_harm(tmp_path):
    with open_writing(tmp_path, "one", "two") as session:
        assert next(session.stream("first")) == "o"
        assert session.ask("second").text == "two"


def test_with_asyncio_sessions_answer_at_the_same_time_and_stream(tmp_path):
    async def talk(number):
        model = WritingScript([f"hello {number}", "bye"])
        async with edgeagent.open_async(PAYER, model, state=tmp_path) as session:
            first = await session.ask("Hello.")
            return first.text, "".join([piece async for piece in session.stream("Bye.")])

    async def all_at_once():
        return await asyncio.gather(*(talk(number) for number in range(12)))

    assert asyncio.run(all_at_once()) == [(f"hello {number}", "bye") for number in range(12)]


def test_a_task_that_is_cancelled_cancels_its_turn(tmp_path):
    asked, cancelled = threading.Event(), threading.Event()

    class Silent(ScriptedModel):
        def submit(self, effect, post):
            asked.set()

        def cancel(self, effect_id):
            cancelled.set()

    class Never(Script):
        def driver(self, agent, doors, root, answered):
            return Silent(())

    async def give_up():
        async with edgeagent.open_async(PAYER, Never(()), state=tmp_path) as session:
            task = asyncio.create_task(session.ask("Hello."))
            await asyncio.to_thread(asked.wait, 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(cancelled.wait, 30)
            return session.session.trace_path

    names = [type(r.event).__name__ for r in examine_file(asyncio.run(give_up())).records]
    assert names[-1] == "Cancelled"


def test_who_said_something_and_through_which_door_is_in_the_trace():
    with scripted(PAYER, ["Hello Ann."]) as session:
        session.ask("Hello.", by="ann", door="web")
        said = [r.event for r in examine_file(session.trace_path).records if isinstance(r.event, UserSaid)]
    assert (said[0].by, said[0].door) == ("ann", "web")


def test_a_session_goes_on_where_it_was_closed(tmp_path):
    with edgeagent.open(PAYER, Script(["one", "two"]), state=tmp_path) as session:
        session.ask("first")
    with edgeagent.open(PAYER, Script(["one", "two"]), state=str(tmp_path), last=True) as session:
        assert session.ask("second").text == "two"
        assert session.state.turn == 2


@pytest.mark.parametrize("text", ["bad page \ud835 here", "\udcff\udcfe", "half \udfff\ud800", "\ud83d"])
def test_a_session_goes_on_after_a_tool_that_failed_in_no_unicode_and_does_not_run_it_again(tmp_path, text):
    runs = []

    @tool(idempotent=False)
    def fetch() -> str:
        """Fetch."""
        runs.append(text)
        raise ValueError(text)

    agent, script = Agent("fetcher", tools=(fetch,)), Script([call("fetch"), "It failed.", "Still here."])
    with edgeagent.open(agent, script, state=tmp_path) as session:
        (called,) = session.ask("Fetch it.").calls
    assert called.error.startswith("raised: ValueError: ")
    with edgeagent.open(agent, script, state=tmp_path, last=True) as session:
        assert session.ask("And now?").text == "Still here."
    assert len(runs) == 1


def test_a_setting_that_is_none_is_named_with_those_that_are(tmp_path):
    with pytest.raises(ConfigError, match="there is no colour; there are agent, config, state"):
        edgeagent.open(PAYER, Script(["one"]), state=tmp_path, colour="red")
    with pytest.raises(ConfigError, match="colour"):
        edgeagent.load("smollm2", colour="red")


def test_a_window_that_is_smaller_than_a_session_began_with_is_refused(tmp_path):
    edgeagent.open(PAYER, Script(["one"]), state=tmp_path).close()
    model = Script(["one"], ModelSettings(name="script", dialect="plain", context_tokens=512))
    with pytest.raises(ConfigError, match=r"a window of 2048 tokens .* load it with context_tokens=2048"):
        edgeagent.open(PAYER, model, state=tmp_path, last=True)


def test_a_model_that_is_missing_is_said_before_anything_is_written(tmp_path):
    with pytest.raises(edgeagent.ModelError):
        edgeagent.open(PAYER, str(tmp_path / "none.gguf"), state=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_service_serves_sessions_of_several_agents_and_takes_them_up_again(tmp_path):
    other = Agent("other", "You talk.")
    answers = ["one", "two"]
    with edgeagent.Service(Script(answers), state=tmp_path) as service:
        words = [service.open(agent).post_words("first") for agent in (PAYER, other)]
        assert [word.answered.result(30).text for word in words] == ["one", "one"]
    with edgeagent.Service(Script(answers), state=tmp_path) as service:
        assert len(service.resume(PAYER)) == 1
        assert len(service.resume(PAYER, other)) == 1
        words = [session.post_words("second") for session in service.sessions.values()]
        assert [word.answered.result(30).text for word in words] == ["two", "two"]


def test_a_session_that_was_taken_up_again_takes_a_decision_at_once(tmp_path):
    class Asked(QuietDoor):
        def decide(self, question):
            asked.set()

    class Slow(QuietDoor):
        def watch(self, event, state, effects):
            time.sleep(0.2)  # Each event that takes it up is shown; behind them the question has its new number.

    asked = threading.Event()
    with edgeagent.Service(Script([PAY, "paid"]), state=tmp_path) as service:
        session = service.open(PAYER, Asked())
        session.post_words("pay")
        assert asked.wait(60)
    with edgeagent.Service(Script([PAY, "paid"]), state=tmp_path) as service:
        session = service.open(PAYER, Slow(), resume=session.id)
        (question,) = questions_in(session.state)
        assert session.decide(question.question_id, True, call_digest(question.tool, question.arguments))


def test_a_service_takes_no_more_sessions_than_it_may(tmp_path):
    with edgeagent.Service(Script([]), state=tmp_path, sessions_max=1) as service:
        first = service.open(PAYER)
        with pytest.raises(ConfigError, match="1 sessions are open"):
            service.open(PAYER)
        service.end(first)
        service.open(PAYER)


def test_a_session_of_a_service_whose_disk_fails_is_named(tmp_path):
    class Told(QuietDoor):
        def activity(self, text):
            told.append(text)
            failed.set()

    told, failed = [], threading.Event()
    with edgeagent.Service(Script(["one"]), state=tmp_path) as service:
        session = service.open(PAYER, Told())
        session._trace._closed = "the disk is gone"
        with pytest.raises(edgeagent.TraceError, match="the disk is gone"):
            session.post_words("first").answered.result(30)
        assert failed.wait(30)
        assert "the disk is gone" in str(service.failed[session.id])
        assert "is not served any more" in told[0]
        session._trace._closed = ""


def test_the_api_reference_is_complete_and_not_stale():
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "api.py", "--check"], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


PAGE = (ROOT / "docs" / "library.md").read_text()


def test_the_test_of_the_page_passes(monkeypatch, tmp_path):
    monkeypatch.setenv("EDGEAGENT_GREENHOUSE", str(tmp_path))
    block = next(b for b in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "scripted(" in b)
    names = {}
    exec(f"from examples.greenhouse import agent as AGENT\n{block}", names)
    names["test_the_valve_is_opened"]()


def test_the_first_lines_of_the_page_run(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("EDGEAGENT_STATE", str(tmp_path))
    (tmp_path / "one.json").write_text('["It is dry."]')
    block = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    exec(block.replace("smollm2", f"script:{tmp_path}/one.json"), {})
    assert capsys.readouterr().out.startswith("It is dry. () Outcome(kind='answered'")


def test_what_the_page_names_is_there():
    for owner, names in (
        (edgeagent, re.findall(r"edgeagent\.(\w+)", PAGE)),
        (edgeagent.Session, re.findall(r"session\.(\w+)", PAGE)),
        (edgeagent.Service, re.findall(r"service\.(\w+)", PAGE)),
    ):
        known = {*dir(owner), *edgeagent.__all__, "testing", "session", "toml"}
        assert set(names) <= known, set(names) - known


@pytest.mark.model
def test_the_example_shows_each_way(smollm2):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "library.py", str(smollm2)], capture_output=True, text=True, check=True
    )
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["ask", "decide", "stream", "asyncio"]
    assert "31" in done.stdout
    assert "north is open for 30 s" in done.stdout


@pytest.mark.parametrize("decide", [lambda q: "no", lambda q: 1, lambda q: ["yes"], lambda q: "\ud835", lambda q: None])
def test_only_true_is_a_yes_of_a_callback(tmp_path, decide):
    ran = []

    @tool(idempotent=False, confirm=True)
    def erase() -> None:
        """Erase."""
        ran.append(1)

    agent = Agent("eraser", "You erase.", (erase,))
    with edgeagent.open(agent, model=Script([call("erase"), "Done."]), state=tmp_path, decide=decide) as session:
        assert session.ask("Go.").outcome.kind == "refused"
    assert not ran


@pytest.mark.parametrize("text", [b"bytes", 5, None, ["a"]])
def test_what_is_said_is_a_text(tmp_path, text):
    with (
        edgeagent.open(Agent("a", "You.", ()), model=Script(["Hi."]), state=tmp_path) as session,
        pytest.raises(ConfigError, match="what a user says is a text"),
    ):
        session.ask(text)


@pytest.mark.parametrize("seed", [-1, 2**63, 2**70])
def test_a_seed_that_no_record_holds_is_refused(tmp_path, seed):
    with pytest.raises(ConfigError, match="seed is"):
        edgeagent.open(Agent("a", "You.", ()), model=Script(["Hi."]), state=tmp_path, seed=seed)
