"""The guard wraps step: monitors see the event, then every effect that step wants is judged before it may leave.

A refused effect becomes a refusal inside the same transition, and is never counted as having happened.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol, assert_never

import msgspec
from msgspec.structs import replace

from edgeagent.core.agent import Agent, family_of
from edgeagent.core.calls import after_question, call_effect, change_call, hold
from edgeagent.core.effects import AskModel, AskUser, CallTool, CancelEffect, Effect, Finish
from edgeagent.core.events import Event, Forked, Heard, UserDecided
from edgeagent.core.outside import taken_up
from edgeagent.core.state import Finished, Idle, State, Transition, at_time_of
from edgeagent.core.step import halt, refuse, step
from edgeagent.core.turn import has_outsiders_words
from edgeagent.errors import ConfigError
from edgeagent.policy.atoms import Memory, Value
from edgeagent.policy.fact import TOOLS_WORDS, Fact, Signature, asked, of_effect, of_event, what_happened
from edgeagent.policy.formula import Acts, speaks_of_calls, walk
from edgeagent.policy.monitor import Monitor, as_value
from edgeagent.policy.narrowing import Narrowed, needs_of, schema_of
from edgeagent.policy.ready import Rule
from edgeagent.policy.typed import check_comparisons


class Allow(msgspec.Struct, frozen=True, tag=True):
    """The effect may leave."""


class Refuse(msgspec.Struct, frozen=True, tag=True):
    """The effect must not leave; the model and the user are told why."""

    because: str


class Ask(msgspec.Struct, frozen=True, tag=True):
    """The effect may leave once a person has said yes to exactly this."""

    because: str


class Halt(msgspec.Struct, frozen=True, tag=True):
    """The session must end."""

    because: str


Verdict = Allow | Refuse | Ask | Halt

ALLOW = Allow()


class Guard(Protocol):
    """Judges effects by what has happened. Its memory travels in the state (`State.monitors`)."""

    def observe(self, memory: Any, state: State, event: Event) -> Any:
        """Return the memory after this event; `memory` is None at the start, `state` is the one before the event."""

    def judge(self, memory: Any, state: State, effect: Effect) -> Verdict:
        """Judge a pending effect; nothing is remembered."""

    def admit(self, memory: Any, state: State, effect: Effect) -> Any:
        """Return the memory after an effect has been allowed."""

    def narrow(self, memory: Any, state: State, effect: Effect) -> Effect:
        """Return the effect with everything taken out that would be refused anyway (tools of an AskModel)."""


class AllowAll:
    """The guard of an agent without rules."""

    def observe(self, memory: Any, state: State, event: Event) -> Any:
        """Remember nothing."""
        return memory

    def judge(self, memory: Any, state: State, effect: Effect) -> Verdict:
        """Allow everything."""
        return ALLOW

    def admit(self, memory: Any, state: State, effect: Effect) -> Any:
        """Remember nothing."""
        return memory

    def narrow(self, memory: Any, state: State, effect: Effect) -> Effect:
        """Take nothing out."""
        return effect


class RuleGuard:
    """The guard of an agent with rules: the strictest verdict wins, and among equals the rule that stands first.

    Rules are compiled once; for each kind and tool only those are asked that can object there at all.
    Raises ConfigError for a rule that names a tool or an argument which the agent does not have.
    """

    def __init__(self, rules: Iterable[Rule], agent: Agent) -> None:
        agent = family_of(agent)  # Rules hold for the tools of sub-agents too.
        self.agent = agent
        self.rules = tuple(rules)
        for rule in self.rules:
            check_rule(rule, agent)
        acting = (t.name for t in agent.tools if t.effect != "read")
        self.monitor = Monitor([r.formula for r in self.rules], acting)
        for rule in self.rules:
            self._check_objects(rule)
        self._strictest_first = sorted(self.rules, key=lambda r: STRICTNESS.index(r.verdict))
        self._calls: dict[str, tuple[_Check, ...]] = {}
        self._narrowings: dict[tuple[str, ...], _Narrowing] = {}
        self._others = tuple(
            c for c in self._checks(("other", "")) if isinstance(c.verdict, Halt)
        )  # Only the end of the session can stop what is not a call.

    def observe(self, memory: Any, state: State, event: Event) -> Memory:
        """Return the memory after this event."""
        past: Memory = memory if type(memory) is tuple else self.monitor.restored(memory)
        kind, call = what_happened(state, event)
        if self.monitor.ignores((kind, call.tool if call else "")):
            return past
        return self.monitor.append(past, of_event(self.agent, state, event, kind, call))

    def judge(self, memory: Memory, state: State, effect: Effect) -> Verdict:
        """Judge a pending effect as if it were the last position."""
        if isinstance(effect, CallTool):
            checks = self._calls.get(effect.tool)
            if checks is None:
                checks = self._calls[effect.tool] = self._checks(("called", effect.tool))
        elif isinstance(effect, CancelEffect | Finish) or isinstance(state.phase, Finished):
            return ALLOW  # What ends something is never held up, and what has ended is not ended again.
        else:
            checks = self._others
        if not checks:
            return ALLOW
        fact = of_effect(self.agent, state, effect)
        now = self.monitor.now(memory, fact)
        for check in checks:
            if not check.holds(fact, memory, now, _NO_VALUES):
                return check.verdict
        return ALLOW

    def admit(self, memory: Memory, state: State, effect: Effect) -> Memory:
        """Return the memory with this effect as its last position."""
        signature: Signature = ("called", effect.tool) if isinstance(effect, CallTool) else ("other", "")
        if self.monitor.ignores(signature):
            return memory
        return self.monitor.append(memory, of_effect(self.agent, state, effect))

    def narrow(self, memory: Memory, state: State, effect: Effect) -> Effect:
        """Take out the tools that no arguments could get through, and say what the others' arguments must keep to."""
        if not isinstance(effect, AskModel) or not effect.tools:
            return effect
        plan = self._narrowings.get(effect.tools)
        if plan is None:
            plan = self._narrowings[effect.tools] = self._narrowing(effect.tools)
        if not plan.checks and not plan.needs:
            return effect
        fact = Fact("called", "", state.now_ms, state.turn, skew_ms=state.skew_ms)
        now = self.monitor.now(memory, fact)
        closed = {tool for tool, holds in plan.checks if not holds(fact, memory, now, _NO_VALUES)}
        held = (n for when, n in plan.needs if n[0] not in closed and when(fact, memory, now, _NO_VALUES))
        narrowed = (*effect.narrowed, *held)
        if not closed:
            return replace(effect, narrowed=narrowed) if narrowed else effect
        tools = tuple(t for t in effect.tools if t not in closed)
        return replace(effect, tools=tools, choice=effect.choice if tools else "answer", narrowed=narrowed)

    def touched(self) -> tuple[str, ...]:
        """Return the tools whose calls at least one rule can object to."""
        return tuple(t for t in self.agent.tool_names if self._checks(("called", t)))

    def _check_objects(self, rule: Rule) -> None:
        """Refuse a rule that cannot object to any call: what it asks for at once never is at once."""
        tools = self.agent.tool_names
        if rule.verdict == "halt" or not tools:
            return
        if any(isinstance(f, Acts) for f in walk(rule.formula)) and all(t.effect == "read" for t in self.agent.tools):
            return  # It waits for the first tool that does something.
        if all(self.monitor.compiled(rule.formula, ("called", tool)) is True for tool in tools):
            raise ConfigError(
                f"agent {self.agent.name}: rule {rule.name} can never object to a call: a position is a call, a result "
                "or a word, and never two of them; say once(...), previously(...) or tainted() of what was before"
            )

    def _checks(self, signature: Signature) -> tuple[_Check, ...]:
        compiled = ((r, self.monitor.compiled(r.formula, signature)) for r in self._strictest_first)
        return tuple(_Check(as_value(root), _verdict(rule)) for rule, root in compiled if root is not True)

    def _narrowing(self, tools: tuple[str, ...]) -> _Narrowing:
        # A question may be answered with yes; and what ends the session whatever is called, ends it before that.
        rules = [r for r in self.rules if r.verdict == "refuse" or (r.verdict == "halt" and speaks_of_calls(r.formula))]
        compiled = ((t, self.monitor.compiled(r.formula, ("called", t), "upper")) for t in tools for r in rules)
        checks = [(tool, as_value(root)) for tool, root in compiled if root is not True]
        return _Narrowing(tuple(checks), tuple(need for tool in tools for need in self._needs(tool)))

    def _needs(self, tool: str) -> Iterator[tuple[Value, Narrowed]]:
        for rule in self.rules:
            if rule.verdict != "ask":
                for argument, others in needs_of(rule.formula):
                    impossible = self.monitor.compiled(~others, ("called", tool), "lower")
                    schema = schema_of(argument)
                    if impossible is not False and schema is not None:
                        yield as_value(impossible), (tool, argument[0].name, schema)


class _Check(NamedTuple):
    holds: Value
    verdict: Verdict


class _Narrowing(NamedTuple):
    """What is asked before the model writes: may a tool be called at all, and does a demand on an argument stand."""

    checks: tuple[tuple[str, Value], ...]
    needs: tuple[tuple[Value, Narrowed], ...]


STRICTNESS = ("halt", "refuse", "ask")

_NO_VALUES: list[bool] = []


def _verdict(rule: Rule) -> Verdict:
    match rule.verdict:
        case "halt":
            return Halt(rule.because)
        case "refuse":
            return Refuse(rule.because)
        case "ask":
            return Ask(rule.because)
        case _:
            assert_never(rule.verdict)


def check_rule(rule: object, agent: Agent) -> None:
    """Refuse a rule that speaks of what the agent does not have: it would never, or always, apply."""
    if not isinstance(rule, Rule):
        raise ConfigError(
            f"agent {agent.name}: policies holds {rule!r}, which is not a rule: see edgeagent.policy.rules"
        )
    for tool in rule.tools:
        if tool not in agent.by_name:
            known = ", ".join(agent.tool_names) or "none"
            raise ConfigError(f"agent {agent.name}: rule {rule.name} names the tool {tool}; its tools are: {known}")
    check_comparisons(f"agent {agent.name}: rule {rule.name}", rule.formula, agent.tools)


def guarded_step(guard: Guard, agent: Agent, state: State, event: Event) -> Transition:
    """Like step, but nothing that the guard forbids is among the effects."""
    before, memory = state, guard.observe(state.monitors, state, event)
    state, wanted = step(agent, state, event)
    if state.turn > before.turn and has_outsiders_words(agent):
        memory = guard.observe(memory, _resting(before, state), at_time_of(state, Heard(0, TOOLS_WORDS, "")))
    for waited in taken_up(before, state):  # It taints the turn that it begins, whatever turn it came in.
        if waited.tainted:
            heard = Heard(state.now_ms, waited.message.tool, waited.message.text)
            memory = guard.observe(memory, _resting(before, state), at_time_of(state, heard))
    if isinstance(event, Forked):
        for tool, arguments in event.made:  # They happened, so what counts calls counts them.
            memory = guard.admit(memory, state, CallTool(0, tool, arguments, 0))
    if memory is not state.monitors:
        state = replace(state, monitors=memory)
    queue, allowed = deque(wanted), []
    while queue:
        effect = guard.narrow(state.monitors, state, queue.popleft())
        verdict = guard.judge(state.monitors, state, effect)
        if isinstance(effect, AskUser):
            verdict, state, effect = _before_asking(guard, agent, state, effect, verdict)
        if isinstance(verdict, Halt):
            return halt(agent, state, verdict.because)  # Nothing of this transition has left yet, and nothing will.
        if isinstance(effect, CallTool) and not _may_leave(verdict, effect):
            state, instead = _instead(agent, state, effect, verdict)
            queue.extend(instead)
            continue
        memory = guard.admit(state.monitors, state, effect)
        if memory is not state.monitors:
            state = replace(state, monitors=memory)
        allowed.append(effect)
    return state, tuple(allowed)


def _before_asking(
    guard: Guard, agent: Agent, state: State, question: AskUser, verdict: Verdict
) -> tuple[Verdict, State, Effect]:
    """Judge the call that a person would be asked about, as if they had said yes: what no yes can allow is not asked.

    Where that ends the session or refuses the call, the call stands in the question's place.
    """
    held = asked(state, question.effect_id)
    if held is None or isinstance(verdict, Halt):
        return verdict, state, question
    confirmed = change_call(state, held.effect_id, replace(held, confirmed=True))
    call = call_effect(agent, confirmed, held, confirmation=question.effect_id)
    yes = UserDecided(0, question.effect_id, approved=True)
    after_yes = guard.judge(guard.observe(state.monitors, state, at_time_of(state, yes)), confirmed, call)
    now = guard.judge(state.monitors, confirmed, call)
    if not isinstance(after_yes, Refuse) and not (isinstance(after_yes, Halt) and isinstance(now, Halt)):
        return verdict, state, question
    unasked = replace(held, question_id=0, because="", asked_ms=0, expires_ms=0)
    state = change_call(after_question(state, held), held.effect_id, unasked)
    return after_yes, state, replace(call, confirmation=0)


def _resting(before: State, state: State) -> State:
    """The state in which the turn that has begun was still to come."""
    return replace(before, turn=state.turn - 1, phase=Idle(), now_ms=state.now_ms)


def _may_leave(verdict: Verdict, effect: CallTool) -> bool:
    return isinstance(verdict, Allow) or (isinstance(verdict, Ask) and effect.confirmation != 0)


def _instead(agent: Agent, state: State, effect: CallTool, verdict: Verdict) -> Transition:
    match verdict:
        case Refuse(because=because):
            return refuse(agent, state, effect, because)
        case Ask(because=because):
            return hold(state, effect, because)
        case Allow() | Halt():
            raise AssertionError("only a refusal or a question takes the place of a call")
        case _:
            assert_never(verdict)
