"""Sessions that are served: which there are, whose each is, and which of them are open now.

A session is opened when somebody wants it and put down when it rests and its place is needed. One that was not at rest
when the server ended is taken up when it starts. What is another key's is as if it were not there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from edgeagent.core.agent import Agent
from edgeagent.core.state import is_resting
from edgeagent.core.text import shown
from edgeagent.doors.http.feed import Feed, state_row
from edgeagent.doors.http.message import Refused
from edgeagent.doors.http.metrics import Metrics
from edgeagent.errors import ConfigError, EdgeAgentError
from edgeagent.runtime.open import Taken
from edgeagent.runtime.owner import Owner, owners, write_owner
from edgeagent.runtime.serve import Service
from edgeagent.runtime.session import Session

OPEN_MAX = 64
"""Sessions that are open at once; each has a thread. Those above are put down when they rest."""

TITLE_CHARS = 80


class Served(msgspec.Struct, frozen=True):
    """An agent that is served: under which name, as which value, from which file, and under which rules, in sentences.

    The operator's rules are among `rules` and in what was `taken` of the operator's file, and not in `agent`: each
    session is given them when it is opened.
    """

    name: str
    agent: Agent
    spec: str
    rules: tuple[str, ...] = ()
    taken: Taken | None = None


class Sessions:
    """The sessions of all keys. Only the event loop's thread calls it."""

    def __init__(
        self,
        service: Service,
        agents: dict[str, Served],
        root: Path,
        metrics: Metrics,
        progressed: Callable[[], None],
        *,
        config: Path | None = None,
    ) -> None:
        self.agents, self._config = agents, config
        self._service, self._root, self._metrics, self._progressed = service, root, metrics, progressed
        self._owners = owners(root)
        self._feeds: dict[str, Feed] = {}
        """Those that are open, the one that was wanted last at the end."""
        self._changing = asyncio.Lock()
        self.open_max = OPEN_MAX

    @property
    def is_working(self) -> bool:
        """Whether any session has something outstanding."""
        return any(feed.session is not None and not is_resting(feed.session.state) for feed in self._feeds.values())

    @property
    def open_count(self) -> int:
        """How many are open."""
        return len(self._feeds)

    async def take_up(self) -> list[str]:
        """Open what was not at rest when the server ended; return what could not be, in a sentence each."""
        failed = []
        unfinished = [name for name, owner in self._owners.items() if not owner.is_resting]
        for name in unfinished[-self.open_max :]:
            try:
                await self.feed(self._owners[name].key, name)
            except (Refused, EdgeAgentError) as error:
                failed.append(f"session {name} is not taken up: {error}")
        return failed

    async def begin(self, who: str, agent: str, **more: Any) -> Feed:
        """Start a session of this key's. Raises Refused."""
        if agent not in self.agents:
            raise Refused(
                404, "no_such_agent", f"there is no agent {agent[:80]!r}; there are: {', '.join(self.agents)}"
            )
        async with self._changing:
            await self._make_room()
            feed = Feed(agent, who, self._metrics, self._progressed)
            session = await self._opened(self.agents[agent], feed, **more)
            await self._keep(session.id, Owner(key=who, agent=agent, begun_ms=self._later_than_all()))
        return feed

    async def feed(self, who: str, name: str) -> Feed:
        """A session of this key's, opened if it was put down. Raises Refused."""
        self.owner_of(who, name)
        async with self._changing:
            if name not in self._feeds:
                owner = self.owner_of(who, name)
                if owner.agent not in self.agents:
                    raise Refused(409, "agent_not_served", f"the agent {owner.agent} of this session is not served now")
                await self._make_room()
                await self._opened(
                    self.agents[owner.agent], Feed(owner.agent, who, self._metrics, self._progressed), name
                )
                await self._keep(name, replace(owner, is_resting=False))
            feed = self._feeds[name] = self._feeds.pop(name)  # Now the last one wanted.
        return feed

    def owner_of(self, who: str, name: str) -> Owner:
        """What is known of a session of this key's. Raises Refused, the same for another's as for none."""
        owner = self._owners.get(name)
        if owner is None or owner.key != who:
            raise Refused(404, "no_such_session", "you have no session of that id")
        return owner

    def talked(self, who: str, agent: str, history: str) -> str:
        """The newest session of this key's with the agent in which just that was said, or ''."""
        mine = (n for n, o in self._owners.items() if (o.key, o.agent, o.history) == (who, agent, history))
        return max(mine, key=lambda name: self._owners[name].begun_ms, default="")

    async def noted(self, name: str, history: str) -> None:
        """Keep what was said in it by now."""
        await self._keep(name, replace(self._owners[name], history=history))

    def rows(self, who: str) -> list[dict[str, Any]]:
        """The sessions of this key, the newest first."""
        mine = [(owner.begun_ms, name) for name, owner in self._owners.items() if owner.key == who]
        return [self.row(name, self._owners[name]) for _, name in sorted(mine, reverse=True)]

    def row(self, name: str, owner: Owner) -> dict[str, Any]:
        """One session in the list; where it stands is told of those that are open."""
        feed = self._feeds.get(name)
        state = None if feed is None or feed.session is None else state_row(feed.session.state)
        return {"id": name, "agent": owner.agent, "title": owner.title, "begun_ms": owner.begun_ms, "state": state}

    async def titled(self, name: str, words: str) -> None:
        """Take the session's first words as its title."""
        owner = self._owners[name]
        if not owner.title:
            await self._keep(name, replace(owner, title=shown(" ".join(words.split())[:TITLE_CHARS])))

    def end_streams(self) -> None:
        """Let everyone who watches go; they come again when the server is back."""
        for feed in self._feeds.values():
            feed.end()

    async def close(self) -> None:
        """Put all sessions down; what is outstanding is taken up when the server starts again."""
        async with self._changing:
            for name in list(self._feeds):
                await self._put_down(name)

    def _later_than_all(self) -> int:
        """The time in ms, but after the beginning of every session there is: none ties, whatever the clock does."""
        newest = max((owner.begun_ms for owner in self._owners.values()), default=0)
        return max(time.time_ns() // 1_000_000, newest + 1)

    async def _opened(self, served: Served, feed: Feed, resume: str | None = None, **more: Any) -> Session:
        more |= {"resume": resume} if resume is not None else {}
        try:
            session = await asyncio.to_thread(
                self._service.open,
                served.agent,
                feed,
                spec=served.spec,
                config=self._config,
                taken=served.taken,
                first=feed.serves,
                **more,
            )
        except ConfigError as error:
            raise Refused(409, "not_opened", f"the session cannot be opened: {error}") from None
        self._feeds[session.id] = feed
        return session

    async def _make_room(self) -> None:
        if len(self._feeds) < self.open_max:
            return None
        for name, feed in self._feeds.items():
            at_rest = feed.session is not None and is_resting(feed.session.state) and not feed.session.state.timers
            if at_rest and not feed.is_watched and not feed.askers:
                return await self._put_down(name)
        raise Refused(429, "too_many_sessions", "all sessions that can be open are at work", (("Retry-After", "10"),))

    async def _put_down(self, name: str) -> None:
        feed = self._feeds.pop(name)
        feed.end()
        assert feed.session is not None, "what is listed is open"
        await asyncio.to_thread(self._service.end, feed.session)
        state = feed.session.state
        await self._keep(name, replace(self._owners[name], is_resting=is_resting(state) and not state.timers))

    async def _keep(self, name: str, owner: Owner) -> None:
        if self._owners.get(name) != owner:
            self._owners[name] = owner
            await asyncio.to_thread(write_owner, self._root / "sessions" / name, owner)
