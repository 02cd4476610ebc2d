"""Reading on in a result that was cut: while there is one, `result_more` is among the tools, and this is its call.

A part is asked for by its place and comes back as an event, as any result does; so replay needs no file. What reads on
in a tool's result is that tool's word, not a new one's: guards are told so (`PendingCall.of`).
"""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from edgeagent.core.agent import Agent
from edgeagent.core.results import NOTE_BYTES, entry_of, noted, share_bytes
from edgeagent.core.state import Kept, PendingCall, State
from edgeagent.core.values import canonical_json, read_json

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|["\[\]{},]')


PART_BYTES_MIN = 2 * NOTE_BYTES
"""Where less than this of a part could be shown, reading on waits for the next turn."""


def is_cut(state: State) -> bool:
    """Whether there is a result that can be read on."""
    return any(each.at < each.end for each in state.kept)


def is_offered(agent: Agent, state: State) -> bool:
    """Whether there is one, and room for a part of it."""
    return is_cut(state) and share_bytes(agent, state) >= PART_BYTES_MIN


def without_dropped(state: State) -> State:
    """Let go of results that have left the window with their exchanges, but for those that were read just before."""
    first = state.turn - max(1, len(state.past))
    kept = tuple(each for each in state.kept if each.turn >= first)
    return state if len(kept) == len(state.kept) else replace(state, kept=kept)


def place_wanted(agent: Agent, state: State, given: dict[str, Any]) -> tuple[Kept, dict[str, Any]] | str:
    """Which result a call of `result_more` reads on, and its arguments in full; or what is wrong with them."""
    if share_bytes(agent, state) < NOTE_BYTES:
        return "no room for more in this turn; answer with what there is"
    number, at = given.get("result"), given.get("at")
    left = [each for each in state.kept if each.at < each.end or (number is not None and at is not None)]
    found = next((each for each in reversed(left) if number in (None, each.effect_id)), None)
    if found is None:
        known = ", ".join(str(each.effect_id) for each in left)
        return f"nothing is left to read on in result {number}; there is more of: {known}"
    at = found.at if at is None else at
    if at >= found.end:
        return f"result {found.effect_id} ends at {found.end}, and at is {at}"
    return found, {"at": at, "result": found.effect_id}


def part_told(state: State, call: PendingCall, value: str) -> str:
    """The part that a call of `result_more` has brought, as the model reads it: whole elements, or else characters."""
    entry, piece = entry_of(state, call), _text(value)
    if entry is None or not piece:
        return value
    if entry.left and (elements := _whole_elements(piece[1:])):
        body, shown = f"[{','.join(elements)}]", entry.elements - entry.left + len(elements)
        return body if shown == entry.elements else noted(body, shown, entry.elements, "elements")
    body, shown = canonical_json(piece) if entry.is_text else piece, entry.at + len(piece)
    return body if shown >= entry.end else noted(body, shown, entry.end, "characters")


def _text(value: str) -> str:
    """The text that a driver gave as JSON; nothing if it is none, since a driver may be somebody else's."""
    try:
        text = read_json(value)
    except ValueError:
        return ""
    return text if isinstance(text, str) else ""


def _whole_elements(text: str) -> list[str]:
    """The elements that are whole at the beginning of the inside of a list; one that may go on is not."""
    elements, depth, begin = [], 0, 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case '"':
                break
            case "[" | "{":
                depth += 1
            case "]" | "}" if depth:
                depth -= 1
            case "," | "]" if not depth:
                elements.append(text[begin : token.start()])
                begin = token.end()
                if token[0] == "]":
                    break
    return elements


def gone(state: State, call: PendingCall) -> State:
    """The state after a kept result turned out not to be kept any more."""
    number = read_json(call.arguments)["result"]
    return replace(state, kept=tuple(each for each in state.kept if each.effect_id != number))
