"""What a server offers now, beside what was approved of it: what an operator looks at before saying yes."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from edgeagent.codec.dialects.family import tool_line
from edgeagent.core.agent import Tool
from edgeagent.core.context import estimate
from edgeagent.core.state import State
from edgeagent.core.text import shown
from edgeagent.driver.mcp.offer import Declared, digest_of, told, why_not_fit
from edgeagent.driver.mcp.server import Server
from edgeagent.driver.mcp.settings import ServerSettings
from edgeagent.errors import ConfigError, DriverError
from edgeagent.runtime.servers import admissible, approved

Stands = Literal["new", "changed", "approved", "unfit", ""]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is offered. `about` is what a person reads before approving it, `why` why it is unfit."""

    name: str
    tokens: int
    stands: Stands
    about: str
    why: str = ""


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """A server that was started for a look. `seen` is what approves all that is listed, empty for nothing."""

    about: str
    offered: tuple[Declared, ...]
    rows: tuple[Row, ...]
    seen: str

    @property
    def is_open(self) -> bool:
        """Whether something is still to be said by the operator."""
        return not self.seen or any(row.stands in ("new", "changed") for row in self.rows)

    def approved(self) -> Looked:
        """The same with everything approved that is listed."""
        stands = {"new": "approved", "changed": "approved"}
        rows = tuple(msgspec.structs.replace(r, stands=stands.get(r.stands, r.stands)) for r in self.rows)
        return msgspec.structs.replace(self, rows=rows)


def look(root: Path, name: str, server: ServerSettings) -> Looked:
    """Start a server, ask what it offers, and stop it. Raises ConfigError if it does not say."""
    running = Server(name, server, {})
    try:
        offered = running.offer()
        about = running.about()
    except DriverError as error:
        raise ConfigError(f"mcp.{name}: {error}") from None
    finally:
        running.close()
    listed = admissible(name, server, offered)
    pinned = {each.name: each.digest for each in approved(root, name, server) or ()}
    rows = tuple(_row(name, server, each, pinned) for each in offered)
    return Looked(about=about, offered=offered, rows=rows, seen=digest_of(listed) if listed else "")


def _row(name: str, server: ServerSettings, declared: Declared, pinned: dict[str, str]) -> Row:
    why = why_not_fit(declared, name)
    tokens = 0 if why else _tokens(name, server, declared)
    about = shown(f"{declared.about}\n{_arguments(declared)}".rstrip(), lines=True)
    return Row(
        name=shown(declared.name), tokens=tokens, stands=_stands(server, declared, pinned, why), about=about, why=why
    )


def _stands(server: ServerSettings, declared: Declared, pinned: dict[str, str], why: str) -> Stands:
    if not server.allows(declared.name):
        return ""
    if why:
        return "unfit"
    if declared.name not in pinned:
        return "new"
    return "approved" if pinned[declared.name] == declared.digest else "changed"


def _arguments(declared: Declared) -> str:
    """What is said of each argument, which the model reads too."""
    properties = declared.schema.get("properties")
    lines = []
    for name, each in properties.items() if isinstance(properties, dict) else ():
        said = each.get("description") if isinstance(each, dict) else ""
        lines.append(f"{name}: {said}" if isinstance(said, str) and said else name)
    return "\n".join(lines)


def _tokens(name: str, server: ServerSettings, declared: Declared) -> int:
    about, schema, _ = told(declared, server)
    if declared.is_resource:
        return estimate(len(f"{declared.name} {about}".encode()), State().density)
    tool = Tool.of_schema(f"{name}/{declared.name}", about, schema, lambda given: None, idempotent=True)
    return estimate(len(tool_line(tool).encode()), State().density)
