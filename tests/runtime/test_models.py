"""Models with names of the operator's: which there are, in which order they are asked, and what is said of it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import Say
from edgeagent.core.events import ModelAnswered
from edgeagent.driver.remote.endpoint import Endpoint
from edgeagent.errors import ConfigError
from edgeagent.policy.rules import stays_here
from edgeagent.runtime.config import NamedModel, read_settings
from edgeagent.runtime.door import QuietDoor
from edgeagent.runtime.open import OpenRequest, open_session
from edgeagent.trace.file import examine_file
from tests.driver.remote.peer import calling, peer, saying


@tool(idempotent=True, effect="read", trusted=True)
def depth() -> int:
    """Measure how deep the well is."""
    return 7


@tool(idempotent=True, effect="read", trusted=True, sensitive=True)
def read_pin() -> str:
    """Read the pin of the door."""
    return "4711"


WELL = Agent("well", "You watch a well.", (depth,))
SAFE = Agent("safe", "You watch a safe.", (depth, read_pin), policies=[stays_here(of="sensitive")])
SCRIPT = [json.dumps({"name": "depth", "arguments": {}}), "Seven metres.", "It is locked."]


class Listener(QuietDoor):
    """Keeps what is said."""

    def __init__(self):
        self.said = []

    def watch(self, event, state, effects):
        self.said += [effect.text for effect in effects if isinstance(effect, Say)]


def nobody() -> str:
    """An address where nothing listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}/v1"


def settings(folder: Path, url: str, *, order: str = '["lan", "local"]', more: str = "") -> Path:
    """An edgeagent.toml with a model on the LAN and one here, which follows a script."""
    script = folder / "script.json"
    script.write_text(json.dumps(SCRIPT))
    file = folder / "edgeagent.toml"
    file.write_text(
        f'model = {order}\n[models.lan]\nendpoint = "{url}"\nmodel = "m"\n{more}\n'
        f'[models.local]\nname = "script:{script}"\n'
    )
    return file


def ask(tmp_path: Path, file: Path, *texts: str, agent: Agent = WELL, **more):
    """What is said to each of the texts, and the events."""
    door = Listener()
    session = open_session(OpenRequest(agent=agent, config=file, state=tmp_path / "state", **more), door)
    for text in texts:
        session.say(text)
    session.close()
    return door.said, [record.event for record in examine_file(session.trace_path).records]


def asked_in(events) -> list[tuple[str, ...]]:
    return [tuple(name for name, _ in each.asked) for each in events if isinstance(each, ModelAnswered)]


def test_the_first_model_that_is_reached_answers_all_of_a_turn(tmp_path):
    answers = [calling(("depth", "{}")), saying("It is seven deep.")]
    with peer(lambda connection, number: connection.sendall(answers[number - 1])) as served:
        said, events = ask(tmp_path, settings(tmp_path, served.url), "How deep?")
    assert said == ["It is seven deep."]
    assert asked_in(events) == [("lan",), ("lan",)]


def test_the_next_answers_where_the_first_is_not_reached_and_the_trace_says_why(tmp_path):
    said, events = ask(tmp_path, settings(tmp_path, nobody()), "How deep?")
    assert said == ["Seven metres."]
    assert asked_in(events) == [("lan", "local"), ("lan", "local")]
    whys = [each.asked[0][1] for each in events if isinstance(each, ModelAnswered)]
    assert len(whys) == 2 and all("127.0.0.1" in why for why in whys)  # With the milliseconds of each try.


def test_a_model_that_fails_between_two_asks_of_a_turn_is_stood_in_for(tmp_path):
    file = settings(tmp_path, "URL")
    (tmp_path / "script.json").write_text('["Seven metres, then."]')
    with peer(calling(("depth", "{}"))) as served:
        file.write_text(file.read_text().replace("URL", served.url))

        def once(connection, number):
            connection.sendall(calling(("depth", "{}")) if number == 1 else b"HTTP/1.1 500 No\r\n\r\n")

        served._answer = once
        said, events = ask(tmp_path, file, "How deep?")
    assert (said, asked_in(events)) == (["Seven metres, then."], [("lan",), ("lan", "local")])


def test_a_call_that_does_not_decode_goes_back_once_with_the_error(tmp_path):
    answers = [calling(("depth", '{"unit": "m"}')), calling(("depth", '{"unit')), calling(("depth", "{}")), saying("7")]
    with peer(lambda connection, number: connection.sendall(answers[number - 1])) as served:
        said, _ = ask(tmp_path, settings(tmp_path, served.url), "How deep?")
        told = [body["messages"][-1]["content"] for body in served.bodies]
    assert said == ["7"]
    assert "unit" in told[1] and "refused" in told[1]
    assert "not one JSON call" in told[2]
    assert told[3] == "7"


def test_a_session_goes_on_with_the_models_it_was_begun_with(tmp_path):
    file = settings(tmp_path, nobody())
    ask(tmp_path, file, "How deep?")
    said, events = ask(tmp_path, file, "And the lid?", last=True)
    assert said == ["It is locked."]
    assert asked_in(events)[-1] == ("lan", "local")


def test_after_a_value_that_stays_only_the_model_here_is_asked(tmp_path):
    file = settings(tmp_path, "URL", more="here = false")
    (tmp_path / "script.json").write_text('["The pin is set.", "Yes."]')
    with peer(calling(("read_pin", "{}"))) as served:
        file.write_text(file.read_text().replace("URL", served.url))
        said, events = ask(tmp_path, file, "Is the pin set?", "Sure?", agent=SAFE)
        assert served.accepted == 1
    assert said == ["The pin is set.", "Yes."]
    assert asked_in(events) == [("lan",), ("lan", "local"), ("lan", "local")]
    (_, why), _ = events[-1].asked
    assert "was not asked: what read_pin was given or gave stays on this device" in why


def test_a_value_that_stays_fails_the_turn_where_no_model_is_here(tmp_path):
    file = settings(tmp_path, "URL", order='"lan"', more="here = false")
    with peer(calling(("read_pin", "{}"))) as served:
        file.write_text(file.read_text().replace("URL", served.url))
        (said,), _ = ask(tmp_path, file, "Is the pin set?", agent=SAFE)
        assert served.accepted == 1
    assert "what read_pin was given or gave stays on this device" in said


def test_a_model_named_on_the_command_line_stands_above_the_order(tmp_path):
    said, events = ask(tmp_path, settings(tmp_path, nobody()), "How deep?", model="local")
    assert (said, asked_in(events)) == (["Seven metres."], [(), ()])


def test_an_endpoint_may_be_named_without_any_settings(tmp_path):
    with peer(saying("Seven.")) as served:
        said, _ = ask(tmp_path, None, "How deep?", endpoint=served.url, model="m")
        assert said == ["Seven."]
        said, _ = ask(tmp_path, None, "And now?", last=True)  # The session knows its endpoint.
    assert said == ["Seven."]


def test_a_session_may_go_on_with_another_endpoint(tmp_path):
    with peer(saying("Seven.")) as served, peer(saying("Eight.")) as other:
        ask(tmp_path, None, "How deep?", endpoint=served.url, model="m")
        with pytest.raises(ConfigError, match="--model NAME"):
            ask(tmp_path, None, "And now?", last=True, endpoint=other.url)
        said, _ = ask(tmp_path, None, "And now?", last=True, endpoint=other.url, model="n")
    assert said == ["Eight."]


def test_a_price_is_paid_until_the_money_is_spent(tmp_path):
    answers = [calling(("depth", "{}")), saying("Never asked for.")]
    with peer(lambda connection, number: connection.sendall(answers[number - 1])) as served:
        file = settings(tmp_path, served.url, order='"lan"', more="price = {input = 1000, output = 1000}")
        (said,), _ = ask(tmp_path, file, "How deep?", max_cost=0.001)
        assert len(served.requests) == 1
    assert "the limit of money is reached" in said


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('model = ["lan", "no"]\n[models.lan]\nname = "smollm2"', "names no; there are: lan"),
        ('[models.lan]\nendpoint = "https://x/v1"', "models.lan.model is missing"),
        ('[models.lan]\nname = "a"\nendpoint = "https://x/v1"', "models.lan: give either"),
        ('[models.lan]\nname = "a"\ncredential = "env:KEY"', "models.lan.credential is for models behind an endpoint"),
        ('[models.lan]\nendpoint = "http://x/v1"\nmodel = "m"', "models.lan.plain_http"),
        (
            '[models.lan]\nendpoint = "https://x/v1"\nmodel = "m"\ncredential = "sk-123"',
            "models.lan.credential: a credential is",
        ),
        ('[models.lan]\nendpoint = "https://x/v1"\nmodle = "m"', "did you mean models.lan.model"),
        ('[models.lan]\nendpoint = "https://x/v1"\nmodel = "m"\nprice = {input = -1}', "models.lan: Exp"),
        ('[models.lan]\nendpoint = "https://x/v1"\nmodel = "m"\nprice = {input = inf}', "price"),
        ('[models."a b"]\nname = "a"', "a name is letters, digits"),
        ("[model]\nchain = []", "chain"),
        ('[models]\nlan = "x"', "models.lan"),
    ],
)
def test_what_is_wrong_with_a_model_is_said_by_its_key(tmp_path, text, named):
    file = tmp_path / "edgeagent.toml"
    file.write_text(text + "\n")
    with pytest.raises(ConfigError) as refused:
        read_settings(file, beside=None)
    assert named in str(refused.value)
    assert "sk-123" not in str(refused.value)


def test_files_of_a_model_are_seen_from_the_folder_of_the_settings(tmp_path, monkeypatch):
    (tmp_path / "lan.pem").write_text("")
    file = tmp_path / "edgeagent.toml"
    file.write_text('[models.lan]\nendpoint = "https://x/v1"\nmodel = "m"\nca = "lan.pem"\ncredential = "file:key"\n')
    monkeypatch.chdir("/")
    found = read_settings(file, beside=None).models["lan"]
    assert (found.ca, found.credential) == (str(tmp_path / "lan.pem"), f"file:{tmp_path / 'key'}")


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"endpoint": "https://x/v1"}, "--model NAME"),
        ({"endpoint": "https://x/v1", "model": "a b"}, "in edgeagent.toml alone"),
        ({"credential": "env:KEY", "model": "m"}, "--endpoint URL"),
        ({"endpoint": "https://x/v1", "model": "m", "credential": "sk-123"}, "never the key itself"),
        ({"endpoint": "http://x/v1", "model": "m"}, "use https"),
        ({"endpoint": "https://x/v1", "model": "m", "credential": "env:NO_SUCH_KEY"}, "no variable NO_SUCH_KEY"),
    ],
)
def test_what_is_wrong_with_an_endpoint_on_the_command_line_is_said(tmp_path, more, named):
    with pytest.raises(ConfigError) as refused:
        ask(tmp_path, None, "How deep?", **more)
    assert named in str(refused.value)
    assert "sk-123" not in str(refused.value)


def test_what_settings_say_of_an_endpoint_is_what_an_endpoint_has():
    of_endpoint = {each.name: each.default for each in msgspec.structs.fields(Endpoint)}
    of_settings = {each.name: each.default for each in msgspec.structs.fields(NamedModel)}
    shared = of_endpoint.keys() - {"url", "model"}
    assert shared <= of_settings.keys()
    assert {name: of_settings[name] for name in shared - {"extra"}} == {n: of_endpoint[n] for n in shared - {"extra"}}


def test_what_to_install_is_said_where_there_is_no_curl(tmp_path):
    file = settings(tmp_path, "http://127.0.0.1:9/v1", order='"lan"')
    code = (
        "import sys; sys.modules['pycurl'] = None\n"
        "from pathlib import Path\n"
        "from edgeagent.runtime.model import load_model\n"
        "from edgeagent.runtime.open import OpenRequest, settings_of\n"
        f"load_model(settings_of(OpenRequest(config=Path({str(file)!r}))).model, shared=True)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "ConfigError: a model behind an endpoint needs pycurl" in done.stderr
    assert "edgeagent[remote]" in done.stderr and "apt install python3-pycurl" in done.stderr
