"""Compiled grammars of one model, by whichever engine there is: each is compiled once, and checked."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property

from edgeagent.driver.llama import constraint_gbnf, constraint_llg
from edgeagent.driver.llama.closing import shortest_end
from edgeagent.driver.llama.constraint import Constraint
from edgeagent.driver.llama.draft import Luck
from edgeagent.driver.llama.engine import Engine
from edgeagent.errors import GrammarError
from edgeagent.grammar.calls import GrammarEngine

GRAMMARS_KEPT = 64  # compiled grammars per model; an agent needs one per set of admissible tools, about 50 kB each


class Grammars:
    """Compile grammars for one model, each once; give out fresh constraints."""

    def __init__(self, engine: Engine, kind: GrammarEngine | None = None) -> None:
        """`kind` None: llguidance where it is, else gbnf. Raises GrammarError when the one asked for is missing."""
        if kind == "llguidance" and constraint_llg.LLMatcher is None:
            raise GrammarError('llguidance is not installed here; use engine="gbnf", or install llguidance>=1.9')
        self.kind: GrammarEngine = kind or ("gbnf" if constraint_llg.LLMatcher is None else "llguidance")
        self._engine = engine
        self._compiled: OrderedDict[bytes, Compiled] = OrderedDict()

    def compile(self, text: str, *, keep: bool = True) -> Compiled:
        """The compiled grammar. Raises GrammarError with the engine's reason.

        `keep=False` is for a grammar of one request, which hardly comes again.
        """
        if not keep:
            return Compiled(self._parse(text))
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = Compiled(self._parse(text))
            while len(self._compiled) > GRAMMARS_KEPT:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(key)
        return found

    def forget(self) -> None:
        """Give back what was made, some 10 MB; it is made again when it is asked for."""
        self._compiled.clear()
        vars(self).pop("_parse", None)

    @cached_property
    def _parse(self) -> Callable[[str], Constraint]:
        if self.kind == "gbnf":
            return constraint_gbnf.parser(self._engine)
        return constraint_llg.parser(self._engine)


class Compiled:
    """A grammar that is known to be good, and the shortest text it allows."""

    def __init__(self, start: Constraint) -> None:
        self._start = start
        self.luck = Luck()

    def fresh(self) -> Constraint:
        """A constraint at the grammar's beginning."""
        return self._start.copy()

    @cached_property
    def shortest(self) -> list[int] | None:
        """The fewest tokens we know that satisfy the grammar; None if none were found."""
        return shortest_end(self._start)
