"""Where a value comes from. Now: whether it is quoted from what the user said.

The place for origin at the level of values (labels of tools, records that the user named, typed handles).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_NUMBER = re.compile(r"(?<![\w.,])-?\d+(?:\.\d+)?(?![\w]|[.,]\d)")

# A part of a longer address or path is not a quotation: 'evil.org' is not said by who says 'not-evil.org/x'.
_BEFORE = r"(?<![\w@/.+:-])"
_AFTER = r"(?![\w@/+-])(?![.:]\w)"


def quoted_from_user(value: Any, texts: Iterable[str]) -> bool:
    """Whether the user wrote this: a text as whole words, a number as a number, a list if all of it is."""
    match value:
        case bool() | None:
            return False  # A yes or a no cannot be quoted.
        case str():
            return bool(value.strip()) and any(_has_words(text, value.strip()) for text in texts)
        case int() | float():
            return any(float(n) == value for text in texts for n in _NUMBER.findall(text))
        case list():
            return bool(value) and all(quoted_from_user(each, texts) for each in value)
        case dict():
            return bool(value) and all(quoted_from_user(each, texts) for each in value.values())
        case _:
            return False


def _has_words(text: str, words: str) -> bool:
    return re.search(_BEFORE + re.escape(words) + _AFTER, text) is not None
