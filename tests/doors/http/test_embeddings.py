"""Embeddings over HTTP: the vectors of the embedder that is there, and refusals that say how to have one."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from edgeagent.driver.meaning.embedder import Embedder
from edgeagent.models.catalogue import EMBEDDER
from tests.doors.http.serving import serving
from tests.driver.meaning import test_embedder

PATH = "/v1/embeddings"


@pytest.fixture(scope="module")
def embedding(tmp_path_factory):
    """A server where a tiny embedder stands in the models' folder."""
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_embedder, "TOKENS", 24)
        content = test_embedder.file_bytes()
    (folder / f"{EMBEDDER}.e5").write_bytes(content)
    about = {"sha256": "0", "size_bytes": len(content), "source": "a test", "licence": "none", "instruct": False}
    (folder / f"{EMBEDDER}.json").write_text(json.dumps(about))
    with pytest.MonkeyPatch.context() as patch, serving(tmp_path_factory.mktemp("served")) as server:
        patch.setenv("EDGEAGENT_MODELS", str(folder))
        server.embedder = Embedder(folder / f"{EMBEDDER}.e5")
        yield server


def ask(server, said, **more):
    return server.ask("POST", PATH, {"model": EMBEDDER, "input": said} | more)


def test_texts_come_back_as_their_vectors_in_both_forms(embedding):
    wanted = [embedding.embedder.vector(f"query: {text}")[0] for text in ("valve", "gate")]
    status, said = ask(embedding, ["valve", "gate"])
    assert status == 200 and said["usage"]["prompt_tokens"] > 2
    np.testing.assert_allclose([each["embedding"] for each in said["data"]], wanted, rtol=1e-6)
    coded = ask(embedding, "gate", encoding_format="base64")[1]["data"][0]["embedding"]
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(coded), "<f4"), wanted[1])


def test_a_text_with_its_own_prefix_is_taken_as_it_is(embedding):
    one, other = (ask(embedding, text)[1]["data"][0]["embedding"] for text in ("query: ab", "ab"))
    assert one == other != ask(embedding, "passage: ab")[1]["data"][0]["embedding"]


def test_the_embedder_is_listed_and_writes_nothing(embedding):
    assert EMBEDDER in [each["id"] for each in embedding.ask("GET", "/v1/models")[1]["data"]]
    body = {"model": EMBEDDER, "messages": [{"role": "user", "content": "Hello"}]}
    assert embedding.ask("POST", "/v1/chat/completions", body)[1]["error"]["param"] == "model"


@pytest.mark.parametrize(
    ("said", "more", "param"),
    [
        ("a" * 40, {}, "input"),
        ("", {}, "input"),
        ([], {}, "input"),
        (["a"] * 33, {}, "input"),
        ([[1, 2]], {}, "input"),
        ([1, 2], {}, "input"),
        ("a", {"dimensions": 8}, "dimensions"),
        ("a", {"model": "garden:model"}, "model"),
    ],
)
def test_what_cannot_be_embedded_is_a_400_that_names_it(embedding, said, more, param):
    status, answer = ask(embedding, said, **more)
    assert (status, answer["error"]["param"]) == (400, param)


def test_without_an_embedder_it_is_said_how_to_have_one(server, monkeypatch, tmp_path):
    monkeypatch.setenv("EDGEAGENT_MODELS", str(tmp_path))
    status, said = ask(server, "a")
    assert status == 400 and f"edgeagent model pull {EMBEDDER}" in said["error"]["message"]
