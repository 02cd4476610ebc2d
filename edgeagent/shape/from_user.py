"""Which argument must be the user's own words? The mark that an author puts beside a type.

    def pay(to: Annotated[str, FromUser()], amount: Annotated[float, FromUser(units=True)]) -> str: ...

Only the mark: what counts as quoted is decided in `core`, which knows what the user said.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

KEYWORD = "x-from-user"
"""Under which the mark stands in a JSON Schema; it restricts nothing there."""


class FromUser(Struct, frozen=True):
    """The value must be quoted from what the user said in this session: words, a number, an option by its name.

    `units` also takes a number with a unit written to it (`30s`, `5kg`), `thousands` one with separators (`1,000`).
    """

    units: bool = False
    thousands: bool = False

    @property
    def schema_notes(self) -> dict[str, Any]:
        """What the schema of the argument says of it."""
        return {KEYWORD: {"units": self.units, "thousands": self.thousands}}
