"""What may this agent's model write now? Admissible tools and narrowed arguments to the text of a grammar.

The one place where schemas are lowered for an ask: the driver and `edgeagent grammar` both come here, so what is
printed is what is enforced. It knows neither models nor vocabularies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, assert_never

from edgeagent.core.agent import Tool
from edgeagent.core.from_user import QUOTED, Narrowed
from edgeagent.core.quoting import spans
from edgeagent.core.values import read_json
from edgeagent.grammar.frame import Answer, Call, Frame
from edgeagent.grammar.gbnf import gbnf_calls
from edgeagent.grammar.llg import calls_grammar
from edgeagent.shape.lower import Lowered, Relaxation, lower

GrammarEngine = Literal["llguidance", "gbnf"]

STRING_CHARS_MAX = 200
"""The most characters of a string argument that declares no bound of its own."""


def lowered_call(tool: Tool, narrowed: Iterable[Narrowed] = (), given: Collection[str] = ()) -> Lowered:
    """Return the arguments of a tool as an engine can hold them. Raises GrammarError naming tool and field.

    `given` are optional arguments that must be written none the less.
    """
    limits: dict[str, Any] = {}
    for name, argument, text in narrowed:
        if name == tool.name:
            limit = _spelled_out(read_json(text))
            limits[argument] = {"allOf": [limits[argument], limit]} if argument in limits else limit
    schema = tool.parameters.schema
    if given:
        schema = schema | {"required": [*schema.get("required", ()), *given]}
    return lower(schema, where=tool.name, string_max=STRING_CHARS_MAX, narrowed=limits)


def _spelled_out(schema: Any) -> Any:
    """The schema with `x-quoted` as the spans it means, which the lowering then holds against the argument's own."""
    if isinstance(schema, list):
        return [_spelled_out(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if QUOTED in schema:
        return {"enum": list(spans(schema[QUOTED]))}
    return {key: _spelled_out(each) if key in ("anyOf", "items") else each for key, each in schema.items()}


def calls_of(tools: Iterable[Tool], narrowed: Sequence[Narrowed] = (), given: Collection[str] = ()) -> list[Call]:
    """Return what `grammar_of` needs of each tool. Raises GrammarError naming tool and field.

    `given` are the optional arguments that each of them must be called with.
    """
    return [(tool.written, lowered_call(tool, narrowed, given).schema) for tool in tools]


def grammar_of(
    calls: Sequence[Call],
    frame: Frame,
    *,
    answer: Answer,
    engine: GrammarEngine,
    specials: Mapping[str, int] | None = None,
    relaxed: list[Relaxation] | None = None,
) -> str:
    """Return the grammar of one of the calls, of words, or of either.

    `specials` are the texts that the vocabulary holds as one special token, with its id. What GBNF cannot say exactly
    is appended to `relaxed`; it is checked when the call is decoded.
    """
    match engine:
        case "gbnf":
            return gbnf_calls(calls, frame, answer=answer, relaxed=[] if relaxed is None else relaxed)
        case "llguidance":
            return calls_grammar(calls, frame, answer=answer, specials=specials or {})
        case _:
            assert_never(engine)
