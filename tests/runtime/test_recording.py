"""A session that somebody hands over brings no code that runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from edgeagent.errors import ConfigError
from edgeagent.runtime.recording import load_recording

CALL = Path(__file__).parents[2] / "traces" / "call"


@pytest.mark.parametrize("spec", ["../agents.py:plain", "agents.py:plain", "{session}/agents.py:plain"])
def test_code_that_lies_with_a_session_is_not_run_unless_it_is_named(tmp_path: Path, spec: str):
    session = tmp_path / "session"
    shutil.copytree(CALL, session)
    for folder in (tmp_path, session):
        (folder / "agents.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    about = (session / "session.json").read_text()
    (session / "session.json").write_text(about.replace("../agents.py:plain", spec.format(session=session)))
    with pytest.raises(ConfigError, match=r"give AGENT\.py yourself"):
        load_recording(session / "trace.cbor")
    assert not (tmp_path / "ran").exists()


def test_an_agent_that_is_named_reads_the_session(tmp_path: Path):
    session = tmp_path / "session"
    shutil.copytree(CALL, session)
    assert load_recording(session / "trace.cbor", f"{CALL.parent / 'agents.py'}:plain").agent.name
