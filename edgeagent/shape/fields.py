"""Which members a class has, whoever defined it: dataclass, msgspec Struct, TypedDict, NamedTuple, attrs, pydantic.

Recognised by what such classes carry, so that none of these packages is imported for an author who does not use it.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Struct


class Member(Struct, frozen=True):
    """One declared member. `default` is the Python value, UNSET if there is none or it is made anew each time."""

    name: str
    key: str
    argument: str
    annotation: Any
    required: bool
    default: Any = UNSET
    metadata: tuple[Any, ...] = ()


class Members(Struct, frozen=True):
    """A class as its members; `python` None for one whose values are plain dicts; `check` names its own checks."""

    members: tuple[Member, ...]
    python: type | None
    tag: tuple[str, str | int] | None = None
    check: str | None = None


def members_of_class(cls: type, declared: Any) -> Members | None:
    """Return the members of a class, or None if it is no record; `declared` is it with its type arguments."""
    for belongs, read in _KINDS:
        if belongs(cls):
            return read(cls, declared)
    return None


def hints(thing: Any, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the annotations with strings resolved; raises NameError for a name that cannot be seen."""
    return typing.get_type_hints(thing, localns=names, include_extras=True)


def is_typed_dict(cls: type) -> bool:
    """Return whether the class is a TypedDict, of typing or of typing_extensions."""
    return issubclass(cls, dict) and hasattr(cls, "__required_keys__") and hasattr(cls, "__total__")


def _is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_field_defaults")


def _of_struct(cls: Any, declared: Any) -> Members:
    members = []
    for field in msgspec.structs.fields(declared):
        default = UNSET if field.default is msgspec.NODEFAULT else field.default
        members.append(Member(field.name, field.encode_name, field.name, field.type, field.required, default))
    config = cls.__struct_config__
    tag = None if config.tag is None else (config.tag_field, config.tag)
    return Members(tuple(members), cls, tag, _own_check(cls))


def _of_dataclass(cls: Any, _declared: Any) -> Members:
    from dataclasses import MISSING, fields

    types = hints(cls)
    members = []
    for field in fields(cls):
        if not field.init:
            continue
        default = UNSET if field.default is MISSING else field.default
        required = field.default is MISSING and field.default_factory is MISSING
        members.append(Member(field.name, field.name, field.name, types[field.name], required, default))
    return Members(tuple(members), cls, check=_own_check(cls))


def _of_typed_dict(cls: Any, _generic: Any) -> Members:
    members = []
    for name, declared in hints(cls).items():
        annotation, required = declared, name in cls.__required_keys__
        # With `from __future__ import annotations` the class itself cannot know; the resolved annotation does.
        while (wrapper := _wrapper_name(annotation)) in ("Required", "NotRequired", "ReadOnly"):
            required = required if wrapper == "ReadOnly" else wrapper == "Required"
            annotation = typing.get_args(annotation)[0]
        members.append(Member(name, name, name, annotation, required))
    return Members(tuple(members), None)


def _wrapper_name(annotation: Any) -> str:
    return getattr(typing.get_origin(annotation), "_name", None) or ""


def _of_named_tuple(cls: Any, _declared: Any) -> Members:
    types = hints(cls)
    defaults = cls._field_defaults
    members = (
        Member(name, name, name, types.get(name, Any), name not in defaults, defaults.get(name, UNSET))
        for name in cls._fields
    )
    return Members(tuple(members), cls)


def _of_attrs(cls: Any, _declared: Any) -> Members:
    types = hints(cls)
    nothing = sys.modules["attr"].NOTHING
    members, validated = [], []
    for field in cls.__attrs_attrs__:
        if not field.init:
            continue
        made_anew = hasattr(field.default, "factory")
        default = UNSET if field.default is nothing or made_anew else field.default
        annotation = types.get(field.name, Any)
        members.append(Member(field.name, field.alias, field.alias, annotation, field.default is nothing, default))
        if field.validator is not None:
            validated.append(field.alias)
    check = f"the validators of {', '.join(validated)}" if validated else _own_check(cls)
    return Members(tuple(members), cls, check=check)


def _of_pydantic(cls: Any, _declared: Any) -> Members:
    from pydantic_core import PydanticUndefined  # Loaded already: the author's class is built on it.

    members = []
    for name, field in cls.model_fields.items():
        alias = field.validation_alias or field.alias
        key = alias if isinstance(alias, str) else name
        default = UNSET if field.default is PydanticUndefined else field.default
        words = (field.description,) if field.description else ()
        required = field.is_required()
        members.append(Member(name, key, key, field.annotation, required, default, (*field.metadata, *words)))
    decorators = cls.__pydantic_decorators__
    validated = [*decorators.field_validators, *decorators.model_validators]
    check = f"the validators {', '.join(validated)}" if validated else None
    return Members(tuple(members), cls, check=check)


def _own_check(cls: type) -> str | None:
    for name in ("__post_init__", "__attrs_post_init__"):
        if hasattr(cls, name):
            return f"its own {name}"
    return None


def _pydantic_kind(cls: type) -> bool:
    return hasattr(cls, "__pydantic_core_schema__") and hasattr(cls, "model_fields")


_KINDS: tuple[tuple[Callable[[type], bool], Callable[[Any, Any], Members]], ...] = (
    (lambda cls: issubclass(cls, msgspec.Struct), _of_struct),
    (_pydantic_kind, _of_pydantic),
    (lambda cls: hasattr(cls, "__attrs_attrs__"), _of_attrs),
    (lambda cls: hasattr(cls, "__dataclass_fields__"), _of_dataclass),
    (is_typed_dict, _of_typed_dict),
    (_is_named_tuple, _of_named_tuple),
)


def parameters(function: Any) -> Iterator[Member]:
    """Return the parameters of a function as members; raise ValueError with the remedy for what has no name or type."""
    import inspect

    signature = inspect.signature(function)
    types = hints(function, _names_seen_by(function))
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ParameterError(name, "* and ** take anything: declare each argument by name")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ParameterError(name, "is positional only, but a call gives arguments by name: remove the /")
        if name not in types:
            raise ParameterError(name, f"has no type: write `{name}: int` or whatever it is")
        default = UNSET if parameter.default is parameter.empty else parameter.default
        yield Member(name, name, name, types[name], default is UNSET, default)


class ParameterError(ValueError):
    """A parameter that no call by name could fill; carries its name."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name


def _names_seen_by(function: Any) -> dict[str, Any]:
    """Return the names of enclosing functions that the function uses, for annotations that are strings."""
    inner = getattr(function, "__func__", function)
    cells = getattr(inner, "__closure__", None) or ()
    names = getattr(getattr(inner, "__code__", None), "co_freevars", ())
    seen = {}
    for name, cell in zip(names, cells, strict=False):
        try:
            seen[name] = cell.cell_contents
        except ValueError:  # Not filled yet.
            continue
    return seen
