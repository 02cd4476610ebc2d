"""A pytest plugin for emulated machines: property tests try a few examples, without a deadline.

The full numbers run natively; here the question is only whether this architecture agrees, and it is ten times slower.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

EXAMPLES_MAX = int(os.environ.get("EXAMPLES_MAX", "10"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Lower each property's own number of examples."""
    for item in items:
        test = getattr(item, "obj", None)
        own = getattr(test, "_hypothesis_internal_use_settings", None)
        if own is None:
            continue
        few = settings(own, max_examples=min(own.max_examples, EXAMPLES_MAX), deadline=None, database=None)
        getattr(test, "__func__", test)._hypothesis_internal_use_settings = few
