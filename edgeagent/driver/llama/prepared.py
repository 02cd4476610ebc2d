"""One agent on one model: its prompts, its grammars, and what of it stands in the model's memory for every session.

Made once for all sessions of the agent. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from edgeagent.codec.dialects.family import Family
from edgeagent.core.agent import Agent, family_of
from edgeagent.core.effects import AskModel
from edgeagent.core.from_user import Narrowed
from edgeagent.driver.llama.constraint_llg import check_calls
from edgeagent.driver.llama.engine import Engine, Halt, Progress, count_shared
from edgeagent.driver.llama.grammars import Compiled, Grammars
from edgeagent.driver.llama.judge import TextScorer
from edgeagent.driver.llama.prompt import now_here, prompt_tokens
from edgeagent.driver.llama.template import Template
from edgeagent.errors import GrammarError, ModelError
from edgeagent.grammar.calls import calls_of, grammar_of
from edgeagent.grammar.frame import Answer
from edgeagent.request.meaning import Meaning
from edgeagent.request.more import declared
from edgeagent.request.tongue import tongue
from edgeagent.request.tools import Tools


class Prepared:
    """An agent and its sub-agents, ready to be asked for by their paths."""

    def __init__(
        self,
        engine: Engine,
        template: Template,
        grammars: Grammars,
        agent: Agent,
        *,
        chooses: bool = True,
        meaning: Meaning | None = None,
    ) -> None:
        """`chooses=False`: a model without a format of its own spells the tool's name, for comparison."""
        assert isinstance(agent.dialect, Family), "the wiring gives every running agent its dialect"
        self.agent, self.dialect = agent, agent.dialect
        self._engine, self._template, self._grammars = engine, template, grammars
        self.systems = {path: self.dialect.system_text(a.system, a.tools) for path, a in agent.by_path.items()}
        self.tools = {path: Tools.of(a.tools, meaning, f"{a.name} {a.system}") for path, a in agent.by_path.items()}
        self.scorer = None if self.dialect.decides or not chooses else self._scorer()
        self._prefixes: dict[str, list[int]] = {}
        self.clock = now_here
        for each in agent.by_path.values():
            tongue(each.language or "en")  # A language that is not known is told before anything is asked.

    def _scorer(self) -> TextScorer:
        """Scores requests behind the texts of all tools of the family."""
        tools = Tools.of(family_of(self.agent).tools)
        return TextScorer(self._engine, self._template, self.dialect.frame, tools.texts(tools.by_name))

    def tools_of(self, ask: AskModel) -> Tools:
        """The declared tools among those that may be called now."""
        return self.tools[ask.agent].only(declared(ask.tools))

    def prove(self) -> None:
        """Do once, without the model, what every ask does. Raises ModelError or GrammarError."""
        for path, agent in self.agent.by_path.items():
            fixed = len(self.prefix(path))
            if fixed >= self._engine.n_ctx:
                raise ModelError(
                    f"system text and tools of agent {agent.name} take {fixed} tokens, and the window has "
                    f"{self._engine.n_ctx}: give --context-tokens, or fewer tools"
                )
            if agent.tools:
                self.grammar(agent.tool_names, (), "allowed" if self.dialect.decides else "never")

    # -- prompts ---------------------------------------------------------------------------------------------------

    def prompt(self, ask: AskModel) -> list[int]:
        """The tokens that put the ask's conversation to the model."""
        chat = self.dialect.chat(ask.messages, closing=ask.closing)
        return self._rendered(ask.agent, chat, [message.token_ids for message in ask.messages])

    def prefix(self, path: str) -> list[int]:
        """What each prompt of the agent begins with, whatever is said to it: its system text with the markup around it.

        Told from two prompts, since some templates put the system text into the user's first message.
        """
        found = self._prefixes.get(path)
        if found is None:
            one, other = (self._rendered(path, [{"role": "user", "content": words}]) for words in ("U?", "V?"))
            found = self._prefixes[path] = one[: count_shared(one, other)]
        return found

    def _rendered(self, path: str, chat: list[dict[str, str]], written: Sequence[bytes] = ()) -> list[int]:
        """The tokens of a conversation behind the system text of the agent at the path."""
        text = self.systems[path]
        if text and self._folds and chat and chat[0]["role"] == "user":
            chat = [{"role": "user", "content": f"{text}\n\n{chat[0]['content']}"}, *chat[1:]]
        elif text:
            chat = [{"role": "system", "content": text}, *chat]
        return prompt_tokens(chat, self._template, self._engine, written)

    @cached_property
    def _folds(self) -> bool:
        """Whether the template has no place for a system text, so that it opens the user's first words."""
        user = {"role": "user", "content": "U?"}
        try:
            prompt_tokens([{"role": "system", "content": "S?"}, user], self._template, self._engine)
        except ModelError:
            prompt_tokens(
                [user], self._template, self._engine
            )  # If that is refused too, it is not for the system text.
            return True
        return False

    # -- memory ----------------------------------------------------------------------------------------------------

    def prefix_tokens(self) -> int:
        """How much of the memory is the same for every session of this agent; 0 if not all of that stands there."""
        prefix = self.prefix("")
        return len(prefix) if self._engine.kept()[: len(prefix)] == prefix else 0

    def hold_texts(self, halt: Halt) -> None:
        """Have the tools' texts in memory before anything else is."""
        if self.scorer is not None:
            self.scorer.hold(halt)

    def hold_prefix(self, path: str, prompt: list[int], halt: Halt, on_progress: Progress | None) -> None:
        """Evaluate what is the same for every session of the agent, before anything is judged beside it.

        Logits depend in their last digits on where in the memory a text stands. So it stands behind the tools' texts
        and in front of all else, in a new process as in one that found it kept, and a seed draws the same text in both.
        """
        shared = count_shared(self.prefix(path), prompt)
        if len(self._engine.kept()) < shared:
            self._engine.prefill(prompt[:shared], halt=halt, on_progress=on_progress)

    def standing(self) -> dict[str, int]:
        """The sequences in which the tools' texts stand."""
        return self.scorer.shelf.standing() if self.scorer is not None else {}

    def stands(self, places: dict[str, int]) -> None:
        """Say which of the tools' texts stand where; all others are not in memory."""
        if self.scorer is not None:
            self.scorer.stands(places)

    # -- grammars --------------------------------------------------------------------------------------------------

    def grammar(
        self,
        tools: tuple[str, ...],
        narrowed: tuple[Narrowed, ...],
        answer: Answer,
        *,
        given: tuple[str, ...] = (),
        keep: bool = True,
    ) -> Compiled:
        """The compiled grammar of these tools; kept, unless it is one request's own, by the digest of its text."""
        calls = calls_of([self.agent.family[name] for name in tools], narrowed, given)
        kind = self._grammars.kind
        text = grammar_of(calls, self.dialect.frame, answer=answer, engine=kind, specials=self._specials)
        try:
            return self._grammars.compile(text, keep=keep)
        except GrammarError:
            check_calls(calls)  # Names the tool and the field.
            raise

    @cached_property
    def _specials(self) -> dict[str, int]:
        """The parts of a call that this vocabulary holds as one special token."""
        frame, vocabulary = self.dialect.frame, self._engine.vocabulary
        around = f"{frame.before} {frame.between} {frame.after} {frame.string_mark}"
        pieces = ((vocabulary.piece(token).decode("utf-8", "replace"), token) for token in vocabulary.control())
        return {piece: token for piece, token in pieces if piece and piece in around}

    @cached_property
    def call_ids(self) -> list[int]:
        """The tokens that a call may begin with."""
        first = self.dialect.frame.before[:1].encode()
        pieces = self._engine.vocabulary.pieces()
        return [token for token, piece in enumerate(pieces) if piece.lstrip().startswith(first)]
