"""How does an argument get into a device's command without becoming a second command? Pure: text in, text out.

Two walls, each enough alone: when a profile is loaded, an argument whose declared type could hold a dangerous
character is refused; when a command is made, the very text is checked again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, assert_never

from edgeagent.errors import ConfigError
from edgeagent.shape import pattern as patterns

Quoting = Literal["none", "posix", "single", "python"]
"""How this device's command line is protected.

`none`: nothing is quoted, so only harmless characters may be written. `posix`: 'single quotes' of a shell, in which
only the quote itself ends the text. `single`: single quotes of a simpler shell (U-Boot), where also `$`, `;` and the
backslash are kept out. `python`: a literal of Python, as a REPL reads it.
"""

WORD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,:/@%+=-"
"""Characters that no command line we know gives a meaning of its own inside a word."""

_PRINTABLE = "".join(chr(code) for code in range(0x20, 0x7F))
_ALLOWED: dict[Quoting, frozenset[str]] = {
    "none": frozenset(WORD),
    "posix": frozenset(_PRINTABLE) - frozenset("'"),
    "single": frozenset(_PRINTABLE) - frozenset("'\"\\$;`&|<>!#*?{}[]()"),
    "python": frozenset(_PRINTABLE),
}

# `${n}` belongs to the device; only a bare `{n}` is ours.
_PLACE = re.compile(r"(?<!\$)\{([a-z_][a-z0-9_]*)\}")


def places(template: str) -> tuple[str, ...]:
    """Return the names of the arguments that a command template uses, each once, in order."""
    return tuple(dict.fromkeys(_PLACE.findall(template)))


def check_template(template: str, where: str) -> None:
    """Refuse a template that is not one line of printable text, or that puts quotes around an argument itself."""
    bad = [c for c in template if not 0x20 <= ord(c) <= 0x7E]
    if bad or not template.strip():
        found = f"holds {bad[0]!r}" if bad else "is empty"
        raise ConfigError(f"{where}.command {found}; it must be one line of printable ASCII")
    quoted = _quoted_place(template)
    if quoted:
        raise ConfigError(f"{where}.command puts quotes around {quoted}: leave them out, arguments are quoted for you")


def _quoted_place(template: str) -> str:
    for found in _PLACE.finditer(template):
        open_quote = ""
        for char in template[: found.start()]:
            if char == open_quote:
                open_quote = ""
            elif char in "'\"" and not open_quote:
                open_quote = char
        if open_quote:
            return found.group()
    return ""


def check_text_argument(pattern: str, quoting: Quoting, where: str) -> None:
    """Refuse free text that could hold a character with a meaning to the device's command line."""
    if not pattern:
        raise ConfigError(
            f"{where} is free text without a pattern, so it could hold a second command: give it a pattern such as "
            f"[A-Za-z0-9_.-]{{1,32}}, or the type word, choice or integer"
        )
    allowed = _ALLOWED[quoting]
    ranges = _characters(pattern, where)
    outside = [chr(code) for low, high in ranges for code in _sample(low, high) if chr(code) not in allowed]
    if outside:
        raise ConfigError(
            f"{where}.pattern {pattern!r} lets {outside[0]!r} through, which this device's command line could take "
            f"for more than text (quoting {quoting!r}): name the characters that are wanted"
        )


def anchored(pattern: str) -> str:
    """Return the pattern so that it speaks of the whole text, as profiles mean it."""
    return f"^(?:{pattern})$"


def _characters(pattern: str, where: str) -> list[tuple[int, int]]:
    try:
        tree = patterns.parse(anchored(pattern))
    except patterns.PatternError as error:
        raise ConfigError(f"{where}.pattern {pattern!r}: {error}") from None
    return list(_ranges(tree))


def _ranges(tree: patterns.Tree) -> list[tuple[int, int]]:
    match tree:
        case patterns.Chars():
            return list(tree.ranges)
        case patterns.Seq():
            return [each for part in tree.parts for each in _ranges(part)]
        case patterns.Alt():
            return [each for option in tree.options for each in _ranges(option)]
        case patterns.Repeat():
            return _ranges(tree.item)
        case patterns.Edge():
            return []
        case _:
            assert_never(tree)


def _sample(low: int, high: int) -> range:
    """All of a range as far as ASCII goes, and one character beyond: everything beyond is refused anyway."""
    return range(low, max(low, min(high, 0x80)) + 1)


def filled(template: str, arguments: Mapping[str, Any], quoting: Quoting) -> str:
    """Return the command with its arguments in place. Raises ValueError when one is not harmless after all."""

    def place(found: re.Match[str]) -> str:
        return written(arguments[found.group(1)], quoting, found.group(1))

    return _PLACE.sub(place, template)


def written(value: Any, quoting: Quoting, name: str) -> str:
    """Return one argument as this device's command line must see it. Raises ValueError naming it."""
    if quoting == "python":
        return _python_literal(value, name)
    text = _plain(value)
    if isinstance(value, str) and text.startswith("-"):
        raise ValueError(f"{name} begins with '-', which the device could take for an option")
    if text and all(c in WORD for c in text):
        return text
    wrong = [c for c in text if c not in _ALLOWED[quoting]]
    if wrong or not text:
        raise ValueError(
            f"{name} holds {wrong[0]!r}, which this device could take for a command" if wrong else f"{name} is empty"
        )
    return f"'{text}'"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        return format(value, ".10g")
    return str(value)


def _python_literal(value: Any, name: str) -> str:
    if not isinstance(value, str):
        return repr(value)
    wrong = [c for c in value if c not in _ALLOWED["python"]]
    if wrong:
        raise ValueError(f"{name} holds {wrong[0]!r}; printable ASCII only")
    return ascii(value)
