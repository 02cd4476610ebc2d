"""Collect the figures that the benchmarks record, and write them where the gate reads them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FIGURES_VARIABLE = "EDGEAGENT_FIGURES"
"""Names the file that the gate wants the figures in."""

_figures: dict[str, float] = {}


@pytest.fixture
def record_figure() -> Callable[[str, float], None]:
    """A function that records one figure under its name in budgets.json."""

    def record(name: str, value: float) -> None:
        assert name not in _figures, f"{name} is measured twice"
        _figures[name] = round(float(value), 4)

    return record


@pytest.fixture(scope="session", autouse=True)
def _write_figures() -> Iterator[None]:
    yield
    target = os.environ.get(FIGURES_VARIABLE)
    if target:
        Path(target).write_text(json.dumps(_figures))
