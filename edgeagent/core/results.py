"""How much of a tool's result the model reads: a share of what is left of its window, cut where a part ends.

A list is cut between elements, a text at the end of a line or a word, anything else at a comma; the cut says how much
is left out, and how it can be read on where it is kept (`core/more.py`). What was cut can be cut again, when the model
finds that the prompt did not fit.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from edgeagent.core.agent import Agent
from edgeagent.core.context import estimate, tokens_of
from edgeagent.core.limits import ANSWER_TOKENS_MAX, window_left
from edgeagent.core.state import Kept, PendingCall, State
from edgeagent.core.values import Message, Part, canonical_json, read_json

RESULT_TOKENS_MAX = 680
"""The most of one result, however large the window: about a minute of reading on a Pi 4 with a 135M model."""

NOTE_BYTES = 48
"""About as long as the note that says what was left out: a batch of results no longer than this each is never cut."""

KEPT_MAX = 32
"""Results that can be read on at once; a bound for the state."""

_NOTE = re.compile(r"… \(([0-9]+) of ([0-9]+) (elements|characters) left out(?:; result_more [^)]*)?\)\Z")


def with_results(agent: Agent, state: State, calls: tuple[PendingCall, ...]) -> State:
    """Let the model read the results of a batch: together at most half of what is left."""
    bytes_max = None
    if any(len((call.answer or "").encode()) > NOTE_BYTES for call in calls):
        bytes_max = share_bytes(agent, state, len(calls))
    messages: list[Message] = []
    for call in calls:
        text, entry = call.answer or "", entry_of(state, call)
        text = text if bytes_max is None else cut(text, bytes_max, entry)
        part = None
        if entry is not None:
            part = Part(entry.effect_id, entry.at)
            text, entry = _read_to(replace(entry, turn=state.turn), text, entry.at)
            others = tuple(each for each in state.kept if each.effect_id != entry.effect_id)
            state = replace(state, kept=(*others, entry)[-KEPT_MAX:])
        messages.append(Message("tool", text, tool=call.tool, part=part))
    return replace(state, current=(*state.current, *messages))


def share_bytes(agent: Agent, state: State, count: int = 1) -> int:
    """Bytes that each of so many results may have now."""
    share = _room(agent, state, state.current) // 2 // count
    return max(0, min(RESULT_TOKENS_MAX, share)) * 100 // state.density


def entry_of(state: State, call: PendingCall) -> Kept | None:
    """What is kept of a call's result, or of the one that it reads on, as it was before."""
    if not call.kept:
        return None
    if call.of:
        wanted = read_json(call.arguments)
        found = next((each for each in state.kept if each.effect_id == wanted["result"]), None)
        if found is None or wanted["at"] == found.at:
            return found
        return replace(found, at=wanted["at"], left=0, elements=0)  # Elsewhere than where it ended: in characters.
    return Kept(call.effect_id, call.tool, 0, call.kept, 0, (call.answer or "").startswith('"'))


def _read_to(entry: Kept, text: str, start: int) -> tuple[str, Kept]:
    """The text that was cut of a result from `start` on, saying how it is read on; and what is left of it then."""
    found = _NOTE.search(text)
    if found is None:
        return text, replace(entry, at=entry.end, left=0)
    body = text[: found.start()]
    if found[3] == "elements":  # The bracket stands for the one, or the comma, with which this part begins.
        at = start + (len(body) - 1 if body != "[]" else 0)
        entry = replace(entry, at=at, left=int(found[1]), elements=int(found[2]))
    else:
        shown = _read(body) if entry.is_text else body
        entry = replace(entry, at=start + len(shown or ""), left=0, elements=0)
    if entry.at >= entry.end:
        return text, entry
    how = f'; result_more {{"result":{entry.effect_id}}} reads on'
    return f"{body}… ({found[1]} of {found[2]} {found[3]} left out{how})", entry


def with_shorter_results(agent: Agent, state: State, *, least: bool) -> State:
    """Return the state with the running turn's results cut to what fits now; with `least` to a note each."""
    results = [m for m in state.current if m.role == "tool"]
    others = [m for m in state.current if m.role != "tool"]
    share = _room(agent, state, tuple(others)) // max(1, len(results)) - tokens_of((Message("tool", ""),), 0)
    bytes_max = 0 if least else max(0, share) * 100 // state.density
    current: list[Message] = []
    kept = {each.effect_id: each for each in state.kept}
    for message in state.current:
        part, text = message.part, message.text
        if message.role == "tool":
            entry = kept.get(part.effect_id) if part is not None else None
            text = cut(text, bytes_max, entry, None if part is None else part.start)
            if entry is not None and part is not None and text != message.text and part.start < entry.at:
                text, kept[entry.effect_id] = _read_to(entry, text, part.start)  # From here on it is read once more.
        current.append(message if text == message.text else replace(message, text=text))
    return replace(state, current=tuple(current), kept=tuple(kept.values()))


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
        return noted(value, len(kept), total, "elements")
    return noted(value, len(kept if isinstance(kept, str) else value), total, "characters")


def with_words_for_more(text: str, how: str) -> str:
    """A result as a person is told it: how it is read on in their words, where it can be."""
    found = _NOTE.search(text)
    if found is None or "result_more" not in found[0]:
        return text
    return f"{text[: found.start()]}… ({found[1]} of {found[2]} {found[3]} left out; {how})"


def _read(text: str) -> Any:
    """The value of a JSON text, or None of one that is none: a driver of somebody else's may have written it."""
    try:
        return read_json(text)
    except ValueError:
        return None


def cut(text: str, bytes_max: int, entry: Kept | None = None, start: int | None = None) -> str:
    """Return a result whose own text has at most so many bytes, and a note how much of it is left out.

    `entry` is what is kept of it, where it can be read on, and `start` the place in that from which the text is.
    """
    if len(text.encode()) <= bytes_max:
        return text
    found = _NOTE.search(text)
    body = text[: found.start()] if found else text
    if len(body.encode()) <= bytes_max:
        return text
    start = (0 if entry is None else entry.at) if start is None else start
    value = _read(body)
    if isinstance(value, list) and (found is None or found[3] == "elements"):
        kept = _elements(value, bytes_max)
        if kept or (found and entry is None):
            left, total = (int(found[1]), int(found[2])) if found else (0, len(value))
            total = entry.elements if entry is not None and not found and start else total
            return noted(f"[{','.join(kept)}]", total - left - len(value) + len(kept), total, "elements")
    is_text = isinstance(value, str) if entry is None else entry.is_text
    whole = value if is_text and isinstance(value, str) else body
    piece = _beginning(whole, bytes_max, is_text=is_text)
    in_elements = found is not None and found[3] == "elements"
    total = int(found[2]) if found and not in_elements else len(whole) if entry is None else entry.end
    return noted(canonical_json(piece) if is_text else piece, start + len(piece), total, "characters")


def noted(body: str, kept: int, total: int, unit: str) -> str:
    """Return a part of a result with the note how much of it, and what comes before it, is not all."""
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
