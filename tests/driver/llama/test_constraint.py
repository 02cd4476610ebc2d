"""Two grammar engines, one behaviour: what they accept, refuse and survive."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("llama_cpp")
pytest.importorskip("llguidance")

from edgeagent.driver.llama import constraint_llg as subject
from edgeagent.driver.llama.constraint import Constraint
from edgeagent.driver.llama.constraint_llg import check_calls
from edgeagent.driver.llama.decode import Wanted, generate
from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.grammars import Grammars
from edgeagent.errors import GrammarError
from edgeagent.grammar.calls import GrammarEngine
from edgeagent.grammar.gbnf import gbnf
from edgeagent.grammar.llg import value_grammar
from edgeagent.shape.lower import lower

pytestmark = pytest.mark.model

VALVE = {
    "type": "object",
    "properties": {"valve": {"enum": ["north", "south"]}, "seconds": {"type": "integer", "minimum": 1, "maximum": 99}},
    "required": ["valve", "seconds"],
    "additionalProperties": False,
}
VALVE_GBNF = r"""
root ::= "{\"valve\": " ("\"north\"" | "\"south\"") ", \"seconds\": " [1-9] [0-9]? "}"
"""


@pytest.fixture(params=["llguidance", "gbnf"])
def valve(request: pytest.FixtureRequest, engine: Engine, grammars: Grammars) -> Constraint:
    """The same grammar in each engine."""
    if request.param == "llguidance":
        return grammars.compile(value_grammar(VALVE)).fresh()
    return Grammars(engine, "gbnf").compile(VALVE_GBNF).fresh()


def spelled(engine: Engine, text: str) -> list[int]:
    return engine.tokenize(text, special=False, bos=False)


@pytest.mark.parametrize("text", ['{"valve": "north", "seconds": 30}', '{"valve": "south", "seconds": 9}'])
def test_a_right_value_is_accepted_to_its_end(valve: Constraint, engine: Engine, text: str) -> None:
    tokens = spelled(engine, text)
    assert valve.accepted(tokens, end=True) == len(tokens) + 1
    valve.consume(tokens)
    assert (valve.complete(), valve.closed()) == (True, True)


@pytest.mark.parametrize(
    "text",
    ['{"valve": "west"', '{"valve": "north", "seconds": 100', '{"valve": "north", "seconds": 0', "{}", '{"valve":"n'],
)
def test_a_wrong_value_is_not(valve: Constraint, engine: Engine, text: str) -> None:
    tokens = spelled(engine, text)
    assert valve.accepted(tokens, end=False) < len(tokens)


def test_testing_does_not_move_on(valve: Constraint, engine: Engine) -> None:
    tokens = spelled(engine, '{"valve": "north"')
    assert valve.accepted(tokens, end=False) == valve.accepted(tokens, end=False) == len(tokens)


def test_a_copy_goes_its_own_way(valve: Constraint, engine: Engine) -> None:
    other = valve.copy()
    other.consume(spelled(engine, '{"valve": "north", "seconds": 30}'))
    assert other.closed() and not valve.complete()


def test_a_rejected_token_is_an_error_and_not_a_crash(valve: Constraint, engine: Engine) -> None:
    with pytest.raises(GrammarError):
        valve.consume(spelled(engine, "hello"))


def test_both_engines_write_within_the_grammar(engine: Engine, grammars: Grammars) -> None:
    prompt = spelled(engine, "Open the north valve for 30 seconds. JSON: ")
    texts = []
    for grammar in (grammars.compile(value_grammar(VALVE)), Grammars(engine, "gbnf").compile(VALVE_GBNF)):
        engine.forget()
        shortest = grammar.shortest
        assert shortest is not None
        for limit in range(len(shortest), len(shortest) + 5):
            done = generate(engine, prompt, Wanted(grammar=grammar, max_tokens=limit))
            assert done.complete
        texts.append(generate(engine, prompt, Wanted(grammar=grammar, max_tokens=40)).text)
    assert texts[0].startswith('{"valve": "') and texts[1].startswith('{"valve": "')


@pytest.mark.parametrize("kind", ["llguidance", "gbnf"])
@pytest.mark.parametrize(
    "text",
    ["", "root ::= (", "start: (", 'root ::= "a" undefined', "start: nowhere", "\x00", "root_x ::= [0-9", "x" * 1000],
)
@pytest.mark.deep
def test_a_malformed_grammar_is_an_error(engine: Engine, kind: str, text: str) -> None:
    # llama-cpp-python's own path ends the process here, or goes on without any constraint.
    with pytest.raises(GrammarError):
        Grammars(engine, kind).compile(text)  # type: ignore[arg-type]  # the two literals
    assert engine.evaluate([1]) == "done"


def test_a_grammar_is_compiled_once(grammars: Grammars) -> None:
    text = value_grammar(VALVE)
    assert grammars.compile(text) is grammars.compile(text)


def test_a_refused_schema_names_tool_and_field() -> None:
    schema = {
        "type": "object",
        "properties": {"fine": {"type": "integer"}, "odd": {"type": "string", "pattern": "(?=look)ahead"}},
    }
    with pytest.raises(GrammarError, match="tool probe, field odd"):
        check_calls([("probe", schema)])


def test_without_llguidance_gbnf_is_taken(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "LLMatcher", None)
    assert Grammars(engine).kind == "gbnf"
    with pytest.raises(GrammarError, match="gbnf"):
        Grammars(engine, "llguidance")


def test_constraints_may_outlive_everything(smollm2: Path, cache: Path) -> None:
    program = f"""
from pathlib import Path
from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.grammars import Grammars
e = Engine.load({str(smollm2)!r}, n_ctx=256, cache=Path({str(cache)!r}))
kept = [Grammars(e, "gbnf").compile('root ::= "a" [0-9]').fresh()]
kept.append(kept[0].copy())
kept.append(Grammars(e, "llguidance").compile('start: /[0-9]+/').fresh())
e.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_word_is_not_written_in_crumbs(engine: Engine, grammars: Grammars) -> None:
    grammar = grammars.compile(
        value_grammar({"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2})
    )
    within = grammar.fresh()
    within.consume(spelled(engine, "[true,"))
    space, word = spelled(engine, " ")[0], spelled(engine, " true")[0]
    assert within.accepted([space], end=False) == 1
    assert (within.clumsy(space), within.clumsy(word)) == (True, False)


def test_a_digit_before_other_digits_is_no_crumb(engine: Engine, grammars: Grammars) -> None:
    within = grammars.compile(value_grammar({"type": "integer", "minimum": 1, "maximum": 500})).fresh()
    assert not within.clumsy(spelled(engine, "3")[0])


def _record(**fields: object) -> dict[str, object]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


@pytest.mark.parametrize("kind", ["llguidance", "gbnf"])
@pytest.mark.parametrize(
    "schema",
    [
        _record(a={"type": "number"}, b={"type": "number"}),
        _record(a={"type": "integer"}, b={"type": "string", "maxLength": 9}, c={"type": "integer"}),
        {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 5},
        {"type": "array", "items": _record(a={"type": "number"}, b={"type": "boolean"}), "minItems": 2, "maxItems": 2},
    ],
    ids=["numbers side by side", "a number, a text, a number", "a list of numbers", "a list of records"],
)
def test_a_short_end_is_found_behind_a_number(engine: Engine, kind: GrammarEngine, schema: dict[str, object]) -> None:
    # Behind a digit another one fits, for ever: what ends a number must be tried before it.
    lowered = lower(schema).schema
    text = gbnf(lowered, relaxed=[]) if kind == "gbnf" else value_grammar(lowered)
    shortest = Grammars(engine, kind).compile(text).shortest
    assert shortest is not None
    assert len(shortest) <= 30
    msgspec.json.decode(engine.detokenize(shortest))
