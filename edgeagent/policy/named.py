"""Naming: does the user mean this record, this id, this secret, this link? Quotations with what stands beside them.

What a quotation is, `core.quoting` says; capitals do not matter here, but for a secret. A bare number is only an id
when the user called it one ("event 13"); a secret, and a name that outsiders may have chosen, must stand out from
ordinary words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from edgeagent.core.quoting import has_words, reading_of
from edgeagent.policy.inert import links_in

_QUOTES = "'\"`“”‘’«»"

BESIDE = 60
"""Characters before and behind an id in which the word for its kind is looked for."""


def said_words(value: str, texts: Iterable[str]) -> bool:
    """Whether the user wrote these words in this order, capitals aside."""
    return has_words(value, texts, capitals=False)


def _places(value: str, texts: Iterable[str], *, capitals: bool = False) -> Iterator[tuple[str, int, int]]:
    """Yield each text with begin and end of the value in it."""
    for reading in map(reading_of, texts):
        for begin, end in reading.occurrences(value, capitals=capitals):
            yield reading.text, begin, end


def said_distinctly(value: str, texts: Iterable[str]) -> bool:
    """Whether the user wrote this as more than one ordinary word: in quotes, with a capital, a digit or a sign."""
    several = len(value.split()) > 1
    return any(several or _stands_out(*place) for place in _places(value, texts))


def _stands_out(text: str, start: int, end: int) -> bool:
    found = text[start:end]
    # A capital that only starts a sentence makes no name.
    capital = found[:1].isupper() and text[max(0, start - 9) : start].rstrip()[-1:] not in ("", ".", "!", "?")
    return _in_quotes(text, start, end) or capital or any(c.isdigit() or c in "@./_-" for c in found)


def _in_quotes(text: str, start: int, end: int) -> bool:
    return text[start - 1 : start] in tuple(_QUOTES) and text[end : end + 1] in tuple(_QUOTES)


def said_beginning(beginnings: Iterable[str], texts: Iterable[str]) -> bool:
    """Whether the user said a word that begins so: `heat` is found in "turn the heating up"."""
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, beginnings))})", re.IGNORECASE)
    return any(pattern.search(text) for text in texts)


def said_secret(value: str, called: str, texts: Iterable[str]) -> bool:
    """Whether the user wrote this, exactly so, where they speak of it by the argument's name (`password`).

    It must stand in quotes or hold a digit or a sign: an ordinary word of a sentence is no password that was given.
    """
    nouns = [re.escape(word) for word in called.split("_") if len(word) >= 3]
    spoken = re.compile(rf"\b(?:{'|'.join(nouns) or re.escape(called)})", re.IGNORECASE)
    told = [text for text in texts if spoken.search(text)]
    places = _places(value, told, capitals=True)
    return any(not value.isalpha() or text[start - 1 : start] in tuple(_QUOTES) for text, start, _ in places)


def said_handle(value: str, of: str, texts: Iterable[str]) -> bool:
    """Whether the user meant this id: by something that can only be an id, or as `file 13`, `the nginx service`.

    An ordinary word or a bare number is not meant as an id: "June 13" does not name the file 13.
    """
    kind, has_letters = re.escape(of), any(map(str.isalpha, value))
    noun = rf"{kind}s?\W{{0,3}}(?:with\s+)?(?:the\s+)?(?:ids?\b|number\b|no\b|nr\b|#)?"
    before = re.compile(rf"\b(?:{noun}|ids?\b|#)\W{{0,3}}\Z", re.IGNORECASE)
    after = re.compile(rf"\s+{kind}\b", re.IGNORECASE)
    spoken = re.compile(rf"\b{kind}s?\b", re.IGNORECASE)
    for text, start, end in _places(value, texts):
        if len(value) >= 3 and has_letters and (len(value.split()) > 1 or _stands_out(text, start, end)):
            return True
        called = before.search(text[max(0, start - BESIDE) : start])
        if spoken.search(text) and (called or (has_letters and after.match(text, end))):
            return True
    return False


def said_link(value: str, texts: Iterable[str]) -> bool:
    """Whether the user wrote this web address: the whole of it, and it is one."""
    return value in tuple(links_in(value)) and said_words(value, texts)


def said_in_template(value: str, names: Iterable[str], texts: Iterable[str]) -> str:
    """Return the name that fills a hole of the user's: 'Dinner at {restaurant}' with a name from `names`; or ''."""
    holes = [(text, hole) for text in texts for hole in re.finditer(r"\{[^{}]{1,40}\}", text)]
    if not holes:
        return ""
    for each in names:
        for found in re.finditer(re.escape(each), value) if each else ():
            before, after = value[: found.start()], value[found.end() :]
            if (before or after) and any(_fits(text, hole, before, after) for text, hole in holes):
                return each
    return ""


def _fits(text: str, hole: re.Match[str], before: str, after: str) -> bool:
    left, right = text[: hole.start()], text[hole.end() :]
    if not left.casefold().endswith(before.casefold()) or not right.casefold().startswith(after.casefold()):
        return False
    edge_left, edge_right = left[: len(left) - len(before)][-1:], right[len(after) :][:1]
    return not (edge_left.isalnum() or edge_right.isalnum())
