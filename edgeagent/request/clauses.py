"""Where may a request fall into several? At `and`, `then`, a semicolon or the end of a sentence; nothing decides here.

A place is only a proposal: "red and blue" and "between 3 and 5" are none, which shows in what the parts ask for.
English only; in another language a request is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

CLAUSES_MAX = 4
"""The most parts of one request."""

PLACES_MAX = 6
"""The most places that are proposed; a request with more is a text."""

_JOINT = re.compile(
    r"\s*;\s*|\s*,?\s+and\s+(?:also\s+|then\s+|after\s+that\s+)?|\s*,\s*(?:then|also)\s+|\s+then\s+"
    r"|(?:(?<=[^\W\d_]{4})\.|[!?])\s+(?:(?:and|also|then)\s+)?",  # Not behind "Dr." or a number.
    re.IGNORECASE,
)


def divisions(request: str) -> Iterator[tuple[str, str]]:
    """The request in two at each proposed place, the earliest first; neither part is empty."""
    places = list(_JOINT.finditer(request))
    if len(places) > PLACES_MAX:
        return
    for place in places:
        first, rest = request[: place.start()].strip(), request[place.end() :].strip()
        if first and rest:
            yield first, rest
