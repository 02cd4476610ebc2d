"""An agent's tools as a request is compared with them: their words, their acts, and what each is for in a text.

Made once for an agent; `only` leaves those that may be called now, while all of them stay what words are rare among.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from edgeagent.core.agent import Tool
from edgeagent.request.language import Act
from edgeagent.request.lexical import Lexicon, Scores, purpose, stems
from edgeagent.request.meaning import Meaning
from edgeagent.request.polarity import is_opposite
from edgeagent.request.said import as_said
from edgeagent.request.verbs import act_of, acts_of, excludes

ACT_FITS = 1.0
"""Points of the lexical score for a tool that does what the request's verb asks for."""

ACT_EXCLUDED = 4.0
"""Points against one that excludes it: more than words hardly ever speak for a tool."""

DESCRIPTION_CHARS_MAX = 200
EXAMPLES_MAX = 2

WRITER = "(writer)"
SAYS_NOTHING = {WRITER: "A user writes:"}
"""The text beside those of the tools, behind which any request is as likely; no tool can have such a name."""


@dataclass(frozen=True)
class Tools:
    """The tools that may be called, by name in their order. Make it with `of`."""

    by_name: Mapping[str, Tool]
    lexicon: Lexicon
    acts: Mapping[str, frozenset[Act]]
    meaning: Meaning | None = None
    """What compares a request with what they are for, if there is an embedder."""
    about: frozenset[str] = frozenset()
    """The stems of what the agent is said to be: what it is given with, and not what it can do."""

    @classmethod
    def of(cls, tools: Iterable[Tool], meaning: Meaning | None = None, about: str = "") -> Tools:
        """The tools of one agent, all of which may be called; `about` is what it is told to be."""
        by_name = {each.name: each for each in tools}
        acts = {name: acts_of(each) for name, each in by_name.items()}
        return cls(by_name, Lexicon.of(by_name.values()), acts, meaning, frozenset(stems(about)))

    def only(self, names: Iterable[str]) -> Tools:
        """Those of these names, in their order."""
        return replace(self, by_name={name: self.by_name[name] for name in names})

    @property
    def reads(self) -> list[str]:
        """The tools that change nothing."""
        return [name for name, each in self.by_name.items() if each.effect == "read"]

    def spoken_of(self, request: str) -> Scores:
        """How much the words of the request speak of each tool."""
        act, told = act_of(request), self.lexicon.scores(request, self.by_name)
        return tuple((name, score + self._fit(act, name) - self._against(name, request)) for name, score in told)

    def excludes(self, name: str, request: str) -> bool:
        """Whether the tool only does what does not serve the request, or the opposite of it."""
        return excludes(act_of(request), self.acts[name]) or is_opposite(self.by_name[name], request)

    def serves_nothing(self, request: str) -> bool:
        """Whether all tools of which the words speak serve it as little as one does that does the opposite."""
        told = [name for name, score in self.lexicon.scores(request, self.by_name) if score > 0]
        is_against = any(is_opposite(self.by_name[name], request) for name in told)
        return is_against and all(self.excludes(name, request) for name in told)

    def begins_with(self, request: str, name: str) -> bool:
        """Whether the first word that says something, as a command does, is one of the tool's."""
        return self.lexicon.has(name, next(iter(stems(request)), ""))

    def has(self, name: str, word: str) -> bool:
        """Whether a word is one of the tool's."""
        return any(self.lexicon.has(name, each) for each in stems(word))

    def spells(self, word: str) -> bool:
        """Whether a word stands in a tool just so, with the same ending."""
        return word.casefold() in self.lexicon.spelled

    def texts(self, names: Iterable[str], request: str = "") -> dict[str, str]:
        """What a request is judged behind: a text of each of these tools, and one that says nothing."""
        return {name: _text_of(self.by_name[name], request) for name in names} | SAYS_NOTHING

    def near(self, request: str) -> dict[str, float]:
        """How much nearer in meaning each tool is than they are on the whole; nothing without an embedder.

        Of what was really said, not of its English words: an embedder knows languages better than a list of words.
        """
        if self.meaning is None or len(self.by_name) < 2 or not request.strip():
            return {}
        told = {name: " ".join(purpose(each).split())[:DESCRIPTION_CHARS_MAX] for name, each in self.by_name.items()}
        found = self.meaning.alike(as_said(request), told)
        mean = sum(found.values()) / len(found)
        return {name: each - mean for name, each in found.items()}

    def _against(self, name: str, request: str) -> float:
        """Points against a tool that does the opposite."""
        return ACT_EXCLUDED * is_opposite(self.by_name[name], request)

    def _fit(self, act: Act | None, name: str) -> float:
        """Points for a tool that does what is to be done, and against one that cannot serve it."""
        acts = self.acts[name]
        return ACT_FITS if act in acts else -ACT_EXCLUDED * excludes(act, acts)


def _text_of(tool: Tool, request: str) -> str:
    """What a tool is for, and its first examples; but never the request itself, or it would explain itself."""
    described = " ".join(purpose(tool).split())[:DESCRIPTION_CHARS_MAX]
    examples = [each for each in tool.examples if each != request][:EXAMPLES_MAX]
    return "\nExample request:".join([f"Tool: {tool.written} - {described}", *(f" {each}" for each in examples), ""])
