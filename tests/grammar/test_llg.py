"""The text of a grammar: what stands in it, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgeagent.codec.dialects.family import CallFrame
from edgeagent.errors import GrammarError
from edgeagent.grammar.llg import calls_grammar, suspects, value_grammar

llguidance = pytest.importorskip("llguidance")

FRAME = CallFrame('{"name": "', '", "arguments": ', "}")
NUMBER = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


def byte_tokenizer() -> object:
    """A vocabulary of single bytes: acceptance of texts, no model needed."""

    class Bytes:
        eos_token_id = 256
        bos_token_id = None
        tokens = (*(bytes([byte]) for byte in range(256)), b"<end>")
        special_token_ids = (256,)

        def __call__(self, text: bytes) -> list[int]:
            return list(text)

    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(Bytes()))


TOKENIZER = byte_tokenizer()


def accepts(grammar: str, text: str) -> bool:
    matcher = llguidance.LLMatcher(TOKENIZER, llguidance.LLMatcher.grammar_from_lark(grammar), log_level=0)
    assert not matcher.get_error()
    raw = list(text.encode())
    return matcher.validate_tokens([*raw, 256]) == len(raw) + 1


def test_a_call_of_a_named_tool_is_accepted() -> None:
    assert accepts(calls_grammar([("count", NUMBER)], FRAME), '{"name": "count", "arguments": {"n": 5}}')


def test_a_tool_that_is_not_admissible_cannot_be_spelled() -> None:
    assert not accepts(calls_grammar([("count", NUMBER)], FRAME), '{"name": "erase", "arguments": {"n": 5}}')


def test_each_tool_has_its_own_arguments() -> None:
    grammar = calls_grammar([("count", NUMBER), ("flag", {"type": "boolean"})], FRAME)
    assert accepts(grammar, '{"name": "flag", "arguments": true}')
    assert not accepts(grammar, '{"name": "flag", "arguments": {"n": 5}}')


def test_separators_are_as_the_model_writes_them() -> None:
    close = calls_grammar([("count", NUMBER)], replace(FRAME, item_separator=",", key_separator=":"))
    assert accepts(close, '{"name": "count", "arguments": {"n":5}}')
    assert not accepts(close, '{"name": "count", "arguments": {"n": 5}}')


def test_an_answer_stands_beside_the_calls() -> None:
    grammar = calls_grammar([("count", NUMBER)], FRAME, answer="allowed")
    assert accepts(grammar, "The valve is open.\nAll is well.")
    assert accepts(grammar, '{"name": "count", "arguments": {"n": 5}}')


@pytest.mark.parametrize("text", ['{"name": "count"', '{"name": "erase", "arguments": {}}', " {", "\n{}", ""])
def test_an_answer_cannot_look_like_a_call(text: str) -> None:
    assert not accepts(calls_grammar([("count", NUMBER)], FRAME, answer="allowed"), text)


def test_no_answer_in_words_when_a_call_is_due() -> None:
    assert not accepts(calls_grammar([("count", NUMBER)], FRAME), "Hello.")


def test_words_only_when_no_call_is_due() -> None:
    grammar = calls_grammar([("count", NUMBER)], FRAME, answer="only")
    assert accepts(grammar, "The brace { opens.")
    assert not accepts(grammar, '{"name": "count", "arguments": {"n": 5}}')


def test_after_the_trigger_only_a_call_follows() -> None:
    hermes = CallFrame('<tool_call>\n{"name": "', '", "arguments": ', "}\n</tool_call>", trigger="<tool_call>")
    grammar = calls_grammar([("count", NUMBER)], hermes, answer="allowed")
    call = '<tool_call>\n{"name": "count", "arguments": {"n": 5}}\n</tool_call>'
    assert accepts(grammar, call)
    assert accepts(grammar, "Let me count. " + call)
    assert accepts(grammar, "Nothing to count.")
    assert not accepts(grammar, "Let me count. <tool_call>whatever")


def test_nothing_to_write_is_an_error() -> None:
    with pytest.raises(GrammarError, match="nothing the model may write"):
        calls_grammar([], FRAME)


@pytest.mark.parametrize("name", ["", "a b", 'x", "y', "1st", "a\n"])
def test_a_name_that_would_need_escaping_is_refused(name: str) -> None:
    with pytest.raises(GrammarError):
        calls_grammar([(name, NUMBER)], FRAME)


def test_a_description_changes_nothing_of_what_is_accepted() -> None:
    # llama.cpp#27619: only the description of an argument changed, and the grammar crashed.
    told = {**NUMBER, "properties": {"n": {"type": "integer", "description": 'how "many" /*\n'}}}
    grammar = value_grammar(told)
    assert accepts(grammar, '{"n": 5}')
    assert not accepts(grammar, '{"n": x}')


def test_suspects_are_the_fields_with_the_shared_definitions() -> None:
    schema = {"$defs": {"T": {"type": "null"}}, "type": "object", "properties": {"a": {"$ref": "#/$defs/T"}}}
    assert suspects(schema) == [("a", {"$ref": "#/$defs/T", "$defs": {"T": {"type": "null"}}})]
    assert suspects({"type": "string"}) == []
