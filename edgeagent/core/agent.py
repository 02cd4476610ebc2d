"""What an author declares: an agent, its tools, and how its model writes calls. Values; nothing here runs."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Literal, Protocol, Required, TypedDict, Unpack, get_args

import msgspec

from edgeagent.core.budget import Budget, budget_described
from edgeagent.core.declared import check_fields, check_text, check_words, check_writable
from edgeagent.core.from_user import Place, places_of
from edgeagent.core.lines import Lines
from edgeagent.core.names import check_name, check_tool_name, written_names
from edgeagent.core.reading import Reading
from edgeagent.core.say import why_not_said
from edgeagent.core.values import ToolCall, canonical_json
from edgeagent.errors import ConfigError, IllegalTransition, ShapeError
from edgeagent.shape.results import why_no_result
from edgeagent.shape.types import Shape, shape_of_parameters, shape_of_schema

ToolEffect = Literal["read", "write", "irreversible"]

LANGUAGES = ("en", "de", "es", "fr", "it")
"""In which requests are read (`docs/languages.md`)."""

TOOLS_MAX = 256
"""More tools than any small model can tell apart; a bound against a loop that makes tools."""


class ToolOptions(TypedDict, total=False):
    """The words beside a tool's name and arguments, each explained at `Tool`; `idempotent` must be given."""

    idempotent: Required[bool]
    effect: ToolEffect
    sensitive: bool
    trusted: bool
    confirm: bool
    timeout_s: float
    examples: Iterable[str]
    pre: Callable[..., Any] | None
    post: Callable[..., Any] | None
    say: str
    notes: Callable[[], tuple[str, ...]] | None
    lines: Lines | None
    outsiders: bool


@dataclass(frozen=True)
class Tool:
    """A typed function that the model may ask for. Make one with `@tool(idempotent=...)` or `Tool.of_schema`.

    `effect` says what it does to the world; `trusted` that its output was not written by outsiders;
    `sensitive` that its arguments and output must not be exported in clear; `confirm` that a person is asked
    before every call; `timeout_s` how long it may take. `pre` is a predicate over the typed arguments (by name),
    `post` over the typed result (and the arguments, if it takes more than one): True, or False, or a text that says
    what is wrong. A call whose `pre` does not hold never runs; a result whose `post` does not hold is a failure.
    `say` is what is said after a call, its arguments and `result` in braces: `"{valve} is open for {seconds} s"`.
    `notes` gives what befell the way to its device since it was last asked; it goes into the trace, not to the model.
    `lines` are what that device prints, for doors to show.
    `outsiders` says that others wrote its words and schema: a session that has it begins tainted.
    `agent` is set when a call of this tool is a session of a sub-agent (`Agent.as_tool`), `schema` when the arguments
    were declared by a JSON Schema, and `alias` by the agent when a model cannot write the name. Raises ConfigError.
    """

    function: Callable[..., Any]
    name: str
    description: str
    idempotent: bool
    effect: ToolEffect = "write"
    sensitive: bool = False
    trusted: bool = False
    confirm: bool = False
    timeout_s: float = 30.0
    examples: tuple[str, ...] = ()
    pre: Callable[..., Any] | None = None
    post: Callable[..., Any] | None = None
    agent: Agent | None = None
    schema: Mapping[str, Any] | None = None
    alias: str = ""
    say: str = ""
    notes: Callable[[], tuple[str, ...]] | None = None
    lines: Lines | None = None
    outsiders: bool = False

    def __post_init__(self) -> None:
        """Freeze the examples and check every word, so that a slip is told where it was made."""
        check_tool_name(self.name, of_agent=self.agent is not None)
        check_words(self, get_args(ToolEffect))
        object.__setattr__(self, "examples", tuple(self.examples))

    @classmethod
    def of_schema(
        cls,
        name: str,
        about: str,
        schema: Mapping[str, Any],
        call: Callable[[dict[str, Any]], Any],
        **options: Unpack[ToolOptions],
    ) -> Tool:
        """Declare a tool by its name and the JSON Schema of its arguments, of any draft: a device's, a server's.

        `call` gets the arguments as one dict, checked against the schema; what is absent stays absent. The name may
        hold `.` and `/` and have 128 characters: the model is given one that it can write, and everybody else this one.
        Raises ConfigError, and ShapeError for a schema that cannot be kept to.
        """

        def function(**arguments: Any) -> Any:
            return call(arguments)

        words = _checked_options(name, options)
        check_writable(name, schema)
        made = cls(function=function, name=name, description=inspect.cleandoc(about), schema=schema, **words)
        _ = made.parameters
        return made

    @property
    def written(self) -> str:
        """The name that the model is told and writes; its own, unless it cannot be written."""
        return self.alias or self.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, as if it had not been declared a tool."""
        return self.function(*args, **kwargs)

    @cached_property
    def parameters(self) -> Shape:
        """The shape of the arguments. Raises ShapeError naming tool and field."""
        if self.schema is not None:
            return shape_of_schema(self.schema, where=self.name)
        return shape_of_parameters(self.function, where=self.name)

    @cached_property
    def from_user(self) -> tuple[Place, ...]:
        """The arguments that must be quoted from the user. Raises ShapeError for a mark that cannot be kept to."""
        return places_of(self.parameters.schema, where=self.name)

    @cached_property
    def writes_as_read(self) -> bool:
        """Whether texts, whole numbers and truth values among the arguments have one JSON form, the one read."""
        properties = self.parameters.schema.get("properties", {})
        return all(_is_plain(each) for each in properties.values())

    def described(self) -> dict[str, Any]:
        """What the model, the digest and the checks see of this tool."""
        conditions = {"pre": self.pre, "post": self.post}
        more: dict[str, Any] = {name: f.__qualname__ for name, f in conditions.items() if f is not None}
        if self.agent is not None:
            more["agent"] = self.agent.digest
        if self.outsiders:
            more["outsiders"] = True
        return more | {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters.schema,
            "idempotent": self.idempotent,
            "effect": self.effect,
            "sensitive": self.sensitive,
            "trusted": self.trusted,
            "confirm": self.confirm,
            "timeout_s": self.timeout_s,
        }


def tool(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None, **options: Unpack[ToolOptions]
) -> Callable[[Callable[..., Any]], Tool]:
    """Declare a typed function as a tool; its docstring is the description the model reads.

    `idempotent` has no default: only the author knows whether running it twice does harm, and after a
    power cut that decides whether it may be run again. Raises ConfigError.
    """
    if function is not None:
        if not callable(function):
            raise ConfigError(f"@tool({function!r}): a name is given by keyword, @tool(name={function!r}, ...)")
        raise ConfigError(f"tool {_name_of(function)}: @tool stands without brackets; {_ASK_IDEMPOTENT}")

    def declare(function: Callable[..., Any]) -> Tool:
        called = _name_of(function) if name is None else name
        words = _checked_options(called, options)
        return Tool(function=function, name=called, description=inspect.cleandoc(function.__doc__ or ""), **words)

    return declare


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", None) or repr(function)


_ASK_IDEMPOTENT = (
    "write @tool(idempotent=True) if running it twice does no more than running it once, else @tool(idempotent=False)"
)


class Dialect(Protocol):
    """How a model family writes. Pure; chosen at the top and handed down by value."""

    @property
    def name(self) -> str:
        """The name by which a trace remembers it."""

    def read(self, text: str) -> Reading:
        """Read what the model wrote, without judging names or arguments."""


@dataclass(frozen=True)
class Agent:
    """Who acts: a system text, tools, rules and limits. Raises ConfigError or ShapeError for what cannot be kept to.

    `budget` limits each turn, `session_budget` the whole session. `dialect` is filled in by the wiring, which
    knows the model. `hears` are the sources outside whose messages begin a turn; with `timers` there is a tool
    `set_timer`, by which the model can begin one later. With `prose` the model answers in its own words after a call
    and where no tool fits; else what a tool returned is told as it is. `language` is that of the requests, one of
    `LANGUAGES`; without it each request's own words tell.
    """

    name: str
    system: str = ""
    tools: Sequence[Tool] = ()
    policies: Sequence[Any] = ()
    budget: Budget = field(default_factory=Budget)
    session_budget: Budget | None = None
    dialect: Dialect | None = None
    hears: Sequence[str] = ()
    timers: bool = False
    prose: bool = False
    language: str = ""

    def __post_init__(self) -> None:
        """Freeze the collections and check every declaration, so that nothing wrong is found later."""
        check_fields(self)
        own = (SET_TIMER,) if self.timers and SET_TIMER not in self.tools else ()
        object.__setattr__(self, "tools", (*self.tools, *own))
        object.__setattr__(self, "hears", (self.hears,) if isinstance(self.hears, str) else tuple(self.hears))
        object.__setattr__(self, "policies", tuple(self.policies))
        check_name("agent", self.name)
        for source in self.hears:
            check_name(f"agent {self.name} hears a source whose", source)
        if self.language and self.language not in LANGUAGES:
            raise ConfigError(f"agent {self.name}: language is {self.language!r}; it is one of {', '.join(LANGUAGES)}")
        if len(self.tools) > TOOLS_MAX:
            raise ConfigError(f"agent {self.name} has {len(self.tools)} tools; {TOOLS_MAX} is the most")
        for each in self.tools:
            _check_tool(each)
        if any(t.name == RESULT_MORE.name for t in self.tools):
            raise ConfigError(
                f"agent {self.name} has a tool called {RESULT_MORE.name}, which reads on in results that were cut: "
                "rename it with @tool(name=...)"
            )
        twice = [t.name for t in self.tools if [u.name for u in self.tools].count(t.name) > 1]
        if twice:
            raise ConfigError(f"agent {self.name} has two tools called {twice[0]}: rename one with @tool(name=...)")
        written = written_names([t.name for t in self.tools])
        aliases = {name: "" if name == alias else alias for name, alias in written.items()}
        named = (t if t.alias == aliases[t.name] else replace(t, alias=aliases[t.name]) for t in self.tools)
        object.__setattr__(self, "tools", tuple(named))
        _ = self.family  # Checked now, like everything else.

    @cached_property
    def by_name(self) -> dict[str, Tool]:
        """The tools by name, and at the end the one that exists only while a result is cut."""
        return {t.name: t for t in (*self.tools, RESULT_MORE)}

    @cached_property
    def tool_names(self) -> tuple[str, ...]:
        """The tools' names, in the order of declaration."""
        return tuple(t.name for t in self.tools)

    def as_declared(self, call: ToolCall) -> ToolCall:
        """Return a call as the model wrote it under the tool's real name."""
        name = self._by_alias.get(call.tool)
        return call if name is None else ToolCall(name, call.arguments)

    @cached_property
    def _by_alias(self) -> dict[str, str]:
        return {t.alias: t.name for t in self.tools if t.alias}

    @cached_property
    def quoting(self) -> tuple[Tool, ...]:
        """The tools with arguments that must be quoted from the user."""
        return tuple(t for t in self.tools if t.from_user)

    @cached_property
    def family(self) -> dict[str, Tool]:
        """The tools by name, those of sub-agents at every depth too. Raises ConfigError for two under one name."""
        found = dict(self.by_name)
        for sub in self.tools:
            for name, each in (sub.agent.family if sub.agent else {}).items():
                if not _is_same(found.setdefault(name, each), each):
                    raise ConfigError(
                        f"agent {self.name} and its sub-agent {sub.name} have different tools called {name}: "
                        "a rule that names it could not tell them apart; give one of them another name"
                    )
        return found

    @cached_property
    def by_path(self) -> dict[str, Agent]:
        """This agent under the empty path, and its sub-agents under theirs, as effects name them."""
        found = {"": self}
        for sub in self.tools:
            for path, each in (sub.agent.by_path if sub.agent else {}).items():
                found[f"{sub.name}/{path}" if path else sub.name] = each
        return found

    def as_tool(
        self,
        *,
        description: str,
        name: str | None = None,
        effect: ToolEffect = "write",
        trusted: bool = False,
        confirm: bool = False,
        examples: Iterable[str] = (),
    ) -> Tool:
        """Offer this agent to another one: a call is a session of its own, with one request and one answer.

        It has its own tools and rules *and* the rules of the agent above, and at most the budget that one has left.
        `effect`, `trusted` and `confirm` as in `@tool`; what it reads taints the agent above whatever `trusted` says.
        """

        if self.hears or self.timers:
            raise ConfigError(f"the sub-agent {self.name} has hears or timers: its session ends with its answer")

        def ask(request: str) -> str:
            raise IllegalTransition(f"the sub-agent {self.name} is run by the step, not called")

        return Tool(
            function=ask,
            name=name or self.name,
            description=description,
            idempotent=False,
            effect=effect,
            trusted=trusted,
            confirm=confirm,
            examples=tuple(examples),
            agent=self,
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything that decides what this agent may do; recorded when a session starts."""
        described = {
            "name": self.name,
            "system": self.system,
            "tools": [t.described() for t in self.tools],
            "policies": [repr(p) for p in self.policies],
            "budget": budget_described(self.budget),
            "session_budget": budget_described(self.session_budget),
        } | ({"hears": list(self.hears)} if self.hears else {})
        return hashlib.sha256(canonical_json(described).encode()).hexdigest()

    @cached_property
    def prompt_bytes(self) -> int:
        """UTF-8 bytes that system text and tool texts take in every prompt."""
        texts = (canonical_json([t.name, t.description, t.parameters.schema]) for t in self.tools)
        return len(self.system.encode()) + sum(len(text.encode()) for text in texts)


def _is_plain(schema: Any) -> bool:
    if not isinstance(schema, dict) or schema.keys() & {"format", "contentEncoding", "$ref", "anyOf", "oneOf"}:
        return False
    return "enum" in schema or schema.get("type") in ("string", "boolean", "integer")


def family_of(agent: Agent) -> Agent:
    """The agent with the tools of its sub-agents beside its own: what its rules speak about."""
    tools = tuple(t for t in agent.family.values() if t is not RESULT_MORE)
    return agent if len(tools) == len(agent.tools) else replace(agent, tools=tools)


def _is_same(one: Tool, other: Tool) -> bool:
    return one is other or (one.alias != other.alias and replace(one, alias=other.alias) == other)


def _check_tool(each: object) -> None:
    if not isinstance(each, Tool):
        raise ConfigError(f"tools holds {each!r}, which is not a tool: put @tool(idempotent=...) above the function")
    if not each.description:
        raise ShapeError(f"tool {each.name} has no docstring: the model needs one sentence on what it does")
    check_text(f"tool {each.name}: its description", each.description)
    known = [*each.parameters.schema.get("properties", {}), "result"]
    if wrong := why_not_said(each.say, known):
        raise ConfigError(f"tool {each.name}: say is {each.say!r}, {wrong}")
    _ = each.from_user  # Compiled now with the shape, so that a ShapeError comes when the agent is loaded.
    reason = why_no_result(each.function)
    if reason:
        raise ShapeError(f"tool {each.name}: {reason}")


def _checked_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options by name. Raises ConfigError for one that is unknown or was forgotten."""
    known = ToolOptions.__annotations__
    unknown = [word for word in options if word not in known]
    if unknown:
        raise ConfigError(f"tool {name}: there is no option {unknown[0]}; there are: {', '.join(known)}")
    if "idempotent" not in options:
        raise ConfigError(f"tool {name}: idempotent is missing; {_ASK_IDEMPOTENT}")
    return dict(options)


TIMER_SECONDS_MAX = 30 * 24 * 3600
"""A month: what lies further ahead belongs into a calendar."""


@tool(idempotent=True, effect="read", trusted=True)  # What it leads to is another turn, under the same rules.
def set_timer(
    seconds: Annotated[int, msgspec.Meta(ge=1, le=TIMER_SECONDS_MAX)],
    note: Annotated[str, msgspec.Meta(min_length=1, max_length=500)],
) -> str:
    """Do something later: after so many seconds you are given the note."""
    return f"the timer fires in {seconds} s"


SET_TIMER = set_timer
"""The tool of agents with `timers`; it only answers, and the step makes a SetTimer of its call."""


@tool(idempotent=True, effect="read", examples=("Read on.", "Show me the rest of it.", "What comes next?"))
def result_more(
    result: Annotated[int | None, msgspec.Meta(ge=1)] = None, at: Annotated[int | None, msgspec.Meta(ge=0)] = None
) -> str:
    """Read on in a result that was cut: the last one, or the one of this number; from a place, or where it ended."""
    raise IllegalTransition("the driver of tools reads what it has kept")


RESULT_MORE = result_more
"""The tool of every agent, while a result is cut. Whoever runs calls gives the next part of what it has kept."""
