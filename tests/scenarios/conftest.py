"""The switch that renews scenario files: `pytest tests/scenarios --rewrite`."""

from __future__ import annotations

import pytest


def pytest_addoption(parser):
    parser.addoption("--rewrite", action="store_true", help="write what the agents do now into the scenario files")


@pytest.fixture
def rewrite(request):
    return request.config.getoption("--rewrite", default=False)
