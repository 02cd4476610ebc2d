"""Consoles that are known by what they show, and what pagers look like. The data is in `consoles.toml`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

TABLE = Path(__file__).with_name("consoles.toml")


class Pager(Struct, frozen=True, forbid_unknown_fields=True):
    """What a pager shows while it waits, and the key that goes on."""

    shows: str
    key: str


class Kind(Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of console: what it shows, and what is said of it beyond the profile that it extends."""

    about: str
    extends: str
    shows: tuple[str, ...] = ()
    prompt: str = ""
    profile: dict[str, Any] = {}


class Unnamed(Struct, frozen=True, forbid_unknown_fields=True):
    """An offer that does not say its key."""

    shows: str
    key: str


class BootHolds(Struct, frozen=True, forbid_unknown_fields=True):
    """Words by which boot loaders offer to be held: keys by name, verbs, reasons, other purposes, count-downs."""

    keys: dict[str, str]
    verbs: str
    why: tuple[str, ...]
    other: tuple[str, ...]
    counts: str
    unnamed: tuple[Unnamed, ...]


NO_KIND = ("pagers", "boot_holds", "ends_session")


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


@cache
def kinds() -> dict[str, Kind]:
    """Return the kinds that are known, by name."""
    return msgspec.convert({name: row for name, row in _table().items() if name not in NO_KIND}, dict[str, Kind])


@cache
def known_pagers() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the pagers that are known, in the order in which they are tried."""
    pagers = msgspec.convert(_table()["pagers"], tuple[Pager, ...])
    return tuple((re.compile(pager.shows), pager.key) for pager in pagers)


@cache
def session_ends() -> re.Pattern[str]:
    """Return what begins a command that ends a session."""
    return re.compile(_table()["ends_session"])


@cache
def boot_holds() -> BootHolds:
    """Return the words by which boot loaders offer to be held."""
    return msgspec.convert(_table()["boot_holds"], BootHolds)


def identified(text: str) -> str:
    """Return the name of the kind of console that shows this, or nothing. A greeting counts more than a prompt."""
    last = text.rpartition("\n")[2]
    for name, kind in kinds().items():
        if any(re.search(each, text, re.MULTILINE) for each in kind.shows):
            return name
    return next((name for name, kind in kinds().items() if kind.prompt and re.match(kind.prompt, last)), "")
