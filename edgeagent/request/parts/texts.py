"""Which parts of a request may a text argument be, and what speaks for each of them?

A part is a chunk between function words, a piece of one, two of them with `of` or `and` between, what stands in
quotation marks, a formula, or the rest of a sentence behind a colon or `that`. Its signs are named below; their weights
(`WEIGHTS`) were fitted once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from edgeagent.request.lexical import stem, stems
from edgeagent.request.parts.assign import Candidate
from edgeagent.request.parts.dates import When
from edgeagent.request.parts.declared import Argument
from edgeagent.request.parts.words import PREPOSITIONS, Word, Words

PART_WORDS_MAX = 8
TAIL_WORDS_MAX = 24

UNSAID, UNSAID_MAX = 0.6, 3
"""Nats against an only text for each word of the request that nothing says then, and how many are counted."""

TAKEN = 4.0
"""Nats against a part of which another argument has a piece."""

GIVEN = 4.0
"""Nats of evidence from which on an optional text is given."""

PARTS_KEPT = 6
"""The parts of a request that stay, best first: the model compares no more for an argument.

On even rows of BFCL twelve were right no more often than four."""


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split(" "))


def _stem_set(words: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words.split(" "))


_INDEFINITE = _words("something anything whatever everything someone anyone somebody anybody some any it them one ones")
"""Words that name nothing: with these alone it is open what a text is."""

_JOINERS = _words("of and the de vs vs. versus for in on to from with or at a by is as") | {"&"}
_OF = _words("of the de la & vs for")
_TAIL_MARKS = _words("with that to saying says say reads titled called named about")
_LINKS = _words("is are of named called titled as for to in with by be was being name equal equals at on")
EXPRESSION = re.compile(r"(?<!\w)[\w.()]*(?:\s*[-+*/^=<>]+\s*[\w.()]*\w\)?)+")
_CODE = re.compile(r"[\w]_\w|\w[/\\@]\w|\d[a-zA-Z]|[a-zA-Z]-?\d")
_SPELLED = (
    (_stem_set("email mail"), re.compile(r"\S+@\S+")),
    (_stem_set("url uri link website"), re.compile(r"\w+://\S+|www\.\S+")),
    (_stem_set("ip host"), re.compile(r"\d+(?:\.\d+){3}(?::\d+)?")),
)
"""Arguments of these names, and how their values are spelled."""

_VERBAL = re.compile(r"(?:ing|ed)$")


@dataclass(frozen=True)
class _Role:
    """Arguments of some names, and the prepositions that lead to them."""

    prepositions: frozenset[str]
    names: frozenset[str]


_ROLES = {
    "from": _Role(
        frozenset(("from", "starting", "departing", "leaving", "between")),
        _stem_set("from origin start source departure depart begin initial base pickup old"),
    ),
    "to": _Role(
        frozenset(("to", "into", "towards", "in", "reach")),
        _stem_set("to destination end target arrival final dest goal new dropoff"),
    ),
    "place": _Role(
        frozenset(("in", "at", "near", "around", "for", "of", "nearby", "from", "located", "within", "across")),
        _stem_set(
            "location city place country state region area county court town address venue destination street zip "
            "airport station zone site market park island"
        ),
    ),
    "by": _Role(
        frozenset(("by", "of", "from", "with")),
        _stem_set(
            "artist author director name composer actor player writer creator painter sculptor maker brand team "
            "singer band scientist inventor publisher"
        ),
    ),
    "about": _Role(
        frozenset(("about", "on", "for", "of", "regarding", "related")),
        _stem_set("topic subject query keyword title genre theme field content text question"),
    ),
    "with": _Role(
        frozenset(("with", "using", "by", "via", "through", "as", "in")),
        _stem_set("method mode instrument type tool transport key scale model language unit format"),
    ),
    "for": _Role(
        frozenset(("for", "of", "to", "with")),
        _stem_set(
            "user customer item product patient company dish recipe game book event recipient stock animal species"
        ),
    ),
}

_NAMES = _stem_set(
    "name city country state location place person artist author player team company actor director title county "
    "region brand origin destination hotel restaurant museum sculptor painter composer university event landmark "
    "airport station river mountain planet island park band singer scientist president leader organization school "
    "college club league bank store"
)
_CODES = _stem_set("id number code isbn ticker symbol zip docket key")
_WIDE = _stem_set("country state region province")
_CITIES = _stem_set("city town")
_MESSAGES = _stem_set("message text body content note reminder task title description query comment question")

WEIGHTS = {
    "spelled as such": 4.0,
    "named behind": 3.9,
    "an example": 3.8,
    "time for a time": 3.0,
    "spelled as a code": 2.8,
    "quoted": 2.8,
    "tail for a message": 2.5,
    "named before": 2.4,
    "joined capitals with a comma": 2.0,
    "joined capitals": 2.0,
    "behind its place": 1.8,
    "behind its to": 1.8,
    "before a comma for a city": 1.7,
    "has its name": 1.7,
    "behind its from": 1.7,
    "behind a comma for a wide place": 1.6,
    "capital run": 1.6,
    "rest for a message": 1.5,
    "capitals for a name": 1.4,
    "behind its by": 1.1,
    "described before": 1.1,
    "named before, with others": 1.0,
    "near an example": 1.0,
    "function word at an end": 0.8,
    "ends a chunk": 0.7,
    "behind its about": 0.5,
    "behind a verb": 0.5,
    "begins a chunk": 0.5,
    "number alone": 0.5,
    "chunk": -0.2,
    "only its name": -0.2,
    "not behind its place": -0.2,
    "piece": -0.3,
    "small letters for a name": -0.4,
    "not behind its by": -0.4,
    "behind its for": -0.5,
    "not behind its with": -0.6,
    "capitals for another": -0.6,
    "long": -0.6,
    "rest": -0.6,
    "behind its name as a preposition": -0.8,
    "begins with a verb": -0.8,
    "behind a comma": -0.9,
    "not behind its for": -0.9,
    "digits": -0.9,
    "not behind its from": -1.0,
    "not behind its to": -1.2,
    "says nothing": -1.2,
    "part of joined capitals": -1.4,
    "another named before": -1.4,
    "part of a capital run": -1.4,
    "another for a time": -1.6,
    "not behind a comma for a wide place": -1.6,
    "not behind its about": -1.7,
    "time for another": -1.7,
    "behind its with": -1.7,
    "joined": -1.8,
    "inside a quotation": -1.9,
    "begins the request": -2.1,
    "some words are the tool's": -2.4,
    "all words are the tool's": -3.3,
}
"""Nats by sign, fitted as a conditional logit (L2 0.5) on required texts.

On the even rows of BFCL's `simple_python`, `multiple` and `live_simple`, and of needle. What is said of times, tails
and the rest was raised by hand, and addresses are ours: those rows have few of either.
"""


@dataclass(frozen=True)
class Part:
    """A part of a request, and how it was found."""

    text: str
    begin: int
    end: int
    kind: str


# -- parts ---------------------------------------------------------------------------------------------------------


def parts_of(said: Words, whens: Iterable[When] = ()) -> list[Part]:
    """The parts of a request that a text may be, each once, by the first way it was found."""
    found: dict[tuple[int, int], Part] = {}
    runs = runs_of(said)
    ways = (_quotations(said), _times(whens), _formulas(said), _chunks(said, runs), _pieces(said, runs))
    for way in (*ways, _tails(said), _rest(said), _joined(said, runs)):
        for part in way:
            found.setdefault((part.begin, part.end), part)
    wholes = [part for part in found.values() if part.kind in ("formula", "time")]
    return [part for part in found.values() if not any(_is_within(part, whole) for whole in wholes)]


def _is_within(part: Part, whole: Part) -> bool:
    return part.kind in ("chunk", "piece") and whole.begin <= part.begin and part.end <= whole.end


def _quotations(said: Words) -> Iterator[Part]:
    for begin, end in said.quoted:
        yield Part(said.request[begin:end], begin, end, "quoted")


def _times(whens: Iterable[When]) -> Iterator[Part]:
    for when in whens:
        yield Part(when.text, when.begin, when.end, "time")


def _formulas(said: Words) -> Iterator[Part]:
    for match in EXPRESSION.finditer(said.request):
        text = match[0].strip()
        begin = match.start() + match[0].index(text)
        if re.search(r"[\^=*]|\d", text):
            yield Part(text, begin, begin + len(text), "formula")


def _chunks(said: Words, runs: list[tuple[int, int]]) -> Iterator[Part]:
    for first, last in runs:
        yield _part(said, first, last, "chunk")


def _pieces(said: Words, runs: list[tuple[int, int]]) -> Iterator[Part]:
    for first, last in runs:
        for begin in range(first, last + 1):
            for end in range(begin, min(last, begin + PART_WORDS_MAX - 1) + 1):
                yield _part(said, begin, end, "piece")


def _joined(said: Words, runs: list[tuple[int, int]]) -> Iterator[Part]:
    """Two or three runs with `of`, `and`, a comma between: `University of Ghent`, `Lyon, France`."""
    for place, run in enumerate(runs):
        for other in range(place + 1, min(place + 4, len(runs))):
            if not _joins(said, runs[other - 1][1], runs[other][0]):
                break
            for begin in range(run[0], run[1] + 1):
                if begin == run[0] or said.words[begin].is_capital:
                    for end in range(runs[other][0], min(runs[other][1], begin + PART_WORDS_MAX) + 1):
                        yield _part(said, begin, end, "joined")


def _joins(said: Words, last: int, first: int) -> bool:
    between = said.words[last + 1 : first]
    if not between:
        return said.request[said.words[last].end : said.words[first].begin] == ", "
    plain = all(word.folded in _JOINERS for word in between) and len(between) <= 2
    return plain and not any(word.apart for word in said.words[last + 2 : first + 1])


def _tails(said: Words) -> Iterator[Part]:
    """The rest of a sentence behind a colon, a comma, `that`, `to`, or `saying`."""
    for place, word in enumerate(said.words[:-1]):
        after = said.request[word.end : said.words[place + 1].begin]
        if word.folded in _TAIL_MARKS or after.strip() in (":", ","):
            last = _sentence_end(said, place + 1)
            if 2 <= last - place <= TAIL_WORDS_MAX:
                yield _part(said, place + 1, last, "tail")


def _rest(said: Words) -> Iterator[Part]:
    """The rest of the first sentence behind the word that commands, and its particle: `put on`."""
    last = _sentence_end(said, 0)
    first = next((place for place, word in enumerate(said.words) if place and not word.is_cut), len(said.words))
    if first <= last <= TAIL_WORDS_MAX:
        yield _part(said, first, last, "rest")


def _sentence_end(said: Words, place: int) -> int:
    for last in range(place, len(said.words) - 1):
        if re.search(r"[.!?;]\s", said.request[said.words[last].end : said.words[last + 1].begin]):
            return last
    return len(said.words) - 1


def runs_of(said: Words) -> list[tuple[int, int]]:
    """The runs of words between function words and punctuation, without a leading article."""
    runs, first = [], None
    for place, word in enumerate(said.words):
        if first is not None and (word.is_cut or word.apart or word.is_article):
            runs.append((first, place - 1))
            first = None
        if first is None and not word.is_cut and not word.is_article:
            first = place
    return runs if first is None else [*runs, (first, len(said.words) - 1)]


def _part(said: Words, first: int, last: int, kind: str) -> Part:
    return Part(said.text(first, last), said.words[first].begin, said.words[last].end, kind)


# -- signs ---------------------------------------------------------------------------------------------------------


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
        announced = self.before is not None and self.before.folded in _TAIL_MARKS
        return announced and self.last == _sentence_end(self.said, self.first)

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


def signs_of(part: Part, argument: Argument, said: Words, spoken: frozenset[str]) -> list[str]:
    """What speaks for and against a part; `spoken` are the words of the tool's name and description."""
    inside = [n for n, word in enumerate(said.words) if part.begin <= word.begin and word.end <= part.end + 1]
    if not inside:
        return ["no word"]
    place = _Place(part, said, inside[0], inside[-1])
    ways = (_form_signs, _capital_signs, _code_signs, _role_signs, _name_signs, _comma_signs)
    found = [part.kind, *(sign for way in ways for sign in way(place, argument))]
    return [*found, *_word_signs(place, argument, spoken), *_example_signs(part, argument)]


def _form_signs(place: _Place, argument: Argument) -> Iterator[str]:
    words, before, behind = place.words, place.before, place.behind
    if place.begins:
        yield "begins a chunk"
    elif before is not None and before.text.islower() and _VERBAL.search(before.text):
        yield "behind a verb"
    if place.is_whole or behind is None or behind.is_cut or behind.is_article or behind.apart:
        yield "ends a chunk"
    if len(words) > 4:
        yield "long"
    if place.first == 0:
        yield "begins the request"
    elif words[0].text.islower() and _VERBAL.search(words[0].text):
        yield "begins with a verb"
    if (words[0].is_cut or words[-1].is_cut) and place.part.kind not in ("tail", "rest"):
        yield "function word at an end"
    if place.part.kind != "quoted" and any(b <= place.part.begin and place.part.end <= e for b, e in place.said.quoted):
        yield "inside a quotation"
    if argument.words & _MESSAGES:
        if place.part.kind == "tail" or place.is_tail:
            yield "tail for a message"
        elif place.part.kind == "rest":
            yield "rest for a message"
    if place.part.kind == "time":
        yield "time for a time" if argument.is_time else "time for another"
    elif argument.is_time:
        yield "another for a time"


def _capital_signs(place: _Place, argument: Argument) -> Iterator[str]:
    words = [word for word in place.words if not word.is_cut or len(place.words) == 1]
    capitals = [word.is_capital for word in words]
    names = bool(argument.words & _NAMES)
    if place.first == 0 or not capitals or not all(capitals):
        if names and not any(capitals):
            yield "small letters for a name"
        return
    before, behind = place.before, place.behind
    cut = (place.first > 1 and before is not None and before.is_capital and not place.words[0].apart) or (
        behind is not None and behind.is_capital and not behind.apart
    )
    yield "part of a capital run" if cut else "capital run"
    yield "capitals for a name" if names else "capitals for another"
    if _is_of(place.said.words[: place.first][::-1]) or _is_of(place.said.words[place.last + 1 :]):
        yield "part of joined capitals"
    if place.part.kind == "joined" and not cut:
        if "," in place.part.text:
            yield "joined capitals with a comma"
        elif all(word.is_capital or word.folded in _OF for word in place.words):
            yield "joined capitals"


def _is_of(words: Sequence[Word]) -> bool:
    """Whether the nearest words are `of` or its like, and then a capital: `Museum of Art`."""
    telling = [word for word in words[:3] if word.folded != "the"][:2]
    return len(telling) == 2 and telling[0].folded in _OF - {"for"} and telling[1].is_capital and not telling[0].apart


def _code_signs(place: _Place, argument: Argument) -> Iterator[str]:
    text = place.part.text
    digits = any(char.isdigit() for char in text)
    if argument.words & _CODES:
        yield "digits for a code" if digits else "no digits for a code"
    elif digits:
        yield "digits"
    if any(argument.words & names and form.fullmatch(text) for names, form in _SPELLED):
        yield "spelled as such"
    if len(place.words) == 1 and _CODE.search(text):
        yield "spelled as a code"
    if re.fullmatch(r"[-\d.,%]+", text):
        yield "number alone"


def _role_signs(place: _Place, argument: Argument) -> Iterator[str]:
    leads = place.leads
    if leads is None or leads.folded not in PREPOSITIONS:
        return
    if not (
        place.is_whole or place.words[0].apart or place.before is None or place.before.is_cut or place.before.is_article
    ):
        return
    for name, role in _ROLES.items():
        if argument.words & role.names:
            yield f"behind its {name}" if leads.folded in role.prepositions else f"not behind its {name}"
    if leads.folded in argument.words:
        yield "behind its name as a preposition"


def _name_signs(place: _Place, argument: Argument) -> Iterator[str]:
    named_by, adjoining = place.named_by(argument), place.adjoining
    if named_by is not None:
        if named_by.stem in argument.own:
            yield "named before"
        elif named_by.stem in argument.words:
            yield "named before, with others"
        elif named_by.stem in argument.rivals:
            yield "another named before"
        elif named_by.stem in argument.about:
            yield "described before"
    if adjoining is not None and adjoining.stem in argument.own:
        yield "named behind"
    words = set(stems(place.part.text))
    if words & argument.words:
        yield "only its name" if words <= argument.words else "has its name"


def _comma_signs(place: _Place, argument: Argument) -> Iterator[str]:
    """`Lyon, France`: the wider place stands behind the comma."""
    before, behind, wide = place.before, place.behind, bool(argument.words & _WIDE)
    comma = before is not None and place.said.request[before.end : place.words[0].begin] == ", "
    if comma:
        yield "behind a comma for a wide place" if wide else "behind a comma"
    elif wide:
        yield "not behind a comma for a wide place"
    if behind is not None and behind.apart and behind.is_capital and argument.words & _CITIES:
        yield "before a comma for a city"


def _word_signs(place: _Place, argument: Argument, spoken: frozenset[str]) -> Iterator[str]:
    words = stems(place.part.text)
    told = [word for word in words if word in spoken]
    if words and not all(word.is_capital or word.is_cut for word in place.words):
        if len(told) == len(words):
            yield "all words are the tool's"
        elif told:
            yield "some words are the tool's"
    if not words and not any(char.isdigit() for char in place.part.text):
        yield "says nothing"


def _example_signs(part: Part, argument: Argument) -> Iterator[str]:
    folded = part.text.casefold()
    examples = [each.casefold() for each in argument.examples]
    if folded in examples:
        yield "an example"
    elif any(folded in each or each in folded for each in examples):
        yield "near an example"


def _is_open(part: Part, said: Words) -> bool:
    """Whether a part names nothing: `something for me`, `whatever you like`."""
    inside = [word for word in said.words if part.begin <= word.begin and word.end <= part.end]
    telling = [word for word in inside if not word.is_cut and word.folded not in _INDEFINITE]
    left = [word.folded for word in said.words if word.end <= part.end]
    return "whatever" in left or (not telling and any(word.folded in _INDEFINITE for word in inside))


def _is_the_tools(part: Part, signs: Sequence[str]) -> bool:
    """Whether a part only says what the tool is about: `a timer`, for a timer's name."""
    by_itself = "an example" in signs or part.kind in ("quoted", "time") or any(char.isdigit() for char in part.text)
    return "all words are the tool's" in signs and not by_itself


def _telling(said: Words, spoken: frozenset[str]) -> list[Word]:
    """The words of a request that say something which its tool does not: without the word that commands."""
    words = [word for word in said.words if not word.is_cut and not word.is_article and word.begin > 0]
    return [word for word in words if word.stem not in spoken and word.folded not in _INDEFINITE]


# -- candidates ----------------------------------------------------------------------------------------------------


def text_candidates(
    argument: Argument,
    said: Words,
    parts: Iterable[Part],
    spoken: frozenset[str],
    taken: Sequence[Candidate] = (),
    *,
    is_only: bool = False,
) -> list[Candidate]:
    """The parts that the argument may be, with their weights, best first; `PARTS_KEPT` of them.

    `taken` is what other arguments have from the request; `is_only` says that no other argument is a text, so that a
    part that leaves out much of what is said is hardly the one.
    """
    unsaid = [
        each
        for each in _telling(said, spoken | argument.words)
        if not any(t.begin < each.end and each.begin < t.end for t in taken)
    ]
    found = []
    for part in parts:
        signs = signs_of(part, argument, said, spoken)
        if _is_open(part, said) or (argument.required and _is_the_tools(part, signs)):
            continue
        weight = sum(WEIGHTS.get(sign, 0.0) for sign in signs)
        if is_only:
            left = sum(not (part.begin <= each.begin and each.end <= part.end + 1) for each in unsaid)
            weight -= UNSAID * min(left, UNSAID_MAX)
        candidate = Candidate(part.text, part.begin, part.end, weight, part.kind)
        if any(candidate.overlaps(each) for each in taken):
            candidate = replace(candidate, weight=weight - TAKEN)
        found.append(candidate)
    found.sort(key=lambda each: (-each.weight, each.begin, each.end))
    return found[:PARTS_KEPT]
