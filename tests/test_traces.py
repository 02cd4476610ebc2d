"""The recordings in traces/: replayed here as on every machine, and each has a line in the README."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from edgeagent.runtime import golden

TRACES = Path(__file__).parents[1] / "traces"
SITUATIONS = golden.situations(TRACES)


@pytest.mark.parametrize("directory", SITUATIONS, ids=lambda d: d.name)
def test_a_recording_comes_to_the_same_effects_bytes_and_story(directory: Path) -> None:
    assert golden.check(directory) == ""


def test_every_recording_has_a_line_in_the_readme() -> None:
    named = re.findall(r"^\| `(\w+)` \|", (TRACES / "README.md").read_text(), re.MULTILINE)
    assert sorted(named) == [d.name for d in SITUATIONS]


def test_renewing_a_recording_that_is_right_changes_nothing(tmp_path: Path) -> None:
    shutil.copytree(TRACES, tmp_path / "traces")
    assert [d.name for d in golden.situations(tmp_path / "traces") if golden.rewrite(d)] == []


def test_an_agent_that_acts_otherwise_is_noticed_and_renewed(tmp_path: Path) -> None:
    shutil.copytree(TRACES, tmp_path / "traces")
    agents = tmp_path / "traces" / "agents.py"
    agents.write_text(agents.read_text().replace('because="water is short"', 'because="the pump rests"'))
    assert "record 2" in golden.check(tmp_path / "traces" / "refused")
    assert golden.rewrite(tmp_path / "traces" / "refused")
    assert golden.check(tmp_path / "traces" / "refused") == ""


def test_a_changed_story_is_noticed_by_its_line(tmp_path: Path) -> None:
    shutil.copytree(TRACES, tmp_path / "traces")
    story = tmp_path / "traces" / "call" / golden.STORY_NAME
    story.write_text(story.read_text().replace("Open the north", "Open the south", 1))
    assert "line 3" in golden.check(tmp_path / "traces" / "call")
