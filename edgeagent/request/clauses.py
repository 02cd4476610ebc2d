"""Where may a request fall into several? At `and`, `then`, a semicolon or the end of a sentence; nothing decides here.

A place is only a proposal: "red and blue" and "between 3 and 5" are none, which shows in what the parts ask for.
English only; in another language a request is one.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgeagent.request.language import ENGLISH

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
        first, rest = request[: place.start()].strip(), request[place.end() :].strip()
        if first and rest:
            yield first, rest
