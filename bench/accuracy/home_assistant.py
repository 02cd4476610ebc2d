"""Sentences that people say to Home Assistant, with the intent and slots that they mean: its own, in eight languages.

Its sentence templates come from the package `home-assistant-intents` (CC BY 4.0), fetched as the other sets are. From
them sentences are drawn, by chance with a fixed seed, about a small house whose rooms and devices have names in the
language; and `hassil`, Home Assistant's own recogniser, says what each means. What it does not understand as the intent
that it was drawn from is drawn anew. The intents are the tools of one agent, described in English.

Left out: what needs more than a room, a device and a value (floors, scenes, lists of things, free text, timers' names),
and what is about the room that a microphone stands in.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

from bench.accuracy.packages import DataMissing, text_in
from bench.accuracy.requests import Accepted, Asked, agent_of
from edgeagent.core.agent import Agent
from edgeagent.shape.parse import parse

LANGUAGES = ("en", "de", "es", "fr", "it", "nl", "pl", "pt")

SENTENCES = 200
"""How many are drawn in a language: half of them for fitting, and half that are reported."""

SEED = 17
DRAWS_MAX = 20_000
SPELT_OUT = 0.25
"""The share of numbers that are drawn as words."""

AREAS: Mapping[str, str] = {
    "en": "kitchen, living room, bedroom, garden",
    "de": "Küche, Wohnzimmer, Schlafzimmer, Garten",
    "es": "cocina, salón, dormitorio, jardín",
    "fr": "cuisine, salon, chambre, jardin",
    "it": "cucina, soggiorno, camera da letto, giardino",
    "nl": "keuken, woonkamer, slaapkamer, tuin",
    "pl": "kuchnia, salon, sypialnia, ogród",
    "pt": "cozinha, sala, quarto, jardim",
}

DOMAINS = ("light", "light", "fan", "media_player", "cover", "climate", "vacuum")
NAMES: Mapping[str, str] = {
    "en": "ceiling lamp, desk lamp, fan, TV, garage door, thermostat, robot vacuum",
    "de": "Deckenlampe, Schreibtischlampe, Ventilator, Fernseher, Garagentor, Thermostat, Saugroboter",
    "es": "lámpara de techo, lámpara de mesa, ventilador, televisor, puerta del garaje, termostato, robot aspirador",
    "fr": "plafonnier, lampe de bureau, ventilateur, téléviseur, porte de garage, thermostat, robot aspirateur",
    "it": "lampadario, lampada da tavolo, ventilatore, televisore, porta del garage, termostato, robot aspirapolvere",
    "nl": "plafondlamp, bureaulamp, ventilator, televisie, garagedeur, thermostaat, robotstofzuiger",
    "pl": "lampa sufitowa, lampka biurkowa, wentylator, telewizor, brama garażowa, termostat, robot sprzątający",
    "pt": "lâmpada do teto, candeeiro de mesa, ventoinha, televisão, porta da garagem, termóstato, robô aspirador",
}

COMBINATIONS: Mapping[str, tuple[str, ...]] = {
    "HassTurnOn": ("name_only", "area_domain"),
    "HassTurnOff": ("name_only", "area_domain"),
    "HassLightSet": ("name_brightness", "area_brightness", "name_color", "area_color"),
    "HassClimateSetTemperature": ("name_temperature", "area_temperature"),
    "HassClimateGetTemperature": ("name_only", "area_only"),
    "HassGetState": ("name_only", "name_state"),
    "HassSetVolume": ("name_only", "area_only"),
    "HassMediaPause": ("name_only", "area_only"),
    "HassMediaNext": ("name_only", "area_only"),
    "HassVacuumStart": ("name_only", "area_only"),
    "HassVacuumReturnToBase": ("name_only", "area_only"),
    "HassStartTimer": ("hours_only", "minutes_only", "seconds_only", "hours_minutes", "minutes_seconds"),
}
"""Which of their sentences are drawn, by intent and by the slots that they fill."""

COLORS = "white, black, red, orange, yellow, green, blue, purple, brown, pink, turquoise"

SOURCE = '''
from typing import Annotated, Literal

from msgspec import Meta

from edgeagent import Agent, tool

Name = Literal[{names}]
Area = Literal[{areas}]
Domain = Literal["light", "fan"]
Color = Literal[{colors}]
Percent = Annotated[int, Meta(ge=0, le=100)]


@tool(idempotent=True, effect="write")
def HassTurnOn(name: Name | None = None, area: Area | None = None, domain: Domain | None = None) -> str:
    """Turn on or open a device, or all lights or fans of an area."""
    return "on"


@tool(idempotent=True, effect="write")
def HassTurnOff(name: Name | None = None, area: Area | None = None, domain: Domain | None = None) -> str:
    """Turn off or close a device, or all lights or fans of an area."""
    return "off"


@tool(idempotent=True, effect="write")
def HassLightSet(
    name: Name | None = None, area: Area | None = None, brightness: Percent | None = None, color: Color | None = None
) -> str:
    """Set the brightness (in percent) or the color of a light, or of the lights of an area."""
    return "set"


@tool(idempotent=True, effect="write")
def HassClimateSetTemperature(
    temperature: Annotated[float, Meta(ge=0, le=100)], name: Name | None = None, area: Area | None = None
) -> str:
    """Set the target temperature of a thermostat or an area, in degrees."""
    return "set"


@tool(idempotent=True, effect="read")
def HassClimateGetTemperature(name: Name | None = None, area: Area | None = None) -> str:
    """Tell the current temperature of a thermostat or an area."""
    return "21.5"


@tool(idempotent=True, effect="read")
def HassGetState(name: Name) -> str:
    """Tell the state of a device: whether it is on or off, open or closed."""
    return "on"


@tool(idempotent=True, effect="write")
def HassSetVolume(volume_level: Percent, name: Name | None = None, area: Area | None = None) -> str:
    """Set the volume of a media player, in percent."""
    return "set"


@tool(idempotent=True, effect="write")
def HassMediaPause(name: Name | None = None, area: Area | None = None) -> str:
    """Pause a media player."""
    return "paused"


@tool(idempotent=False, effect="write")
def HassMediaNext(name: Name | None = None, area: Area | None = None) -> str:
    """Skip a media player to the next item."""
    return "skipped"


@tool(idempotent=True, effect="write")
def HassVacuumStart(name: Name | None = None, area: Area | None = None) -> str:
    """Start a vacuum."""
    return "started"


@tool(idempotent=True, effect="write")
def HassVacuumReturnToBase(name: Name | None = None, area: Area | None = None) -> str:
    """Return a vacuum to its base."""
    return "returning"


@tool(idempotent=False, effect="write")
def HassStartTimer(
    hours: Annotated[int, Meta(ge=1, le=100)] | None = None,
    minutes: Annotated[int, Meta(ge=1, le=100)] | None = None,
    seconds: Annotated[int, Meta(ge=1, le=100)] | None = None,
) -> str:
    """Start a timer."""
    return "started"


agent = Agent(name="home", system="You control a house.", tools=[{tools}])
'''

OPPOSITES = (frozenset(("HassTurnOn", "HassTurnOff")), frozenset(("HassVacuumStart", "HassVacuumReturnToBase")))


def house(lang: str) -> Agent:
    """The agent whose tools are the intents, with rooms and devices in a language."""
    words = {"names": NAMES[lang], "areas": AREAS[lang], "colors": COLORS}
    told = {key: ", ".join(repr(each) for each in words[key].split(", ")) for key in words}
    return agent_of(SOURCE.format(**told, tools=", ".join(COMBINATIONS)), "home")


def sentences(lang: str, count: int = SENTENCES) -> Iterator[Asked]:
    """So many different sentences of a language, the same ones every time. Raises DataMissing."""
    drawing = _Drawing(lang)
    for place, (text, intent, slots) in enumerate(drawing.sentences(count)):
        ways = tuple((Accepted(intent, each),) for each in (slots, *_said_otherwise(slots)))
        yield Asked(f"ha-{lang}-{place:03}", intent, lang, text, "call", ways, opposites=OPPOSITES)


def _said_otherwise(slots: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Ninety minutes as one hour and thirty minutes."""
    told = {name: slots.get(name, 0) for name in ("hours", "minutes", "seconds")}
    minutes, seconds = divmod(told["hours"] * 3600 + told["minutes"] * 60 + told["seconds"], 60)
    other = {"hours": minutes // 60, "minutes": minutes % 60, "seconds": seconds}
    if minutes + seconds and other != told:
        yield {name: value for name, value in other.items() if value}


class _Drawing:
    """The templates of a language and the chance that draws from them."""

    def __init__(self, lang: str) -> None:
        try:
            from hassil.intents import Intents, TextSlotList
        except ImportError as error:
            raise DataMissing("hassil says what a sentence means: pip install 'edgeagent[bench]'") from error
        self._lang, self._chance = lang, random.Random(SEED)
        told = parse(text_in("ha", f"home_assistant_intents/data/{lang}.json"))
        told["intents"] = {name: told["intents"][name] for name in COMBINATIONS}
        self._intents = Intents.from_dict(told)
        names = [(name, name, {"domain": domain}) for name, domain in _devices(lang)]
        areas = [(area, area) for area in AREAS[lang].split(", ")]
        self._lists = {
            **self._intents.slot_lists,
            "name": TextSlotList.from_tuples(names, allow_template=False),
            "area": TextSlotList.from_tuples(areas, allow_template=False),
            "floor": TextSlotList.from_tuples([], allow_template=False),  # There are none, but templates name them.
        }

    def sentences(self, count: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Text, intent and slots."""
        known: set[str] = set()
        for _ in range(DRAWS_MAX):
            intent = self._chance.choice(list(COMBINATIONS))
            text = self._drawn(intent)
            if not text or text.casefold() in known:
                continue
            slots = self._meant(intent, text)
            if slots is not None:
                known.add(text.casefold())
                yield text, intent, slots
                if len(known) == count:
                    return
        raise DataMissing(f"fewer than {count} sentences of {self._lang} in {DRAWS_MAX} draws")

    def _drawn(self, intent: str) -> str:
        """A sentence of one of the intent's templates."""
        blocks = [(_combination(block), block) for block in self._intents.intents[intent].data]
        combination = self._chance.choice([each for each in COMBINATIONS[intent] if each in dict(blocks)])
        block = self._chance.choice([block for each, block in blocks if each == combination])
        self._rules = {**self._intents.expansion_rules, **block.expansion_rules}
        self._domains = block.requires_context.get("domain", ())
        sentence = self._chance.choice(list(block.sentences))
        return " ".join("".join(self._spelt(sentence.expression)).split())

    def _spelt(self, part: Any) -> Iterator[str]:
        from hassil import expression as kinds

        match part:
            case kinds.TextChunk():
                yield part.original_text
            case kinds.Alternative():
                yield from self._spelt(self._chance.choice(part.items))
            case kinds.Permutation():
                for each in self._chance.sample(part.items, len(part.items)):
                    yield from (" ", *self._spelt(each), " ")
            case kinds.Group():
                for each in part.items:
                    yield from self._spelt(each)
            case kinds.RuleReference():
                yield from self._spelt(self._rules[part.rule_name].expression)
            case kinds.ListReference():
                yield self._value(part)

    def _value(self, part: Any) -> str:
        from hassil.intents import RangeSlotList, TextSlotList
        from hassil.numbers import get_rbnf_engine

        values = self._lists.get(part.list_name)
        if isinstance(values, TextSlotList):
            fitting = [each for each in values.values if self._is_about(each.context)]
            return "".join(self._spelt(self._chance.choice(fitting or values.values).text_in))
        if not isinstance(values, RangeSlotList):
            return ""
        number = self._chance.choice(list(values.get_numbers()))
        if self._chance.random() < SPELT_OUT and number == int(number):
            return str(get_rbnf_engine(self._lang).format_number(int(number)).text)
        return f"{number:g}"

    def _is_about(self, context: Mapping[str, Any] | None) -> bool:
        """Whether a device is of a domain that the sentence may be about."""
        domain = (context or {}).get("domain")
        return domain is None or not self._domains or domain in self._domains

    def _meant(self, intent: str, text: str) -> dict[str, Any] | None:
        """The slots that hassil finds, as our tools name them; None where it finds another intent or other slots."""
        from hassil.recognize import recognize_best

        found = recognize_best(text, self._intents, slot_lists=self._lists, language=self._lang)
        if found is None or found.intent.name != intent:
            return None
        slots = {name: _whole(each.value) for name, each in found.entities.items()}
        if "area" not in slots or not intent.startswith("HassTurn"):
            slots.pop("domain", None)
        slots.pop("state", None)
        return slots if slots and slots.keys() <= _SLOTS else None


_SLOTS = frozenset(
    ("name", "area", "domain", "brightness", "color", "temperature", "volume_level", "hours", "minutes", "seconds")
)


def _combination(block: Any) -> str:
    """Which slots a block of sentences fills."""
    return str((block.metadata or {}).get("slot_combination", ""))


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _devices(lang: str) -> list[tuple[str, str]]:
    return list(zip(NAMES[lang].split(", "), DOMAINS, strict=True))
