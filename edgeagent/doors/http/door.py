"""Door on the network: the parts put together, opened, served until it is told to end, and closed in good order."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from edgeagent.core.agent import Agent
from edgeagent.core.names import writable
from edgeagent.doors.http import metrics as figures
from edgeagent.doors.http.api import Api
from edgeagent.doors.http.devices import Devices
from edgeagent.doors.http.gate import Gate
from edgeagent.doors.http.keys import Keys
from edgeagent.doors.http.login import Logins
from edgeagent.doors.http.openai import OpenAi
from edgeagent.doors.http.pages import Page
from edgeagent.doors.http.queue import Places
from edgeagent.doors.http.routes import Router
from edgeagent.doors.http.server import Server, Where, sockets_for, tls_of
from edgeagent.doors.http.sessions import Served, Sessions
from edgeagent.doors.http.wire import WireLimits
from edgeagent.doors.mcp.client import Source
from edgeagent.doors.mcp.http import McpRoutes
from edgeagent.errors import ConfigError
from edgeagent.runtime.attached import Attached
from edgeagent.runtime.bare import Bare
from edgeagent.runtime.hangup import Terminal
from edgeagent.runtime.keys import LOGIN_KEY_NAME, local_key
from edgeagent.runtime.model import Model
from edgeagent.runtime.notify import Notifier
from edgeagent.runtime.open import OpenRequest, Taken, taken_of
from edgeagent.runtime.operator import recorded_rules, sentence_of, with_rules
from edgeagent.runtime.reload import Reload
from edgeagent.runtime.serve import Service
from edgeagent.runtime.servers import agent_with, records_of
from edgeagent.runtime.wiring import load_agent, with_dialect
from edgeagent.version import __version__

FREE_BYTES_MIN = 16 << 20
"""With less on the disk a trace may soon take no record, so no new word is sent here."""

BEAT_S = 2.0
ROWS_S = 30.0
"""The event loop has answered by then, also on a busy machine."""


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """What is served, to whom, and where. `config` is the operator's file, in place of the one beside each agent;
    `request` is what stands above it."""

    agents: tuple[str, ...]
    root: Path
    config: Path | None = None
    request: OpenRequest = OpenRequest()
    where: Where = Where()
    keys: Keys | None = None
    names: tuple[str, ...] = ()
    limits: WireLimits = WireLimits()


def served_agents(specs: Sequence[str], model: Model, root: Path, config: Path | None = None) -> dict[str, Served]:
    """Load the agents and prove that this model can serve each, so that nothing of it fails when somebody asks.

    `config` is the operator's file; without it the one beside each agent holds.

    Raises ConfigError, ShapeError, GrammarError and ModelError.
    """
    found: dict[str, Served] = {}
    for spec in specs:
        agent = load_agent(spec)
        if agent.name in found:
            raise ConfigError(f"{spec} and {found[agent.name].spec} both hold an agent called {agent.name}: rename one")
        where = str(Path(spec).absolute())
        taken = taken_of(OpenRequest(agent=where, config=config))
        served = _served(agent, where, taken)
        whole = agent_with(agent, records_of(taken.settings.mcp, root, skips_new=True))
        ruled = with_rules(whole, recorded_rules(taken.policy))
        model.driver(with_dialect(ruled, model.dialect), Attached(), root, 0).close()
        found[agent.name] = served
    return found


def _served(agent: Agent, spec: str, taken: Taken) -> Served:
    ruled = with_rules(agent, recorded_rules(taken.policy))
    return Served(agent.name, agent, spec, tuple(sentence_of(each) for each in ruled.policies), taken)


class HttpDoor:
    """The server with everything it needs; `run` serves until a signal or `stop`."""

    def __init__(self, opening: Opening, model: Model, notifier: Notifier, tell: Callable[[str], None]) -> None:
        self._opening, self._model, self._notifier, self._tell = opening, model, notifier, tell
        self.sockets = sockets_for(opening.where, has_keys=opening.keys is not None)
        """Bound already, so that what is wrong with an address is said before anything is loaded for long."""
        self._tls = tls_of(opening.where)
        self._service = Service(model, state=opening.root)
        self.metrics, self.places = _counters(), Places()
        self._ends_with = Terminal()
        self._stopping: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def addresses(self) -> list[str]:
        """Where it is reached."""
        scheme, found = "http" if self._tls is None else "https", []
        for each in self.sockets:
            name = each.getsockname()
            if isinstance(name, str):
                found.append(f"unix:{name}")
            else:
                found.append(f"{scheme}://{f'[{name[0]}]' if ':' in name[0] else name[0]}:{name[1]}")
        return found

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until it is told to end. `ready` is called when words are taken."""
        asyncio.run(self._run(ready))

    def stop(self) -> None:
        """End in good order. From any thread."""
        if self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)

    async def _run(self, ready: Callable[[], None]) -> None:
        self._stopping, self._loop = asyncio.Event(), asyncio.get_running_loop()
        opening = self._opening
        agents = await asyncio.to_thread(served_agents, opening.agents, self._model, opening.root, opening.config)
        sessions = Sessions(
            self._service, agents, opening.root, self.metrics, self._notifier.progress, config=opening.config
        )
        logins = self._logins(opening.root, opening.keys)
        self.gate = Gate(opening.keys, opening.names, logins)
        self.bare = Bare(self._model, opening.root)
        openai = OpenAi(sessions, self.bare, self.places, self.metrics, self._model.settings.temperature)
        devices = Devices(sessions)
        self.mcp = McpRoutes(lambda: list(sessions.agents), self._source, self.places)
        more = (*openai.table(), *self.mcp.table(), *Page(self.gate, logins).routes)
        api = Api(sessions, self.metrics, self.places, self._why_not_ready, devices, more)
        self.sessions, self.routes = sessions, api.routes
        requests = [
            replace(opening.request, agent=each.agent, spec=each.spec, config=opening.config, taken=each.taken)
            for each in agents.values()
        ]
        self._reload = Reload(
            requests, self._model, opening.root, lambda: [*self._service.sessions.values(), *self.mcp.talks], self._use
        )
        router = Router(api.routes, self.gate, self._told)
        self.server = server = Server(router.answer, opening.limits)
        self._measure(sessions, server)
        states = figures.by("device", lambda: {name: float(how == "open") for name, how in devices.states().items()})
        self.metrics.gauge("edgeagent_device_open", "Whether the line of a device is open.", states)
        for said in await sessions.take_up():
            self._tell(said)
        await server.listen(self.sockets, self._tls)
        self._on_signals()
        beating = asyncio.create_task(self._beat(sessions))
        self._notifier.ready(f"serving {', '.join(agents)}")
        ready()
        try:
            await self._stopping.wait()
        finally:
            self._notifier.stopping()
            beating.cancel()
            sessions.end_streams()
            devices.end_streams()
            self.mcp.end_streams()
            await server.leave()
            await self.mcp.close()
            await sessions.close()
            await asyncio.to_thread(openai.close)
            await asyncio.to_thread(self._service.close)
            await asyncio.to_thread(self._reload.close)

    def _source(self, who: str, agent: str) -> Source:
        """How a client of MCP has sessions opened; it may read those of its key."""
        served, root, loop = self.sessions.agents[agent], self._opening.root, self._loop
        assert loop is not None, "set when it runs"

        async def rows() -> list[dict[str, Any]]:
            return [each for each in self.sessions.rows(who) if each["agent"] == agent]

        def others() -> list[dict[str, Any]]:
            return asyncio.run_coroutine_threadsafe(rows(), loop).result(ROWS_S)

        request = OpenRequest(
            agent=served.agent, spec=served.spec, config=self._opening.config, taken=served.taken, state=root
        )
        return Source(writable(f"ask_{agent}"), lambda: request, self._service.model, root, others)

    def reload(self) -> list[str]:
        """Take what the operator's files say now; return what is to be told. From any thread but the loop's."""
        return self._reload.take()

    def _use(self, model: Model, taken: Sequence[Taken]) -> None:
        """Have sessions that begin from now on find this."""
        self._service.model = model
        self.bare.exchange(model)
        found = zip(self.sessions.agents.values(), taken, strict=True)
        self.sessions.agents = {each.name: _served(each.agent, each.spec, now) for each, now in found}

    def _on_hangup(self) -> None:
        """Read the settings again, unless the terminal has gone that it was started from: then end."""
        if self._ends_with.has_gone:
            self.stop()
            return
        assert self._loop is not None, "set when it runs"
        self._reloading = self._loop.create_task(self._told_reload())

    async def _told_reload(self) -> None:
        for said in await asyncio.to_thread(self.reload):
            self._tell(said)

    def _logins(self, root: Path, keys: Keys | None) -> Logins | None:
        return None if keys is None else Logins(local_key(root, LOGIN_KEY_NAME), keys, root)

    def _on_signals(self) -> None:
        """End at SIGTERM and Ctrl-C; only where this is the main thread, which alone is given signals."""
        assert self._loop is not None and self._stopping is not None, "set when it runs"
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                self._loop.add_signal_handler(number, self._stopping.set)
            except (RuntimeError, ValueError):
                return
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # As nohup leaves it.
            self._loop.add_signal_handler(signal.SIGHUP, self._on_hangup)

    async def _beat(self, sessions: Sessions) -> None:
        """Feed the watchdog while nothing is asked; while something is, only what is done feeds it."""
        while True:
            if not sessions.is_working:
                self._notifier.progress()
            await asyncio.sleep(min(BEAT_S, (self._notifier.watchdog_s or 60.0) / 5))

    def _why_not_ready(self) -> list[str]:
        wrong = []
        free = figures.free_bytes(self._opening.root)
        if free < FREE_BYTES_MIN:
            wrong.append(f"the disk of the state folder takes only {free >> 20} MB more")
        if self._service.failed:
            wrong.append(f"{len(self._service.failed)} sessions are not served any more: their disk takes nothing")
        if self.places.taken >= self.places.most:
            wrong.append("as many asks wait for the model as may")
        return wrong

    def _told(self, route: str, status: int) -> None:
        self.metrics.add("edgeagent_requests_total", route=route, status=str(status))

    def _measure(self, sessions: Sessions, server: Server) -> None:
        gauge, began = self.metrics.gauge, time.time()
        gauge("edgeagent_info", "The version that runs.", lambda: [((("version", __version__),), 1)])
        gauge("edgeagent_start_time_seconds", "When the server began, as Unix time.", figures.one(lambda: began))
        gauge("edgeagent_sessions_open", "Sessions that are open now.", figures.one(lambda: sessions.open_count))
        gauge("edgeagent_asks_waiting", "Asks that have no answer yet.", figures.one(lambda: self.places.taken))
        gauge("edgeagent_connections", "Connections that are open.", figures.one(lambda: server.connections))
        gauge("edgeagent_resident_bytes", "Memory of this process.", figures.one(figures.resident_bytes))
        free = figures.one(lambda: figures.free_bytes(self._opening.root))
        gauge("edgeagent_disk_free_bytes", "What the disk of the state folder still takes.", free)
        gauge("edgeagent_temperature_celsius", "The sensors.", figures.by("zone", figures.temperatures))


def _counters() -> figures.Metrics:
    made = figures.Metrics()
    made.counter("edgeagent_requests_total", "Requests by route and status.")
    made.counter("edgeagent_turns_total", "Turns by agent and outcome.")
    made.counter("edgeagent_refusals_total", "Answers of the model of which nothing could run.")
    made.counter("edgeagent_calls_total", "Calls by agent and how they ended.")
    made.counter("edgeagent_tokens_total", "Tokens by kind.")
    made.counter("edgeagent_seconds_total", "Seconds by phase: model, tools.")
    return made
