"""Names of tools as a model writes them: letters, digits, `_` and `-`, and no two alike within an agent.

A tool's real name may come from elsewhere (`files/read`, `home.light.set`) and stands in traces and rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from edgeagent.errors import ConfigError

WRITTEN_MAX = 64
"""Characters of a name that a model writes: what every family of models was taught to expect at most."""

_WRITABLE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_REAL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}")
_NO_NAME_CHAR = re.compile(r"[^A-Za-z0-9_-]")


def is_writable(name: str) -> bool:
    """Return whether a model can write the name as it is."""
    return _WRITABLE.fullmatch(name) is not None


def is_real(name: str) -> bool:
    """Return whether a tool may have the name."""
    return _REAL.fullmatch(name) is not None


def check_name(kind: str, name: str) -> None:
    """Refuse a name that a model cannot write. Raises ConfigError, which calls it `kind`."""
    if not is_writable(name):
        raise ConfigError(f"{kind} name {name!r}: use a letter, then up to 63 letters, digits, '_' or '-'")


def check_tool_name(name: object, *, of_agent: bool) -> None:
    """Refuse a name that no tool may have, or no sub-agent. Raises ConfigError."""
    if of_agent:
        check_name("sub-agent", str(name))
    if not isinstance(name, str) or not is_real(name):
        raise ConfigError(
            f"tool name {name!r}: use a letter, digit or '_', then up to 127 letters, digits, '_', '-', '.' or '/'"
        )


def writable(name: str) -> str:
    """Return the name with `_` for what a model does not write in one, a letter in front, and cut."""
    if is_writable(name):
        return name
    spelled = _NO_NAME_CHAR.sub("_", name)
    return (spelled if spelled[:1].isalpha() else f"t_{spelled.lstrip('_')}")[:WRITTEN_MAX]


def written_names(names: Sequence[str]) -> dict[str, str]:
    """Return the name to write for each tool of an agent. A number tells apart what would be written alike."""
    taken = {name for name in names if is_writable(name)}
    written = {name: name for name in taken}
    for name in names:
        if name in written:
            continue
        unique, count = writable(name), 1
        while unique in taken:
            count += 1
            unique = f"{writable(name)[: WRITTEN_MAX - 4]}_{count}"
        taken.add(unique)
        written[name] = unique
    return written
