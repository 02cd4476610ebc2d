"""Open a session: agent, operator's settings and rules, model, directory; in the order in which it is cheapest to fail.

The one assembly of a session, whichever door asks for it.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from edgeagent.core.agent import Agent
from edgeagent.core.events import ModelAnswered, ModelFailed
from edgeagent.driver.mcp.tools import ServerRecord
from edgeagent.driver.model import ModelDriver
from edgeagent.driver.tool import ToolDriver
from edgeagent.errors import ConfigError
from edgeagent.policy.table import Row
from edgeagent.runtime.attached import Attached
from edgeagent.runtime.caches import state_disk
from edgeagent.runtime.config import (
    EngineName,
    ModelSettings,
    Settings,
    StateSettings,
    read_settings,
    state_root,
)
from edgeagent.runtime.door import Door
from edgeagent.runtime.folder import ABOUT_NAME, TRACE_NAME, Beginning, Limits, find_directory, last_directory, locked
from edgeagent.runtime.model import Model, load_model
from edgeagent.runtime.operator import operator_policy, recorded_rules, with_rules
from edgeagent.runtime.outside import Outside
from edgeagent.runtime.rebuild import is_lost, rebuild_about
from edgeagent.runtime.recording import Recording, changes, load_recording, resolved_spec, with_recorded_limits
from edgeagent.runtime.rests import KeptResults
from edgeagent.runtime.resume import resume_session
from edgeagent.runtime.servers import agent_with, kept, read_records, records_of, running
from edgeagent.runtime.session import Session, new_session
from edgeagent.runtime.tiers import alone, named_endpoint, with_chain
from edgeagent.runtime.vouched import examine_to_go_on
from edgeagent.runtime.wiring import (
    agent_path,
    dialect_of,
    drivers_of,
    keep_warm,
    load_agent,
    step_of,
    with_dialect,
)
from edgeagent.trace.disk import Disk
from edgeagent.trace.file import Durability, damaged
from edgeagent.trace.recover import Damaged, Examined, Torn
from edgeagent.version import __version__


class Taken(msgspec.Struct, frozen=True):
    """The operator's file as a process has taken it, whatever stands in it by now."""

    settings: Settings
    policy: dict[str, Any] = {}


class OpenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be opened. What is None is the operator's to say, or the default's.

    `agent` is a loaded one, or where it is: `FILE.py` or `FILE.py:NAME`; None, in a session that is resumed, is the
    session's own. `model` to `threads` stand above the operator's settings. `max_steps`, `max_tokens` and `timeout`
    limit each turn, and `max_cost` in the unit of the models' prices. `endpoint` is a server whose `model` is asked,
    `credential` where its key is. `resume` is a session's id or the beginning of it, `last` the session that was worked
    in last. `door` is the name under which the door has a place in the trace, empty for none. `spec` is where an agent
    is from that is given as a value: its operator's settings and rules are beside that file.
    """

    agent: Agent | str | None = None
    config: Path | None = None
    state: Path | None = None
    model: str | None = None
    endpoint: str | None = None
    credential: str | None = None
    engine: EngineName | None = None
    dialect: str | None = None
    template: str | None = None
    context_tokens: int | None = None
    threads: int | None = None
    verbose: bool = False
    seed: int = 0
    max_steps: int | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    max_cost: float | None = None
    durability: Durability | None = None
    resume: str | None = None
    last: bool = False
    door: str = ""
    spec: str = ""
    taken: Taken | None = None


FIXED = ("max_steps", "max_tokens", "timeout", "max_cost", "context_tokens")
"""What a session keeps from its beginning on."""


def open_session(request: OpenRequest, door: Door, model: Model | None = None) -> Session:
    """Load everything and start or resume a session; nothing runs in it yet. A `model` that is given stays loaded.

    Raises ConfigError, ShapeError, GrammarError, ModelError and TraceError, as what is wrong deserves.
    """
    return opened(request, door, model)[0]


def opened(request: OpenRequest, door: Door, model: Model | None = None) -> tuple[Session, Opening]:
    """Open a session as `open_session` does; return how, too: a model that was loaded may be renewed."""
    with contextlib.ExitStack() as undo:
        opening = Opening(request, door, model, undo)
        if request.resume or request.last:
            return opening.reopen(_named_directory(request)), opening
        if request.agent is None:
            raise ConfigError("say which agent: FILE.py or FILE.py:NAME")
        return opening.begin(request.agent), opening


def settings_of(request: OpenRequest) -> Settings:
    """The operator's settings with the request's on top. Raises ConfigError naming file and key."""
    beside = _beside(request.spec or request.agent)
    settings = request.taken.settings if request.taken else read_settings(request.config, beside=beside)
    names = ("engine", "dialect", "template", "context_tokens", "threads")
    given = {name: getattr(request, name) for name in names}
    model = replace(settings.model, **{key: value for key, value in given.items() if value is not None})
    named = _model_named(request)
    model = model if named is None else alone(model, named)
    state = replace(settings.state, folder=str(request.state or settings.state.folder))
    settings = replace(settings, model=model, state=state)
    return replace(settings, model=with_chain(settings))


def taken_of(request: OpenRequest) -> Taken:
    """The operator's file as it is now. Raises ConfigError naming file, line and key."""
    beside = _beside(request.spec or request.agent)
    return Taken(read_settings(request.config, beside=beside), operator_policy(request.config, beside=beside)[0])


def _policy_of(request: OpenRequest, named: Agent | str) -> tuple[dict[str, Any], tuple[Row, ...]]:
    """The operator's section of rules, and the rules. Raises ConfigError."""
    if request.taken is not None:
        return request.taken.policy, recorded_rules(request.taken.policy)
    return operator_policy(request.config, beside=_beside(request.spec or named))


def _model_named(request: OpenRequest) -> str | None:
    """The model that the request names, by itself or with its endpoint. Raises ConfigError."""
    if request.endpoint is None:
        if request.credential is not None:
            raise ConfigError("a credential is an endpoint's: give --endpoint URL too, or name it in edgeagent.toml")
        return request.model
    if request.model is None:
        raise ConfigError("which model of the endpoint? give --model NAME too")
    if " " in request.endpoint + request.model:
        raise ConfigError("an endpoint and a model with blanks in their names are named in edgeagent.toml alone")
    return named_endpoint(request.endpoint, request.model, request.credential or "")


def _beside(agent: Agent | str | None) -> Path | None:
    """The folder in which edgeagent.toml is looked for: beside the agent's file, if it has one."""
    return agent_path(agent).parent if isinstance(agent, str) else None


def _named_directory(request: OpenRequest) -> Path:
    root = state_root(Settings(state=StateSettings(folder=str(request.state or ""))))
    return find_directory(root, request.resume) if request.resume else last_directory(root)


@dataclass(frozen=True)
class Opening:
    """A session that is being opened. What `undo` holds is undone if that fails, and else when the session closes."""

    request: OpenRequest
    door: Door
    given: Model | None
    undo: contextlib.ExitStack
    loaded: list[Model] = field(default_factory=list)

    def begin(self, named: Agent | str) -> Session:
        """Start a session."""
        request, settings = self.request, self._settings(self.request)
        if not 0 <= request.seed < 1 << 63:
            raise ConfigError(f"seed is {request.seed!r:.80}; it must be from 0 to 2**63 - 1")
        limits = Limits(
            steps=request.max_steps,
            completion_tokens=request.max_tokens,
            seconds=request.timeout,
            money=request.max_cost,
        )
        policy, rules = _policy_of(request, named)
        loaded = load_agent(named) if isinstance(named, str) else named
        dialect = self.given.dialect if self.given else dialect_of(settings.model)
        root, doors = state_root(settings), Attached(self.door, request.door)
        records = records_of(settings.mcp, root)
        whole = with_rules(agent_with(loaded, records), rules)
        agent = self._running(with_dialect(with_recorded_limits(whole, limits), dialect), records, settings)
        model = self._driver(agent, settings.model, doors, root)
        beginning = Beginning(
            agent_spec=named if isinstance(named, str) else request.spec,
            model=settings.model.name,
            seed=request.seed,
            context_tokens=settings.model.context_tokens,
            durability=request.durability or "effects",
            limits=limits,
            policy=policy,
            servers=kept(records),
        )
        tools = ToolDriver(agent.family)
        drivers = drivers_of(agent, model, doors.person, tools)
        outside = Outside(doors, disk=_disk(root, settings, doors))
        session = new_session(agent, step_of(agent), drivers, root, beginning, outside)
        tools.rests = KeptResults(session.directory, outside.disk)
        return self._kept(session, model, settings.model, outside.disk)

    def reopen(self, directory: Path) -> Session:
        """Resume a session with the agent, limits and model it was started with; say what has changed since."""
        request, door = self.request, self.door
        with locked(directory):
            pass  # Someone else may have it; that is found out before a model is loaded.
        for name in FIXED:
            if getattr(request, name) is not None:
                raise ConfigError(f"{name} was fixed when the session began; fork it and start a new one to change it")
        if is_lost(directory):
            self._rebuild(directory)
        recording = load_recording(directory / TRACE_NAME, request.agent)
        about, agent = recording.about, recording.agent
        assert about is not None, "a session directory has its session.json"
        named = request.agent or resolved_spec(about, directory)
        _tell_changes(recording, _policy_of(request, named)[1], door)
        found = _torn_told(directory / TRACE_NAME, door)
        fixed = {
            "agent": named,
            "model": request.model or (about.model if request.endpoint is None else None),
            "context_tokens": about.context_tokens,
        }
        settings, doors = self._settings(replace(request, **fixed)), Attached(door, request.door)
        if settings.model.context_tokens < about.context_tokens:
            raise ConfigError(
                f"session {about.id} was begun with a window of {about.context_tokens} tokens and the model was loaded "
                f"with {settings.model.context_tokens}: load it with context_tokens={about.context_tokens}"
            )
        agent = self._running(agent, read_records(about.servers), settings)
        model = self._driver(agent, settings.model, doors, directory.parent.parent, answers_in(found))
        outside = Outside(doors, disk=_disk(directory.parent.parent, settings, doors))
        tools = ToolDriver(agent.family)
        tools.rests = KeptResults(directory, outside.disk)
        drivers = drivers_of(agent, model, doors.person, tools)
        session = resume_session(directory, agent, step_of(agent), drivers, request.durability, outside)
        return self._kept(session, model, settings.model, outside.disk)

    def _rebuild(self, directory: Path) -> None:
        """Write a session.json that was lost anew, with the agent that is given; say what is not known any more."""
        request, named = self.request, self.request.agent
        if named is None:
            raise ConfigError(
                f"{directory / ABOUT_NAME} is missing or damaged; it can be rebuilt from the trace and the agent. Say "
                f"which agent it was: `edgeagent run AGENT.py --resume {directory.name}`"
            )
        settings, (policy, rules) = self._settings(request), _policy_of(request, named)
        spec, dialect = str(Path(named).absolute()) if isinstance(named, str) else "", dialect_of(settings.model)
        agent = with_rules(load_agent(named) if isinstance(named, str) else named, rules)
        beginning = Beginning(agent_spec=spec, model=settings.model.name, policy=policy)
        disk = _disk(directory.parent.parent, settings, Attached(self.door))
        for said in rebuild_about(directory, agent, beginning, dialect, disk):
            self.door.activity(said)

    def _settings(self, request: OpenRequest) -> Settings:
        settings = settings_of(request)
        return settings if self.given is None else replace(settings, model=self.given.settings)

    def _running(self, agent: Agent, records: tuple[ServerRecord, ...], settings: Settings) -> Agent:
        """The agent with its servers' tools going to the servers, which are stopped with the session."""
        agent, stop = running(agent, records, settings.mcp, self.door.activity)
        self.undo.callback(stop)
        return agent

    def _driver(
        self, agent: Agent, settings: ModelSettings, doors: Attached, root: Path, answered: int = 0
    ) -> ModelDriver:
        model = self.given
        if model is None:
            model = load_model(settings, shared=False, verbose=self.request.verbose)
            self.undo.callback(model.close)
        self.loaded.append(model)
        return model.driver(agent, doors, root, answered)

    def _kept(self, session: Session, model: ModelDriver, settings: ModelSettings, disk: Disk) -> Session:
        keep_warm(model, settings, session.directory, disk)
        session.on_close(self.undo.pop_all().close)
        return session


def _disk(root: Path, settings: Settings, doors: Attached) -> Disk:
    """The disk of the state folder, with room for traces if caches can give it."""
    disk = state_disk(root, settings.state, doors.activity)
    disk.keep_reserve()
    return disk


def _tell_changes(recording: Recording, rules_now: tuple[Row, ...], door: Door) -> None:
    about = recording.about
    assert about is not None, "the caller has looked"
    if about.version != __version__:
        door.activity(f"this session was begun by edgeagent {about.version}, and this is {__version__}")
    for change in changes(about, recording.agent):
        door.activity(f"the agent has changed since this session began: {change}")
    if rules_now != recorded_rules(about.policy):
        door.activity("the rules in edgeagent.toml have changed; this session stays under those it began with")


def _torn_told(trace: Path, door: Door) -> Examined | None:
    found = examine_to_go_on(trace, events=False) if trace.exists() else None
    if found is not None and isinstance(found.verdict, Damaged):
        raise damaged(trace, found.verdict)  # Before a model is loaded.
    if found is not None and isinstance(found.verdict, Torn):
        door.activity(f"the last write did not arrive whole; {found.verdict.size} bytes are put aside")
    return found


def answers_in(found: Examined | None) -> int:
    """How often the model has answered in a trace: a script goes on behind that."""
    records = found.records if found else ()
    return sum(isinstance(r.event, ModelAnswered | ModelFailed) for r in records)
