"""What tools do and what their arguments and records are: labels, written once per tool set. Nothing here runs.

    LABELS = Labels(
        records=(
            Record("file", id="id", name="filename"),
            Record("event", id="id", name="title", outsiders=True, fields={"guests": party}),
        ),
        tools={
            "search_files": read(gives="file"),
            "share_file": egress(file_id=handle("file"), email=party, note=text),
            "delete_file": irreversible(file_id=handle("file")),
        },
    )

One table beside the tools and not notes on each argument: whoever answers for the agent can read it on one screen,
and it also labels tools whose functions are not ours (a device's, an app's). A tool without a label is refused when
the agent is loaded. A sub-agent is labelled `read()`: what it does is judged call by call, under the same labels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from edgeagent.core.agent import Tool, ToolEffect
from edgeagent.errors import ConfigError

Does = Literal["read", "marks", "write", "irreversible", "egress"]
"""What a call does to the world: nothing; a read that leaves a mark (a mail becomes "read"); something that can be
taken back; something that cannot; something that others see. Fetching a URL is egress: the address carries data out."""

Role = Literal["party", "handle", "name", "secret", "url", "link", "amount", "date", "text", "free"]

SENSITIVE: frozenset[Role] = frozenset({"party", "handle", "name", "secret", "url", "link"})
"""Arguments that decide whom or what a call reaches; the others say how much, when, and with what words."""

OUTWARD: frozenset[Role] = frozenset({"party", "url", "link"})
"""A call that has one of these reaches somebody, whatever the tool is said to do."""

Form = Literal["objects", "items", "lines", "keys"]

CREATED_BY: tuple[Does, ...] = ("write", "irreversible", "egress")


@dataclass(frozen=True)
class Kind:
    """What an argument (or a field of a record) is. `of` is a handle's type; `at` where it stands in an object."""

    role: Role
    of: str = ""
    at: str = ""


party = Kind("party")
"""Somebody: an address, an account, a user's name."""
name = Kind("name")
"""What something is or will be called, or which of several is meant: a title, a file name, a hotel, a service."""
secret = Kind("secret")
"""A password or a key that is being set."""
url = Kind("url")
"""A web address to which something is sent."""
link = Kind("link")
"""A web address that is only fetched."""
amount = Kind("amount")
"""How much: free unless the rule is strict about amounts."""
date = Kind("date")
"""When: free unless the rule is strict about dates."""
text = Kind("text")
"""Words: free, as long as they stay inert."""
free = Kind("free")
"""Anything that cannot do harm: a flag, a choice among declared words."""


def handle(of: str, at: str = "") -> Kind:
    """The id of a record of this type; `at` names its key when the argument is an object that holds it."""
    return Kind("handle", of, at)


@dataclass(frozen=True)
class Record:
    """What a tool's output holds. `id` and `name` are keys; a person means the record by its name.

    `outsiders`: others can choose that name (a mail's subject), so it gives no parties, and a namesake makes it
    useless. `closed`: the set is the system's own, so every listed one may be used without being named; so it is not
    for what acts on the world, where the choice is the harm (ports that are reset, rooms that are heated).
    `links`: only people inside write these, so that a link in them may be fetched. `form`: `objects` anywhere in
    the output, or its texts as `items` of a list, `lines` of a text or `keys` of an object.
    """

    kind: str
    id: str = ""
    name: str = ""
    outsiders: bool = False
    closed: bool = False
    links: bool = False
    form: Form = "objects"
    fields: Mapping[str, Kind] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a record that could never be found."""
        if self.form == "objects" and not (self.id or self.name or self.fields or self.links):
            raise ConfigError(f"record {self.kind} has neither id, name, fields nor links: nothing of it could be used")


@dataclass(frozen=True)
class ToolLabel:
    """One tool's label; make it with read, marks, write, irreversible or egress.

    `trusted`: no outsider writes any part of the output. `confidential`: the output must not leave unasked.
    `gives`: the records in the output. `creates`: the records in the output, or (`creates="user=name"`) the argument
    of that name, are this session's own once the call has worked. `said`: beginnings of words of which the user must
    have said one; without it an attack may pick this tool as long as its arguments are the user's.
    """

    does: Does
    arguments: Mapping[str, Kind]
    trusted: bool = False
    confidential: bool = False
    gives: tuple[str, ...] = ()
    creates: tuple[str, ...] = ()
    said: tuple[str, ...] = ()


def read(*, trusted: bool = False, confidential: bool = False, gives: str | Iterable[str] = ()) -> ToolLabel:
    """A tool that changes nothing, whatever its arguments."""
    return ToolLabel("read", {}, trusted, confidential, _names(gives))


def marks(*, trusted: bool = False, confidential: bool = False, gives: str | Iterable[str] = ()) -> ToolLabel:
    """A read that leaves a mark inside the system, such as "this mail has been read"."""
    return ToolLabel("marks", {}, trusted, confidential, _names(gives))


def write(
    *,
    trusted: bool = False,
    confidential: bool = False,
    gives: str | Iterable[str] = (),
    creates: str | Iterable[str] = (),
    said: str | Iterable[str] = (),
    **arguments: Kind,
) -> ToolLabel:
    """A tool whose effect can be taken back. Every argument gets its kind."""
    return ToolLabel("write", arguments, trusted, confidential, _names(gives), _names(creates), _names(said))


def irreversible(
    *,
    trusted: bool = False,
    confidential: bool = False,
    gives: str | Iterable[str] = (),
    creates: str | Iterable[str] = (),
    said: str | Iterable[str] = (),
    **arguments: Kind,
) -> ToolLabel:
    """A tool that destroys: it always asks once something untrusted was read. Every argument gets its kind."""
    return ToolLabel("irreversible", arguments, trusted, confidential, _names(gives), _names(creates), _names(said))


def egress(
    *,
    trusted: bool = False,
    confidential: bool = False,
    gives: str | Iterable[str] = (),
    creates: str | Iterable[str] = (),
    said: str | Iterable[str] = (),
    **arguments: Kind,
) -> ToolLabel:
    """A tool through which something leaves, fetching a URL included. Every argument gets its kind."""
    return ToolLabel("egress", arguments, trusted, confidential, _names(gives), _names(creates), _names(said))


def _names(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


@dataclass(frozen=True)
class Labels:
    """The labels of a tool set. Raises ConfigError for a record kind that is used and not described."""

    tools: Mapping[str, ToolLabel]
    records: tuple[Record, ...] = ()

    def __post_init__(self) -> None:
        """Find what is used and not described, before anything runs."""
        object.__setattr__(self, "records", tuple(self.records))
        kinds = {record.kind for record in self.records}
        outside = {record.kind for record in self.records if record.outsiders}
        for tool, label in self.tools.items():
            for kind in (*label.gives, *(c.partition("=")[0] for c in label.creates)):
                if kind not in kinds:
                    raise ConfigError(f"labels: {tool} gives {kind}, and no Record({kind!r}, ...) says what that is")
            if label.trusted and outside & set(label.gives):
                kind = min(outside & set(label.gives))
                raise ConfigError(
                    f"labels: {tool} is trusted and gives {kind}, whose name outsiders write: one is wrong"
                )
            for argument, each in label.arguments.items():
                if each.role == "handle" and each.of not in kinds:
                    raise ConfigError(
                        f"labels: {tool}.{argument} is a handle of {each.of}, and no Record says what it is"
                    )

    def check(self, agent_name: str, tools: Iterable[Tool]) -> None:
        """Refuse tools without a label, labels without a tool, and arguments of effects without a kind."""
        known = {t.name: t for t in tools}
        for spare in self.tools.keys() - known.keys():
            raise ConfigError(f"agent {agent_name}: labels name the tool {spare}; its tools are: {', '.join(known)}")
        for each in known.values():
            label = self.tools.get(each.name)
            if label is None:
                raise ConfigError(
                    f"agent {agent_name}: tool {each.name} has no label; say read(), write(...) or egress(...)"
                )
            arguments = set(each.parameters.schema.get("properties", {}))
            _check_arguments(agent_name, each, label, arguments)

    def applied(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """Return the tools with `effect` and `trusted` as the labels say, so that formulas and labels agree."""
        return tuple(
            dataclasses.replace(t, effect=_EFFECTS[self.tools[t.name].does], trusted=self.tools[t.name].trusted)
            for t in tools
        )

    def tools_that(self, *does: Does) -> tuple[str, ...]:
        """Return the tools with one of these effects, for formulas: `never(*LABELS.tools_that("egress"), when=...)`."""
        return tuple(tool for tool, label in self.tools.items() if label.does in does)

    @property
    def confidential(self) -> tuple[str, ...]:
        """The tools whose output must not leave unasked, for formulas: `once(returned(*LABELS.confidential))`."""
        return tuple(tool for tool, label in self.tools.items() if label.confidential)

    def record(self, kind: str) -> Record:
        """Return what is said of this kind of record."""
        return next(r for r in self.records if r.kind == kind)


_EFFECTS: dict[Does, ToolEffect] = {
    "read": "read",
    "marks": "write",
    "write": "write",
    "irreversible": "irreversible",
    "egress": "irreversible",
}


def _check_arguments(agent_name: str, each: Tool, label: ToolLabel, arguments: set[str]) -> None:
    where = f"agent {agent_name}: label of {each.name}"
    unknown = sorted(label.arguments.keys() - arguments)
    if unknown:
        raise ConfigError(
            f"{where} names the argument {unknown[0]}; it takes: {', '.join(sorted(arguments)) or 'none'}"
        )
    if label.does in CREATED_BY:
        missing = sorted(arguments - label.arguments.keys())
        if missing:
            raise ConfigError(
                f"{where} says nothing of the argument {missing[0]}: give it a kind, such as text or free"
            )
    if label.does != each.effect and each.effect == "irreversible" and label.does in ("read", "marks"):
        raise ConfigError(f"{where} says {label.does}; the tool is declared effect={each.effect!r}")


def described(labels: Labels) -> dict[str, Any]:
    """Return the labels as plain values: what a digest is taken over."""
    return {
        "records": [dataclasses.asdict(r) | {"fields": _plain(r.fields)} for r in labels.records],
        "tools": {
            tool: [
                of.does,
                of.trusted,
                of.confidential,
                list(of.gives),
                list(of.creates),
                list(of.said),
                _plain(of.arguments),
            ]
            for tool, of in sorted(labels.tools.items())
        },
    }


def _plain(kinds: Mapping[str, Kind]) -> dict[str, list[str]]:
    return {key: [k.role, k.of, k.at] for key, k in kinds.items()}
