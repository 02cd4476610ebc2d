"""Limits beside a type are read, or told when they are written wrong."""

from __future__ import annotations

from typing import Annotated, Any

import annotated_types
import pytest
from msgspec import Meta

from edgeagent.errors import ShapeError
from edgeagent.shape.from_user import FromUser
from edgeagent.shape.types import shape_of_parameters


@pytest.mark.parametrize("mark", [FromUser, Meta, annotated_types.Ge, annotated_types.MinLen])
def test_a_mark_without_brackets_is_told(mark: Any) -> None:
    def pay(to: str) -> None: ...

    pay.__annotations__["to"] = Annotated[str, mark]
    with pytest.raises(ShapeError, match=f"tool pay, argument to: {mark.__name__} stands without brackets"):
        shape_of_parameters(pay, where="pay")
