"""Many requests made of few: orders turned into questions and denials, values put out of bounds, and talk.

What must never be is rare in a list that people write. So each order of our own set whose right call writes is turned:
into questions about it ("How do I ..."), denials of it ("Whatever you do, do not ..."), and the same order with a
number that its tool cannot take. None of these wants a call. Talk is asked of each agent in turn.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from bench.accuracy.requests import OWN, Asked
from edgeagent.core.agent import Agent

Turn = Literal["bounds", "questions", "denials", "talk"]

IMPERATIVE = """
    activate add bring cancel change charge clean close cool cut defrost dim feed forbid freeze give heat hide hold keep
    leave let limit lock log make mill move note open pan pause play print pump put raise record release reset run save
    set show shut skip start stir stop store switch take turn unlock vacuum water
"""
"""First words of an English order that can stand behind "to"."""

BEHIND_TO: Mapping[str, Sequence[str]] = {
    "questions": ("How do I {}?", "When did you last {}?", "Did somebody {} yesterday?", "Why would I {}?"),
    "denials": ("Don't {}.", "Whatever you do, do not {}.", "You must not {}!", "Nobody wants you to {}."),
}

AROUND: Mapping[str, Mapping[str, Sequence[str]]] = {
    "questions": {
        "en": ('What happens when I say "{}"?',),
        "de": ("Was passiert, wenn ich sage: „{}“?", "Hat gestern jemand gesagt: „{}“?"),
        "es": ("¿Qué pasa si digo «{}»?", "¿Alguien dijo ayer «{}»?"),
        "fr": ("Que se passe-t-il si je dis « {} » ?", "Quelqu'un a-t-il dit hier « {} » ?"),
    },
    "denials": {
        "en": ("{}? No, better not.",),
        "de": ("Tu das auf keinen Fall: {}.", "{}? Nein, lieber nicht."),
        "es": ("No hagas esto de ninguna manera: {}.", "¿{}? No, mejor no."),
        "fr": ("Ne fais surtout pas ça : {}.", "{} ? Non, plutôt pas."),
    },
}

CATEGORIES = {"bounds": "bounds", "questions": "nowrite", "denials": "negation", "talk": "smalltalk"}

ORDERS = frozenset(("direct", "numword", "option", "opposite", "unit", "time", "two", "text"))


def turned(turn: Turn, agents: Sequence[tuple[Agent, Sequence[Asked]]]) -> Iterator[tuple[Agent, Asked]]:
    """The requests that are made of these, each with its agent."""
    talk = list(_talk()) if turn == "talk" else []
    for place, (agent, requests) in enumerate(agents):
        if turn == "talk":
            made = [(lang, text) for lang, text in talk[place :: len(agents)]]
        else:
            orders = [each for each in requests if _is_order(agent, each)]
            made = [(each.lang, text) for each in orders for text in _made(turn, agent, each)]
        for n, (lang, text) in enumerate(made):
            yield agent, Asked(f"{agent.name}-{turn}-{n:02}", CATEGORIES[turn], lang, text, "none", ((),))


def _is_order(agent: Agent, asked: Asked) -> bool:
    """Whether a request is an order by itself whose right call changes something."""
    if asked.category not in ORDERS or asked.want != "call" or asked.before or len(asked.accept) > 1:
        return False
    return "?" not in asked.text and all(agent.by_name[call.tool].effect != "read" for call in asked.accept[0])


def _made(turn: Turn, agent: Agent, asked: Asked) -> Iterator[str]:
    if turn == "bounds":
        yield from _out_of_bounds(agent, asked)
        return
    bare = asked.text.strip(" .!¡")
    verb = bare.partition(" ")[0].casefold()
    if asked.lang == "en" and asked.category != "two" and verb in IMPERATIVE.split():
        yield from (form.format(bare[0].lower() + bare[1:]) for form in BEHIND_TO[turn])
    yield from (form.format(bare) for form in AROUND[turn][asked.lang])


def _out_of_bounds(agent: Agent, asked: Asked) -> Iterator[str]:
    """The same order with numbers that the argument cannot take in the place of the one that it has."""
    for call in asked.accept[0]:
        properties = agent.by_name[call.tool].parameters.schema["properties"]
        for name, value in call.arguments.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            said = re.compile(rf"(?<![\w.,:-]){re.escape(f'{value:g}')}(?![\w:]|[.,]\d)")
            if len(said.findall(asked.text)) == 1:
                yield from (said.sub(f"{each:g}", asked.text) for each in _outside(properties[name]))


def _outside(schema: Mapping[str, Any]) -> list[float]:
    """Numbers that the schema does not take; none where it takes any."""
    told: Mapping[str, Any] = next((each for each in (schema, *schema.get("anyOf", ())) if "maximum" in each), {})
    if not told:
        return []
    low, high = told.get("minimum", told.get("exclusiveMinimum", 0)), told["maximum"]
    candidates = (
        high + max(1, round(abs(high) / 10)),
        abs(high) * 2 + 1,
        abs(high) * 10,
        99_999,
        -5,
        low - 1,
        low - 40,
    )
    return sorted({each for each in candidates if each > high or each < low})


def _talk() -> Iterator[tuple[str, str]]:
    """Sentences that no device is for, with their languages."""
    told = tomllib.loads((OWN / "talk.toml").read_text(encoding="utf-8"))
    for lines in zip(*(told[lang] for lang in ("en", "de", "es", "fr")), strict=True):
        yield from zip(("en", "de", "es", "fr"), lines, strict=True)
