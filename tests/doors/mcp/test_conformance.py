"""The protocol's conformance suite: what an agent has passes, and for the rest the reason is in the docs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.doors.mcp.suite import CLIENT_REASONS, REASONS, SUITE, VERSIONS, failed, node, run, run_client

PAGE = Path(__file__).parents[3] / "docs" / "mcp.md"


@pytest.fixture(autouse=True)
def _is_there():
    if not SUITE.exists() or node() is None:
        why = "the conformance suite is missing, so it was NOT tried: make mcp-test"
        pytest.fail(why) if os.environ.get("MCP_TEST") else pytest.skip(why)


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_every_scenario_passes_or_its_reason_is_known(version, tmp_path):
    found = run(tmp_path, version)
    assert len(found) > 30
    _is_known(version, found, REASONS)


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_every_scenario_for_clients_passes_or_its_reason_is_known(version, tmp_path):
    found = run_client(tmp_path, version)
    assert len(found) >= 4
    _is_known(version, found, CLIENT_REASONS)


def _is_known(version, found, reasons):
    wrong = failed(found)
    counted = sum(status == "SUCCESS" for checks in found.values() for status, _ in checks)
    print(f"{version}: {len(found) - len(wrong)} of {len(found)} scenarios pass, {counted} checks")
    for name, why in wrong.items():
        print(f"  {name}: {why[:200]}")
    assert set(wrong) == {name for name in found if name in reasons}
    rows = {line for line in PAGE.read_text().splitlines() if line.startswith("| `")}
    assert set(found) <= {line.split("`")[1] for line in rows}, "python -m tests.doors.mcp.suite --page docs/mcp.md"
