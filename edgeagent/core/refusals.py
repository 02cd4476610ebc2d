"""Refusals as the model reads them, and as they are read again for people."""

from __future__ import annotations

from edgeagent.core.state import AwaitingCalls, State
from edgeagent.core.text import readable
from edgeagent.core.values import canonical_json, read_json


def refusal_text(because: str) -> str:
    return canonical_json({"refused": readable(because)})


def refusal_in(answer: str) -> str:
    """Why a call was refused, as `refusal_text` has written it; nothing of an answer that is none."""
    if not answer.startswith('{"refused":'):
        return ""
    try:
        return str(read_json(answer)["refused"])
    except (ValueError, KeyError, TypeError):
        return ""  # It was cut, or a tool has written it.


def refusals(state: State) -> tuple[str, ...]:
    """Why calls of the model's last answer were refused."""
    if isinstance(state.phase, AwaitingCalls):
        answers = [call.answer or "" for call in state.phase.calls]
    else:
        last = max((n for n, m in enumerate(state.current) if m.role == "assistant"), default=0)
        answers = [message.text for message in state.current[last:] if message.role == "tool"]
    return tuple(because for because in map(refusal_in, answers) if because)
