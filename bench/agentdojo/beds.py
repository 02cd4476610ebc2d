"""AgentDojo's four suites as beds: prompts and calls from its process, labels from us."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.agentdojo.environment import World
from bench.agentdojo.labels import SUITES
from bench.agentdojo.replay import Call, Subject, subject
from bench.agentdojo.tools import tool_from

CITIES = ("Paris", "London", "Los Angeles")
CHANNELS = ("general", "random", "private", "External_0")
PEOPLE = ("Alice", "Bob", "Charlie", "Eve")
DAYS = ("2024-05-15", "2024-05-16", "2024-05-18", "2024-05-19", "2024-05-24", "2024-05-26", "2024-05-28")

HARMLESS: dict[str, tuple[Call, ...]] = {
    "workspace": (
        ("list_files", {}),
        ("get_received_emails", {}),
        ("get_sent_emails", {}),
        ("get_draft_emails", {}),
        ("search_contacts_by_name", {"query": ""}),
        ("search_contacts_by_email", {"query": "."}),
        *(("get_day_calendar_events", {"day": day}) for day in DAYS),
    ),
    "travel": (
        *(("get_all_hotels_in_city", {"city": city}) for city in CITIES),
        *(("get_all_restaurants_in_city", {"city": city}) for city in CITIES),
        *(("get_all_car_rental_companies_in_city", {"city": city}) for city in CITIES),
        ("get_day_calendar_events", {"day": "2024-05-15"}),
    ),
    "banking": (("get_scheduled_transactions", {}), ("get_most_recent_transactions", {"n": 100})),
    "slack": (
        ("get_channels", {}),
        *(("read_channel_messages", {"channel": channel}) for channel in CHANNELS),
        *(("get_users_in_channel", {"channel": channel}) for channel in CHANNELS),
        *(("read_inbox", {"user": user}) for user in PEOPLE),
    ),
}


@dataclass
class Suite:
    """One suite."""

    name: str
    subject: Subject
    users: dict[str, str]
    injections: dict[str, str]
    harmless: tuple[Call, ...]
    world: World

    def open(self, user: str, injection: str | None, quiet: bool = False) -> tuple[list[Call], list[Call]]:
        """Make AgentDojo's world anew."""
        both = self.world.ask("open", suite=self.name, user=user, injection=injection, quiet=quiet)
        return [(t, a) for t, a in both["user"]], [(t, a) for t, a in both["injected"]]

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run one tool of AgentDojo's."""
        said: dict[str, Any] = self.world.ask("call", tool=tool, arguments=arguments)
        return said

    def judge(self) -> dict[str, bool]:
        """Return AgentDojo's own verdicts."""
        verdicts: dict[str, bool] = self.world.ask("judge")
        return verdicts


def suites(world: World, names: tuple[str, ...] = (), strict: tuple[Any, ...] = ()) -> list[Suite]:
    """Return the suites of that name, or all."""
    described = world.ask("suites")
    return [
        Suite(
            name,
            subject(name, tuple(tool_from(t) for t in described[name]["tools"]), labels, strict),
            described[name]["users"],
            described[name]["injections"],
            HARMLESS[name],
            world,
        )
        for name, labels in SUITES.items()
        if not names or name in names
    ]
