"""What a tool's arguments are, by their names, descriptions and schemas: the words each is spoken of with.

Knows no requests. Words are stems (`grammar.lexical`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from edgeagent.request.language import ENGLISH, word_set
from edgeagent.request.lexical import stem, stem_set, stems
from edgeagent.request.parts.units import UNITS, Unit

Kind = Literal["number", "truth", "option", "text", "date", "list", "form", "other"]

QUOTED_CHARS_MAX = 400
"""A text that may be longer, as its author says, is one to be written and not one to be taken from the request."""

_WORD = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_FORMS = frozenset(("const", "pattern", "contentEncoding"))
_QUOTED = re.compile(r"(?<!\w)['\"`‘]([^'\"`’]{1,30})['\"`’](?!\w)")
_LISTED = re.compile(
    r"(?:e\.g\.?|such as|for example|for instance|i\.e\.?|options?(?: are| include)?:|one of|can be|like)[:,]? "
    r"([^.()]{2,80})"
)
_DEFAULT = re.compile(r"\(?\bdefaults?\b.*", re.IGNORECASE)
_DEGREES = re.compile(r"°\s?([CF])\b")
_IN_UNIT = re.compile(r"(?:\bin |\bnumber of |\()([^\W\d_]+|%)(?=\W|$)")
_ORDINALS = word_set(ENGLISH.arguments.ordinals)  # `second_note` is no time.
_DATES, _TIMES = stem_set(ENGLISH.arguments.date), stem_set(ENGLISH.arguments.time)


@dataclass(frozen=True)
class Argument:
    """One argument of a tool.

    `own` are the words of its name that no other argument's name has, `rivals` those of the others' names, `about` the
    words of its description that no other's has.
    """

    name: str
    schema: Mapping[str, Any]
    required: bool
    words: frozenset[str]
    own: frozenset[str]
    rivals: frozenset[str]
    about: frozenset[str]

    @cached_property
    def kind(self) -> Kind:
        """What sort of value it takes."""
        options = self.schema.get("enum")
        match self.schema.get("type"):
            case "boolean":
                return "truth"
            case "integer" | "number" if not options:
                return "number"
            case _ if options and all(_is_number(each) for each in options):
                return "number"
            case "array" if isinstance(self.schema.get("items"), Mapping) and not _refers(self.schema):
                return "list"
            case _ if options and all(isinstance(each, str) for each in options):
                return "option"
            case "string" if self._is_quotable:
                return "date" if self.is_date else "text"
            case "string" if self.schema.keys() & {"pattern", "format"}:
                return "form"
        return "other"

    @property
    def description(self) -> str:
        """As its author wrote it."""
        return str(self.schema.get("description", ""))

    @property
    def is_date(self) -> bool:
        """Whether it is a day: by its name or its format."""
        return bool(self.words & _DATES) or self.schema.get("format") in ("date", "date-time")

    @property
    def is_time(self) -> bool:
        """Whether a time of day, a day, or both are meant."""
        return self.is_date or bool(self.words & _TIMES)

    @property
    def _is_quotable(self) -> bool:
        bound: int = self.schema.get("maxLength", 0)
        form = self.schema.get("format")
        return bound <= QUOTED_CHARS_MAX and not self.schema.keys() & _FORMS and form in (None, "date", "date-time")

    @cached_property
    def examples(self) -> tuple[str, ...]:
        """The values that its description names, without its default."""
        told = _DEFAULT.sub("", self.description)
        found = _QUOTED.findall(told)
        for listed in _LISTED.findall(told):
            found += [each.strip(" '\"`") for each in re.split(r", (?:etc)?| or | and |/", listed)]
        return tuple(dict.fromkeys(each for each in found if each and len(each.split()) <= 4))

    @cached_property
    def unit(self) -> Unit | None:
        """The unit of its value, by its name (`seconds`) or its description (`in seconds`)."""
        words = _WORD.findall(_CAMEL.sub(" ", self.name).casefold())
        named = (word for word in words if not (word in _ORDINALS and word != words[-1]))
        by_name = next((UNITS[stem(word)] for word in named if stem(word) in UNITS), None)
        if by_name is not None:
            return by_name
        degrees = _DEGREES.search(self.description)
        if degrees is not None:
            return UNITS[degrees[1].casefold()]
        said = (stem(word) for word in _IN_UNIT.findall(self.description.casefold()) if len(word) > 1)
        return next((UNITS[word] for word in said if word in UNITS), None)


def arguments_of(schema: Mapping[str, Any], names: Iterable[str] | None = None) -> dict[str, Argument]:
    """The arguments of a tool's schema, in its order."""
    properties = {name: without_null(each) for name, each in schema.get("properties", {}).items()}
    words = {name: frozenset(name_stems(name)) for name in properties}
    told = {name: frozenset(stems(_text(each))) for name, each in properties.items()}
    required = frozenset(schema.get("required", ()))
    return {
        name: Argument(
            name,
            each if isinstance(each, Mapping) else {},
            name in required,
            words[name],
            words[name] - _of_others(words, name),
            _of_others(words, name) - words[name],
            told[name] - _of_others(told, name) - words[name],
        )
        for name, each in properties.items()
    }


def name_stems(name: str) -> list[str]:
    """The words of an argument's name: `initialValue` and `initial_value` alike."""
    return [stem(word) for word in _WORD.findall(_CAMEL.sub(" ", name).casefold())]


def without_null(schema: Any) -> Any:
    """The one alternative beside null, as an optional argument has it."""
    options = schema.get("anyOf", ()) if isinstance(schema, Mapping) else ()
    others = [each for each in options if not isinstance(each, Mapping) or each.get("type") != "null"]
    return others[0] if len(others) == 1 and len(options) == 2 else schema


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refers(schema: Any) -> bool:
    """Whether a part of the schema stands elsewhere, where it is not looked for here."""
    if isinstance(schema, Mapping):
        return "$ref" in schema or any(_refers(each) for each in schema.values())
    return isinstance(schema, list) and any(_refers(each) for each in schema)


def _text(schema: Any) -> str:
    return str(schema.get("description", "")) if isinstance(schema, Mapping) else ""


def _of_others(words: Mapping[str, frozenset[str]], name: str) -> frozenset[str]:
    return frozenset().union(*(each for other, each in words.items() if other != name))
