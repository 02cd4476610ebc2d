"""Approved tools of servers as tools of an agent: `NAME/TOOL`, and `NAME/read_resource`; values that a session records.

What is recorded is all that decides what the agent may do, so a trace is folded again without the server.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from edgeagent.core.agent import Agent, Tool, ToolEffect
from edgeagent.driver.mcp.offer import READ_RESOURCE, RESOURCE, Declared, told
from edgeagent.driver.mcp.settings import ServerSettings
from edgeagent.errors import ConfigError, DriverUnavailable

if TYPE_CHECKING:
    from edgeagent.driver.mcp.server import Server

EXTRA_S = 10.0
"""The tool's own limit is above the server's, and above a start of it, so that the server can say what is known."""

RESOURCES_MAX = 32
"""Resources of one server that may be read: each is named in the tool's schema."""


class ServerTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of a server as a session began with it. `digest` is that of what the server declared."""

    name: str
    about: str
    schema: dict[str, Any]
    digest: str
    effect: ToolEffect
    idempotent: bool
    confirm: bool
    timeout_s: float
    outsiders: bool


class ServerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A server as a session began with it. `where` is the digest of its command; `resources` have a digest each."""

    name: str
    where: str
    tools: tuple[ServerTool, ...]
    resources: dict[str, str] = {}

    @property
    def digests(self) -> dict[str, str]:
        """The digest of everything of it that may be used."""
        return {tool.name: tool.digest for tool in self.tools if tool.digest} | self.resources


def recorded(name: str, settings: ServerSettings, approved: Iterable[Declared]) -> ServerRecord:
    """What a session records of a server: of what is approved, that which the operator allows."""
    allowed = [each for each in approved if settings.allows(each.name)]
    tools = [_recorded(settings, each) for each in allowed if not each.is_resource]
    resources = [each for each in allowed if each.is_resource]
    if len(resources) > RESOURCES_MAX:
        raise ConfigError(
            f"mcp.{name}.allow lets {len(resources)} resources be read; {RESOURCES_MAX} is the most: name fewer of them"
        )
    if resources:
        tools.append(_reading(settings, resources))
    return ServerRecord(
        name=name, where=settings.where, tools=tuple(tools), resources={each.name: each.digest for each in resources}
    )


def _recorded(settings: ServerSettings, declared: Declared) -> ServerTool:
    about, schema, outsiders = told(declared, settings)
    return ServerTool(
        name=declared.name,
        about=about,
        schema=schema,
        digest=declared.digest,
        effect=settings.effect_of(declared.name),
        idempotent=settings.is_idempotent(declared.name),
        confirm=settings.asks_before(declared.name),
        timeout_s=settings.start_s + settings.timeout_s + EXTRA_S,
        outsiders=outsiders,
    )


def _reading(settings: ServerSettings, resources: list[Declared]) -> ServerTool:
    """The tool that reads resources: it changes nothing, and reads no other than those."""
    lines = []
    for each in resources:
        about, _, _ = told(each, settings)
        lines.append(f"{each.name.removeprefix(RESOURCE)}: {about.splitlines()[0][:80]}")
    uris = [each.name.removeprefix(RESOURCE) for each in resources]
    return ServerTool(
        name=READ_RESOURCE,
        about="\n".join(["Read one of these:", *lines]),
        schema={
            "type": "object",
            "properties": {"uri": {"type": "string", "enum": uris}},
            "required": ["uri"],
            "additionalProperties": False,
        },
        digest="",
        effect="read",
        idempotent=True,
        confirm=False,
        timeout_s=settings.start_s + settings.timeout_s + EXTRA_S,
        outsiders=not all(settings.about.get(each.name) for each in resources),
    )


def with_servers(agent: Agent, records: Iterable[ServerRecord]) -> Agent:
    """The agent with these servers' tools behind its own; nothing runs when they are called."""
    tools = tuple(_tool(record, each) for record in records for each in record.tools)
    return dataclasses.replace(agent, tools=(*agent.tools, *tools)) if tools else agent


def _tool(record: ServerRecord, each: ServerTool) -> Tool:
    return Tool.of_schema(
        f"{record.name}/{each.name}",
        each.about,
        each.schema,
        _nobody(record.name),
        idempotent=each.idempotent,
        effect=each.effect,
        confirm=each.confirm,
        timeout_s=each.timeout_s,
        outsiders=each.outsiders,
    )


def bound(agent: Agent, records: Iterable[ServerRecord], servers: Mapping[str, Server]) -> Agent:
    """The agent with calls of these tools going to their servers."""
    calls: dict[str, tuple[Server, Callable[..., Any]]] = {}
    for record in records:
        server = servers.get(record.name)
        if server is not None:
            calls |= {f"{record.name}/{each.name}": (server, _calling(server, each.name)) for each in record.tools}
    if not calls:
        return agent
    tools = [
        dataclasses.replace(t, function=calls[t.name][1], notes=calls[t.name][0].take_notes) if t.name in calls else t
        for t in agent.tools
    ]
    return dataclasses.replace(agent, tools=tuple(tools))


def _calling(server: Server, tool: str) -> Callable[..., Any]:
    if tool == READ_RESOURCE:
        return lambda uri: server.read(uri, RESOURCE + uri)
    return partial(_call, server, tool)


def _call(server: Server, tool: str, /, **arguments: Any) -> Any:
    return server.call(tool, arguments)


def _nobody(server: str) -> Callable[[dict[str, Any]], Any]:
    def call(arguments: dict[str, Any]) -> Any:
        raise DriverUnavailable(
            f"nothing was called: mcp.{server} is not in edgeagent.toml any more, or is another program than it was"
        )

    return call
