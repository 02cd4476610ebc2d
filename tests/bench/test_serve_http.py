"""Many clients at once: each is answered, or told when to come again. The whole, with a model: `bench.serve_http`."""

from __future__ import annotations

import pytest

from bench import serve_http
from edgeagent.runtime.model import Script
from tests.doors.http.serving import serving


@pytest.mark.parametrize(("model", "more"), [("garden", None), ("garden:model", {"max_tokens": 8})])
@pytest.mark.deep
def test_fifty_clients_are_answered_or_told_when_to_come_again(tmp_path, monkeypatch, model, more):
    monkeypatch.setattr(serve_http, "WAIT_MAX_S", 0.05)
    with serving(tmp_path, model=Script(("Good day.",) * 200), keys=None) as server:
        server.door.places.most = 8
        told = serve_http.crowd(server.port, model, 50, 1, more)
        assert not server.door.places.taken
    assert (told.answered, told.wrong) == (50, [])
    assert len(told.firsts) == 50 and told.tokens == 100


def test_what_is_neither_an_answer_nor_a_wait_is_told(tmp_path):
    with serving(tmp_path, model=Script(("Good day.",)), keys=None) as server:
        told = serve_http.crowd(server.port, "nobody", 1, 1)
    assert told.answered == 0 and "404" in told.wrong[0]
