"""Which dialect does a model write? Chosen by name, or by what its chat template shows of its own calls."""

from __future__ import annotations

from edgeagent.codec.dialects.family import CallFrame, Family
from edgeagent.codec.dialects.gemma import FUNCTION_GEMMA, FUNCTION_GEMMA_FRAME, Gemma
from edgeagent.codec.dialects.hermes import Hermes
from edgeagent.codec.dialects.llama import Llama
from edgeagent.codec.dialects.mistral import NAMED, Mistral
from edgeagent.codec.dialects.plain import CALL_HINT, Plain
from edgeagent.errors import ConfigError

__all__ = ["CALL_HINT", "DIALECTS", "CallFrame", "Family", "Plain", "dialect_called", "dialect_for"]

DIALECTS: dict[str, Family] = {
    each.name: each
    for each in (
        Plain(),
        Hermes(),
        Llama(),
        Mistral(),
        Mistral("mistral-args", NAMED),
        Gemma(),
        Gemma("functiongemma", FUNCTION_GEMMA_FRAME, marks=FUNCTION_GEMMA),
    )
}


def dialect_called(name: str) -> Family:
    """Return the dialect of that name. Raises ConfigError."""
    if name not in DIALECTS:
        raise ConfigError(f"no dialect is called {name!r}; there are: {', '.join(DIALECTS)}")
    return DIALECTS[name]


def dialect_for(template: str) -> str:
    """Return the name of the dialect that a chat template's text shows; `plain` when it shows none that we read."""
    shown = (name for name, marks in _SHOWN if all(mark in template for mark in marks))
    return "plain" if "<function=" in template else next(shown, "plain")  # That is Qwen Coder's XML.


_SHOWN: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("functiongemma", ("<start_function_call>",)),
    ("gemma", ("<|tool_call>",)),
    ("mistral-args", ("[TOOL_CALLS]", "[ARGS]")),
    ("mistral", ("[TOOL_CALLS]",)),
    ("hermes", ("<tool_call>",)),
    ("llama", ("<|start_header_id|>", '"parameters"')),
)
"""What in a template tells a dialect, the first that fits."""
