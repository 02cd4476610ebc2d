"""Quotation: is a value taken from what the user said? Whole tokens of text, numbers as numbers, options by name.

The one definition of it: rules (`arg("to").from_user()`), labels, `FromUser` and the grammar ask here. A quotation may
begin and end beside a token or with one, never inside one, and a token is all that its own kind lets stand together:

    address o'brien@corp.com · web address https://x.org/?u=a@x.org · path /dev/ttyUSB0 · number 1,000 or 30kg
    account GB29 NWBK 6016 1331 9268 19 · telephone +44 20 5550 6666 · name Jean-Luc, O'Hara · word with all its marks

Words are as Unicode's annex 29 has them: in scripts without spaces each ideograph is one. Texts are compared in
normal form C, with white space of any length as one space. A span that `spans` gives is one that `has_words` finds.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple
from unicodedata import category, is_normalized, normalize

from edgeagent.core.state import State

SPANS_MAX = 2_000
"""Spans of words that a grammar is made of: all of a text of 60 words; of more, the shorter ones."""

LOOKED_AT_MAX = 25 * SPANS_MAX
"""Runs of words that are looked at for them: a text that repeats itself holds few different spans."""

_MARK = "\u0301"
"""Stands for any combining mark or invisible sign while tokens are looked for: it belongs to what is before it."""

_IDEOGRAPH = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_IDEOGRAPHS = re.compile(rf"[{_IDEOGRAPH}\U00020000-\U0003ffff]{_MARK}*")
"""Scripts in which words are not set apart: Thai, Lao, Burmese, Khmer, Hiragana, Han."""

_APOSTROPHES = "'’‘‛′´＇"
"""As people type them in names: O'Brien, O´Brien."""

_NARROW = "\u00a0\u2007\u2009\u202f"
"""Spaces that hold the digits of one number together."""

_JOINS = re.escape(f"@/\\.+:&%=?#~$*!^|`{{}}{_APOSTROPHES}·‧․-‐‑．／：＠")
_PART = rf"(?:[\w{_MARK}{_JOINS}]|(?<=[a-zA-Z0-9])[。｡](?=[a-z0-9])|(?<=[^\s\\]\\) (?=\w))"
"""What holds a token together: signs of names and addresses, a full stop that browsers read as a dot, a kept space."""
_CHUNK = re.compile(rf"{_PART}+(?:(?<=\d)[,{_NARROW}](?=\d){_PART}+)*")
_REST_OF_URL = re.compile(r"(?:[^\s<>\"“”«»]|(?<==)[<\"“«])*")
_REST_OF_PATH = re.compile(rf"(?:[,;()]+[\w{_MARK}{_JOINS}]+)*")
_GROUPS = re.compile(
    r"(?<![\w+-])(?:(?:\+\d{1,4}|00\d{1,3})(?:(?:\s+|-)\d{1,5})+|\d{4}(?:\s+\d{4}){2,}"
    r"|(?:\(\d{2,5}\)[\s/-]{0,3}\d{2,8}|0\d{2,5}[\s/-]{1,3}\d{3,8})(?:[\s-]\d{2,8}){0,3}"
    r"|[A-Z]{2}\d{2}(?:\s+[A-Z0-9]{4}){2,8}(?:\s+(?=[A-Z]*\d)[A-Z0-9]{1,4})?)(?!\w)"
)
_OPENING, _OPENING_OF_ADDRESS = f"!?^$#=&%~*|`{{}}{_APOSTROPHES}·‧", f"*|`{{}}{_APOSTROPHES}"
_CLOSING = f".:!?{_APOSTROPHES}`{{}}|~*^$#=&%\\·‧,;)]．：․。｡"
_POSSESSIVE = re.compile(rf"(?<=[\w{_MARK}])['’]s\Z")
_NEXT_SENTENCE = re.compile(r"(?<=[a-z0-9])\.[A-Z][a-z]{3,}\Z")
"""A long word with a capital, behind an address in small letters: www.firm.example.They (but not firm.co.Uk)."""
_SPACE = re.compile(rf"(?<=\d)[{_NARROW}](?=\d)|\s+")
_HOST = re.compile(r"[^\W\d]\.[^\W\d]")

_PLAIN = r"[0-9]+(?:\.[0-9]+)?"
_GROUPED = rf"[0-9]{{1,3}}(?:[,'’_{_NARROW}][0-9]{{3}})+(?:\.[0-9]+)?"
_SEPARATORS = str.maketrans("", "", f",'’_{_NARROW}")
_MINUS = str.maketrans(dict.fromkeys("−﹣－‐‑–", "-"))
"""Other signs for minus, and dashes that are typed for it."""

_TIMES = r"(?:[kKGT]|[Mm]io|[Mm]rd|[Mm]ln|[Bb]n|[Tt]sd)(?!\w)"
"""Letters behind a number that multiply it: 5k is not five of anything."""

_NOT_A_LETTER = "\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u209f\u2150-\u218f\u2460-\u24ff"
"""Powers and fractions, which are no units: 10⁶, 5½."""

_CURRENCIES = "$€£¥₹₽"


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
            return has_words(value, texts)
        case int() | float():
            return is_number_of(value, texts)
        case list():
            return bool(value) and all(quoted_from_user(each, texts) for each in value)
        case dict():
            return bool(value) and all(quoted_from_user(each, texts) for each in value.values())
        case _:
            return False


# -- tokens --------------------------------------------------------------------------------------------------------


class Token(NamedTuple):
    """Where a token stands. `owner_end` is where it ends without an English genitive: Bob in "Bob's".

    `opaque` is one whose digits are no numbers: an address, a path.
    """

    begin: int
    end: int
    owner_end: int
    opaque: bool = False


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a text, in order. Linear in the text."""
    shadow = text if text.isascii() else "".join(_MARK if _is_mark(c) else c for c in text)
    found: list[Token] = []
    at = 0
    groups = [(g.start(), g.end()) for g in _GROUPS.finditer(shadow)]
    while chunk := _CHUNK.search(shadow, at):
        begin, at = chunk.span()
        if chunk[0].startswith("@") and shadow[begin - 1 : begin] == '"':  # "a b"@host is one address.
            opening = shadow.rfind('"', 0, begin - 1)
            while found and found[-1].begin > opening >= 0:
                begin = found.pop().begin
            found.append(Token(begin, at, at, opaque=True))
            continue
        if groups and groups[0][0] < at:
            begin, at = at - len(chunk[0].lstrip(_OPENING)), max(at, groups.pop(0)[1])
            found.append(Token(begin, at, at, opaque=True))
            continue
        if "://" in chunk[0] or chunk[0].endswith("@"):
            at = _end(_REST_OF_URL, shadow, at)
        elif "/" in chunk[0] or "?" in chunk[0][:-1]:
            at = _end(_REST_OF_PATH, shadow, at)
        found.extend(_tokens_in(shadow[begin:at], begin))
    return found


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    rest = pattern.match(text, at)
    return rest.end() if rest else at


def _is_mark(char: str) -> bool:
    return not char.isascii() and category(char) in ("Mn", "Mc", "Me", "Cf")


def _tokens_in(chunk: str, offset: int) -> Iterator[Token]:
    """Yield the token that a chunk is, without the signs around it; or its words, if it is nothing but words."""
    token = chunk.lstrip(_OPENING_OF_ADDRESS if "@" in chunk else _OPENING)
    begin = offset + len(chunk) - len(token)
    stripped = token.rstrip(_CLOSING)
    token = stripped + (")" if "(" in stripped and token[len(stripped) :].startswith(")") else "")
    if not any(map(str.isalnum, token)):
        return
    end = begin + len(token)
    if not token.isascii() and all(c.isalnum() or c in f"{_APOSTROPHES}·‧-‐‑_" or c == _MARK for c in token):
        yield from _words_in(token, begin)
        return
    sentence = _NEXT_SENTENCE.search(token)
    if sentence and "." in token[: sentence.start()] and "/" not in token and token[: sentence.start()].islower():
        yield Token(begin, begin + sentence.start(), begin + sentence.start(), True)
        yield Token(begin + sentence.start() + 1, end, end)
        return
    owner = _POSSESSIVE.search(token)
    yield Token(begin, end, begin + owner.start() if owner else end, _is_opaque(token))


def _is_opaque(token: str) -> bool:
    if any(sign in token for sign in "@\\＠") or "://" in token or token.startswith(("/", "./", "~/", "../")):
        return True
    return (token.count("/") > 1 and any(map(str.isalpha, token))) or _HOST.search(token) is not None


def _words_in(token: str, offset: int) -> Iterator[Token]:
    """Yield the ideographs of a token, and what stands between them."""
    at = 0
    for found in _IDEOGRAPHS.finditer(token):
        if found.start() > at:
            yield Token(offset + at, offset + found.start(), offset + found.start())
        yield Token(offset + found.start(), offset + found.end(), offset + found.end())
        at = found.end()
    if at < len(token):
        owner = _POSSESSIVE.search(token, at)
        owned = owner.start() if owner and owner.start() > at else len(token)
        yield Token(offset + at, offset + len(token), offset + owned)


class Reading:
    """A text as quotations are looked for in it: `text` in normal form, and where its tokens stand."""

    def __init__(self, text: str) -> None:
        self.text = _normal(text)
        self.lower = "".join(low if len(low := c.lower()) == 1 else c for c in self.text)
        self._tokens = tokens_of(self.text)
        self._ends = [token.end for token in self._tokens]

    def may_begin(self, at: int) -> bool:
        """Whether a quotation may begin here: not inside a token."""
        return self._next_begin(at) == at

    def may_end(self, at: int) -> bool:
        """Whether a quotation may end here: not inside a token, but before a genitive."""
        token = self._token_at(at)
        return token is None or token.begin >= at or at == token.owner_end

    def is_opaque(self, at: int) -> bool:
        """Whether the character here is a part of an address or a path."""
        token = self._token_at(at)
        return token is not None and token.begin <= at and token.opaque

    def _next_begin(self, at: int) -> int:
        """Return the first place from here on at which a quotation may begin."""
        token = self._token_at(at)
        return at if token is None or token.begin >= at else token.end

    def _token_at(self, at: int) -> Token | None:
        """Return the first token that does not end before this character."""
        index = bisect_right(self._ends, at)
        return self._tokens[index] if index < len(self._tokens) else None

    def occurrences(self, words: str, *, capitals: bool = True) -> Iterator[tuple[int, int]]:
        """Yield where these words are quoted, as begin and end in `text`."""
        wanted = _normal(words).strip()
        within, wanted = (self.text, wanted) if capitals else (self.lower, Reading(wanted).lower)
        at = within.find(wanted) if wanted else -1
        while at >= 0:
            begin = self._next_begin(at)
            if begin == at and self.may_end(at + len(wanted)):
                yield at, at + len(wanted)
            at = within.find(wanted, max(at + 1, begin))


def _normal(text: str) -> str:
    plain = text if text.isascii() else normalize("NFC", text)
    return _SPACE.sub(lambda found: found[0] if found[0] in _NARROW else " ", plain)


@lru_cache(maxsize=128)
def reading_of(text: str) -> Reading:
    """Return the text, ready for questions."""
    return Reading(text)


def has_words(words: str, texts: Iterable[str], *, capitals: bool = True) -> bool:
    """Whether one of the texts holds these words, and not as a part of longer ones; `capitals` may not matter."""
    readings = map(reading_of, texts)
    return any(next(each.occurrences(words, capitals=capitals), None) is not None for each in readings)


def spans(texts: Collection[str]) -> Iterator[str]:
    """Yield each span of whole words that may be quoted, once: shorter ones first, newest text first; `SPANS_MAX`."""
    words = [(text, tokens_of(text)) for text in reversed(tuple(texts))]
    looked_at = dict.fromkeys(islice(_runs(words), LOOKED_AT_MAX))
    odd = [text for text, _ in words if not is_normalized("NFC", text)]  # There a mark may join with what is before it.
    yield from islice((span for span in looked_at if not odd or has_words(span, texts)), SPANS_MAX)


def _runs(texts: list[tuple[str, list[Token]]]) -> Iterator[str]:
    for length in range(1, max((len(words) for _, words in texts), default=0) + 1):
        for text, words in texts:
            for first, last in zip(words, islice(words, length - 1, None), strict=False):
                yield text[first.begin : last.end]
                if last.owner_end != last.end:
                    yield text[first.begin : last.owner_end]


# -- numbers and options -------------------------------------------------------------------------------------------


def numbers_in(texts: Iterable[str], *, units: bool = False, thousands: bool = False) -> Iterator[Decimal]:
    """Yield the number literals of the texts, exactly; those inside addresses and paths are none."""
    pattern = _numbers(units)
    for text in texts:
        reading = reading_of(text)
        apart = reading.text if text.isascii() else _IDEOGRAPHS.sub(lambda found: " " * len(found[0]), reading.text)
        for found in pattern.finditer(apart.translate(_MINUS)):
            number = found[0].translate(_SEPARATORS)
            if not reading.is_opaque(found.start()) and (thousands or len(number) == len(found[0])):
                yield Decimal(number)


@lru_cache(maxsize=2)
def _numbers(units: bool) -> re.Pattern[str]:
    # A unit is a few letters and then a break; `1e3` and `0x1f` are none.
    end = rf"(?!{_TIMES})(?=(?![{_NOT_A_LETTER}])[^\W\d_]{{1,4}}(?!\w)|(?!\w))" if units else r"(?!\w)"
    apart = rf"(?![.,'’{_NARROW}{_CURRENCIES}][0-9])(?!\^|\*\*)"
    before = rf"(?<![\w.,^])(?<!\*\*)(?<![0-9]['’{_NARROW}{_CURRENCIES}])"
    return re.compile(rf"{before}-?(?:{_GROUPED}|{_PLAIN}){end}{apart}")


def is_number_of(value: float, texts: Iterable[str], *, units: bool = False, thousands: bool = False) -> bool:
    """Whether one of the texts holds this number; integers are compared exactly, however large."""
    wanted = Decimal(value) if isinstance(value, int) else Decimal(repr(value))
    return any(each == wanted for each in numbers_in(texts, units=units, thousands=thousands))


def names_option(option: str, texts: Iterable[str]) -> bool:
    """Whether one of the texts names this option: capitals do not matter, and `soil_moisture` is `soil moisture`."""
    parts = [re.escape(_normal(part)) for part in re.split(r"[\s_-]+", option) if part]
    if not parts:
        return False
    pattern = _option(r"[\s_-]+".join(parts))
    readings = map(reading_of, texts)
    return any(r.may_begin(f.start()) and r.may_end(f.end()) for r in readings for f in pattern.finditer(r.text))


@lru_cache(maxsize=512)
def _option(body: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){body}(?!\w)", re.IGNORECASE)
