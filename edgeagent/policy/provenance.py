"""Which records has this session seen, and who may have written them? A bounded memory of plain nested tuples.

The memory of one session:

    (labels' fingerprint, tools that brought untrusted text, tools that gave confidential values,
     kinds of effect that a person said no to with the turn of the no, overflowed, records)

Bounds: RECORDS_MAX records and CHARS_MAX characters in them. When it is full the oldest go, and `overflowed` says so
for good: a record that is not there counts as never seen, and records whose name outsiders choose count no more, since
a namesake may be among those that went. Either way the call asks. It never holds free text.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import orjson

from edgeagent.core.values import read_json
from edgeagent.policy.inert import links_in
from edgeagent.policy.labels import Kind, Labels, Record

RECORDS_MAX = 512
"""Records that are remembered: four long listings of a mailbox."""

CHARS_MAX = 65_536
"""Characters in all remembered records, so that a session's snapshot stays small."""

VALUE_MAX = 200
"""Characters of an id, a name or a field; what is longer is not remembered, and a call with it asks."""

FIELD_VALUES_MAX = 32
"""Values of one record's fields; the participants of a meeting."""

NESTING_MAX = 5
"""How deep in an output records are looked for."""

OUTSIDERS, CLOSED, CREATED, TRUSTED, LINK = 1, 2, 4, 8, 16


class Seen(NamedTuple):
    """One record: `flags` as above, `fields` as (role, of, value)."""

    kind: str
    id: str
    name: str
    flags: int
    fields: tuple[tuple[str, str, str], ...]
    tool: str


class Memory(NamedTuple):
    """What is remembered; a tuple, and plain once it has been through a file."""

    fingerprint: int = 0
    untrusted: tuple[str, ...] = ()
    confidential: tuple[str, ...] = ()
    refused: tuple[tuple[str, int], ...] = ()
    overflowed: int = 0
    records: tuple[Seen, ...] = ()


def restored(memory: Any) -> Memory:
    """Return memory as it came out of a decoder."""
    fingerprint, untrusted, confidential, refused, overflowed, records = memory
    return Memory(
        fingerprint,
        tuple(untrusted),
        tuple(confidential),
        tuple((does, turn) for does, turn in refused),
        overflowed,
        tuple(Seen(k, i, n, f, tuple((r, o, v) for r, o, v in fields), t) for k, i, n, f, fields, t in records),
    )


def remembered(memory: Memory, found: tuple[Seen, ...]) -> Memory:
    """Return the memory with these records as the newest, within the bounds."""
    if not found:
        return memory
    fresh = {(s.kind, s.id, s.name): s for s in found}
    for old in memory.records:
        key = (old.kind, old.id, old.name)
        if key in fresh and old.flags & CREATED:  # Listed again, it is still this session's own.
            fresh[key] = fresh[key]._replace(flags=fresh[key].flags | CREATED)
    kept = (s for s in memory.records if (s.kind, s.id, s.name) not in fresh)
    every = (*kept, *fresh.values())
    first = _first_that_fits(every)
    return memory._replace(overflowed=memory.overflowed | (first > 0), records=every[first:])


def _first_that_fits(records: tuple[Seen, ...]) -> int:
    room = CHARS_MAX
    for index in range(len(records) - 1, -1, -1):
        room -= _size(records[index])
        if room < 0 or len(records) - index > RECORDS_MAX:
            return index + 1
    return 0


def _size(seen: Seen) -> int:
    return len(seen.id) + len(seen.name) + sum(len(v) for _, _, v in seen.fields)


# -- what an output holds ------------------------------------------------------------------------------------------


def records_in(labels: Labels, tool: str, value: str) -> tuple[tuple[Seen, ...], bool]:
    """Return the records of a tool's output, newest kinds last, and whether some were left out for their number."""
    label = labels.tools[tool]
    kinds = (*label.gives, *(c for c in label.creates if "=" not in c))
    if not kinds:
        return (), False
    decoded = read_json(value)
    found: list[Seen] = []
    for kind in kinds:
        flags = (TRUSTED if label.trusted else 0) | (CREATED if kind in label.creates else 0)
        found.extend(islice(_of_kind(labels, labels.record(kind), decoded, flags, tool), RECORDS_MAX + 1))
    return tuple(found[: 2 * RECORDS_MAX]), len(found) > RECORDS_MAX


def created_by_argument(labels: Labels, tool: str, arguments: dict[str, Any]) -> tuple[Seen, ...]:
    """Return the records that a call has made, when their id is an argument and not in the output."""
    made = (c.partition("=") for c in labels.tools[tool].creates if "=" in c)
    ids = ((kind, arguments.get(argument)) for kind, _, argument in made)
    return tuple(Seen(kind, _short(i), "", CREATED, (), tool) for kind, i in ids if _short(i))


def _of_kind(labels: Labels, record: Record, decoded: Any, flags: int, tool: str) -> Iterator[Seen]:
    flags |= (OUTSIDERS if record.outsiders else 0) | (CLOSED if record.closed else 0)
    if record.form != "objects":
        for each in _texts_of(record, decoded):
            if _short(each):
                yield Seen(record.kind, _short(each), _short(each), flags, (), tool)
        return
    for item in _objects_in(record, decoded):
        fields = tuple(islice(_fields_of(record, item), FIELD_VALUES_MAX))
        yield Seen(record.kind, _short(item.get(record.id)), _short(item.get(record.name)), flags, fields, tool)
        yield from _implied(labels, record, item, fields, tool)


def _implied(
    labels: Labels, record: Record, item: dict[str, Any], fields: tuple[tuple[str, str, str], ...], tool: str
) -> Iterator[Seen]:
    """Yield the records that this one speaks of: ids of a closed set, and links that only insiders write."""
    for role, of, value in fields:
        if role == "handle" and labels.record(of).closed:
            yield Seen(of, value, value, CLOSED, (), tool)
    if record.links:
        for each in dict.fromkeys(link for text in _strings_in(item) for link in links_in(text)):
            if _short(each):
                yield Seen("link", each, "", LINK, (), tool)


def _texts_of(record: Record, decoded: Any) -> Iterator[str]:
    match record.form, decoded:
        case "items", list():
            yield from (each for each in decoded if isinstance(each, str))
        case "keys", dict():
            yield from decoded
        case "lines", str():
            first, *rest = decoded.split("\n")
            yield from (line.strip() for line in (first.rpartition(": ")[2], *rest))
        case _:
            return  # The tool gave something else; then nothing is known of it.


def _objects_in(record: Record, decoded: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    if depth > NESTING_MAX:
        return
    if isinstance(decoded, list):
        for each in decoded:
            yield from _objects_in(record, each, depth + 1)
    elif isinstance(decoded, dict):
        keys = {key for key in (record.id, record.name) if key} or set(record.fields)
        if keys <= decoded.keys():
            yield decoded
        else:
            for each in decoded.values():
                yield from _objects_in(record, each, depth + 1)


def _fields_of(record: Record, item: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for key, kind in record.fields.items():
        for value in _flat(item.get(key), kind):
            if _short(value):
                yield kind.role, kind.of, _short(value)


def _flat(value: Any, kind: Kind) -> Iterator[Any]:
    if isinstance(value, list):
        for each in value:
            yield from _flat(each, kind)
    elif isinstance(value, dict):
        yield from _flat(value.get(kind.at), kind) if kind.at else value
    else:
        yield value


def _strings_in(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth <= NESTING_MAX and isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings_in(each, depth + 1)


def _short(value: Any) -> str:
    """Return an id, name or field as text; '' if it is none or too long."""
    if value is None or isinstance(value, bool | list | dict):
        return ""
    plain = value if isinstance(value, str) else orjson.dumps(value).decode()
    return plain if len(plain) <= VALUE_MAX else ""
