"""What was fitted once, per model, and is shipped in `calibration_weights.json`: how evidence is weighed.

`python -m bench.accuracy.fit` makes it. A model that is not among them is weighed like the first one, which is a guess;
`edgeagent calibrate` finds from where on a call is made for one agent and one model.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from edgeagent.request.call_odds import Weights

FILE = Path(__file__).with_name("calibration_weights.json")


class Sum(msgspec.Struct, frozen=True):
    """A fitted sum: the bias, and for each piece of evidence its weight and the mean that it had."""

    bias: float
    each: dict[str, tuple[float, float]]

    @property
    def weights(self) -> Weights:
        """As what weighs."""
        return Weights(self.bias, self.each)


class Fitted(msgspec.Struct, frozen=True):
    """What was fitted for one model, on which rows.

    `call` gives the log-odds that a call is meant, `needed` those from which on one is made where the agent has none of
    its own, `right` the log-odds that a call is the right one.
    """

    model: str
    sha256: str
    rows: dict[str, Any]
    call: Sum
    needed: float
    right: Sum


@cache
def _shipped() -> tuple[Fitted, ...]:
    return msgspec.json.decode(FILE.read_bytes(), type=tuple[Fitted, ...])


def fitted_for(model_digest: str) -> Fitted:
    """What was fitted for the model with this SHA-256, or else for the first one."""
    return next((each for each in _shipped() if each.sha256 == model_digest), _shipped()[0])


def digest_of(fitted: Fitted) -> str:
    """What tells these weights from others."""
    return hashlib.sha256(msgspec.json.encode([fitted.call, fitted.right])).hexdigest()[:16]
