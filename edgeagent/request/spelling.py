"""Spelling: which word is meant by one that nobody knows and that is a slip away from one that is known?

A slip is two letters that changed places; in longer words also a letter too many, too few, or another. Law: a word that
is known, or that people really write, is never corrected. What was said stays what was said: only its reading changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from edgeagent.request.language import ENGLISH, word_set

CHARS_MIN = 4
"""The shortest word in which letters may have changed places."""

LONG_CHARS_MIN, LONGER_CHARS_MIN = 6, 7
"""The shortest in which one may be missing or too many, and in which one may be another: shorter are other words."""

_REAL = word_set(ENGLISH.words.real)
_LETTERS = "abcdefghijklmnopqrstuvwxyzäöüßáéíóúñàâçèêëîïôûù"


def meant_by(word: str, known: Collection[str], rather: Collection[str] = ()) -> str | None:
    """The one word that is meant, in small letters; None where there is none, or several. `rather` are tried first."""
    if len(word) < CHARS_MIN or not word.isalpha() or not (word.islower() or word.istitle()):
        return None
    folded = word.casefold()
    if folded in known or folded in rather or folded in _REAL:
        return None
    for words in (rather, known):
        for ways in (_swapped(folded), _longer(folded)):
            found = {each for each in ways if each in words}
            if found:
                return found.pop() if len(found) == 1 else None
    return None


def _swapped(word: str) -> Iterator[str]:
    for at in range(len(word) - 1):
        yield word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _longer(word: str) -> Iterator[str]:
    if len(word) < LONG_CHARS_MIN:
        return
    for at in range(len(word) + 1):
        yield word[:at] + word[at + 1 :]
        for letter in _LETTERS:
            yield word[:at] + letter + word[at:]
            if len(word) >= LONGER_CHARS_MIN and at < len(word):
                yield word[:at] + letter + word[at + 1 :]
