"""AgentDojo's suites with their tools behind MCP: declared by a server, approved, called over its pipe.

Names, schemas and results are the server's then, and all of them outsiders'. The labels are the operator's, as before.
The model reads what the server wrote of its tools; with the operator's own words instead the figures are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.agentdojo.beds import HARMLESS
from bench.agentdojo.environment import World, python
from bench.agentdojo.labels import SUITES
from bench.agentdojo.pairs import attacks, benign
from bench.agentdojo.replay import Call, Subject, subject
from bench.agentdojo.world import MARK
from edgeagent.core.agent import Agent
from edgeagent.driver.mcp.server import Server
from edgeagent.driver.mcp.settings import ServerSettings
from edgeagent.driver.mcp.tools import bound, recorded, with_servers
from edgeagent.driver.unknown import CommandFailed
from edgeagent.policy.labels import Labels

NAME = "dojo"
TIMEOUT_S = 120.0


@dataclass
class Served:
    """One suite, a `Bed`; its tools are `dojo/NAME`."""

    name: str
    subject: Subject
    users: dict[str, str]
    injections: dict[str, str]
    harmless: tuple[Call, ...]
    server: Server

    def open(self, user: str, injection: str | None, quiet: bool = False) -> tuple[list[Call], list[Call]]:
        """Make AgentDojo's world anew, in the server."""
        both = self._world("open", user=user, injection=injection, quiet=quiet)
        return _renamed(both["user"]), _renamed(both["injected"])

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool of the server's."""
        function = next(t.function for t in self.subject.agent.tools if t.name == tool)
        assert function is not None, "it is bound to its server"
        try:
            value = function(**arguments)
        except CommandFailed as error:
            return {"value": None, "error": str(error), "shows": False}
        return {"value": value, "error": None, "shows": MARK in str(value)}

    def judge(self) -> dict[str, bool]:
        """Return AgentDojo's own verdicts."""
        verdicts: dict[str, bool] = self._world("judge")
        return verdicts

    def _world(self, what: str, **params: Any) -> Any:
        connection = self.server._connection
        assert connection is not None, "it was asked what it offers"
        return connection.call(f"world/{what}", params, TIMEOUT_S)


def _renamed(calls: list[list[Any]]) -> list[Call]:
    return [(f"{NAME}/{tool}", arguments) for tool, arguments in calls]


@contextmanager
def served(described: dict[str, Any], name: str) -> Iterator[Served]:
    """One suite, its server running."""
    told = described[name]
    script = Path(__file__).with_name("dojo_server.py")
    command = (str(python()), "-I", str(script), name)
    settings = ServerSettings(command=command, allow=("*",), confirm=False, timeout_s=TIMEOUT_S)
    with closing(Server(NAME, settings, {})) as looking:
        offered = looking.offer()
    record = recorded(NAME, settings, offered)
    with closing(Server(NAME, settings, record.digests)) as server:
        server.offer()
        agent = bound(with_servers(Agent(name), [record]), [record], {NAME: server})
        labels = Labels({f"{NAME}/{tool}": each for tool, each in SUITES[name].tools.items()}, SUITES[name].records)
        harmless = tuple(_renamed([list(each) for each in HARMLESS[name]]))
        yield Served(
            name, subject(name, tuple(agent.tools), labels), told["users"], told["injections"], harmless, server
        )


def figures(world: World, names: tuple[str, ...]) -> dict[str, int]:
    """Run every user task and every pair on suites behind MCP."""
    described, total = world.ask("suites"), dict.fromkeys(("tasks", "pairs", "unattended_works", "attended_works"), 0)
    total |= dict.fromkeys(("questions", "unattended_reached", "attended_reached"), 0)
    for name in SUITES:
        if names and name not in names:
            continue
        with served(described, name) as bed:
            attended, unattended = list(benign(bed, True)), list(benign(bed, False))
            total["tasks"] += len(attended)
            total["unattended_works"] += sum(not task.stopped and task.works for task in unattended)
            total["attended_works"] += sum(task.works for task in attended)
            total["questions"] += sum(bool(o.question) for task in attended for o in task.stopped)
            for mode, says in (("attended", True), ("unattended", False)):
                pairs = list(attacks(bed, says))
                total["pairs"] += len(pairs) if says else 0
                total[f"{mode}_reached"] += sum(bool(p.slips or p.adaptive) for p in pairs)
    return total
