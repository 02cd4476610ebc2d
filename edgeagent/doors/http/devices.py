"""Devices of an agent as they are seen: the last lines that each has printed, and what it prints from now on.

Lines are not in the trace: they are what is there now, for as long as this server runs. A place among them is a text,
`LIFE.N.N...`: which run of the server, and how many lines of each device were had. One of another run has had none.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from edgeagent.core.agent import Agent
from edgeagent.core.lines import Excerpt, Lines
from edgeagent.doors.http.feed import ALIVE_S, RETRY_MS, framed
from edgeagent.doors.http.message import EVENTS, Refused, Reply, as_json
from edgeagent.doors.http.routes import Call, Route
from edgeagent.doors.http.sessions import Sessions

GATHERED_S = 0.1
"""What comes within so long is sent at once: a flood of lines is a few events a second, not one each."""

PLACE_CHARS_MAX = 500


class Devices:
    """The routes of what devices print. Whoever may ask an agent may see its devices; they are everyone's alike."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions, self._life = sessions, secrets.token_hex(4)
        self._ends: set[asyncio.Event] = set()
        one = "/api/agents/{agent}"
        self.routes = (
            Route("GET", f"{one}/devices", "devices", "Its devices and their last lines.", self._list, refusals=(404,)),
            Route(
                "GET", f"{one}/lines", "lines", "What its devices print, from `since` on, as server-sent events.",
                self._follow, gives=(EVENTS,), query=("since",), refusals=(404,),
            ),
        )  # fmt: skip

    def end_streams(self) -> None:
        """Let everyone who watches go."""
        for changed in self._ends:
            changed.set()
        self._ends = set()

    def states(self) -> dict[str, str]:
        """How each device of any agent stands: `open`, `lost`, or `closed`."""
        found = {each.name: each for served in self._sessions.agents.values() for each in devices_of(served.agent)}
        return {n: "open" if each.is_open else "lost" if each.is_lost else "closed" for n, each in found.items()}

    def counted(self) -> dict[str, int]:
        """How many devices stand so; no names, for they are told to who has a key."""
        return dict(sorted(Counter(self.states().values()).items()))

    async def _list(self, call: Call) -> Reply:
        devices = self._of(call)
        found = [(lines, lines.since(0)) for lines in devices]
        rows = [_row(lines, printed, 0) for lines, printed in found]
        return as_json({"devices": rows, "place": self._place([printed.next for _, printed in found])})

    async def _follow(self, call: Call) -> Reply:
        devices = self._of(call)
        place = call.request.headers.get("last-event-id") or call.request.query.get("since", "")
        return Reply(200, kind=EVENTS, pieces=self._events(devices, self._had(place, len(devices))))

    def _of(self, call: Call) -> tuple[Lines, ...]:
        served = self._sessions.agents.get(call.parts["agent"])
        if served is None:
            raise Refused(404, "no_such_agent", f"there is no agent {call.parts['agent'][:80]!r}")
        return devices_of(served.agent)

    def _place(self, numbers: list[int]) -> str:
        return ".".join([self._life, *map(str, numbers)])

    def _had(self, place: str, devices: int) -> list[int]:
        """How many lines of each device were had. Raises Refused for what is no place."""
        life, *numbers = place.split(".")
        if len(place) > PLACE_CHARS_MAX or not all(n.isascii() and n.isdecimal() and len(n) < 16 for n in numbers):
            raise Refused(400, "bad_place", "since and Last-Event-ID are a place that this server gave")
        is_ours = life == self._life and len(numbers) == devices
        return [int(number) for number in numbers] if is_ours else [0] * devices

    async def _events(self, devices: tuple[Lines, ...], had: list[int]) -> AsyncGenerator[bytes, None]:
        loop, more = asyncio.get_running_loop(), asyncio.Event()
        self._ends.add(more)

        def changed() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(more.set)

        for lines in devices:
            lines.follow(changed)
        try:
            yield f"retry: {RETRY_MS}\n\n".encode()
            shown: list[tuple[bool, str] | None] = [None] * len(devices)
            while more in self._ends:
                more.clear()
                for at, lines in enumerate(devices):
                    printed = lines.since(had[at])
                    now = lines.is_open, printed.begun
                    if printed.lines or now != shown[at]:
                        row = _row(lines, printed, had[at])
                        had[at], shown[at] = printed.next, now
                        yield f"id: {self._place(had)}\n".encode() + framed("lines", row)
                await asyncio.sleep(GATHERED_S)
                if not await _within(more, ALIVE_S):
                    yield b": alive\n\n"
        finally:
            self._ends.discard(more)
            for lines in devices:
                lines.leave(changed)


async def _within(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True


def devices_of(agent: Agent) -> tuple[Lines, ...]:
    """The devices that tools of this agent, and of its sub-agents, speak to: each once."""
    found = {id(tool.lines): tool.lines for tool in agent.family.values() if tool.lines is not None}
    return tuple(found.values())


def _row(lines: Lines, printed: Excerpt, since: int) -> dict[str, Any]:
    """A device with its lines; `missed` of those behind `since` are not kept any more."""
    first = printed.lines[0].number if printed.lines else printed.next
    return {
        "device": lines.name,
        "is_open": lines.is_open,
        "is_lost": lines.is_lost,
        "lines": [msgspec.to_builtins(each) for each in printed.lines],
        "begun": printed.begun,
        "missed": max(0, first - since) if since else 0,
    }
