"""Results that no JSON text can be made of, told from a function's declaration before it ever ran."""

from __future__ import annotations

import collections.abc
import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from edgeagent.shape.fields import hints

_ONE_BY_ONE = (collections.abc.Iterator, collections.abc.AsyncIterator, collections.abc.AsyncIterable)


def why_no_result(function: Callable[..., Any]) -> str:
    """Return why what the function is declared to return has no form in JSON, with the remedy; or nothing."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return "it yields its result piece by piece, which has no form in JSON: return a list"
    try:
        declared = hints(function).get("return", Any)
    except (NameError, TypeError, AttributeError):
        return ""  # Not to be known here; the arguments' own annotations are told elsewhere.
    for leaf in _leaves(declared):
        if isinstance(leaf, type) and issubclass(leaf, _ONE_BY_ONE):
            return f"it returns {leaf.__name__}, which has no form in JSON: return a list"
        if isinstance(leaf, type) and _is_unknown(leaf):
            return f"it returns {leaf.__name__}, which has no form in JSON: return a scalar, list, dict or dataclass"
    return ""


def _leaves(declared: Any) -> Iterator[Any]:
    yield typing.get_origin(declared) or declared
    if typing.get_origin(declared) is not typing.Literal:
        for part in typing.get_args(declared):
            yield from _leaves(part)


def _is_unknown(leaf: type) -> bool:
    if leaf is object or leaf is type(None):
        return False
    try:
        return isinstance(msgspec.inspect.type_info(leaf), msgspec.inspect.CustomType)
    except (TypeError, NameError):
        return False
