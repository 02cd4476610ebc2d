"""What may be written now, by both engines: what the rules and the user's words leave of the arguments."""

from __future__ import annotations

import json
from typing import Annotated

import pytest
from msgspec import Meta

from bench.acceptors import Gbnf, Llguidance, vocabulary
from edgeagent import FromUser, GrammarError, tool
from edgeagent.codec.dialect import Plain
from edgeagent.core.from_user import narrowed
from edgeagent.grammar.calls import calls_of, grammar_of


@tool(idempotent=False)
def tell(
    to: Annotated[str, Meta(max_length=8), FromUser()],
    text: Annotated[str, FromUser()],
    times: Annotated[int, Meta(ge=1, le=9), FromUser()] = 1,
) -> None:
    """Tell somebody something."""


SAID = ('Tell Bob that the "mist" valve\nis stuck (3 times).',)


@pytest.fixture
def accepts(engine, request):
    """Whether the engine lets through a call with these arguments, after the user said `SAID`."""

    def gbnf(text):
        return Gbnf(text, vocabulary(request.getfixturevalue("smollm2")))

    def make(said=SAID, rules=()):
        limits = narrowed("tell", tell.from_user, said)
        text = grammar_of(calls_of([tell], (*limits, *rules)), Plain().frame, answer="never", engine=engine)
        held = (
            Llguidance(text) if engine == "llguidance" else Gbnf(text, vocabulary(request.getfixturevalue("smollm2")))
        )
        return lambda **arguments: held.accepts(json.dumps({"name": "tell", "arguments": arguments}))

    return make


def test_only_words_and_numbers_of_the_user_can_be_written(accepts):
    accepts = accepts()
    assert accepts(to="Bob", text='the "mist" valve\nis stuck')
    assert accepts(to="Bob", text="stuck", times=3)
    for wrong in ({"to": "Mallory"}, {"to": "Bo"}, {"to": ""}, {"to": " Bob"}, {"text": "the mist"}, {"times": 2}):
        assert not accepts(**({"to": "Bob", "text": "stuck"} | wrong)), wrong


def test_the_arguments_own_limits_still_hold(accepts):
    assert not accepts()(to="Bob that the", text="stuck")


def test_what_a_rule_narrows_holds_beside_it(accepts):
    accepts = accepts(rules=(("tell", "to", '{"enum":["Bob","Ann"]}'), ("tell", "to", '{"maxLength":3}')))
    assert accepts(to="Bob", text="stuck")
    assert not accepts(to="Ann", text="stuck")
    assert not accepts(to="stuck", text="stuck")


def test_an_optional_number_that_was_not_said_is_left_out(accepts):
    accepts = accepts(said=("Tell Bob.",))
    assert accepts(to="Bob", text="Tell")
    assert not accepts(to="Bob", text="Tell", times=1)


def test_a_long_text_is_still_a_grammar(accepts):
    words = " ".join(f"word{n}" for n in range(300))
    assert accepts(said=(words,))(to="word7", text="word7 word8 word9")


def test_rules_that_contradict_the_users_words_are_an_error_with_the_field():
    with pytest.raises(GrammarError, match="tell"):
        calls_of([tell], (*narrowed("tell", tell.from_user, SAID), ("tell", "to", '{"enum":["Ann"]}')))
