"""Servers of other people's tools: what of them is approved, what a session records of them, who is called.

    <state>/mcp/NAME-<digest of its command>.json    what a person has approved: names, words, schemas

Law: a tool is there if the operator lists it and a person has approved exactly what its server declares. A session
keeps the tools that it began with; none of them is called once it is not listed any more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from edgeagent.core.agent import Agent, Tool
from edgeagent.driver.mcp.offer import Declared, digest_of, why_not_fit
from edgeagent.driver.mcp.settings import ServerSettings
from edgeagent.driver.mcp.tools import ServerRecord, bound, recorded, with_servers
from edgeagent.errors import ConfigError
from edgeagent.policy.labels import Labels, ToolLabel, party, read
from edgeagent.policy.origin_guard import ValuesFromUser
from edgeagent.runtime.config import read_settings, state_root
from edgeagent.runtime.operator import operator_rules, with_rules
from edgeagent.runtime.wiring import agent_path
from edgeagent.trace.disk import DISK, write_atomically

if TYPE_CHECKING:
    from edgeagent.driver.mcp.server import Server

FOLDER_NAME = "mcp"

Tell = Callable[[str], None]


# -- what is approved ------------------------------------------------------------------------------------------------


def approval_file(root: Path, name: str, server: ServerSettings) -> Path:
    """Where it is kept what of a server is approved; another command is another server."""
    return root / FOLDER_NAME / f"{name}-{server.where}.json"


def approved(root: Path, name: str, server: ServerSettings) -> tuple[Declared, ...] | None:
    """What a person has approved of a server; None if nobody was ever asked. Raises ConfigError for a damaged file."""
    file = approval_file(root, name, server)
    try:
        return msgspec.json.decode(file.read_bytes(), type=tuple[Declared, ...])
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{file} cannot be read ({error}): remove it, and approve the server's tools again") from None


def approve(root: Path, name: str, server: ServerSettings, offered: Iterable[Declared], digest: str) -> int:
    """Approve what is offered and allowed, if that is what the person has seen by this digest; return how many.

    Raises ConfigError.
    """
    seen = admissible(name, server, offered)
    if digest_of(seen) != digest:
        raise ConfigError(
            f"mcp.{name} offers other tools than those that were shown as {digest}: look again with `edgeagent check`"
        )
    file = approval_file(root, name, server)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(DISK, file, msgspec.json.format(msgspec.json.encode(seen), indent=1) + b"\n")
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror or error}") from None
    return len(seen)


def admissible(name: str, server: ServerSettings, offered: Iterable[Declared]) -> tuple[Declared, ...]:
    """Of what is offered that which the operator lists and which can be offered to a model."""
    return tuple(each for each in offered if server.allows(each.name) and not why_not_fit(each, name))


# -- what a session has ----------------------------------------------------------------------------------------------


def records_of(
    servers: Mapping[str, ServerSettings], root: Path, *, skips_new: bool = False
) -> tuple[ServerRecord, ...]:
    """What a session that begins now has of the servers.

    Raises ConfigError for one that was never approved, unless it is skipped.
    """
    records = []
    for name, server in servers.items():
        pinned = approved(root, name, server)
        if pinned is None and skips_new:
            continue
        if pinned is None:
            raise ConfigError(
                f"mcp.{name}: nobody has approved its tools yet; `edgeagent check AGENT.py` shows them and says how"
            )
        records.append(recorded(name, server, pinned))
    return tuple(records)


def kept(records: Iterable[ServerRecord]) -> dict[str, Any]:
    """Records as they are kept in session.json."""
    return {record.name: msgspec.to_builtins(record) for record in records}


def read_records(servers: Mapping[str, Any]) -> tuple[ServerRecord, ...]:
    """Records as they were kept. Raises ConfigError."""
    try:
        return tuple(msgspec.convert(each, ServerRecord) for each in servers.values())
    except msgspec.ValidationError as error:
        raise ConfigError(f"session.json: servers: {error}") from None


def agent_with(agent: Agent, records: Iterable[ServerRecord]) -> Agent:
    """The agent with these servers' tools and, where its values must come from the user, labels for them."""
    records = tuple(records)
    made = with_servers(agent, records)
    if made is agent:
        return agent
    labels = {t.name: _label(t) for t in made.tools[len(agent.tools) :]}
    policies = [_labelled(p, labels) if isinstance(p, ValuesFromUser) else p for p in agent.policies]
    return dataclasses.replace(made, policies=tuple(policies))


def with_operator(agent: Agent, spec: str, config: Path | None, root: Path | None = None) -> Agent:
    """The agent of that file with what its operator adds: approved tools of servers, and rules. Raises ConfigError."""
    beside = agent_path(spec).parent
    settings = read_settings(config, beside=beside)
    records = records_of(settings.mcp, root or state_root(settings), skips_new=True)
    return with_rules(agent_with(agent, records), operator_rules(config, beside=beside))


def _labelled(rule: ValuesFromUser, labels: Mapping[str, ToolLabel]) -> ValuesFromUser:
    """The rule with these labels for the tools that it does not speak of."""
    return dataclasses.replace(rule, labels=Labels({**labels, **rule.labels.tools}, rule.labels.records))


def _label(tool: Tool) -> ToolLabel:
    """The strictest label: whatever is not wholly the user's is asked about, in all that is no plain read."""
    if tool.effect == "read":
        return read()
    return ToolLabel("egress", dict.fromkeys(tool.parameters.schema.get("properties", {}), party))


# -- who is called ---------------------------------------------------------------------------------------------------


def running(
    agent: Agent, records: Iterable[ServerRecord], servers: Mapping[str, ServerSettings], tell: Tell
) -> tuple[Agent, Callable[[], None]]:
    """The agent with its servers' tools going to the servers, which start when needed; and how they are stopped."""
    called: dict[str, Server] = {}
    for record in records:
        server = servers.get(record.name)
        if server is None or server.where != record.where:
            tell(f"mcp.{record.name} is not in edgeagent.toml as it was: none of its tools can be called")
            continue
        called[record.name] = _server(record, server)
    return bound(agent, records, called), lambda: _close(called.values())


def _server(record: ServerRecord, server: ServerSettings) -> Server:
    from edgeagent.driver.mcp.server import Server

    allowed = {name: digest for name, digest in record.digests.items() if server.allows(name)}
    return Server(record.name, server, allowed)


def _close(servers: Iterable[Server]) -> None:
    for server in servers:
        server.close()
