"""How much of a tool's result the model reads: a share of what is left of its window, cut where a part ends.

A list is cut between elements, a text at the end of a line or a word, anything else at a comma; the cut says how much
is left out. What was cut can be cut again, when the model finds that the prompt did not fit.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from edgeagent.core.agent import Agent
from edgeagent.core.context import estimate, tokens_of
from edgeagent.core.limits import ANSWER_TOKENS_MAX, window_left
from edgeagent.core.state import State
from edgeagent.core.values import Message, canonical_json, read_json

RESULT_TOKENS_MAX = 680
"""The most of one result, however large the window: about a minute of reading on a Pi 4 with a 135M model."""

NOTE_BYTES = 48
"""About as long as the note that says what was left out: a batch of results no longer than this each is never cut."""

_NOTE = re.compile(r"… \(([0-9]+) of ([0-9]+) (elements|characters) left out\)\Z")


def shown_results(agent: Agent, state: State, answers: tuple[str, ...]) -> tuple[str, ...]:
    """Return the results of a batch as the model reads them: together at most half of what is left."""
    if all(len(answer.encode()) <= NOTE_BYTES for answer in answers):
        return answers
    share = _room(agent, state, state.current) // 2 // max(1, len(answers))
    bytes_max = max(0, min(RESULT_TOKENS_MAX, share)) * 100 // state.density
    return tuple(cut(answer, bytes_max) for answer in answers)


def with_shorter_results(agent: Agent, state: State, *, least: bool) -> State:
    """Return the state with the running turn's results cut to what fits now; with `least` to a note each."""
    results = [m for m in state.current if m.role == "tool"]
    others = [m for m in state.current if m.role != "tool"]
    share = _room(agent, state, tuple(others)) // max(1, len(results)) - tokens_of((Message("tool", ""),), 0)
    bytes_max = 0 if least else max(0, share) * 100 // state.density
    current = tuple(replace(m, text=cut(m.text, bytes_max)) if m.role == "tool" else m for m in state.current)
    return state if current == state.current else replace(state, current=current)


def _room(agent: Agent, state: State, messages: tuple[Message, ...]) -> int:
    """Tokens that the window leaves beside the agent's texts, these messages and an answer."""
    window = window_left(agent, state)
    own = tokens_of(messages, state.density) + estimate(agent.prompt_bytes, state.density)
    return max(0, window - own - min(ANSWER_TOKENS_MAX, window // 4))


def told(value: str, total: int) -> str:
    """Return a result of which only the beginning was recorded, with the note that it had `total` elements."""
    if not total:
        return value
    kept = _read(value)
    if isinstance(kept, list):
        return _noted(value, len(kept), total, "elements")
    return _noted(value, len(kept if isinstance(kept, str) else value), total, "characters")


def _read(text: str) -> Any:
    """The value of a JSON text, or None of one that is none: a driver of somebody else's may have written it."""
    try:
        return read_json(text)
    except ValueError:
        return None


def cut(text: str, bytes_max: int) -> str:
    """Return a result whose own text has at most so many bytes, and a note how much of it is left out."""
    if len(text.encode()) <= bytes_max:
        return text
    found = _NOTE.search(text)
    body = text[: found.start()] if found else text
    if len(body.encode()) <= bytes_max:
        return text
    value = _read(body)
    if isinstance(value, list) and (found is None or found[3] == "elements"):
        kept = _elements(value, bytes_max)
        if kept or found:
            return _noted(f"[{','.join(kept)}]", len(kept), int(found[2]) if found else len(value), "elements")
    is_text = isinstance(value, str)
    whole = value if isinstance(value, str) else body
    piece = _beginning(whole, bytes_max, is_text=is_text)
    total = int(found[2]) if found else len(whole)
    return _noted(canonical_json(piece) if is_text else piece, len(piece), total, "characters")


def _noted(body: str, kept: int, total: int, unit: str) -> str:
    return f"{body}… ({total - kept} of {total} {unit} left out)"


def _elements(value: list[Any], bytes_max: int) -> list[str]:
    kept: list[str] = []
    room = bytes_max - 1
    for each in value:
        text = canonical_json(each)
        room -= len(text.encode()) + 1
        if room < 0:
            break
        kept.append(text)
    return kept


def _beginning(whole: str, bytes_max: int, *, is_text: bool) -> str:
    """As much as fits, up to the end of a line, a word or a part if that is not far back."""
    piece = whole[:bytes_max]
    while piece and len((canonical_json(piece) if is_text else piece).encode()) > bytes_max:
        piece = piece[: len(piece) * 9 // 10]
    for end in ("\n", " ", ","):
        at = piece.rfind(end, len(piece) // 2)
        if at > 0:
            return piece[: at + 1]
    return piece
