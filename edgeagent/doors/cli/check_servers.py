"""What servers offer, what of it is approved, and what it costs: the part of `edgeagent check` about `[mcp.NAME]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from edgeagent.errors import ConfigError
from edgeagent.runtime.config import Settings, state_root
from edgeagent.runtime.offered import Looked, Row, look
from edgeagent.runtime.servers import approve

DIFFERENT = {
    "new": "not approved yet",
    "changed": "changed since it was approved",
    "approved": "approved",
    "unfit": "cannot be offered",
    "": "not listed",
}
"""How each stands, in words."""

PROPOSED_MAX = 5
PROPOSED_SHARE = 4
"""A proposal has at most so many tools, and so much less than the window."""

READ_VERBS = ("get", "list", "read", "search", "find", "show", "describe", "query", "status", "log", "diff", "convert")


def server_checks(settings: Settings, approvals: Sequence[str]) -> Iterator[tuple[str, Callable[[], str]]]:
    """One check a server: is it there, and is what it offers what was approved? Raises ConfigError."""
    seen = dict(_approval(each) for each in approvals)
    unknown = seen.keys() - settings.mcp.keys()
    if unknown:
        known = ", ".join(settings.mcp) or "none"
        raise ConfigError(f"--approve {min(unknown)}: edgeagent.toml has no such server; it has: {known}")
    for name in settings.mcp:
        yield f"mcp {name}", partial(_look, settings, name, seen.get(name))


def _approval(given: str) -> tuple[str, str]:
    name, equals, digest = given.partition("=")
    if not equals:
        raise ConfigError(f"--approve {given}: write NAME=SEEN, as `edgeagent check` shows it beside the tools")
    return name, digest


def _look(settings: Settings, name: str, digest: str | None) -> str:
    root = state_root(settings)
    looked = look(root, name, settings.mcp[name])
    done = ""
    if digest is not None:
        done = f"\n  {approve(root, name, settings.mcp[name], looked.offered, digest)} approved"
        looked = looked.approved()
    told = "\n".join([looked.about, *_rows(looked)]) + done
    if looked.is_open:
        raise ConfigError(f"{told}\n{_remedy(settings, name, looked)}")
    return told


def _rows(looked: Looked) -> Iterator[str]:
    width = max((len(row.name) for row in looked.rows), default=0)
    for row in looked.rows:
        why = f": {row.why}" if row.why else ""
        yield f"  {row.name:<{width}}  about {row.tokens:>4} tokens  {DIFFERENT[row.stands]}{why}"
        if row.stands in ("new", "changed"):
            yield from (f"      | {line}" for line in row.about.splitlines())


def _remedy(settings: Settings, name: str, looked: Looked) -> str:
    if looked.seen:
        return f"read what stands there; if all of it may be offered to the model: --approve {name}={looked.seen}"
    found = _proposed(looked, settings.model.context_tokens)
    cost = sum(row.tokens for row in found)
    named = ", ".join(f'"{row.name}"' for row in found)
    window = settings.model.context_tokens
    return f"nothing of it is listed; perhaps allow = [{named}], about {cost} of {window} tokens"


def _proposed(looked: Looked, window: int) -> list[Row]:
    """Those that read, and cost least."""
    room, found = window // PROPOSED_SHARE, list[Row]()
    fit = (row for row in looked.rows if row.stands != "unfit")
    for row in sorted(fit, key=lambda r: (not r.name.startswith(READ_VERBS), r.tokens)):
        if row.tokens <= room and len(found) < PROPOSED_MAX:
            found.append(row)
            room -= row.tokens
    return found
