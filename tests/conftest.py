"""What every test may use: the real model, where it has been fetched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgeagent.driver.llama.store import find
from edgeagent.errors import ModelError


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2's file. Skips aloud where it is missing; CI must have it."""
    try:
        return find("smollm2")
    except ModelError as missing:
        if os.environ.get("CI"):
            pytest.fail(f"CI must have the model: {missing}")
        pytest.skip(f"SKIPPED ALOUD: {missing}")
