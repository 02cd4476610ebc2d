"""Numbers of the request are guessed, and the text is the model's nevertheless."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest

pytest.importorskip("llama_cpp")
pytest.importorskip("llguidance")

from edgeagent.driver.llama.decode import Generation, Wanted, generate
from edgeagent.driver.llama.draft import Draft, Luck
from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.grammars import Compiled, Grammars
from edgeagent.grammar.llg import calls_grammar, value_grammar

pytestmark = pytest.mark.model


def guessed(engine: Engine, grammars: Grammars, schema: object, request: str, luck: Luck | None = None) -> str:
    draft = Draft(luck or Luck(), request, partial(engine.tokenize, special=False, bos=False))
    return engine.detokenize(draft.guess(grammars.compile(value_grammar(schema)).fresh())).decode()  # type: ignore[arg-type]


def test_the_first_number_that_fits_is_guessed(engine: Engine, grammars: Grammars) -> None:
    schema = {"type": "integer", "minimum": 0, "maximum": 15}
    assert guessed(engine, grammars, schema, "Wait 30 s, then set channel 3 to 21.5.") == "3"


def test_digits_inside_names_are_no_numbers(engine: Engine, grammars: Grammars) -> None:
    assert guessed(engine, grammars, {"type": "integer"}, "Send it to ttyUSB0 and v1.2.3.") == ""


def test_in_free_text_nothing_is_guessed(engine: Engine, grammars: Grammars) -> None:
    draft = Draft(Luck(), "Say 30.", partial(engine.tokenize, special=False, bos=False))
    constraint = grammars.compile(value_grammar({"type": "string", "maxLength": 9})).fresh()
    constraint.consume(engine.tokenize('"q', special=False, bos=False))
    assert draft.guess(constraint) == ()


def test_a_number_is_guessed_once(engine: Engine, grammars: Grammars) -> None:
    draft = Draft(Luck(), "Set 3 to 5.", partial(engine.tokenize, special=False, bos=False))
    constraint = grammars.compile(value_grammar({"type": "integer"})).fresh()
    assert [engine.detokenize(draft.guess(constraint)) for _ in range(3)] == [b"3", b"5", b""]


def test_a_model_that_does_not_copy_is_left_alone(engine: Engine, grammars: Grammars) -> None:
    luck = Luck()
    luck.note(False)
    assert guessed(engine, grammars, {"type": "integer"}, "Wait 30 s.", luck) == "30"
    luck.note(False)
    assert guessed(engine, grammars, {"type": "integer"}, "Wait 30 s.", luck) == ""


@pytest.fixture
def calls(grammars: Grammars, greenhouse: SimpleNamespace) -> Compiled:
    text = calls_grammar([("set_setpoint", greenhouse.TOOLS["set_setpoint"])], greenhouse.FRAME)
    return grammars.compile(text, keep=False)


ASKED = ("Set channel 3 to 21.5 degrees.", "Channel 12 at 7 degrees.", "Channel 4, 8.25.")


def written(engine: Engine, calls: Compiled, request: str) -> Generation:
    engine.forget()
    prompt = f"<|im_start|>user\n{request}<|im_end|>\n<|im_start|>assistant\n"
    tokens = engine.tokenize(prompt, special=True, bos=engine.adds_bos)
    return generate(engine, tokens, Wanted(grammar=calls, max_tokens=64, copied=request))


def test_what_the_model_copies_is_evaluated_along(engine: Engine, calls: Compiled) -> None:
    done = written(engine, calls, ASKED[0])
    assert '"channel": 3' in done.text
    assert done.guessed >= 1


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.deep
def test_guessed_or_not_the_text_is_the_same(
    engine: Engine, calls: Compiled, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = written(engine, calls, asked)
    monkeypatch.setattr(Draft, "guess", lambda self, constraint: ())
    unguessed = written(engine, calls, asked)
    assert (unguessed.text, unguessed.guessed) == (done.text, 0)


def test_a_wrong_guess_leaves_the_memory(engine: Engine, calls: Compiled) -> None:
    # Without the tools' texts this model writes another temperature than the request's.
    done = written(engine, calls, ASKED[0])
    assert "21.5" not in done.text
    held = engine.kept()[done.prompt :]
    assert held == [*done.token_ids[: len(held)]]
    assert done.evaluated > done.prompt + len(held)
