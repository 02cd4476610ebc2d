"""Models for one use: which is asked for what, what is refused, and what a session keeps of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgeagent.core.effects import AskModel
from edgeagent.core.replay import replay
from edgeagent.core.values import Message
from edgeagent.doors.cli.main import cli
from edgeagent.driver.order import use_of
from edgeagent.errors import ConfigError, ModelError
from edgeagent.runtime.config import read_settings
from edgeagent.runtime.open import OpenRequest, settings_of
from edgeagent.runtime.tiers import embedder_of, own_weights, uses_told
from edgeagent.runtime.wiring import step_of, with_dialect
from edgeagent.trace.file import examine_file
from tests.driver.remote.peer import calling, peer, saying
from tests.runtime.test_models import WELL, ask, asked_in, nobody

USER, RESULT = Message("user", "How deep?"), Message("tool", "7", tool="depth")


def an_ask(*messages: Message, choice="either", tools=("depth",)) -> AskModel:
    return AskModel(1, messages, tools, choice, 64, 0, 7)


@pytest.mark.parametrize(
    ("asked", "use"),
    [
        (an_ask(USER), "choose"),
        (an_ask(USER, RESULT), "answer"),
        (an_ask(USER, RESULT, choice="call"), "choose"),
        (an_ask(USER, choice="answer"), "answer"),
        (an_ask(USER, tools=()), "answer"),
        (an_ask(), "choose"),
    ],
)
def test_what_an_ask_is_for_follows_from_the_ask(asked, use):
    assert use_of(asked) == use


def tiers(folder: Path, uses: str, **urls: str) -> Path:
    """An edgeagent.toml with models at these addresses, and these uses."""
    models = "".join(f'[models.{name}]\nendpoint = "{url}"\nmodel = "m"\n' for name, url in urls.items())
    file = folder / "edgeagent.toml"
    file.write_text(f"[model]\norder = {json.dumps(list(urls))}\n[model.for]\n{uses}\n{models}")
    return file


def test_one_model_chooses_and_another_says_what_came_of_it(tmp_path):
    with peer(calling(("depth", "{}"))) as small, peer(saying("Seven metres.")) as large:
        file = tiers(tmp_path, 'choose = "small"\nanswer = "large"', small=small.url, large=large.url)
        said, events = ask(tmp_path, file, "How deep?")
        assert (len(small.requests), len(large.requests)) == (1, 1)
    assert (said, asked_in(events)) == (["Seven metres."], [("small",), ("large",)])


def test_an_answer_falls_back_by_its_own_order(tmp_path):
    with peer(calling(("depth", "{}"))) as small, peer(saying("Seven.")) as other:
        uses = 'choose = "small"\nanswer = ["gone", "other"]'
        file = tiers(tmp_path, uses, small=small.url, gone=nobody(), other=other.url)
        said, events = ask(tmp_path, file, "How deep?")
    assert (said, asked_in(events)) == (["Seven."], [("small",), ("gone", "other")])


def test_what_is_not_named_for_a_use_goes_by_the_order(tmp_path):
    with peer(calling(("depth", "{}"))) as first, peer(saying("Seven.")) as large:
        file = tiers(tmp_path, 'answer = "large"', first=first.url, large=large.url)
        said, events = ask(tmp_path, file, "How deep?")
    assert (said, asked_in(events)) == (["Seven."], [("first",), ("large",)])


def test_the_trace_replays_without_any_server_and_the_table_says_who_was_asked(tmp_path):
    with peer(calling(("depth", "{}"))) as small, peer(saying("Seven metres.")) as large:
        file = tiers(tmp_path, 'choose = "small"\nanswer = "large"', small=small.url, large=large.url)
        ask(tmp_path, file, "How deep?")
    (trace,) = (tmp_path / "state" / "sessions").glob("*/trace.cbor")
    agent = with_dialect(WELL, "plain")
    replay(agent, examine_file(trace).records, step_of(agent))
    shown = CliRunner().invoke(cli, ["trace", "show", str(trace)], env={"COLUMNS": "400"})
    assert "large: Seven metres." in shown.output


def test_a_session_stays_with_the_models_of_its_beginning(tmp_path):
    with peer(calling(("depth", "{}"))) as small, peer(saying("Seven.")) as large:
        file = tiers(tmp_path, 'choose = "small"\nanswer = "large"', small=small.url, large=large.url)
        ask(tmp_path, file, "How deep?")
        file.write_text(file.read_text().replace('answer = "large"\n', ""))
        _, events = ask(tmp_path, file, "How deep?", last=True)
    assert asked_in(events)[-2:] == [("small",), ("large",)]


def test_a_model_named_on_the_command_line_stands_above_all_that_write(tmp_path):
    with peer(saying("Seven.")) as large:
        file = tiers(tmp_path, 'choose = "gone"\nembed = "e5-small"', gone=nobody(), large=large.url)
        named = settings_of(OpenRequest(config=file, model="large")).model
    assert (uses_told(named), embedder_of(named)) == ("choose: large; answer: large; embed: e5-small", "e5-small")


def test_what_needs_weights_takes_those_that_choose(tmp_path):
    file = tmp_path / "edgeagent.toml"
    file.write_text(
        '[model.for]\nchoose = ["lan", "own"]\n[models.lan]\nendpoint = "https://x/v1"\nmodel = "m"\n'
        '[models.own]\nname = "gemma3-270m"\n'
    )
    assert own_weights(settings_of(OpenRequest(config=file)).model, "is tried").name == "gemma3-270m"


LAN = '[models.lan]\nendpoint = "https://x/v1"\nmodel = "m"\n'


@pytest.mark.parametrize(
    ("uses", "models", "named"),
    [
        ('anser = "lan"', LAN, "no use model.for.anser; did you mean model.for.answer?"),
        ('write = "lan"', LAN, "no use model.for.write. There are: answer, choose, judge, embed"),
        ('answer = "wan"', LAN, "model.for.answer names wan; there are: lan. Write [models.wan]"),
        ('answer = ["lan", "wan"]', LAN, "model.for.answer names wan"),
        ("answer = []", LAN, "model.for.answer names no model"),
        ("answer = 3", LAN, "for"),
        ('judge = "lan"', LAN, "model.for.judge names lan, which is behind an endpoint"),
        ('judge = "own"', LAN + '[models.own]\nname = "smollm2"', "no model would ask a judge"),
        (
            'judge = "said"',
            LAN + '[models.said]\nname = "script:x.json"',
            "names said, which is a script",
        ),
        ('embed = "lan"', LAN, "model.for.embed names lan, which is behind an endpoint"),
        ('embed = ["e5-small", "lan"]', LAN, "model.for.embed is one model, and here are 2"),
        ('embed = "e6"', LAN, "model.for.embed names e6"),
    ],
)
def test_what_is_wrong_with_a_use_is_said_by_its_key_and_file(tmp_path, uses, models, named):
    file = tmp_path / "edgeagent.toml"
    file.write_text(f"[model.for]\n{uses}\n{models}\n")
    with pytest.raises(ConfigError) as refused:
        read_settings(file, beside=None)
    assert str(file) in str(refused.value) and named in str(refused.value)


def test_uses_that_are_no_section_are_refused(tmp_path):
    file = tmp_path / "edgeagent.toml"
    file.write_text('[model]\nfor = "lan"\n')
    with pytest.raises(ConfigError, match=r"model\.for is a section"):
        read_settings(file, beside=None)


def test_an_embedder_that_was_not_pulled_is_missed_by_its_key(tmp_path, monkeypatch):
    monkeypatch.setenv("EDGEAGENT_MODELS", str(tmp_path / "none"))
    uses = 'embed = "e5-small"'
    with peer(saying("Seven.")) as served:
        file = tiers(tmp_path, uses, lan=served.url)
        file.write_text(file.read_text() + 'calls = "schema"\n')
        with pytest.raises(ModelError, match=r"model\.for\.embed: e5-small is not here: edgeagent model pull"):
            ask(tmp_path, file, "How deep?")


def test_check_tells_which_models_are_asked_for_what(tmp_path):
    (tmp_path / "well.py").write_text('from edgeagent import Agent\nwell = Agent("well", "You watch a well.", ())\n')
    with peer(saying("Seven.")) as served:
        file = tiers(tmp_path, 'answer = ["far", "lan"]', lan=served.url, far=nobody())
        told = CliRunner().invoke(cli, ["check", str(tmp_path / "well.py"), "--config", str(file)])
    assert "choose: lan, else far; answer: far, else lan" in " ".join(told.output.split())


@pytest.mark.model
@pytest.mark.deep
def test_weights_here_judge_what_is_planned_for_a_model_elsewhere(tmp_path, smollm2):
    call = '{"name": "depth", "arguments": {}}'
    with peer(saying(call)) as served:
        file = tiers(tmp_path, 'judge = "own"', lan=served.url)
        file.write_text(file.read_text() + f'calls = "schema"\n[models.own]\nname = "{smollm2}"\n')
        said, events = ask(tmp_path, file, "How deep is the well?")
        weighed = dict(next(each for each in events if getattr(each, "scores", ())).scores)
        file.write_text(file.read_text().replace('judge = "own"', ""))
        _, without = ask(tmp_path, file, "How deep is the well?")
    unweighed = dict(next(each for each in without if getattr(each, "scores", ())).scores)
    assert "7" in said[0]
    assert set(weighed) == set(unweighed) and weighed != unweighed
    assert asked_in(events) == [("lan",), ("lan",)]
