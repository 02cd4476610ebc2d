"""Where may a request fall into several? At `and`, `then`, a semicolon or the end of a sentence; nothing decides here.

A place is only a proposal: "red and blue" and "between 3 and 5" are none, which shows in what the parts ask for.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgeagent.request.language import ENGLISH
from edgeagent.request.said import part_of

CLAUSES_MAX = 4
"""The most parts of one request."""

PLACES_MAX = 6
"""The most places that are proposed; a request with more is a text."""

_JOINT = ENGLISH.patterns.compiled("joint")  # Not behind "Dr." or a number.


def divisions(request: str) -> Iterator[tuple[str, str]]:
    """The request in two at each proposed place, the earliest first; neither part is empty."""
    places = list(_JOINT.finditer(request))
    if len(places) > PLACES_MAX:
        return
    for place in places:
        first, rest = part_of(request, 0, place.start()), part_of(request, place.end(), len(request))
        if first and rest:
            yield first, rest
