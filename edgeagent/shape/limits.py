"""What `Annotated` says beside a type: limits that are checked, and words for the schema.

Read by their attributes, never by importing the package they come from: annotated_types, pydantic and attrs are the
author's choice. What is not understood but would restrict values (a predicate, a validator) is an error, for a
restriction that is silently dropped is worse than none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

# Keywords of `extra_json_schema` that restrict nothing.
_NOTE_KEYWORDS = frozenset({"title", "description", "examples", "deprecated", "readOnly", "writeOnly", "$comment"})

# Packages of whose classes a value means something beside a type, and the class itself nothing.
_OURS_TO_READ = frozenset(("msgspec", "annotated_types", "pydantic", "edgeagent"))


class UnknownRestriction(ValueError):
    """Something beside a type that would restrict it in a way we cannot hold; the text is reason and remedy."""


class Limits(Struct, frozen=True, omit_defaults=True):
    """Every restriction that may stand beside a type; the unset ones restrict nothing."""

    low: Any = None
    low_open: bool = False
    high: Any = None
    high_open: bool = False
    multiple_of: Any = None
    least: int = 0
    most: int | None = None
    pattern: str | None = None
    format: str | None = None
    zoned: bool | None = None

    def names(self) -> list[str]:
        """Return the limits that are set, in words."""
        words = {"low": "a minimum", "high": "a maximum", "least": "a least length", "most": "a greatest length"}
        set_ones = [name for name in self.__struct_fields__ if getattr(self, name) not in (None, False, 0)]
        return [words.get(name, name) for name in set_ones if not name.endswith("_open")]

    def tightened(self, other: Limits) -> Limits:
        """Return what both say together; the other's word counts where only one can be held."""
        low, low_open = _tighter(self.low, self.low_open, other.low, other.low_open, lambda a, b: a > b)
        high, high_open = _tighter(self.high, self.high_open, other.high, other.high_open, lambda a, b: a < b)
        both = [most for most in (self.most, other.most) if most is not None]
        if self.pattern is not None and other.pattern not in (None, self.pattern):
            raise UnknownRestriction("two patterns cannot be held at once: write one that says both")
        return Limits(
            low=low,
            low_open=low_open,
            high=high,
            high_open=high_open,
            multiple_of=_common_multiple(self.multiple_of, other.multiple_of),
            least=max(self.least, other.least),
            most=min(both) if both else None,
            pattern=other.pattern or self.pattern,
            format=other.format or self.format,
            zoned=self.zoned if other.zoned is None else other.zoned,
        )


def _tighter(left: Any, left_open: bool, right: Any, right_open: bool, beats: Any) -> tuple[Any, bool]:
    if left is None or (right is not None and beats(right, left)):
        return right, right_open
    if right is None or beats(left, right):
        return left, left_open
    return left, left_open or right_open


def _common_multiple(left: Any, right: Any) -> Any:
    if left is None or right is None or left == right:
        return left if right is None else right
    if isinstance(left, int) and isinstance(right, int):
        return math.lcm(left, right)
    raise UnknownRestriction("two multiple_of that are no integers cannot be held at once: write one")


def read_metadata(metadata: Iterable[Any]) -> tuple[Limits, dict[str, Any]]:
    """Return the limits and the words; raise `UnknownRestriction` for what would be dropped in silence."""
    limits, notes = Limits(), dict[str, Any]()
    for item in _flat(metadata):
        if isinstance(item, type) and _OURS_TO_READ & {kind.__module__.split(".")[0] for kind in item.__mro__}:
            raise UnknownRestriction(f"{item.__name__} stands without brackets: write {item.__name__}(...)")
        found = _limits_of(item)
        if found is not None:
            limits = limits.tightened(found)
        notes |= _notes_of(item)
    return limits, notes


def _flat(metadata: Iterable[Any]) -> Iterator[Any]:
    for item in metadata:
        if getattr(item, "__is_annotated_types_grouped_metadata__", False) is True:
            yield from _flat(item)
        elif _comes_from(item, "pydantic") and type(item).__name__ == "FieldInfo":
            yield from _flat(item.metadata)
            yield item
        else:
            yield item


def _comes_from(item: Any, package: str) -> bool:
    return any(kind.__module__.split(".")[0] == package for kind in type(item).__mro__)


def _limits_of(item: Any) -> Limits | None:
    if isinstance(item, msgspec.Meta):
        return _of_meta(item)
    if _comes_from(item, "annotated_types"):
        return _of_annotated_types(item)
    if _comes_from(item, "pydantic"):
        return _of_pydantic(item)
    return None


def _of_meta(meta: msgspec.Meta) -> Limits:
    low, low_open = (meta.gt, True) if meta.gt is not None else (meta.ge, False)
    high, high_open = (meta.lt, True) if meta.lt is not None else (meta.le, False)
    extra = meta.extra_json_schema or {}
    for keyword in extra:
        if keyword != "format" and keyword not in _NOTE_KEYWORDS and not keyword.startswith("x-"):
            raise UnknownRestriction(f'extra_json_schema "{keyword}" would only be shown, never checked: leave it out')
    return Limits(
        low=low,
        low_open=low_open,
        high=high,
        high_open=high_open,
        multiple_of=meta.multiple_of,
        least=meta.min_length or 0,
        most=meta.max_length,
        pattern=meta.pattern,
        format=extra.get("format"),
        zoned=meta.tz,
    )


def _of_annotated_types(item: Any) -> Limits | None:
    name = type(item).__name__
    if name in ("Unit", "DocInfo"):
        return None
    if name == "Timezone" and item.tz in (None, ...):
        return Limits(zoned=item.tz is ...)
    return _of_attributes(item, name)


def _of_pydantic(item: Any) -> Limits | None:
    name = type(item).__name__
    if name in ("FieldInfo", "Strict"):
        return None
    if name == "PydanticGeneralMetadata" or hasattr(item, "__is_annotated_types_grouped_metadata__"):
        known = {"pattern", "min_length", "max_length", "multiple_of", "gt", "ge", "lt", "le"}
        given = {key: value for key, value in vars(item).items() if value is not None}
        if given.keys() <= known | {"strict"}:
            return _of_attributes(item, name)
    raise UnknownRestriction(f"{name} of pydantic cannot be held by a grammar: check it inside the tool")


def _of_attributes(item: Any, name: str) -> Limits:
    low, low_open = (item.gt, True) if getattr(item, "gt", None) is not None else (getattr(item, "ge", None), False)
    high, high_open = (item.lt, True) if getattr(item, "lt", None) is not None else (getattr(item, "le", None), False)
    found = Limits(
        low=low,
        low_open=low_open,
        high=high,
        high_open=high_open,
        multiple_of=getattr(item, "multiple_of", None),
        least=getattr(item, "min_length", None) or 0,
        most=getattr(item, "max_length", None),
        pattern=getattr(item, "pattern", None),
    )
    known = {"MinLen", "Ge", "Gt", "Le", "Lt", "MaxLen", "MultipleOf"}
    if found == Limits() and name not in known:
        raise UnknownRestriction(f"{name} cannot be held by a grammar: check it inside the tool")
    return found


def _notes_of(item: Any) -> dict[str, Any]:
    if isinstance(item, str):
        return {"description": item}
    if isinstance(item, msgspec.Meta):
        extra = {key: value for key, value in (item.extra_json_schema or {}).items() if key != "format"}
        words = {"title": item.title, "description": item.description, "examples": item.examples}
        return {key: value for key, value in words.items() if value is not None} | extra
    notes: dict[str, Any] = dict(getattr(item, "schema_notes", None) or {})
    if isinstance(documentation := getattr(item, "documentation", None), str):
        notes["description"] = documentation
    if isinstance(description := getattr(item, "description", None), str):
        notes["description"] = description
    if type(item).__name__ == "Unit" and isinstance(unit := getattr(item, "unit", None), str):
        notes["x-unit"] = unit
    return notes
