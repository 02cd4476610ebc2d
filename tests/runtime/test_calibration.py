"""What a calibration holds for, and where it is kept."""

from __future__ import annotations

import dataclasses

import pytest

from edgeagent.core.agent import Agent, tool
from edgeagent.errors import TraceError
from edgeagent.runtime.calibration import (
    Calibration,
    Threshold,
    calibration_file,
    tools_digest,
    unrelated_requests,
    write_calibration,
)


@tool(idempotent=True, examples=["Make it bright."])
def lamp(on: bool) -> str:
    """Switch the lamp."""
    return str(on)


AGENT = Agent(name="lamps", system="You switch a lamp.", tools=[lamp])
FOUND = Calibration(tools_digest(AGENT), "ab" * 32, "cd", {"": Threshold(0.5, 60, 57, 1, 0)})


@pytest.mark.parametrize(
    "changed",
    [
        dataclasses.replace(lamp, description="Switch a lamp."),
        dataclasses.replace(lamp, name="light"),
        dataclasses.replace(lamp, examples=("Make it dark.",)),
    ],
)
def test_a_threshold_holds_for_these_texts_and_examples_only(changed):
    assert tools_digest(dataclasses.replace(AGENT, tools=[changed])) != tools_digest(AGENT)


def test_a_threshold_outlives_a_change_of_rules_and_of_the_system_text():
    assert tools_digest(dataclasses.replace(AGENT, system="Be brief.")) == tools_digest(AGENT)


def test_a_sub_agents_tools_count_too():
    other = dataclasses.replace(AGENT, tools=[dataclasses.replace(lamp, description="Light it.")])
    above = [Agent(name="above", tools=[each.as_tool(description="Help.", name="helper")]) for each in (AGENT, other)]
    assert tools_digest(above[0]) != tools_digest(above[1])


def test_each_model_has_a_file_of_its_own(tmp_path):
    assert calibration_file(tmp_path, AGENT, "a" * 64) != calibration_file(tmp_path, AGENT, "b" * 64)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "calibrations").write_text("in the way")
    with pytest.raises(TraceError, match="cannot write"):
        write_calibration(tmp_path, AGENT, FOUND)


def test_the_unrelated_requests_are_sixty_different_ones():
    assert len(set(unrelated_requests())) == 60
