"""Inert text: it holds nothing that a reader could follow, write to, call or pay to. By form, not by a list of names.

Loud is whatever has one of these forms, also behind what browsers and mail programs read as the plain sign:

    word.word  evil.zip/x, report.docx          word@word, @name      scheme:x, //host, \\\\host
    digits in groups, or nine and more          letters and digits    of 20 signs and more (wallets, keys)
    GB29NWBK6016…, in any case, in groups       2001:db8::1           аpple (letters of two scripts in one word)

Numbers, dates, times and versions are not; nor are abbreviations of single letters. Every pattern is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from unicodedata import name, normalize

from edgeagent.core.quoting import has_words, tokens_of

_UNSEEN = dict.fromkeys(map(ord, "\u00ad\u034f\u061c\u115f\u1160\u180e\ufeff\u3164\uffa0"))
_UNSEEN |= dict.fromkeys([*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)])
_UNSEEN |= dict.fromkeys([*range(0xFE00, 0xFE10), *range(0xE0000, 0xE0200)])
"""Signs that show nothing: a name is the same with and without them."""

_DOTS = str.maketrans({"\u3002": ".", "\u2024": ".", "\u06d4": ".", "\u2044": "/", "\u2215": "/", "\u0589": ":"})
_DOTS |= dict.fromkeys([*range(0x2010, 0x2016), 0x2212], "-")

_DEFANGED = (
    (re.compile(r"(?<=\w)\s?[\[({<]\s?(?:\.|dot|punkt)\s?[\])}>]\s?(?=\w)", re.IGNORECASE), "."),
    (re.compile(r"(?<=\w)\s?[\[({<]\s?(?:@|at)\s?[\])}>]\s?(?=\w)", re.IGNORECASE), "@"),
    (re.compile(r"(?<=\w)\s?[\[({<]:[\])}>]\s?(?=[\w/])"), ":"),
    (re.compile(r"(?<=\w) dot (?=\w)", re.IGNORECASE), "."),
    (re.compile(r"(?<=\w) \. ?(?=[^\W\d_]{2})"), "."),
    (re.compile(r"(?<=\w)(?!(?<=l).l)[\u00b7\u2022\u2219\u22c5\u30fb](?=\w)"), "."),  # Not the Catalan l·l.
    (re.compile(r"%2e|&(?:#0*46|#x0*2e|period);|\\(?:u00|x)2e|(?<=\w)\\\.(?=\w)", re.IGNORECASE), "."),
    (re.compile(r"%40|&(?:#0*64|#x0*40|commat);|\\(?:u00|x)40", re.IGNORECASE), "@"),
    (re.compile(r"%3a|&(?:#0*58|#x0*3a|colon);|\\(?:u00|x)3a", re.IGNORECASE), ":"),
    (re.compile(r"%2f|&(?:#0*47|#x0*2f|sol);|\\(?:u00|x)2f", re.IGNORECASE), "/"),
)
"""How addresses are written so that programs do not see them, and people do."""

_HOST = re.compile(r"(?<=[\w-])\.(?=[^\W\d_][\w-])")
_AT = re.compile(r"[\w\"'+]@[\w\[]|(?<!\w)@\w{2}")
_SLASHES = re.compile(r"://|^//\w|^\\\\\w")
_IP4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]\d)|(?<!\w)0x[0-9a-f]{8}(?!\w)", re.IGNORECASE)
_IP6 = re.compile(r"(?:[0-9a-f]{0,4}:){4}|[0-9a-f]{1,4}::|::[0-9a-f]{1,4}", re.IGNORECASE)
_SCHEME = re.compile(r"(?<![\w.+-])[a-z][a-z0-9+.-]+:\d*[^\W\d_]|^(?:tel|sms|fax|callto|whatsapp):", re.IGNORECASE)
_NAMES = re.compile(r"(?<![\w-])xn--\w|[^\W\d_]{3}#\d{4}(?!\w)", re.IGNORECASE)
_LOUD = (_HOST, _AT, _SLASHES, _IP4, _IP6, _SCHEME, _NAMES)

_MARKUP = re.compile(
    r"\]\(\S|<(?:a|img|form|iframe|script|meta|link)\s[^>]{1,200}|\b(?:href|src)\s?=\s?\S", re.IGNORECASE
)
_SPELLED = re.compile(r"(?<!\w)(?:\w[ .]{1,3}){6,200}\w(?!\w)")
"""Letters and digits set apart one by one: `e v i l . c o m`."""

_KEY = re.compile(r"[^\W_]{20,}")
_ACCOUNT = re.compile(r"(?<!\w)[a-z]{2}\d{2}[a-z0-9]{8,30}(?!\w)", re.IGNORECASE)
_ACCOUNT_IN_GROUPS = re.compile(
    r"(?<!\w)[a-z]{2}\d{2}(?:[ .-][a-z0-9]{4}){2,7}(?:[ .-][a-z0-9]{1,4})?(?!\w)", re.IGNORECASE
)
_DIGITS = re.compile(r"(?<![\w.])\+?\(?\d(?:[ ./()-]{0,3}\d){6,40}(?!\w)")
_NO_NUMBER_TO_CALL = re.compile(
    r"(?<!\d)\d{4}-\d\d?-\d\d?(?:[T ]\d\d?:\d\d(?::\d\d)?(?:\.\d{1,6})?Z?)?(?!\d)"  # a date, a moment
    r"|(?<!\d)\d\d?[./]\d\d?[./]\d{4}(?!\d)|(?<!\d)\d\d?[.:]\d\d(?:[.:]\d\d)?(?:\s?-\s?\d\d?[.:]\d\d)?(?!\d)"  # a span
    r"|(?<![\d,.])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])|(?<![\d,.])\d{1,3}(?:\.\d{3})+,\d+(?!\d)|(?<![\d.])\d+\.\d+(?![\d.])"
)
DIGITS_IN_GROUPS, DIGITS_AT_ALL = 7, 9
"""Digits from which on a number may be one to call or to pay to: with signs or spaces in it, or none."""

_WHERE = re.compile(r"[a-z][a-z0-9+.-]{0,20}://\S|www\.\w|(?:[\w-]+\.)+[^\W\d_][\w-]+(?::\d+)?/", re.IGNORECASE)


def links_in(text: str) -> Iterator[str]:
    """Yield the web addresses in a text: those that say it by `://`, `www.` or a path behind a host."""
    for token in _tokens(text):
        if _WHERE.match(token):
            yield token


def contacts_in(text: str) -> Iterator[str]:
    """Yield what is loud in a text."""
    plain = normalize("NFKC", text.translate(_DOTS)).translate(_UNSEEN | _DOTS)
    yield from (found[0] for found in _SPELLED.finditer(plain))
    for pattern, sign in _DEFANGED:
        plain = pattern.sub(sign, plain)
    for token in _tokens(plain):
        if any(pattern.search(token) for pattern in _LOUD) or _is_key(token) or _mixes_scripts(token):
            yield token
    for pattern in (_MARKUP, _ACCOUNT):
        yield from (found[0] for found in pattern.finditer(plain))
    yield from (f[0] for f in _ACCOUNT_IN_GROUPS.finditer(plain) if sum(map(str.isdigit, f[0])) >= DIGITS_IN_GROUPS)
    for found in _DIGITS.finditer(_NO_NUMBER_TO_CALL.sub(" ; ", plain)):
        digits = sum(map(str.isdigit, found[0]))
        if digits >= (DIGITS_AT_ALL if found[0].isdigit() else DIGITS_IN_GROUPS):
            yield found[0]


def not_inert(text: str, texts: Iterable[str]) -> str:
    """Return the first thing in `text` that is loud and that the user did not write; '' if there is none."""
    said = tuple(texts)
    return next((each for each in contacts_in(text) if not has_words(each, said, capitals=False)), "")


def _tokens(text: str) -> Iterator[str]:
    return (text[token.begin : token.end] for token in tokens_of(text))


def _is_key(token: str) -> bool:
    found = _KEY.search(token)
    return found is not None and not found[0].isalpha() and not found[0].isdigit()


def _mixes_scripts(token: str) -> bool:
    """Whether one word has letters that look alike in two alphabets: `pаypal`. Short ones may be units: `kΩ`."""
    words = () if token.isascii() else re.findall(r"[^\W\d_]+", token)
    mixed = ((word, {_alphabet(c) for c in word} - {""}) for word in words)
    return any(len(scripts) > 1 and (len(word) > 3 or "GREEK" not in scripts) for word, scripts in mixed)


def _alphabet(letter: str) -> str:
    script = "LATIN" if letter.isascii() else name(letter, "").partition(" ")[0]
    return script if script in ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU") else ""
