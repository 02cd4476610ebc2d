"""What every test may use: the real model, where it has been fetched."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from edgeagent.errors import ModelError
from edgeagent.models.store import find

# What a shell starts in the background ignores Ctrl-C and Ctrl-\\, and what nohup starts the end of its terminal; so
# would each process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)

# The same examples in every run, and no limit of time: what a property says may not depend on luck or on the machine.
# `make test-slow` asks for `wide`, whose examples are drawn anew.
settings.register_profile("same", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("wide", settings.get_profile("same"), derandomize=False)
settings.load_profile("same")


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2's file: `EDGEAGENT_TEST_MODEL`, or what `edgeagent model pull smollm2` keeps.

    Skips aloud where it is missing; CI must have it.
    """
    if named := os.environ.get("EDGEAGENT_TEST_MODEL"):
        return Path(named)
    try:
        return find("smollm2")
    except ModelError as missing:
        if os.environ.get("CI"):
            pytest.fail(f"CI must have the model: {missing}")
        pytest.skip(f"the real model is missing, so this promise was NOT tested: {missing}")
