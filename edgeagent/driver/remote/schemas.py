"""How a server is sent schemas: as it is said, and with less where it has refused that.

Whoever refuses is asked again at once, one step lower, and from then on so; it stands in the event (`asked`). What is
left out of a schema is judged where every model's arguments are.
"""

from __future__ import annotations

import re
import threading
from typing import NamedTuple

from edgeagent.codec.subset import Subset
from edgeagent.driver.remote.endpoint import Calls, Endpoint
from edgeagent.driver.remote.exchange import Result

_REFUSED = re.compile(
    r"schema|grammar|strict|response_?format|output_config|tools?\b|function|parameters|propert|keyword|pattern|json"
    r"|unsupported|unrecognized|unknown (?:field|param)|extra (?:inputs|fields)|literal_error|not permitted",
    re.IGNORECASE,
)
"""What a server says of a schema that it does not take."""


_TOLD = {"own": "its own calls", "schema": "a schema", "object": "the older form of a schema", "grammar": "a grammar"}


class Held(NamedTuple):
    """How the model is held to calls, and in which subset the schemas are."""

    calls: Calls
    subset: Subset

    def told(self) -> str:
        """The same for a person."""
        how = {
            "own": "its own calls",
            "schema": "a schema",
            "object": "the older form of a schema",
            "grammar": "a grammar",
        }
        return f"{how[self.calls]}, {self.subset}"


class Ladder:
    """The steps of one server, from the one that its settings name. Any thread may call it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._steps = _steps(endpoint)
        self._at = 0
        self._lock = threading.Lock()

    @property
    def held(self) -> Held:
        """How it is asked now."""
        return self._steps[self._at]

    def lower(self, refused: Held) -> Held | None:
        """The next step behind one that was refused; None if there is none."""
        with self._lock:
            place = self._steps.index(refused) + 1
            if place >= len(self._steps):
                return None
            self._at = max(self._at, place)
            return self._steps[self._at]


def _steps(endpoint: Endpoint) -> tuple[Held, ...]:
    calls, subset = endpoint.calls, endpoint.schemas
    subsets: list[Subset] = [subset, *(each for each in ("plain", "none") if each != subset and subset != "none")]
    if calls == "own":
        return tuple(Held("own", each) for each in subsets)
    forms: dict[Calls, tuple[Calls, ...]] = {"schema": ("schema", "object"), "object": ("object",)}
    steps = [Held(form, each) for form in forms.get(calls, ("schema", "object")) for each in subsets if each != "none"]
    grammar = [Held("grammar", "full")] if calls == "grammar" and subset != "none" else []
    return (*grammar, *steps, Held("object", "none"))


def is_refusal(result: Result) -> bool:
    """Whether the server has refused what it was sent, and it may have been the schemas."""
    return result.reply is None and result.how in ("bad_request", "server") and bool(_REFUSED.search(result.why))
