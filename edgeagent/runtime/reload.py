"""Reload of the operator's settings: read and checked while sessions go on, taken between their turns.

What a process cannot change while it runs stays as it is, and is said: weights, and where things are kept. A session
stays under the rules that it began with, so that none can become weaker in the middle of it; sessions that begin
afterwards stand under those that were read. A file that is no good changes nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskModel
from edgeagent.core.events import ModelAnswered, ModelFailed, Reconfigured
from edgeagent.driver.model import ModelDriver
from edgeagent.errors import EdgeAgentError
from edgeagent.policy.table import Row
from edgeagent.runtime.attached import Attached
from edgeagent.runtime.config import ModelSettings
from edgeagent.runtime.door import Door
from edgeagent.runtime.folder import read_about, root_of
from edgeagent.runtime.model import Model, Remote, Script, parts_of, renewed
from edgeagent.runtime.open import OpenRequest, Taken, opened, settings_of, taken_of
from edgeagent.runtime.operator import recorded_rules, with_rules
from edgeagent.runtime.session import Session
from edgeagent.runtime.wiring import guard_of, keep_warm, with_dialect

MAY_CHANGE = ("order", "uses")
"""Of the section `model`, while a process runs."""


class Reload:
    """What a process has taken of the operator's files, and may take anew. Any thread may call it."""

    def __init__(
        self,
        requests: Sequence[OpenRequest],
        model: Model,
        root: Path,
        sessions: Callable[[], Sequence[Session]],
        used: Callable[[Model, Sequence[Taken]], None] = lambda model, taken: None,
    ) -> None:
        """Each request holds an agent as a value; the first one's file names the models. `used` is told what sessions
        that begin from now on are to have. Raises ConfigError."""
        self.taken = tuple(each.taken or taken_of(each) for each in requests)
        self._requests, self._model, self._root = tuple(requests), model, root
        self._sessions, self._used = sessions, used
        self._taking = threading.Lock()

    def take(self) -> list[str]:
        """Take what the files say now, or leave all as it was; return what is to be told, in sentences."""
        with self._taking:
            try:
                taken, said = self._read()
                model = self._renewed(taken[0])
                self._check(taken, model)
            except EdgeAgentError as error:
                return [f"the settings stay as they were: {error}"]
            return [*said, *self._take(taken, model)]

    def close(self) -> None:
        """Let go of what was taken anew. After the sessions."""
        for part in parts_of(self._model):
            if isinstance(part, Remote):
                part.close()

    def _read(self) -> tuple[tuple[Taken, ...], list[str]]:
        """What the files say, as far as it can be taken, and what of it cannot."""
        found, said = [], []
        for request, before in zip(self._requests, self.taken, strict=True):
            now = taken_of(request)
            kept = {name: getattr(before.settings.model, name) for name in _others(ModelSettings)}
            fixed = [f"model.{name}" for name, value in kept.items() if getattr(now.settings.model, name) != value]
            fixed += ["state"] * (now.settings.state != before.settings.state)
            said += [f"{key} has changed, and that holds from the next start" for key in fixed]
            model = replace(now.settings.model, **kept)
            found.append(Taken(replace(now.settings, model=model, state=before.settings.state), now.policy))
        return tuple(found), list(dict.fromkeys(said))

    def _renewed(self, taken: Taken) -> Model:
        settings = settings_of(replace(self._requests[0], taken=taken)).model
        before = self._model.settings
        if (settings.chain, settings.tiers) == (before.chain, before.tiers):
            return self._model
        return renewed(self._model, settings)

    def _check(self, taken: Sequence[Taken], model: Model) -> None:
        """Try everything with each agent. Raises ConfigError, GrammarError and more."""
        for request, each in zip(self._requests, taken, strict=True):
            assert isinstance(request.agent, Agent), "who reloads gives agents as values"
            guard_of(with_rules(request.agent, recorded_rules(each.policy)))
            if model is not self._model:
                model.driver(with_dialect(request.agent, model.dialect), Attached(), self._root, 0).close()

    def _take(self, taken: tuple[Taken, ...], model: Model) -> list[str]:
        models = model.settings.name if model is not self._model else ""
        rules = "; ".join(dict.fromkeys(filter(None, map(_rules_told, self.taken, taken))))
        gone = [each for each in parts_of(self._model) if each not in parts_of(model)]
        self.taken, self._model = taken, model
        self._used(model, taken)
        if not models and not rules:
            return ["nothing has changed that can be taken now"]
        for session in self._sessions():
            session.at_rest(partial(_bring, session, model, Reconfigured(0, models, rules)))
        for each in gone:
            if isinstance(each, Remote):
                each.retire()
        told = [f"from the next turn on these models are asked: {models}"] if models else []
        return [*told, *([f"{rules}; sessions that begin from now on stand under these"] if rules else [])]


def opened_to_reload(request: OpenRequest, door: Door) -> tuple[Session, Reload]:
    """Open one session as `open_session` does, and what reads its settings again."""
    session, opening = opened(request, door)
    spec = read_about(session.directory).agent_spec
    asked = replace(request, agent=session.agent, spec=spec, resume=None, last=False)
    return session, Reload([asked], opening.loaded[0], root_of(session.directory), lambda: [session])


def _bring(session: Session, model: Model, event: Reconfigured) -> None:
    """Give a session what was taken, and have it in its trace."""
    if event.models:
        session.exchange(AskModel, partial(_driver_of, session, model))
    session.note(event)


def _driver_of(session: Session, model: Model, doors: Attached) -> ModelDriver:
    has_script = any(isinstance(each, Script) for each in parts_of(model))
    told = (each.event for each in session.records()) if has_script else ()
    answered = sum(isinstance(each, ModelAnswered | ModelFailed) for each in told)
    driver = model.driver(session.agent, doors, root_of(session.directory), answered)
    keep_warm(driver, model.settings, session.directory)
    return driver


def _rules_told(before: Taken, now: Taken) -> str:
    """What has changed among the rules; '' if nothing."""
    old, new = recorded_rules(before.policy), recorded_rules(now.policy)
    if old == new:
        return ""
    return f"{_less(new, old)} of the operator's rules were added and {_less(old, new)} taken away"


def _less(rules: Sequence[Row], others: Sequence[Row]) -> int:
    return sum(rule not in others for rule in rules)


def _others(settings: type[ModelSettings]) -> tuple[str, ...]:
    return tuple(name for name in settings.__struct_fields__ if name not in MAY_CHANGE)
