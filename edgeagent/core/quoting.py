"""What did the user say, and is a value quoted from it? Words as whole words, numbers as numbers, options by name.

The one test of it: rules (`arg("to").from_user`), `FromUser` and the grammar ask here. A span that `spans` gives is
always one that `has_words` finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from edgeagent.core.state import State

SPANS_MAX = 2_000
"""Spans of words that a grammar is made of: all of a text of 60 words; of more, the shorter ones."""

# A part of a longer address or path is not a quotation: 'evil.org' is not said by who says 'not-evil.org/x'.
_BEFORE = r"(?<![\w@/.+:-])"
_AFTER = r"(?![\w@/+-])(?![.:?&=#%]\w)"
_MAY_BEGIN, _MAY_END = re.compile(_BEFORE), re.compile(_AFTER)
_RUN = re.compile(r"[\w@/.+:-]+")

_PLAIN = r"[0-9]+(?:\.[0-9]+)?"
_GROUPED = r"[0-9]{1,3}(?:[,'’_\u00a0\u202f][0-9]{3})+(?:\.[0-9]+)?"
_SEPARATORS = str.maketrans("", "", ",'’_\u00a0\u202f")


def user_texts(state: State) -> tuple[str, ...]:
    """Return what the user said, oldest first: the exchanges the model still sees, and the running turn.

    In a session of a sub-agent that is what the user said to the first agent: the request is no person's word.
    """
    if state.heard is not None:
        return state.heard
    past = (m for exchange in state.past for m in exchange.messages)
    return tuple(m.text for messages in (past, state.current) for m in messages if m.role == "user")


def quoted_from_user(value: Any, texts: Iterable[str]) -> bool:
    """Whether the user wrote this: a text as whole words, a number as a number, a list if all of it is."""
    match value:
        case bool() | None:
            return False  # A yes or a no cannot be quoted.
        case str():
            return has_words(value.strip(), texts)
        case int() | float():
            return is_number_of(value, texts)
        case list():
            return bool(value) and all(quoted_from_user(each, texts) for each in value)
        case dict():
            return bool(value) and all(quoted_from_user(each, texts) for each in value.values())
        case _:
            return False


def has_words(words: str, texts: Iterable[str]) -> bool:
    """Whether one of the texts holds these words as they are, and not as a part of longer ones."""
    if not words.strip():
        return False
    pattern = _words(words)
    return any(pattern.search(text) is not None for text in texts)


@lru_cache(maxsize=512)
def _words(words: str) -> re.Pattern[str]:
    return re.compile(_BEFORE + re.escape(words) + _AFTER)


def spans(texts: Iterable[str]) -> Iterator[str]:
    """Yield each span of whole words that may be quoted, once: shorter ones first, newest text first; `SPANS_MAX`."""
    bounds = [(text, _word_bounds(text)) for text in reversed(tuple(texts))]
    seen: set[str] = set()
    for length in range(1, max((len(words) for _, words in bounds), default=0) + 1):
        for text, words in bounds:
            for first, last in zip(words, words[length - 1 :], strict=False):
                span = text[first.begin : last.end]
                if span not in seen and first.may_begin and last.may_end:
                    seen.add(span)
                    yield span
                if len(seen) >= SPANS_MAX:
                    return


class _Word(NamedTuple):
    begin: int
    end: int
    may_begin: bool
    may_end: bool


def _word_bounds(text: str) -> list[_Word]:
    """The words of a text, and which of them a quotation may begin or end with; without the full stop of a sentence."""
    bounds = []
    for run in _RUN.finditer(text):
        word = run[0].rstrip(".:")
        if any(char.isalnum() for char in word):
            begin, end = run.start(), run.start() + len(word)
            bounds.append(
                _Word(begin, end, _MAY_BEGIN.match(text, begin) is not None, _MAY_END.match(text, end) is not None)
            )
    return bounds


def numbers_in(texts: Iterable[str], *, units: bool = False, thousands: bool = False) -> Iterator[Decimal]:
    """Yield the number literals of the texts, exactly."""
    pattern = _numbers(units, thousands)
    for text in texts:
        for found in pattern.findall(text):
            yield Decimal(found.translate(_SEPARATORS))


@lru_cache(maxsize=4)
def _numbers(units: bool, thousands: bool) -> re.Pattern[str]:
    body = f"(?:{_GROUPED}|{_PLAIN})" if thousands else _PLAIN
    # A unit is a few letters and then a break; `1e3` and `0x1f` are none.
    end = r"(?=[^\W\d_]{1,4}(?!\w)|(?!\w))" if units else r"(?!\w)"
    return re.compile(rf"(?<![\w.,])-?{body}{end}(?![.,][0-9])")


def is_number_of(value: float, texts: Iterable[str], *, units: bool = False, thousands: bool = False) -> bool:
    """Whether one of the texts holds this number; integers are compared exactly, however large."""
    wanted = Decimal(value) if isinstance(value, int) else Decimal(repr(value))
    return any(each == wanted for each in numbers_in(texts, units=units, thousands=thousands))


def names_option(option: str, texts: Iterable[str]) -> bool:
    """Whether one of the texts names this option: capitals do not matter, and `soil_moisture` is `soil moisture`."""
    parts = [re.escape(part) for part in re.split(r"[\s_-]+", option) if part]
    if not parts:
        return False
    pattern = _option(r"[\s_-]+".join(parts))
    return any(pattern.search(text) is not None for text in texts)


@lru_cache(maxsize=512)
def _option(body: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){body}(?!\w)", re.IGNORECASE)
