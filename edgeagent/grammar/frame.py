"""Terms of both engines' grammars: the schema of a call, the text around it, and whether words may stand there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from edgeagent.errors import GrammarError

Schema = Mapping[str, Any]
Call = tuple[str, Schema]
Answer = Literal["never", "allowed", "only", "line"]
"""No answer in words, an answer instead of a call, nothing but an answer, nothing but an answer on one line."""

# What the model families accept as a function's name; anything else would need escaping inside each dialect.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,127}\Z")


class Frame(Protocol):
    """The fixed text around a call, as a dialect writes it; `trigger` is what ends free text, or empty.

    Without a trigger a call begins with the text. `string_mark` is what strings stand between in a notation that is
    not JSON; GBNF writes JSON there, too.
    """

    @property
    def before(self) -> str: ...
    @property
    def between(self) -> str: ...
    @property
    def after(self) -> str: ...
    @property
    def item_separator(self) -> str: ...
    @property
    def key_separator(self) -> str: ...
    @property
    def trigger(self) -> str: ...
    @property
    def string_mark(self) -> str: ...


def checked(name: str) -> str:
    """The name, if it can stand in a call. Raises GrammarError."""
    if not _NAME.match(name):
        raise GrammarError(
            f"tool {name!r}: a name that a model calls is a letter or '_' and then letters, digits, '_', '-' or '.'"
        )
    return name
