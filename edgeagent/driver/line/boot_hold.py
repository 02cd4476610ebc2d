"""Key that holds a boot loader, read from what it offers: "Hit any key to stop autoboot", "press 'x' to abort". Pure.

Law: a key is read only where it is said to stop the boot or to lead to a prompt; one that boots at once, recovers or
restores is nobody's wish. Nothing is read from a line that asks for a password. The words are in `consoles.toml`.
"""

from __future__ import annotations

import re
from functools import cache

from edgeagent.driver.line.consoles import BootHolds, boot_holds

CLAUSES = re.compile(r"[,;] +(?:or +|and +)?|\. +|\s-+\s| or |: +(?=[A-Za-z])")
COUNTED = re.compile(r"[\s\d.:>s]*")
"""What counts down on a line of its own, below the offer."""

LINES_BACK = 3
UNKNOWN = re.compile(r"(?i:f\d{1,2}|pf\d|arrow\w*|up|down|left|right|break|fn|shift|alt.*|any.*|\W{2,})")
"""Quoted names of keys that we cannot type; every other word in quotes is typed as it stands."""

PASSWORD = re.compile(r"(?i:pass(?:word|phrase|code)\b)")


def offer_in(text: str) -> str:
    """Return the line that may offer something: the last one, or the one above its count-down."""
    return next((line for line in text.split("\n")[: -LINES_BACK - 1 : -1] if not COUNTED.fullmatch(line)), "")


def hold_key(line: str) -> str:
    """Return the key or word that holds the boot loader which shows this line; nothing where it offers none."""
    known, since = boot_holds(), ""
    if PASSWORD.search(line) or any(re.search(each, line) for each in known.other):
        return ""
    if named := next((each.key for each in known.unnamed if re.search(each.shows, line)), ""):
        return named
    for clause in CLAUSES.split(line):
        verb = re.search(known.verbs, clause)
        found = _keys().match(clause, verb.end() if verb else 0)
        key = "" if found is None or (found["letter"] and not verb) else _typed(found)
        if found is None or not key:
            since += f" {clause}"
        elif _holds(since + clause[: found.start()], clause[found.end() :], line, known):
            return key
        else:
            since = ""
    return ""


def _holds(before: str, after: str, line: str, known: BootHolds) -> bool:
    """Whether what stands around a key says that it holds the boot."""
    if any(re.search(each, after) for each in known.why):
        return True
    if re.search(r"\b(?:to|for)\b(?! ?\d)", after):
        return False  # It does something else.
    return any(re.search(each, before) for each in known.why) or bool(re.search(known.counts, line))


@cache
def _keys() -> re.Pattern[str]:
    """A key as it is named in an offer."""
    names = "|".join(sorted(set(boot_holds().keys) - {"any"}, key=len, reverse=True))
    return re.compile(
        rf"""[\s*=]*(?:the\ |an?\ )?(?:keys?\ |letter\ |word\ |string\ )?(?:
          (?P<control>(?:(?i:ctrl|control)(?:\ ?[+-]\ ?|\ )|\^)["'`<]?(?:[A-Za-z]\b|[\[\\\]])["'`>]?)
        | ["'`<\[(]{{1,2}}(?P<quoted>[^"'`<>\[\]()\n]{{1,20}})["'`>\])]{{1,2}}
        | (?P<named>(?i:any(?:\ (?:other|keyboard))?\ key|(?:{names})(?:\ ?bar)?))\b
        | (?P<letter>[a-z0-9])\b(?!['-])
        )(?:\ (?:keys?|button)\b)?""",
        re.VERBOSE,
    )


def _typed(found: re.Match[str]) -> str:
    """What pressing it sends; nothing for a key that cannot be typed."""
    if found["control"]:
        return chr(ord(found["control"].rstrip("\"'`>")[-1].upper()) & 0x1F)
    if found["letter"]:
        return found["letter"]
    name = found["named"] or found["quoted"].strip()
    inner = _keys().fullmatch(name)
    if inner and inner["control"]:
        return _typed(inner)
    if inner and inner["named"]:
        word = re.sub(r"(?i: ?bar| key| other| keyboard)$", "", inner["named"].lower())
        return boot_holds().keys["any" if word.startswith("any") else word]
    return "" if UNKNOWN.fullmatch(name) or not name.isascii() else name
