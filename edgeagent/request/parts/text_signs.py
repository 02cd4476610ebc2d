"""Signs that speak for and against a part of a request as a text argument: its place, its form, the words beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edgeagent.request.language import ENGLISH, word_set
from edgeagent.request.lexical import stem_set, stems
from edgeagent.request.parts.declared import Argument
from edgeagent.request.parts.signs import TextSign
from edgeagent.request.parts.texts import TAIL_MARKS, Part, sentence_end
from edgeagent.request.parts.words import PREPOSITIONS, Word, Words

_TEXTS = ENGLISH.texts
_OF, _OF_NAMES, _THE = word_set(_TEXTS.of), word_set(_TEXTS.of_names), word_set(_TEXTS.the)
_LINKS = word_set(_TEXTS.links)
_NAMES, _CODES, MESSAGES = stem_set(_TEXTS.names), stem_set(_TEXTS.codes), stem_set(_TEXTS.messages)
_WIDE, _CITIES = stem_set(_TEXTS.wide), stem_set(_TEXTS.cities)
_ROLES = {name: (word_set(role.prepositions), stem_set(role.names)) for name, role in _TEXTS.roles.items()}
_CODE = re.compile(r"[\w]_\w|\w[/\\@]\w|\d[a-zA-Z]|[a-zA-Z]-?\d")
_SPELLED = (
    (stem_set(_TEXTS.email), re.compile(r"\S+@\S+")),
    (stem_set(_TEXTS.url), re.compile(r"\w+://\S+|www\.\S+")),
    (stem_set(_TEXTS.host), re.compile(r"\d+(?:\.\d+){3}(?::\d+)?")),
)
"""Arguments of these names, and how their values are spelled."""

_VERBAL = re.compile(ENGLISH.patterns.verbal)


@dataclass(frozen=True)
class _Place:
    """Where a part stands: its words, and those around it."""

    part: Part
    said: Words
    first: int
    last: int

    @property
    def words(self) -> tuple[Word, ...]:
        return self.said.words[self.first : self.last + 1]

    @property
    def before(self) -> Word | None:
        return self.said.words[self.first - 1] if self.first else None

    @property
    def behind(self) -> Word | None:
        return self.said.words[self.last + 1] if self.last + 1 < len(self.said.words) else None

    @property
    def is_whole(self) -> bool:
        return self.part.kind in ("quoted", "formula", "time")

    @property
    def begins(self) -> bool:
        """Whether a chunk begins with it."""
        before = self.before
        return self.is_whole or before is None or before.is_cut or before.is_article or self.words[0].apart

    @property
    def is_tail(self) -> bool:
        """Whether it is the rest of a sentence behind a word that announces one."""
        announced = self.before is not None and self.before.folded in TAIL_MARKS
        return announced and self.last == sentence_end(self.said, self.first)

    @property
    def leads(self) -> Word | None:
        """The nearest word before it that is no article."""
        return next((word for word in reversed(self.said.words[: self.first]) if not word.is_article), None)

    def named_by(self, argument: Argument) -> Word | None:
        """The word before it that may say what it is: `city` in `the city of Ghent`."""
        near = self.said.words[max(0, self.first - 5) : self.first]
        telling = (word for word in reversed(near) if word.stem in argument.own or not _links(word))
        return next(telling, None)

    @property
    def adjoining(self) -> Word | None:
        """The word behind it, if nothing separates them."""
        word = self.behind
        return None if word is None or word.apart or word.is_cut else word


def _links(word: Word) -> bool:
    return word.folded in _LINKS or word.is_article


def signs_of(part: Part, argument: Argument, said: Words, spoken: frozenset[str]) -> list[TextSign]:
    """What speaks for and against a part; `spoken` are the words of the tool's name and description."""
    inside = [n for n, word in enumerate(said.words) if part.begin <= word.begin and word.end <= part.end + 1]
    if not inside:
        return [TextSign.NO_WORD]
    place = _Place(part, said, inside[0], inside[-1])
    ways = (_form_signs, _capital_signs, _code_signs, _role_signs, _name_signs, _comma_signs)
    found = [TextSign(part.kind), *(sign for way in ways for sign in way(place, argument))]
    return [*found, *_word_signs(place, argument, spoken), *_example_signs(part, argument)]


def _form_signs(place: _Place, argument: Argument) -> Iterator[TextSign]:
    words, before, behind = place.words, place.before, place.behind
    if place.begins:
        yield TextSign.BEGINS_A_CHUNK
    elif before is not None and before.text.islower() and _VERBAL.search(before.text):
        yield TextSign.BEHIND_A_VERB
    if place.is_whole or behind is None or behind.is_cut or behind.is_article or behind.apart:
        yield TextSign.ENDS_A_CHUNK
    if len(words) > 4:
        yield TextSign.LONG
    if place.first == 0:
        yield TextSign.BEGINS_THE_REQUEST
    elif words[0].text.islower() and _VERBAL.search(words[0].text):
        yield TextSign.BEGINS_WITH_A_VERB
    if (words[0].is_cut or words[-1].is_cut) and place.part.kind not in ("tail", "rest"):
        yield TextSign.FUNCTION_WORD_AT_AN_END
    if place.part.kind != "quoted" and any(b <= place.part.begin and place.part.end <= e for b, e in place.said.quoted):
        yield TextSign.INSIDE_A_QUOTATION
    if argument.words & MESSAGES:
        if place.part.kind == "tail" or place.is_tail:
            yield TextSign.TAIL_FOR_A_MESSAGE
        elif place.part.kind == "rest":
            yield TextSign.REST_FOR_A_MESSAGE
    if place.part.kind == "time":
        yield TextSign.TIME_FOR_A_TIME if argument.is_time else TextSign.TIME_FOR_ANOTHER
    elif argument.is_time:
        yield TextSign.ANOTHER_FOR_A_TIME


def _capital_signs(place: _Place, argument: Argument) -> Iterator[TextSign]:
    words = [word for word in place.words if not word.is_cut or len(place.words) == 1]
    capitals = [word.is_capital for word in words]
    names = bool(argument.words & _NAMES)
    if place.first == 0 or not capitals or not all(capitals):
        if names and not any(capitals):
            yield TextSign.SMALL_LETTERS_FOR_A_NAME
        return
    before, behind = place.before, place.behind
    cut = (place.first > 1 and before is not None and before.is_capital and not place.words[0].apart) or (
        behind is not None and behind.is_capital and not behind.apart
    )
    yield TextSign.PART_OF_A_CAPITAL_RUN if cut else TextSign.CAPITAL_RUN
    yield TextSign.CAPITALS_FOR_A_NAME if names else TextSign.CAPITALS_FOR_ANOTHER
    if _is_of(place.said.words[: place.first][::-1]) or _is_of(place.said.words[place.last + 1 :]):
        yield TextSign.PART_OF_JOINED_CAPITALS
    if place.part.kind == "joined" and not cut:
        if "," in place.part.text:
            yield TextSign.JOINED_CAPITALS_WITH_A_COMMA
        elif all(word.is_capital or word.folded in _OF for word in place.words):
            yield TextSign.JOINED_CAPITALS


def _is_of(words: Sequence[Word]) -> bool:
    """Whether the nearest words are `of` or its like, and then a capital: `Museum of Art`."""
    telling = [word for word in words[:3] if word.folded not in _THE][:2]
    return len(telling) == 2 and telling[0].folded in _OF_NAMES and telling[1].is_capital and not telling[0].apart


def _code_signs(place: _Place, argument: Argument) -> Iterator[TextSign]:
    text = place.part.text
    digits = any(char.isdigit() for char in text)
    if argument.words & _CODES:
        yield TextSign.DIGITS_FOR_A_CODE if digits else TextSign.NO_DIGITS_FOR_A_CODE
    elif digits:
        yield TextSign.DIGITS
    if any(argument.words & names and form.fullmatch(text) for names, form in _SPELLED):
        yield TextSign.SPELLED_AS_SUCH
    if len(place.words) == 1 and _CODE.search(text):
        yield TextSign.SPELLED_AS_A_CODE
    if re.fullmatch(r"[-\d.,%]+", text):
        yield TextSign.NUMBER_ALONE


def _role_signs(place: _Place, argument: Argument) -> Iterator[TextSign]:
    leads = place.leads
    if leads is None or leads.folded not in PREPOSITIONS:
        return
    if not (
        place.is_whole or place.words[0].apart or place.before is None or place.before.is_cut or place.before.is_article
    ):
        return
    for name, (prepositions, names) in _ROLES.items():
        if argument.words & names:
            yield TextSign(f"behind its {name}" if leads.folded in prepositions else f"not behind its {name}")
    if leads.folded in argument.words:
        yield TextSign.BEHIND_ITS_NAME_AS_A_PREPOSITION


def _name_signs(place: _Place, argument: Argument) -> Iterator[TextSign]:
    named_by, adjoining = place.named_by(argument), place.adjoining
    if named_by is not None:
        if named_by.stem in argument.own:
            yield TextSign.NAMED_BEFORE
        elif named_by.stem in argument.words:
            yield TextSign.NAMED_BEFORE_WITH_OTHERS
        elif named_by.stem in argument.rivals:
            yield TextSign.ANOTHER_NAMED_BEFORE
        elif named_by.stem in argument.about:
            yield TextSign.DESCRIBED_BEFORE
    if adjoining is not None and adjoining.stem in argument.own:
        yield TextSign.NAMED_BEHIND
    words = set(stems(place.part.text))
    if words & argument.words:
        yield TextSign.ONLY_ITS_NAME if words <= argument.words else TextSign.HAS_ITS_NAME


def _comma_signs(place: _Place, argument: Argument) -> Iterator[TextSign]:
    """`Lyon, France`: the wider place stands behind the comma."""
    before, behind, wide = place.before, place.behind, bool(argument.words & _WIDE)
    comma = before is not None and place.said.request[before.end : place.words[0].begin] == ", "
    if comma:
        yield TextSign.BEHIND_A_COMMA_FOR_A_WIDE_PLACE if wide else TextSign.BEHIND_A_COMMA
    elif wide:
        yield TextSign.NOT_BEHIND_A_COMMA_FOR_A_WIDE_PLACE
    if behind is not None and behind.apart and behind.is_capital and argument.words & _CITIES:
        yield TextSign.BEFORE_A_COMMA_FOR_A_CITY


def _word_signs(place: _Place, argument: Argument, spoken: frozenset[str]) -> Iterator[TextSign]:
    words = stems(place.part.text)
    told = [word for word in words if word in spoken]
    if words and not all(word.is_capital or word.is_cut for word in place.words):
        if len(told) == len(words):
            yield TextSign.ALL_WORDS_ARE_THE_TOOLS
        elif told:
            yield TextSign.SOME_WORDS_ARE_THE_TOOLS
    if not words and not any(char.isdigit() for char in place.part.text):
        yield TextSign.SAYS_NOTHING


def _example_signs(part: Part, argument: Argument) -> Iterator[TextSign]:
    folded = part.text.casefold()
    examples = [each.casefold() for each in argument.examples]
    if folded in examples:
        yield TextSign.AN_EXAMPLE
    elif any(folded in each or each in folded for each in examples):
        yield TextSign.NEAR_AN_EXAMPLE
