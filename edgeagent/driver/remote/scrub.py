"""Scrubbing: what a server sends back has no key in it, whole or encoded, nor where it came in two reads."""

from __future__ import annotations

import base64
import re
from urllib.parse import quote

from edgeagent.driver.remote.secret import Secret

SCRUBBED = "[secret]"

SPACES_MAX = 3
"""Between two signs of a key: programs break what is long into lines."""


class Scrub:
    """Texts without one key. A whole text goes through `text`; a stream through a `Stream` of its own."""

    def __init__(self, secret: Secret | None) -> None:
        needles = () if secret is None else _needles(secret.told())
        wrapped = (rf"\s{{0,{SPACES_MAX}}}".join(map(re.escape, each)) for each in needles)
        parts = [*wrapped, *(() if secret is None else (_mixed(secret.told()),))]
        self.forms: tuple[Form, ...] = tuple(tuple((char,) for char in each.casefold()) for each in needles)
        if secret is not None:
            self.forms += (tuple(map(_spellings, secret.told())),)
        self.span = max((SPACES_MAX + 6) * len(form) for form in self.forms) if self.forms else 0
        self._pattern = re.compile("|".join(parts), re.IGNORECASE) if parts else None

    def text(self, text: str) -> str:
        """The text with the key taken out."""
        return text if self._pattern is None else self._pattern.sub(SCRUBBED, text)

    def stream(self) -> Stream:
        """A stream that is scrubbed as it comes."""
        return Stream(self)


class Stream:
    """Text in pieces: what may be the beginning of the key waits until it is known not to be."""

    def __init__(self, scrub: Scrub) -> None:
        self._scrub, self._held = scrub, ""

    def feed(self, piece: str) -> str:
        """What may be shown now."""
        text = self._scrub.text(self._held + piece)
        hold = self._open_end(text)
        self._held = text[len(text) - hold :]
        return text[: len(text) - hold]

    def end(self) -> str:
        """What was held back, when nothing follows."""
        held, self._held = self._scrub.text(self._held), ""
        return held

    def _open_end(self, text: str) -> int:
        """How long an end of the text the key, in one of its forms, may begin with."""
        folded, forms = text.casefold(), self._scrub.forms
        if not forms or len(folded) != len(text):
            return len(text) if forms and len(text) < self._scrub.span else 0
        for start in range(max(0, len(folded) - self._scrub.span), len(folded)):
            if any(_is_open(form, folded[start:]) for form in forms):
                return len(folded) - start
        return 0


Form = tuple[tuple[str, ...], ...]
"""The key, each of its signs with the ways in which it may be written."""


def _is_open(form: Form, text: str) -> bool:
    """Whether the text ends before this form of the key does, and is its beginning."""
    places = {0}
    for spellings in form:
        following: set[int] = set()
        for at in places:
            if any(each.startswith(text[at:]) for each in spellings):
                return True
            following.update(at + len(each) for each in spellings if text.startswith(each, at))
        spaces = {at + n for at in following for n in range(1, SPACES_MAX + 1) if text[at : at + n].isspace()}
        places = following | spaces
        if not places:
            return False
    return False


def _spellings(char: str) -> tuple[str, ...]:
    """How URLs, JSON and HTML may write a sign."""
    code = ord(char)
    told = (char, f"%{code:02x}", f"%25{code:02x}", f"\\u00{code:02x}", f"\\x{code:02x}", f"&#{code};", f"&#x{code:x};")
    return (*(each.casefold() for each in told), f"\\{char.casefold()}")


def _needles(key: str) -> tuple[str, ...]:
    """The key as it is and as programs encode it; of base64 what does not depend on what stands around it."""
    raw = key.encode()
    found = [key, quote(key, safe=""), "".join(f"%{byte:02x}" for byte in raw), raw.hex(), key[::-1]]
    found.append("".join(f"\\u{byte:04x}" for byte in raw))
    found.append(base64.b32encode(raw).decode().rstrip("="))
    for before in range(3):
        spelled = base64.b64encode(b"\0" * before + raw).decode().rstrip("=")
        inner = spelled[(0, 2, 3)[before] :]
        # The last sign holds bits of what follows, unless the key ends where a group does.
        inner = inner if (before + len(raw)) % 3 == 0 else inner[:-1]
        found += [inner, inner.replace("+", "-").replace("/", "_")]
    return tuple(dict.fromkeys(each for each in found if len(each) >= 6))


def _mixed(key: str) -> str:
    """A pattern of the key with any of its characters written as URLs, JSON or HTML write them."""
    return "".join(
        rf"(?:{re.escape(char)}|%(?:25)*{ord(char):02x}|\\{{1,4}}u00{ord(char):02x}|\\{{1,4}}x{ord(char):02x}"
        rf"|&#(?:0*{ord(char)}|x0*{ord(char):x});|\\{{1,4}}{re.escape(char)})"
        for char in key
    )
