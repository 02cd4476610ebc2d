"""Did the user write this value, word by word; and is a text that others may have shaped inert?

Looser than `quoted_from_user` in one way: capitals do not matter. Stricter in others: a bare number is only an id
when the user called it one ("event 13"), a secret must stand out from ordinary words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

_BEFORE = r"(?<![\w@/.+:&%-])"
_AFTER = r"(?![\w@/+-])(?![.:](?-i:[^\WA-Z]))(?![?&=#%]\w)"
"""A part of a longer address, path or number is no quotation of it; a capital after a full stop is a new sentence."""

_QUOTES = "'\"`“”‘’«»"


@lru_cache(maxsize=512)
def _words(value: str) -> re.Pattern[str]:
    body = r"\s+".join(map(re.escape, value.split()))
    return re.compile(_BEFORE + body + _AFTER, re.IGNORECASE)


def said_words(value: str, texts: Iterable[str]) -> bool:
    """Whether the user wrote these words in this order, capitals aside."""
    if not value.strip():
        return False
    pattern = _words(value)
    return any(pattern.search(text) for text in texts)


def said_distinctly(value: str, texts: Iterable[str]) -> bool:
    """Whether the user wrote this as more than one ordinary word: in quotes, with a capital, a digit or a sign."""
    if not value.strip():
        return False
    several = len(value.split()) > 1
    for text in texts:
        for found in _words(value).finditer(text):
            if several or _stands_out(text, found.start(), found.end()):
                return True
    return False


def _stands_out(text: str, start: int, end: int) -> bool:
    found = text[start:end]
    quoted = text[start - 1 : start] in tuple(_QUOTES) and text[end : end + 1] in tuple(_QUOTES)
    # A capital that only starts a sentence makes no name.
    capital = found[:1].isupper() and text[:start].rstrip()[-1:] not in ("", ".", "!", "?")
    return quoted or capital or any(c.isdigit() or c in "@./_-" for c in found)


def said_beginning(beginnings: Iterable[str], texts: Iterable[str]) -> bool:
    """Whether the user said a word that begins so: `heat` is found in "turn the heating up"."""
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, beginnings))})", re.IGNORECASE)
    return any(pattern.search(text) for text in texts)


def said_secret(value: str, called: str, texts: Iterable[str]) -> bool:
    """Whether the user wrote this, exactly so, where they speak of it by the argument's name (`password`).

    It must stand in quotes or hold a digit or a sign: an ordinary word of a sentence is no password that was given.
    """
    exact = re.compile(r"(?<![\w-])" + re.escape(value) + r"(?![\w-])")
    nouns = [re.escape(word) for word in called.split("_") if len(word) >= 3]
    spoken = re.compile(rf"\b(?:{'|'.join(nouns) or re.escape(called)})", re.IGNORECASE)
    for text in texts:
        for found in exact.finditer(text) if value and spoken.search(text) else ():
            if text[found.start() - 1 : found.start()] in tuple(_QUOTES) or not value.isalpha():
                return True
    return False


def said_handle(value: str, of: str, texts: Iterable[str]) -> bool:
    """Whether the user meant this id: by something that can only be an id, or as `file 13`, `the nginx service`.

    An ordinary word or a bare number is not meant as an id: "June 13" does not name the file 13.
    """
    texts = tuple(texts)
    if not said_words(value, texts):
        return False
    if len(value) >= 3 and any(c.isalpha() for c in value) and said_distinctly(value, texts):
        return True
    kind, exact = re.escape(of), re.escape(value)
    noun = rf"{kind}s?\W{{0,3}}(?:with\s+)?(?:the\s+)?(?:ids?\b|number\b|no\b|nr\b|#)?"
    before = re.compile(rf"\b(?:{noun}|ids?\b|#)\W{{0,3}}{exact}{_AFTER}", re.IGNORECASE)
    after = re.compile(rf"{_BEFORE}{exact}\s+{kind}\b", re.IGNORECASE) if any(c.isalpha() for c in value) else None
    spoken = re.compile(rf"\b{kind}s?\b", re.IGNORECASE)
    return any(
        spoken.search(text) and (before.search(text) or (after is not None and after.search(text))) for text in texts
    )


def said_link(value: str, texts: Iterable[str]) -> bool:
    """Whether the user wrote this web address: the whole of it, and it is one."""
    is_one = "://" in value or value in tuple(links_in(value))
    return is_one and said_words(value, texts)


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


# -- inert text ----------------------------------------------------------------------------------------------------

_TOP_LEVEL = (
    "com|org|net|io|info|biz|dev|app|ai|co|me|tv|cc|xyz|top|site|online|shop|club|link|click|live|cloud|page|web|"
    "eu|de|uk|fr|it|es|nl|ch|at|se|no|fi|pl|cz|ru|ua|cn|jp|kr|in|br|au|ca|us|ly|gl|gg|to|su|tk|ml|ga|cf"
)
# Every pattern is linear in the text: what is repeated is bounded, or begins only where a token begins.
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,10}")
_LINK = re.compile(
    rf"(?:[a-z][a-z0-9+.-]{{0,20}}://\S+|\bwww\.\S+|(?<![\w@.-])(?:[\w-]+\.)+(?:{_TOP_LEVEL})\b(?:[/?#:]\S*)?"
    r"|\b(?:\d{1,3}\.){3}\d{1,3}\b\S*)",
    re.IGNORECASE,
)
_ACCOUNT = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){8,30}\b|(?<![\w.-])\+?\d(?:[ -]?\d){8,40}(?![\w.]\d)")
_TIME = re.compile(r"\d{4}-\d\d?-\d\d?(?:[T ]\d\d?:\d\d(?::\d\d)?)?")

_LOOKALIKES = str.maketrans(
    {"\uff0e": ".", "\u3002": ".", "\uff61": ".", "\uff0f": "/", "\uff1a": ":", "\uff20": "@"}
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", "")
)
"""What browsers and mail programs read as the plain sign, or as nothing."""


def links_in(text: str) -> Iterator[str]:
    """Yield the web addresses in a text, without the punctuation around them."""
    for found in _LINK.finditer(text):
        yield found[0].rstrip(".,;:!?)]}>'\"”’")


def contacts_in(text: str) -> Iterator[str]:
    """Yield what a reader could follow, write to or pay to: links, mail addresses, account and telephone numbers."""
    text = text.translate(_LOOKALIKES)
    yield from (found[0].rstrip(".") for found in _ADDRESS.finditer(text))
    yield from links_in(_ADDRESS.sub(" ", text))
    yield from (found[0] for found in _ACCOUNT.finditer(_TIME.sub(" ", _LINK.sub(" ", text))))


def not_inert(text: str, texts: Iterable[str]) -> str:
    """Return the first link, address or account number in `text` that the user did not write; '' if there is none."""
    said = tuple(texts)
    return next((each for each in contacts_in(text) if not said_words(each, said)), "")
