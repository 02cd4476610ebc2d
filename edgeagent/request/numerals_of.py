"""Numbers in words of a language, as its tongue lists them: `fünfundzwanzig`, `treinta y cinco`, `quatre-vingt-dix`.

Law: words are one number only where each adds to what stands before it, so `zwei drei` are two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgeagent.request.tongue import Tongue

WORDS_MAX = 12
"""The most pieces of one number."""

HUNDRED = 100


def number_of(pieces: Sequence[str], spoken: Tongue) -> tuple[int | None, int]:
    """The number that begins with the first piece, and how many pieces say it; white space and marks are pieces."""
    assert spoken.table is not None
    joiners, values, taken, place = spoken.table.numbers.joiners.split(), list[int](), 0, 0
    while place < min(len(pieces), WORDS_MAX):
        word = pieces[place].casefold()
        if values and (word.isspace() or word == "-" or word in joiners):
            place += 1
            continue
        hyphened = "".join(pieces[place : place + 3]).casefold() if pieces[place + 1 : place + 2] == ["-"] else ""
        width = 3 if hyphened in spoken.numerals else 1
        parts = _parts(hyphened if width > 1 else word, spoken.numerals, joiners)
        if not parts or (values and not _goes_on(values, parts)):
            break
        values += parts
        place += width
        taken = place
    if taken == 1 and pieces[0].casefold() in spoken.exact:
        return None, 0  # Alone it is an article: `ein`.
    return (_sum(values), taken) if values else (None, 0)


def _parts(word: str, words: Mapping[str, int], joiners: Sequence[str]) -> list[int]:
    """The numbers of which a word is made, the longest first; none if anything else is in it."""
    if word in words:
        return [words[word]]
    for length in range(len(word) - 1, 1, -1):
        head, rest = word[:length], word[length:]
        if head not in words:
            continue
        joined = next((each for each in joiners if rest.startswith(each) and len(rest) > len(each)), "")
        behind = _parts(rest, words, joiners) or (_parts(rest.removeprefix(joined), words, joiners) if joined else [])
        if behind:
            return [words[head], *behind]
    return []


def _goes_on(values: Sequence[int], parts: Sequence[int]) -> bool:
    """Whether what follows adds to the number before it: `zwanzig fünf` does, `fünf zwanzig` does not."""
    last, following = values[-1], _sum(parts)
    if parts[0] >= HUNDRED:
        return parts[0] > last or last >= 1000
    if last >= HUNDRED:
        return following < last
    return last >= 20 and last % 10 == 0 and following < (20 if last in (60, 80) else 10)


def _sum(values: Sequence[int]) -> int:
    total, current = 0, 0
    for value in values:
        if value >= 1000:
            total, current = total + max(current, 1) * value, 0
        elif value == HUNDRED:
            current = max(current, 1) * value
        else:
            current += value
    return total + current
