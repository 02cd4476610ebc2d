"""May this call have these arguments, seeing where each value comes from? The rule `values_from_user(labels)`.

Once something untrusted was read, a call that is not a plain read runs unasked only if each sensitive argument is the
user's own words, or a field of a record that the user named and outsiders cannot, or belongs to what this session
made. What cannot be undone asks anyway; free text must be inert; after a confidential output, whatever goes out and
is not wholly the user's words asks. Everything else about a call (how much, when, which words) may come from anywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from msgspec.structs import replace

from edgeagent.core.agent import Agent, family_of
from edgeagent.core.effects import AskUser, CallTool, Effect
from edgeagent.core.events import Event, Heard, ToolFailed, ToolReturned
from edgeagent.core.quoting import quoted_from_user
from edgeagent.core.state import PendingCall, State
from edgeagent.core.text import shown
from edgeagent.core.values import Message, canonical_json, read_json
from edgeagent.errors import ConfigError
from edgeagent.policy import provenance
from edgeagent.policy.fact import user_texts, what_happened
from edgeagent.policy.guard import ALLOW, Ask, Refuse, Verdict
from edgeagent.policy.inert import not_inert
from edgeagent.policy.labels import OUTWARD, SENSITIVE, Kind, Labels, Role, ToolLabel, described
from edgeagent.policy.named import (
    said_beginning,
    said_distinctly,
    said_handle,
    said_in_template,
    said_link,
    said_secret,
    said_words,
)
from edgeagent.policy.provenance import CLOSED, CREATED, LINK, OUTSIDERS, TRUSTED, Memory, Seen

SHOWN_MAX = 60
"""Characters of a value that a question repeats; the whole value is in the question's arguments."""

TOOLS_NAMED_MAX = 3
"""Tools that a reason names."""


Source = Literal["words", "named", "own", "closed", "template", "link", "elsewhere"]
"""Where a value comes from: the user's words, a record they named, a record of this session's own, a closed set, the
user's template, a link of insiders; or anything else."""


@dataclass(frozen=True)
class Required:
    """One argument of one tool must always come from one of these, also before anything untrusted was read."""

    tool: str
    argument: str
    sources: tuple[Source, ...]
    verdict: Literal["refuse", "ask"]
    because: str


def require_origin(
    tool: str, argument: str, *sources: Source, verdict: Literal["refuse", "ask"] = "refuse", because: str = ""
) -> Required:
    """Demand where an argument comes from, for `values_from_user(..., require=...)`. Raises ConfigError."""
    wrong = [source for source in sources if source not in get_args(Source)]
    if wrong or not sources:
        known = ", ".join(get_args(Source))
        raise ConfigError(f"require_origin({tool!r}, {argument!r}, ...): name one or more of {known}, not {wrong}")
    why = because or f"{argument} of {tool} must come from: {', '.join(sources)}"
    return Required(tool, argument, sources, verdict, why)


@dataclass(frozen=True)
class ValuesFromUser:
    """The rule as an author writes it. `strict` adds roles that must be accounted for, such as amount and date."""

    labels: Labels
    strict: tuple[Role, ...] = ()
    require: tuple[Required, ...] = ()

    def __repr__(self) -> str:
        return f"values_from_user({canonical_json(described(self.labels))}, {self.strict!r}, {self.require!r})"

    def explain(self) -> str:
        """Return the rule as one sentence."""
        also = f" and {', '.join(self.strict)}" if self.strict else ""
        return (
            "values_from_user: Asks a person, once something untrusted was read, unless whom and what a call reaches"
            f"{also} are the user's words or fields of records that the user named (because a tool's output may have "
            "asked for it)" + "".join(f"; {each.verdict}s a call unless {each.because}" for each in self.require)
        )

    def memory_sentence(self) -> str:
        """Say how much the rule remembers at most."""
        return f"at most {provenance.RECORDS_MAX} records, {provenance.CHARS_MAX} characters"


def values_from_user(
    labels: Labels, *, strict: Iterable[Role] = (), require: Iterable[Required] = ()
) -> ValuesFromUser:
    """Hold every sensitive argument to the user's words and to records that the user named. Raises ConfigError."""
    strict, require = tuple(strict), tuple(require)
    wrong = [role for role in strict if role not in ("amount", "date", "text")]
    if wrong:
        raise ConfigError(f"values_from_user(strict=...): {wrong[0]!r} is not among 'amount', 'date' and 'text'")
    for each in require:
        label = labels.tools.get(each.tool)
        if label is None or each.argument not in label.arguments:
            raise ConfigError(
                f"require_origin({each.tool!r}, {each.argument!r}, ...): the labels have no such argument"
            )
    return ValuesFromUser(labels, strict, require)


class Origin(NamedTuple):
    """Where one argument comes from. `good`: it may stand in a call unasked. `wholly`: the user's words, all of it."""

    argument: str
    good: bool
    wholly: bool
    source: Source
    text: str


class OriginGuard:
    """Judges calls by the origin of their arguments. Raises ConfigError for labels that do not fit the agent."""

    def __init__(self, rule: ValuesFromUser, agent: Agent) -> None:
        rule.labels.check(agent.name, family_of(agent).tools)
        self.labels, self.require = rule.labels, rule.require
        self.checked = SENSITIVE | set(rule.strict)
        digest = hashlib.sha256(repr(rule).encode()).digest()
        self._start = Memory(int.from_bytes(digest[:4], "big"))

    def observe(self, memory: Any, state: State, event: Event) -> Memory:
        """Return the memory after this event."""
        before = self._read(memory)
        kind, call = what_happened(state, event)
        if kind == "heard":
            return self._tainted(before, event.source if isinstance(event, Heard) else "an earlier turn")
        if call is None:
            return before
        if kind == "returned" and isinstance(event, ToolReturned):
            return self._returned(before, call, event.value)
        if kind == "failed" and isinstance(event, ToolFailed):
            return self._tainted(before, call.tool)  # The message may be an outsider's too.
        return self._said_no(before, call.tool, state.turn) if kind == "denied" else before

    def judge(self, memory: Memory, state: State, effect: Effect) -> Verdict:
        """Allow a call, ask about it, or refuse it because a person has just said no to one of its kind."""
        label = self.labels.tools.get(effect.tool) if isinstance(effect, CallTool) else None
        if label is None or not isinstance(effect, CallTool) or label.does == "read":
            return ALLOW
        refused = (label.does, state.turn) in memory.refused
        if label.does == "marks":
            return Refuse(_after_no(label)) if refused and memory.untrusted else ALLOW
        broken = [each for each in self.require if self._breaks(each, memory, state, effect)]
        for each in broken:
            if each.verdict == "refuse":
                return Refuse(each.because)
        reasons = (*(each.because for each in broken), *self._reasons(memory, state, effect, label))
        if not reasons:
            return ALLOW
        # 1. two questions  2. no to the first  3. yes to the second: that yes was given to this very call.
        return Refuse(_after_no(label)) if refused and not effect.confirmation else Ask("; ".join(reasons))

    def admit(self, memory: Memory, state: State, effect: Effect) -> Memory:
        """Nothing to remember before the result is there."""
        return memory

    def narrow(self, memory: Memory, state: State, effect: Effect) -> Effect:
        """Write into every question where each argument comes from."""
        if not isinstance(effect, AskUser) or effect.tool not in self.labels.tools:
            return effect
        told = [f"{o.argument}: {o.text}" for o in self.origins(memory, state, effect.tool, effect.arguments)]
        lines = [line for line in (f"  {each}" for each in told) if line not in effect.because]
        return replace(effect, because="\n".join([effect.because, *lines]))

    def origins(self, memory: Memory, state: State, tool: str, arguments: str) -> tuple[Origin, ...]:
        """Return where each argument of a call comes from, in the order of the arguments."""
        given: dict[str, Any] = read_json(arguments)
        asker = _Asker(memory, state, self.labels, self.checked)
        kinds = self.labels.tools[tool].arguments
        return tuple(asker.origin(key, kinds.get(key, Kind("free")), value) for key, value in given.items())

    def _breaks(self, each: Required, memory: Memory, state: State, effect: CallTool) -> bool:
        if each.tool != effect.tool:
            return False
        origins = self.origins(memory, state, effect.tool, effect.arguments)
        return any(o.argument == each.argument and o.source not in each.sources for o in origins)

    def _reasons(self, memory: Memory, state: State, effect: CallTool, label: ToolLabel) -> Iterator[str]:
        if not memory.untrusted and not memory.confidential:
            return
        origins = self.origins(memory, state, effect.tool, effect.arguments)
        if memory.confidential and _is_outward(label, effect.arguments) and not all(o.wholly for o in origins):
            yield f"it could carry out what {_some(memory.confidential)} gave, which is confidential"
        if not memory.untrusted:
            return
        if label.does == "irreversible":
            yield f"it cannot be undone, and {_some(memory.untrusted)} may have asked for it"
        if label.said and not said_beginning(label.said, user_texts(state)):
            yield f"you did not speak of it ({', '.join(label.said)})"
        doubtful = [o.argument for o in origins if not o.good]
        if doubtful:
            yield f"{', '.join(doubtful)} did not come from you, and {_some(memory.untrusted)} may have asked for it"

    def _read(self, memory: Any) -> Memory:
        if isinstance(memory, Memory):
            return memory
        if memory is None:
            return self._start
        read = provenance.restored(memory)
        if read.fingerprint != self._start.fingerprint:
            raise ConfigError("the labels have changed since this session's snapshot: fold its trace again")
        return read

    def _returned(self, memory: Memory, call: PendingCall, value: str) -> Memory:
        tool, label = call.tool, self.labels.tools.get(call.tool)
        if label is None:
            return memory
        memory = self._tainted(memory, tool)
        if label.confidential:
            memory = memory._replace(confidential=_with(memory.confidential, tool))
        if call.of:
            return memory  # A part of a result may begin within a name, so no record is taken from it.
        found, left_out = provenance.records_in(self.labels, tool, value)
        made = provenance.created_by_argument(self.labels, tool, read_json(call.arguments))
        memory = provenance.remembered(memory, (*found, *made))
        return memory._replace(overflowed=1) if left_out else memory

    def _tainted(self, memory: Memory, tool: str) -> Memory:
        label = self.labels.tools.get(tool)
        if label is not None and label.trusted:
            return memory
        return memory._replace(untrusted=_with(memory.untrusted, tool))

    def _said_no(self, memory: Memory, tool: str, turn: int) -> Memory:
        label = self.labels.tools.get(tool)
        if label is None:
            return memory
        # Only this turn's count: the user's next word is a new will.
        these = tuple(entry for entry in memory.refused if entry[1] == turn and entry[0] != label.does)
        return memory._replace(refused=(*these, (label.does, turn)))


class _Asker:
    """Asks one call's values where they come from."""

    def __init__(self, memory: Memory, state: State, labels: Labels, checked: frozenset[Role]) -> None:
        self.memory, self.state, self.labels, self.checked = memory, state, labels, checked
        self.texts = user_texts(state)

    def origin(self, argument: str, kind: Kind, value: Any) -> Origin:
        """Return the origin of an argument: that of its worst part."""
        parts = [self._part(argument, kind, each) for each in _parts(kind, value)]
        if not parts:
            return Origin(argument, True, True, "words", "empty")
        worst = min(parts, key=lambda o: (o.good, o.wholly))
        return worst._replace(wholly=all(o.wholly for o in parts))

    def _part(self, argument: str, kind: Kind, value: Any) -> Origin:
        plain = value if isinstance(value, str) else canonical_json(value)
        if _is_said(argument, kind, value, plain, self.texts):
            return Origin(argument, True, True, "words", "your words")
        if kind.role == "text" and "text" not in self.checked:
            return self._text(argument, plain)
        if kind.role == "free" or kind.role not in self.checked:
            return Origin(argument, True, isinstance(value, bool), "elsewhere", self._writer(plain))
        if isinstance(value, list | dict):
            return Origin(argument, False, False, "elsewhere", f"{_shown(plain)} is not what the label says it is")
        known = self._known(kind, plain)
        if known is not None:
            return Origin(argument, True, False, *known)
        return Origin(argument, False, False, "elsewhere", f"{_shown(plain)} is not from you: {self._writer(plain)}")

    def _text(self, argument: str, plain: str) -> Origin:
        loud = not_inert(plain, (*self.texts, *self._trusted_outputs()))
        if loud:
            why = f"holds {_shown(loud)}, which is not from you: {self._writer(loud)}"
            return Origin(argument, False, False, "elsewhere", why)
        return Origin(argument, True, False, "elsewhere", self._writer(plain))

    def _known(self, kind: Kind, value: str) -> tuple[Source, str] | None:
        """Say which record this value belongs to, if it may be used."""
        for seen in reversed(self.memory.records):
            found = self._in_record(seen, kind, value)
            if found is not None:
                return found
        if kind.role == "name":
            names = [s.name for s in self.memory.records if s.flags & TRUSTED]
            filled = said_in_template(value, names, self.texts)
            return ("template", f"your words, with {_shown(filled)} filled in") if filled else None
        return None

    def _in_record(self, seen: Seen, kind: Kind, value: str) -> tuple[Source, str] | None:
        if kind.role == "handle" and (seen.kind, seen.id) == (kind.of, value):
            if seen.flags & CLOSED:
                return "closed", f"a {seen.kind} that {seen.tool} lists"
            if seen.flags & CREATED:
                return "own", f"made in this session by {seen.tool}"
            if self._is_named(seen):
                return "named", f"the {seen.kind} {_shown(seen.name)}, which you named"
        elif kind.role == "link" and seen.flags & LINK and seen.id == value:
            return "link", f"a link in what {seen.tool} shows; only people inside write there"
        elif (kind.role, kind.of, value) in seen.fields and not seen.flags & OUTSIDERS and self._is_named(seen):
            return "named", f"{kind.role} of the {seen.kind} {_shown(seen.name)}, which you named"
        return None

    def _is_named(self, seen: Seen) -> bool:
        if not seen.flags & OUTSIDERS:
            return said_words(seen.name, self.texts)
        if self.memory.overflowed or not said_distinctly(seen.name, self.texts):
            return False
        folded = seen.name.casefold()
        return not any(
            other.kind == seen.kind and other.id != seen.id and other.name.casefold() == folded
            for other in self.memory.records
        )

    def _trusted_outputs(self) -> Iterator[str]:
        for message in self._messages():
            label = self.labels.tools.get(message.tool) if message.role == "tool" else None
            if label is not None and label.trusted:
                yield message.text

    def _messages(self) -> tuple[Message, ...]:
        return (*(m for exchange in self.state.past for m in exchange.messages), *self.state.current)

    def _writer(self, plain: str) -> str:
        """Say where a value that is not the user's was read, or that the model wrote it, and after what."""
        for message in reversed(self._messages()):
            if message.role in ("tool", "heard") and plain and plain in message.text:
                label = self.labels.tools.get(message.tool)
                outside = "" if label is not None and label.trusted else ", where outsiders can write"
                return f"read in the output of {message.tool or 'a tool'}{outside}"
        if not self.memory.untrusted:
            return "written by the model"
        return f"written by the model after it read {_some(self.memory.untrusted)}"


def _is_said(argument: str, kind: Kind, value: Any, plain: str, texts: tuple[str, ...]) -> bool:
    match kind.role:
        case "handle":
            return said_handle(plain, kind.of, texts)
        case "secret":
            return said_secret(plain, argument, texts)
        case "url" | "link":
            return said_link(plain, texts)
        case "amount":
            return quoted_from_user(value, texts)
        case _:
            return said_words(plain, texts)


def _parts(kind: Kind, value: Any) -> Iterator[Any]:
    """Yield the values to look at: elements of lists, and an object's `at`; empty ones reach nothing."""
    if isinstance(value, list):
        for each in value:
            yield from _parts(kind, each)
    elif isinstance(value, dict) and kind.at and kind.at in value:
        yield from _parts(kind, value[kind.at])
    elif value is not None and value != "" and value != {}:
        yield value


def _is_outward(label: ToolLabel, arguments: str) -> bool:
    given = read_json(arguments)
    reached = (key for key, kind in label.arguments.items() if kind.role in OUTWARD and given.get(key))
    return label.does == "egress" or any(True for _ in reached)


def _after_no(label: ToolLabel) -> str:
    return f"the user said no to a call of this kind ({label.does}) in this turn; do not try again, answer instead"


def _some(tools: tuple[str, ...]) -> str:
    more = f" and {len(tools) - TOOLS_NAMED_MAX} more" if len(tools) > TOOLS_NAMED_MAX else ""
    return ", ".join(tool or "the agent above" for tool in tools[-TOOLS_NAMED_MAX:]) + more


def _with(tools: tuple[str, ...], tool: str) -> tuple[str, ...]:
    return tools if tool in tools else (*tools, tool)


def _shown(value: str) -> str:
    # An outsider's value must not be able to write a line of the question, nor turn the direction of writing.
    return f"'{shown(value[:SHOWN_MAX])}{'…' if len(value) > SHOWN_MAX else ''}'"
