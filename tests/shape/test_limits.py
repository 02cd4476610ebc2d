"""Limits beside a type are read, or told when they are written wrong."""

from __future__ import annotations

from typing import Annotated, Any

import annotated_types
import pytest
from msgspec import Meta

from edgeagent.errors import ShapeError
from edgeagent.shape.foreign import Schema
from edgeagent.shape.from_user import FromUser
from edgeagent.shape.lower import lower
from edgeagent.shape.types import shape_of, shape_of_parameters


@pytest.mark.parametrize("mark", [FromUser, Meta, annotated_types.Ge, annotated_types.MinLen])
def test_a_mark_without_brackets_is_told(mark: Any) -> None:
    def pay(to: str) -> None: ...

    pay.__annotations__["to"] = Annotated[str, mark]
    with pytest.raises(ShapeError, match=f"tool pay, argument to: {mark.__name__} stands without brackets"):
        shape_of_parameters(pay, where="pay")


def test_a_schema_beside_any_is_kept_to_and_keeps_its_own_references():
    tree = {"items": {"$ref": "#"}, "type": "array", "default": {"$ref": "#"}}
    shape = shape_of(list[Annotated[Any, Schema(tree), "A tree."]])
    assert shape.decode([[[]], []]) == [[[]], []]
    with pytest.raises(ShapeError, match=r"\[0\]\[1\]: 3 is no array"):
        shape.decode([[[], 3]])
    assert lower(shape.schema).schema["items"] == {"$ref": "#/$defs/Schema"}
    assert shape.schema["$defs"]["Schema"]["default"] == {"$ref": "#"}


@pytest.mark.parametrize("declared", [Annotated[int, Schema({})], Annotated[Any, Schema({}), Meta(ge=3)]])
def test_a_schema_beside_a_type_or_a_limit_is_refused(declared):
    with pytest.raises(ShapeError, match="a Schema says everything"):
        shape_of(declared)


def test_a_schema_that_cannot_be_kept_to_names_the_argument():
    def pay(to: str) -> None: ...

    pay.__annotations__["to"] = Annotated[Any, Schema({"minLength": -1})]
    with pytest.raises(ShapeError, match="tool pay, argument to: minLength is -1"):
        shape_of_parameters(pay, where="pay")
