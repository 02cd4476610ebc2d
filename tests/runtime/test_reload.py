"""Settings that are read again while sessions go on: what is taken, when, what is not, and what is said of it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from edgeagent.core.agent import Agent
from edgeagent.core.events import ModelAnswered, Reconfigured
from edgeagent.core.replay import replay
from edgeagent.runtime.folder import root_of
from edgeagent.runtime.model import Chain
from edgeagent.runtime.open import OpenRequest, settings_of
from edgeagent.runtime.reload import Reload, opened_to_reload
from edgeagent.runtime.serve import Service
from edgeagent.runtime.wiring import step_of, with_dialect
from edgeagent.trace.file import examine_file
from tests.driver.remote.peer import calling, peer, saying
from tests.runtime.test_models import WELL, Listener, asked_in, nobody

KEYED = 'endpoint = "https://x/v1"\nmodel = "m"\ncredential = "env:NONE_SUCH"'
RULE = '[[policy.rules]]\nrule = "at_most"\nn = 1\ntool = "depth"\n'


def written(folder: Path, order: str, more: str = "", **urls: str) -> Path:
    """An edgeagent.toml with models at these addresses."""
    models = "".join(f'[models.{name}]\nendpoint = "{url}"\nmodel = "m"\n' for name, url in urls.items())
    file = folder / "edgeagent.toml"
    file.write_text(f"model = {order}\n{models}\n{more}\n")
    return file


def opened(tmp_path: Path, file: Path, agent: Agent = WELL, **more):
    door = Listener()
    return door, *opened_to_reload(OpenRequest(agent=agent, config=file, state=tmp_path / "state", **more), door)


def events(session) -> list:
    return [record.event for record in examine_file(session.trace_path).records]


def test_another_model_is_asked_from_the_next_turn_on_and_the_trace_says_so(tmp_path):
    with peer(saying("One.")) as first, peer(saying("Two.")) as second:
        both = {"first": first.url, "second": second.url}
        door, session, reload = opened(tmp_path, written(tmp_path, '["first", "second"]', **both))
        session.say("How deep?")
        written(tmp_path, '["second", "first"]', **both)
        assert reload.take() == ["from the next turn on these models are asked: second,first"]
        session.say("How deep?")
        session.close()
        reload.close()
    found = events(session)
    assert door.said == ["One.", "Two."]
    assert asked_in(found) == [("first",), ("second",)]
    assert [each.models for each in found if isinstance(each, Reconfigured)] == ["second,first"]
    agent = with_dialect(WELL, "plain")
    replay(agent, examine_file(session.trace_path).records, step_of(agent))


def test_a_turn_ends_with_the_models_it_began_with(tmp_path):
    written_down, told = threading.Event(), []

    def first_answers(connection, number):
        if number == 1:
            told.extend(reload.take())  # In the middle of the turn.
            written_down.set()
        connection.sendall(calling(("depth", "{}")) if number == 1 else saying("One."))

    with peer(first_answers) as first, peer(saying("Two.")) as second:
        both = {"first": first.url, "second": second.url}
        door, session, reload = opened(tmp_path, written(tmp_path, '["first"]', **both))
        written(tmp_path, '["second"]', **both)
        session.say("How deep?")
        assert written_down.is_set() and "second" in told[0]
        session.say("How deep?")
        session.close()
        reload.close()
    assert door.said == ["One.", "Two."]
    kinds = [type(each) for each in events(session) if isinstance(each, ModelAnswered | Reconfigured)]
    assert kinds == [ModelAnswered, ModelAnswered, Reconfigured, ModelAnswered]


@pytest.mark.parametrize(
    ("order", "more", "said"),
    [
        ('["first", "gone"]', "", "model.order names gone"),
        ('["first"', "", "edgeagent.toml"),
        ('["first"]', '[[policy.rules]]\nrule = "at_most"\nn = 1\ntool = "nothing"\n', "nothing"),
        ('["own"]', '[models.own]\nname = "script:own.json"', "the weights of own are not loaded"),
        (
            '["first", "keyed"]',
            '[models.keyed]\nendpoint = "https://x/v1"\nmodel = "m"\ncredential = "env:NONE_SUCH"',
            "N",
        ),
    ],
)
def test_a_file_that_is_no_good_leaves_everything_as_it_was_and_says_why(tmp_path, order, more, said):
    with peer(saying("One.")) as first:
        door, session, reload = opened(tmp_path, written(tmp_path, '["first"]', first=first.url))
        taken = reload.taken
        written(tmp_path, order, more, first=first.url)
        (told,) = reload.take()
        assert told.startswith("the settings stay as they were: ") and said in told
        assert reload.taken == taken
        session.say("How deep?")
        session.close()
        reload.close()
    assert door.said == ["One."]
    assert not [each for each in events(session) if isinstance(each, Reconfigured)]


def test_what_holds_from_the_next_start_alone_is_said_and_the_rest_is_taken(tmp_path):
    with peer(saying("One.")) as first, peer(saying("Two.")) as second:
        both = {"first": first.url, "second": second.url}
        door, session, reload = opened(tmp_path, written(tmp_path, '["first"]', **both))
        file = written(tmp_path, '["second"]', **both)
        file.write_text(file.read_text().replace("model = [", "[model]\ncontext_tokens = 4096\norder = ["))
        assert reload.take() == [
            "model.context_tokens has changed, and that holds from the next start",
            "from the next turn on these models are asked: second",
        ]
        session.say("How deep?")
        session.close()
        reload.close()
    assert door.said == ["Two."]


def test_nothing_new_is_taken_from_a_file_that_has_not_changed(tmp_path):
    _, session, reload = opened(tmp_path, written(tmp_path, '["first"]', first=nobody()))
    assert reload.take() == ["nothing has changed that can be taken now"]
    session.close()
    reload.close()


def test_a_session_stays_under_the_rules_of_its_beginning_and_later_ones_have_the_new_ones(tmp_path):
    twice = [calling(("depth", "{}")), saying("7"), calling(("depth", "{}")), saying("7")]
    with peer(lambda connection, number: connection.sendall(twice[(number - 1) % 4])) as first:
        file = written(tmp_path, '["first"]', RULE, first=first.url)
        model = Chain(settings_of(OpenRequest(config=file)).model)
        with Service(model, state=tmp_path / "state") as service:
            taken = []
            request = OpenRequest(agent=WELL, config=file)
            sessions = lambda: list(service.sessions.values())  # noqa: E731
            reload = Reload([request], model, tmp_path, sessions, lambda model, now: taken.extend(now))
            old = service.open(WELL, config=file)
            written(tmp_path, '["first"]', first=first.url)
            told = reload.take()
            what = "0 of the operator's rules were added and 1 taken away"
            assert told == [f"{what}; sessions that begin from now on stand under these"]
            new = service.open(WELL, config=file, taken=taken[0])
            for session in (old, new):
                session.ask("How deep?")
                session.ask("How deep?")
            assert old.agent.policies != () and new.agent.policies == ()
            noted = [each.event for each in old.records() if isinstance(each.event, Reconfigured)]
            assert [(each.models, each.rules[:5]) for each in noted] == [("", "0 of ")]
        model.close()
        reload.close()


def test_an_endpoint_that_is_asked_no_more_is_let_go_of_with_its_last_session(tmp_path):
    with peer(saying("One.")) as first, peer(saying("Two.")) as second:
        both = {"first": first.url, "second": second.url}
        others = set(threading.enumerate())
        _, session, reload = opened(tmp_path, written(tmp_path, '["first"]', **both))
        before = {each for each in threading.enumerate() if each.name == "remote models"} - others
        written(tmp_path, '["second"]', **both)
        reload.take()
        (old,) = before
        old.join(60)
        assert not old.is_alive()
        session.close()
        reload.close()
    assert root_of(session.directory) == tmp_path / "state"
