"""Mood of a request: is it an order, a question, or does something in it forbid, except or make conditional?

What is no plain order is never a reason to change anything. By words of one language; knows no tools.
"""

from __future__ import annotations

import re
from typing import Literal

from edgeagent.request.language import ENGLISH
from edgeagent.request.parts.words import begins_with_verb
from edgeagent.request.said import as_said, part_of, tongue_in

_PATTERNS = ENGLISH.patterns
_FORBIDS, _STILL_ASKS = _PATTERNS.compiled("forbids"), _PATTERNS.compiled("still_asks")
_ASKS, _ORDERS = _PATTERNS.compiled("asks"), _PATTERNS.compiled("orders_politely")
_AGREEMENT = _PATTERNS.compiled("asks_for_agreement")
_DENIES, _LITTLE = _PATTERNS.compiled("denies"), _PATTERNS.compiled("denies_little")
_DENIED, _POINTS_BACK = _PATTERNS.compiled("denied"), _PATTERNS.compiled("points_back")
_AGREES, _REFUSES = _PATTERNS.compiled("agrees"), _PATTERNS.compiled("refuses")
_NOTIFIES, _EXCLAIMS = _PATTERNS.compiled("notifies"), _PATTERNS.compiled("exclaims")
_RELATIVE = _PATTERNS.compiled("relative")
_ANNOUNCES = _PATTERNS.compiled("announces")
_REPORTS = _PATTERNS.compiled("reports")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)")


def forbids(request: str) -> bool:
    """Whether the request begins by saying that something must not be done."""
    return _FORBIDS.match(request) is not None and _STILL_ASKS.match(request) is None


def is_question(request: str) -> bool:
    """Whether a sentence of the request wants to know something: "can you open it?" does not."""
    return any(_is_question(each.strip()) for each in _SENTENCE.split(own_words(request)))


def exclaims(request: str) -> bool:
    """Whether the request only exclaims: "what a day!"."""
    return _EXCLAIMS.match(request) is not None


def own_words(request: str) -> str:
    """The request without the text that it announces, which may ask and deny what it likes: "write: do not open"."""
    match = _ANNOUNCES.match(request)
    if match is None:
        return request
    end = _SENTENCE.search(request, match.end())
    return request[: match.end()].rstrip(" :") + (f". {request[end.end() :]}" if end is not None else "")


def is_report(request: str) -> bool:
    """Whether the request says how something is or was, and orders nothing behind that: "channel 1 is at 5 V"."""
    request = own_words(request)
    if _REPORTS.match(request) is None:
        return False
    _, colon, behind = re.split(r"([:;,])", request + ":", maxsplit=1)
    return not (behind and (colon != "," or begins_with_verb(behind)))


def is_qualified(request: str) -> bool:
    """Whether the request denies, excepts, makes conditional or only compares something: "two degrees warmer"."""
    return denies(request) or _RELATIVE.search(own_words(request)) is not None


def denies(request: str) -> bool:
    """Whether the request denies, excepts or makes something conditional."""
    return _DENIES.search(_LITTLE.sub(" ", own_words(request))) is not None


def denied_in(request: str) -> list[str]:
    """The words right behind what denies: `cancel`, for "whatever you do, do not cancel the print"."""
    return [match[1] for match in _DENIED.finditer(_LITTLE.sub(" ", request))]


def agrees(answer: str) -> bool:
    """Whether an answer is a yes, and nothing else."""
    return _is_whole(answer, "agrees", _AGREES)


def refuses(answer: str) -> bool:
    """Whether an answer is a no, and nothing else."""
    return _is_whole(answer, "refuses", _REFUSES)


def withdraws(request: str) -> bool:
    """Whether a no ends the request, so that what stands before it is not wanted: "open the door? no, better not"."""
    ends = [match.end() for match in _SENTENCE.finditer(request)]
    return bool(ends) and refuses(part_of(request, ends[-1], len(request)))


def points_back(request: str) -> bool:
    """Whether what the request is about was named before: "block it"."""
    return _POINTS_BACK.match(request) is not None


def _is_whole(answer: str, mood: Literal["agrees", "refuses"], english: re.Pattern[str]) -> bool:
    """Whether an answer is just that, in its language or in English."""
    own = tongue_in(answer).compiled(mood)
    original = as_said(answer)
    return any(each is not None and each.fullmatch(original) is not None for each in (own, english))


def _is_question(sentence: str) -> bool:
    if _ORDERS.match(sentence) or _NOTIFIES.match(sentence) or exclaims(sentence):
        return False
    is_asked = sentence.rstrip("\"'’”) ").endswith("?") and _AGREEMENT.search(sentence) is None
    return is_asked or _ASKS.match(sentence) is not None
