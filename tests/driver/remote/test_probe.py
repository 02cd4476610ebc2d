"""An endpoint is tried before anything depends on it: what works is told, and what is wrong has its remedy."""

from __future__ import annotations

import json
import socket

import pytest

from edgeagent.driver.remote.endpoint import Endpoint
from edgeagent.driver.remote.probe import probe
from edgeagent.errors import ModelError
from tests.driver.remote.peer import calling, peer, refusing, saying


def listing(*names: str) -> bytes:
    body = json.dumps({"data": [{"id": name} for name in names]}).encode()
    return refusing(200, body, "Content-Type: application/json")


def found(answers) -> dict[str, tuple[bool, str]]:
    with peer(lambda connection, number: connection.sendall(answers[number - 1])) as served:
        tried = probe(Endpoint(url=served.url, model="m"))
        return {each.what: (each.works, each.found) for each in tried}


def test_all_that_works_is_told():
    told = found(
        [
            listing("m", "n"),
            saying("Yes of course."),
            calling(("paint", '{"colour":"red"}')),
            saying('{"colour": "red"}'),
        ]
    )
    assert {what: works for what, (works, _) in told.items()} == dict.fromkeys(
        ("models", "words", "stream", "usage", "tools", "schema"), True
    )
    assert "m, n" in told["models"][1]


def test_what_is_missing_is_told_and_fails_nothing():
    told = found([listing("x"), saying("Yes."), saying("Red!"), refusing(400, b'{"error": {"message": "no schemas"}}')])
    assert (told["models"][0], told["tools"][0], told["schema"][0]) == (False, False, False)
    assert "no schemas" in told["schema"][1]


def test_a_server_without_a_list_of_models_is_tried_all_the_same():
    told = found([refusing(404), saying("Yes yes."), saying("Red!"), saying("Red!")])
    assert told["words"][0]


def test_a_wrong_key_and_a_model_that_is_not_there_say_so():
    with pytest.raises(ModelError, match="name the right key"):
        found([refusing(401, b'{"error": {"message": "no"}}')])
    with pytest.raises(ModelError, match=r"no model m.*has n"):
        found([listing("n"), refusing(404, b'{"error": {"message": "no model m"}}')])


def test_a_server_that_is_not_there_says_so():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(ModelError, match="unreachable"):
            list(probe(Endpoint(url=f"http://127.0.0.1:{unused.getsockname()[1]}/v1", model="m")))
