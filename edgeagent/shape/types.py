"""A Python annotation to a shape: its JSON Schema, and typed values from and to JSON.

    shape = shape_of(int | None)                        one annotation
    shape = shape_of_parameters(function, where="name") the arguments of a tool
    shape.decode(parse('{"seconds": 30}'))              typed, or ShapeError naming the path

A declaration that cannot be held is a `ShapeError` naming tool and field when the shape is made, never later. It knows
nothing of agents, models or grammars.
"""

from __future__ import annotations

import collections
import collections.abc
import enum
import math
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, Never

from msgspec import UNSET, Struct

from edgeagent.errors import ShapeError
from edgeagent.shape import nodes, pattern
from edgeagent.shape.coded import coding_of
from edgeagent.shape.decode import decode, same_json
from edgeagent.shape.encode import encode
from edgeagent.shape.fields import Member, ParameterError, members_of_class, parameters
from edgeagent.shape.foreign import Schema, foreign, foreign_arguments, moved
from edgeagent.shape.limits import Limits, UnknownRestriction, read_metadata
from edgeagent.shape.parse import parse
from edgeagent.shape.pointer import pointer_to

__all__ = ["Shape", "parse", "shape_of", "shape_of_parameters", "shape_of_schema"]

_NO_LIMITS = Limits()


class Shape(Struct, frozen=True, eq=False):
    """A declared type and its two other forms. `schema` is shared: read it, do not change it."""

    python: Any
    schema: dict[str, Any]
    node: nodes.Node
    table: nodes.Table

    def decode(self, value: Any) -> Any:
        """Return the typed value of a JSON value; raise `ShapeError` naming the path and what was found there."""
        return decode(self.node, value, "", self.table)

    def encode(self, value: Any) -> Any:
        """Return the JSON value of a typed one; raise `ShapeError` if it is not of the type."""
        return encode(self.node, value, "", self.table)


def shape_of(annotation: Any, *, where: str = "") -> Shape:
    """Return the shape of an annotation; raise `ShapeError` naming `where` (a tool) and the field that cannot be."""
    reader = _Reader(where)
    return _finished(annotation, reader.read(annotation, ""), reader)


def shape_of_parameters(function: Callable[..., Any], *, where: str) -> Shape:
    """Return the shape of a function's arguments: `decode` gives keyword arguments, absent ones keep their defaults."""
    reader = _Reader(where)
    try:
        members = list(parameters(function))
    except ParameterError as error:
        reader.refuse(f"argument {error.name}", str(error))
    except NameError as error:
        reader.refuse(
            "", f"{error}: an annotation must be visible where the tool is defined; move it to the module's top"
        )
    fields = tuple(reader.field(member, f"argument {member.name}") for member in members)
    return _finished(function, nodes.Record(where, fields, dict), reader)


def shape_of_schema(schema: Mapping[str, Any], *, where: str) -> Shape:
    """Return the shape of arguments that a JSON Schema declares; values stay as they are. Raises ShapeError."""
    reader = _Reader(where)
    try:
        node = foreign_arguments(schema)
    except ShapeError as error:
        reader.refuse("", str(error))
    return Shape(dict, dict(node.schema), node, {})


def _finished(python: Any, node: nodes.Node, reader: _Reader) -> Shape:
    shared = frozenset(name for name, count in reader.uses.items() if count > 1)
    return Shape(python, nodes.schema_of(node, reader.table, shared), node, reader.table)


_ARRAYS: dict[Any, tuple[Callable[[list[Any]], Any], Any, bool]] = {
    list: (list, list, False),
    tuple: (tuple, tuple, False),
    collections.deque: (collections.deque, collections.deque, False),
    collections.abc.Sequence: (list, collections.abc.Sequence, False),
    collections.abc.MutableSequence: (list, collections.abc.MutableSequence, False),
    collections.abc.Collection: (list, collections.abc.Collection, False),
    collections.abc.Iterable: (list, collections.abc.Collection, False),
    set: (set, set, True),
    frozenset: (frozenset, frozenset, True),
    collections.abc.Set: (frozenset, collections.abc.Set, True),
    collections.abc.MutableSet: (set, collections.abc.MutableSet, True),
}
_DICTIONARIES = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_LENGTHS = frozenset({"least", "most"})
_RANGE = frozenset({"low", "low_open", "high", "high_open"})


class _Reader:
    """Reads one declaration; holds the named nodes it has met, for types that contain themselves."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.table: dict[str, nodes.Node] = {}
        self.uses: collections.Counter[str] = collections.Counter()
        self._names: dict[Any, str] = {}
        self._arguments: dict[Any, Any] = {}  # What the type variables of the class being read stand for.

    def refuse(self, path: str, reason: str) -> Never:
        place = ", ".join(part for part in (f"tool {self.where}" if self.where else "", path) if part)
        raise ShapeError(f"{place}: {reason}" if place else reason)

    def read(self, annotation: Any, path: str, outer: Limits = _NO_LIMITS) -> nodes.Node:
        """Return the node of an annotation under the limits that stand around it."""
        if typing.get_origin(annotation) is not typing.Annotated:
            return self._bare(annotation, path, outer)
        return self._annotated(annotation.__origin__, annotation.__metadata__, path, outer)

    def _annotated(self, inner: Any, metadata: tuple[Any, ...], path: str, outer: Limits) -> nodes.Node:
        try:
            limits, notes = read_metadata(metadata)
            limits = limits.tightened(outer)
        except UnknownRestriction as error:
            self.refuse(path, str(error))
        schema = next((item for item in metadata if isinstance(item, Schema)), None)
        if schema is not None and (inner is not Any or limits != _NO_LIMITS):
            self.refuse(path, "a Schema says everything: write Annotated[Any, Schema({...})] and nothing beside it")
        node = self.read(inner, path, limits) if schema is None else self._foreign(schema.schema, path)
        return nodes.Noted(node, notes) if notes else node

    def _foreign(self, schema: Any, path: str) -> nodes.Node:
        name = self._unused("Schema")
        try:
            node = foreign(schema)
        except ShapeError as error:
            self.refuse(path, str(error))
        # It stands under $defs, for that is where its own references now point.
        self.table[name] = nodes.Foreign(moved(node.schema, pointer_to(["$defs", name])), node.why_not)
        self.uses[name] += 2
        return nodes.Named(name)

    def _bare(self, annotation: Any, path: str, limits: Limits) -> nodes.Node:
        origin, arguments = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
        if annotation in (int, float, str):
            return self._measured(annotation, path, limits)
        if isinstance(annotation, typing.TypeVar):
            return self._variable(annotation, path, limits)
        if hasattr(annotation, "__supertype__"):
            return self.read(annotation.__supertype__, path, limits)
        if type(annotation).__name__ == "TypeAliasType":
            return self._alias(annotation, path, limits)
        if origin in (typing.Union, types.UnionType):
            return self._union(arguments, path, limits)
        if origin is tuple and not (annotation in (tuple, tuple) or arguments[-1:] == (...,)):
            return self._fixed(arguments, path, limits)
        if origin in _ARRAYS:
            return self._array(origin, arguments, path, limits)
        if origin in _DICTIONARIES:
            return self._dictionary(arguments, path, limits)
        coding = coding_of(annotation, zoned=limits.zoned)
        if coding is not None:
            return self._coded(coding, path, limits)
        if limits != _NO_LIMITS:
            self.refuse(path, f"{_word(annotation)} cannot have {' or '.join(limits.names())}")
        return self._unlimited(annotation, origin, arguments, path)

    def _unlimited(self, annotation: Any, origin: Any, arguments: tuple[Any, ...], path: str) -> nodes.Node:
        if annotation is Any or annotation is object:
            return nodes.Anything()
        if annotation is None or annotation is type(None):
            return nodes.Null()
        if annotation is bool:
            return nodes.Boolean()
        if origin is Literal:
            return self._choice([(value, value) for value in arguments], path)
        if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
            return self._choice([(member, member) for member in annotation], path)
        if isinstance(origin, type):
            return self._record(origin, annotation, arguments, path)
        if isinstance(annotation, str | typing.ForwardRef):
            if _word(annotation) in self.table:  # An alias that contains itself.
                return self._named(_word(annotation), "", nodes.Anything)
            self.refuse(
                path, f"the name {_word(annotation)} is not resolved: use the type itself, or a class for recursion"
            )
        return self._unknown(annotation, path)

    def _unknown(self, annotation: Any, path: str) -> Never:
        self.refuse(
            path,
            f"{_word(annotation)} has no form in JSON: use a scalar, list, dict, Literal, Enum, dataclass, "
            "msgspec Struct, TypedDict, NamedTuple, attrs or pydantic class",
        )

    def _only(self, allowed: frozenset[str], what: Any, path: str, limits: Limits) -> None:
        kept = {name: getattr(limits, name) for name in allowed}
        other = Limits(**{n: getattr(limits, n) for n in limits.__struct_fields__ if n not in kept})
        if other != _NO_LIMITS:
            self.refuse(path, f"{_word(what)} cannot have {' or '.join(other.names())}")
        if limits.low is not None and limits.high is not None and limits.low > limits.high:
            self.refuse(path, f"the minimum {limits.low} is above the maximum {limits.high}: nothing fits")
        if limits.most is not None and limits.most < limits.least:
            self.refuse(path, f"the least length {limits.least} is above the greatest {limits.most}: nothing fits")

    def _measured(self, annotation: Any, path: str, limits: Limits) -> nodes.Node:
        if annotation is str:
            return self._text(path, limits)
        self._only(_RANGE | {"multiple_of"}, annotation, path, limits)
        for bound in (limits.low, limits.high, limits.multiple_of):
            if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int | float)):
                self.refuse(path, f"the bound {bound!r} is no number")
        if limits.multiple_of is not None and not 0 < limits.multiple_of < math.inf:
            self.refuse(path, f"multiple_of {limits.multiple_of} must be above 0")
        return self._integer(path, limits) if annotation is int else self._number(path, limits)

    def _integer(self, path: str, limits: Limits) -> nodes.Integer:
        low = high = None
        if limits.low is not None and math.isfinite(limits.low):
            low = math.floor(limits.low) + 1 if limits.low_open else math.ceil(limits.low)
        if limits.high is not None and math.isfinite(limits.high):
            high = math.ceil(limits.high) - 1 if limits.high_open else math.floor(limits.high)
        step = limits.multiple_of
        if step is not None and step != int(step):
            self.refuse(path, f"multiple_of {step} of an int must be whole")
        if low is not None and high is not None and low > high:
            self.refuse(path, f"no integer lies between {limits.low} and {limits.high}")
        return nodes.Integer(low, high, None if step is None else int(step))

    def _number(self, path: str, limits: Limits) -> nodes.Number:
        low = limits.low if limits.low is not None and math.isfinite(limits.low) else None
        high = limits.high if limits.high is not None and math.isfinite(limits.high) else None
        if low is not None and low == high and (limits.low_open or limits.high_open):
            self.refuse(path, f"no number lies between {low} and {high} without one of them")
        low_open, high_open = limits.low_open and low is not None, limits.high_open and high is not None
        return nodes.Number(low, low_open, high, high_open, limits.multiple_of)

    def _text(self, path: str, limits: Limits) -> nodes.Text:
        self._only(_LENGTHS | {"pattern", "format"}, str, path, limits)
        if limits.pattern is not None:
            try:
                pattern.parse(limits.pattern)
            except pattern.PatternError as error:
                self.refuse(path, f"the pattern {limits.pattern}: {error}")
        return nodes.Text(limits.least, limits.most, limits.pattern, limits.format)

    def _coded(self, coding: nodes.Coding, path: str, limits: Limits) -> nodes.Coded:
        own = _LENGTHS if coding.python is bytes else _RANGE
        self._only(own | {"zoned"}, coding.python, path, limits)
        return nodes.Coded(
            coding, limits.low, limits.low_open, limits.high, limits.high_open, limits.least, limits.most
        )

    def _choice(self, members: list[tuple[Any, Any]], path: str) -> nodes.Choice:
        options: list[tuple[Any, Any]] = []
        for member, python in members:
            written = member.value if isinstance(member, enum.Enum) else member
            if isinstance(written, enum.Flag) or not (written is None or isinstance(written, bool | int | float | str)):
                self.refuse(path, f"{member!r} is no JSON scalar: give it a str or int value")
            if isinstance(written, float) and not math.isfinite(written):
                self.refuse(path, f"{member!r} is no JSON number")
            if isinstance(written, str):
                written = self._writable(written, path)
            if not any(same_json(written, earlier) for earlier, _ in options):
                options.append((written, python))
        if not options:
            self.refuse(path, "an enumeration without members lets nothing through")
        return nodes.Choice(tuple(options))

    def _writable(self, text: str, path: str) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            self.refuse(path, f"{text!r} holds half of a surrogate pair, which no JSON text can")
        return str(text)

    # --- containers ------------------------------------------------------------------------------------------------

    def _union(self, arguments: tuple[Any, ...], path: str, limits: Limits) -> nodes.Node:
        if limits == _NO_LIMITS:
            return nodes.Either(tuple(self.read(argument, path) for argument in arguments))
        # Limits around a union hold for the options that can have them: Annotated[int | None, Ge(0)].
        options, taken = [], 0
        for argument in arguments:
            try:
                options.append(self.read(argument, path, limits))
                taken += 1
            except ShapeError:
                options.append(self.read(argument, path))
        if not taken:
            self.refuse(path, f"no option of the union can have {' or '.join(limits.names())}")
        return nodes.Either(tuple(options))

    def _fixed(self, arguments: tuple[Any, ...], path: str, limits: Limits) -> nodes.Fixed:
        self._only(frozenset(), tuple, path, limits)
        return nodes.Fixed(tuple(self.read(item, f"{path}[{index}]") for index, item in enumerate(arguments)))

    def _array(self, origin: Any, arguments: tuple[Any, ...], path: str, limits: Limits) -> nodes.Node:
        build, python, unique = _ARRAYS[origin]
        self._only(_LENGTHS, origin, path, limits)
        item = self.read(arguments[0], f"{path}[]") if arguments else nodes.Anything()
        if unique and not _hashable(item):
            self.refuse(
                path, f"the items of a {origin.__name__} must be hashable: use tuples, frozensets or frozen classes"
            )
        return nodes.Many(item, build, python, limits.least, limits.most, unique)

    def _dictionary(self, arguments: tuple[Any, ...], path: str, limits: Limits) -> nodes.Dictionary:
        self._only(_LENGTHS, dict, path, limits)
        key_type, value_type = arguments or (str, Any)
        key = self.read(str if key_type is Any else key_type, f"{path} (key)".strip())
        if not self._is_string(key):
            self.refuse(
                path, f"the keys of a JSON object are strings, not {_word(key_type)}: use str, or a list of pairs"
            )
        return nodes.Dictionary(key, self.read(value_type, f"{path}.*"), limits.least, limits.most)

    def _is_string(self, node: nodes.Node) -> bool:
        match node:
            case nodes.Text() | nodes.Coded():
                return True
            case nodes.Choice():
                return all(isinstance(written, str) for written, _ in node.options)
            case nodes.Either():
                return all(self._is_string(option) for option in node.options)
            case nodes.Noted():
                return self._is_string(node.inner)
            case _:
                return False

    # --- names -----------------------------------------------------------------------------------------------------

    def _variable(self, variable: Any, path: str, limits: Limits) -> nodes.Node:
        if variable in self._arguments:
            return self.read(self._arguments[variable], path, limits)
        return self.read(Any if variable.__bound__ is None else variable.__bound__, path, limits)

    def _alias(self, alias: Any, path: str, limits: Limits) -> nodes.Node:
        if limits != _NO_LIMITS:
            return self.read(alias.__value__, path, limits)
        return self._named(alias, alias.__name__, lambda: self.read(alias.__value__, path))

    def _record(self, cls: Any, declared: Any, arguments: tuple[Any, ...], path: str) -> nodes.Node:
        if arguments:
            declared = self._concrete(declared)
        variables = getattr(cls, "__parameters__", ())
        given = dict(zip(variables, typing.get_args(declared), strict=False))

        def read() -> nodes.Node:
            before, self._arguments = self._arguments, self._arguments | given
            try:
                return self._record_node(cls, declared, path)
            finally:
                self._arguments = before

        return self._named(declared, cls.__name__, read)

    def _concrete(self, declared: Any) -> Any:
        """Return a generic class with its own variables replaced by what they stand for here."""
        free = declared.__parameters__
        return declared[tuple(self._arguments.get(variable, Any) for variable in free)] if free else declared

    def _record_node(self, cls: Any, declared: Any, path: str) -> nodes.Record:
        try:
            found = members_of_class(cls, declared)
        except NameError as error:
            self.refuse(path, f"{cls.__name__}: {error}; define the classes it names at the module's top")
        if found is None:
            self._unknown(declared, path)
        fields = tuple(self.field(member, f"{path}.{member.key}" if path else member.key) for member in found.members)
        keys = [field.key for field in fields] + ([found.tag[0]] if found.tag else [])
        if len(set(keys)) < len(keys):
            self.refuse(path, f"{cls.__name__} writes two members under one key")
        build = dict if found.python is None else cls
        return nodes.Record(cls.__name__, fields, build, found.python, found.tag, _docstring(cls), found.check)

    def _named(self, key: Any, name: str, read: Callable[[], nodes.Node]) -> nodes.Node:
        if key not in self._names and isinstance(key, str):
            self._names[key] = key
        elif key not in self._names:
            self._names[key] = unique = self._unused(name)
            # Holds the place while the type refers to itself; nothing is of it.
            self.table[unique] = nodes.Choice(())
            self.table[unique] = read()
        self.uses[self._names[key]] += 1
        return nodes.Named(self._names[key])

    def _unused(self, name: str) -> str:
        unique, count = name, 1
        while unique in self.table:
            count += 1
            unique = f"{name}-{count}"
        return unique

    def field(self, member: Member, path: str) -> nodes.Field:
        """Return the field of a member, its default written as JSON; a default that is not of the type is refused."""
        node = self._annotated(member.annotation, member.metadata, path, _NO_LIMITS)
        default = member.default
        if default is not UNSET:
            try:
                default = encode(node, default, "", self.table)
            except ShapeError as error:
                hint = f"; write `{_word(member.annotation)} | None`" if default is None else ""
                self.refuse(path, f"its default does not fit: {error}{hint}")
        return nodes.Field(member.name, member.key, member.argument, node, member.required, default)


def _hashable(node: nodes.Node) -> bool:
    match node:
        case nodes.Many():
            return node.build in (tuple, frozenset) and _hashable(node.item)
        case nodes.Fixed():
            return all(_hashable(item) for item in node.items)
        case nodes.Either():
            return all(_hashable(option) for option in node.options)
        case nodes.Noted():
            return _hashable(node.inner)
        case nodes.Dictionary() | nodes.Anything() | nodes.Foreign():
            return False
        case _:
            return True


def _docstring(cls: type) -> str | None:
    """Return what the author wrote; dataclasses, named tuples and attrs write a signature of their own."""
    text = cls.__dict__.get("__doc__")
    if not isinstance(text, str) or text.startswith(f"{cls.__name__}("):
        return None
    return " ".join(text.split()) or None


def _word(annotation: Any) -> str:
    if isinstance(annotation, typing.ForwardRef):
        return annotation.__forward_arg__
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return annotation.__name__
    return str(annotation).replace("typing.", "")
