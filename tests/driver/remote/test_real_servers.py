"""The greenhouse on real servers: the same events as on a loaded model, streamed or not; replay needs no server."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from edgeagent.core.effects import CallTool
from edgeagent.core.events import ModelAnswered, ModelFailed
from edgeagent.driver.remote.endpoint import Endpoint
from edgeagent.driver.remote.probe import probe
from edgeagent.runtime.door import QuietDoor
from edgeagent.runtime.open import OpenRequest, open_session
from edgeagent.trace.file import examine_file
from tests.driver.remote.asking import ask, asking
from tests.driver.remote.real import real_server

pytestmark = [pytest.mark.slow, pytest.mark.model]

GREENHOUSE = str(Path(__file__).parents[3] / "examples" / "greenhouse.py")
WORDS = ("Open the north valve for 30 seconds.", "Don't close it.", "What is the CO2 level?")
SERVERS = ("llama.cpp", "llama-cpp-python")


class Watcher(QuietDoor):
    """Keeps what happened and what it led to, without times and the text of calls, which has its own blanks."""

    def __init__(self):
        self.seen, self.streamed = [], []

    def watch(self, event, state, effects):
        calls = [(each.tool, each.arguments) for each in effects if isinstance(each, CallTool)]
        told = (event.effect_id, event.text) if isinstance(event, ModelAnswered) and not calls else ()
        self.seen.append((type(event).__name__, told, [type(each).__name__ for each in effects], calls))

    def stream(self, text):
        self.streamed.append(text)


@pytest.fixture(autouse=True)
def _own_greenhouse(tmp_path, monkeypatch):
    monkeypatch.setenv("EDGEAGENT_GREENHOUSE", str(tmp_path / "house"))


@pytest.fixture(scope="module", params=SERVERS)
def served(request, smollm2):
    with real_server(request.param, smollm2) as url:
        yield request.param, url


def session(folder: Path, **more) -> tuple[Watcher, Path]:
    door = Watcher()
    opened = open_session(OpenRequest(agent=GREENHOUSE, state=folder, timeout=600, **more), door)
    for text in WORDS:
        opened.say(text)
    opened.close()
    return door, opened.trace_path


@pytest.fixture(scope="module")
def here(smollm2, tmp_path_factory):
    """What happens where the model is loaded."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("here")
        patch.setenv("EDGEAGENT_GREENHOUSE", str(folder / "house"))
        return session(folder, model=str(smollm2))[0].seen


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("calls", ["schema", "object", "grammar"])
def test_the_same_happens_as_on_a_loaded_model_and_replays_without_a_server(served, here, tmp_path, calls, stream):
    _, url = served
    settings = tmp_path / "edgeagent.toml"
    settings.write_text(
        f'model = ["lan"]\n[models.lan]\nendpoint = "{url}"\nmodel = "smollm2"\ncalls = "{calls}"\n'
        f"stream = {str(stream).lower()}\nfirst_event_s = 300\n"
    )
    door, trace = session(tmp_path, config=settings)
    assert door.seen == here
    assert any(calls for *_, calls in door.seen)
    done = subprocess.run(
        [sys.executable, "-m", "edgeagent", "replay", str(trace)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    usage = [each.event.usage for each in examine_file(trace).records if isinstance(each.event, ModelAnswered)]
    assert usage[0].prompt > 100 and usage[0].completion > 10


def test_an_ask_is_cancelled_in_the_middle_of_its_words_and_the_next_is_answered(served):
    _, url = served
    with asking(url, first_event_s=300) as asked:
        first = ask("Tell me a very long story.", tools=(), choice="answer", max_tokens=2000, timeout_ms=0)
        asked.driver.submit(first, asked.events.put)
        while not asked.shown:
            threading.Event().wait(0.02)
        asked.driver.cancel(1)
        assert asked.events.get(timeout=60).stop == "cancelled"
        second = ask("Say yes.", tools=(), choice="answer", max_tokens=16, effect_id=2, timeout_ms=0)
        assert isinstance(asked.event(second, wait_s=300), ModelAnswered)


def test_a_prompt_that_does_not_fit_is_told_apart(served):
    name, url = served
    stream = name == "llama.cpp"  # The other's stream ends there without a word.
    with asking(url, stream=stream, first_event_s=300) as asked:
        event = asked.event(ask("word " * 6000, tools=(), choice="answer", timeout_ms=0), wait_s=300)
    assert isinstance(event, ModelFailed)
    assert event.reason == "context_full", event.message


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_llama_cpp_speaks_all_three_apis(smollm2, stream):
    with real_server("llama.cpp", smollm2) as url:
        for api in ("chat", "responses", "messages"):
            with asking(url, api=api, stream=stream, first_event_s=300) as asked:
                event = asked.event(ask("Hello!", tools=(), choice="answer", max_tokens=24, timeout_ms=0), wait_s=300)
            assert isinstance(event, ModelAnswered), (api, event)
            assert event.text.strip() and event.usage.prompt and event.usage.completion


def test_the_probe_tells_what_a_server_can(served):
    name, url = served
    found = {each.what: each.works for each in probe(Endpoint(url=url, model="smollm2", first_event_s=300))}
    assert (found["models"], found["words"], found["stream"]) == (True, True, True)
    assert found["schema"] is (name == "llama.cpp")
