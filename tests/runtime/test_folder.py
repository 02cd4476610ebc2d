"""The state folder: what may be in the way of it, and who may look into it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from edgeagent.errors import ConfigError
from edgeagent.runtime.config import Settings, state_root
from edgeagent.runtime.folder import LOCK_NAME, find_directory, head_path, lock

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.crash.world import QUICK, live, start


def nothing(what: str) -> None:
    """Hear nothing."""


def test_a_lock_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    session = start(tmp_path / "state", nothing, QUICK)
    session.close()
    (session.directory / LOCK_NAME).unlink()
    (session.directory / LOCK_NAME).symlink_to(victim)
    with pytest.raises(ConfigError, match="cannot lock"):
        lock(session.directory)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["head", "snapshot.cbor", ".trace.cbor.new", "session.json"])
def test_a_link_in_the_state_folder_is_replaced_or_left_alone_and_not_written_through(
    tmp_path: Path, name: str
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    session = start(tmp_path / "state", nothing, QUICK)
    file = head_path(session.directory) if name == "head" else session.directory / name
    file.unlink(missing_ok=True)
    file.symlink_to(victim)
    live(session)
    assert victim.read_text() == "precious"


def test_nobody_else_may_look_into_what_a_session_leaves(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        session = start(tmp_path / "deep" / "state", nothing, QUICK)
        live(session)
    finally:
        os.umask(before)
    state = tmp_path / "deep" / "state"
    assert [str(path) for path in (state, *state.rglob("*")) if path.stat().st_mode & 0o077] == []


@pytest.mark.parametrize("name", ["", ".", "..", "/", "/etc", "../x", "a/b", "*", "\0", "x" * 5000, "\ud800"])
def test_what_is_no_id_names_no_session(tmp_path: Path, name: str) -> None:
    start(tmp_path, nothing, QUICK).close()
    with pytest.raises(ConfigError):
        find_directory(tmp_path, name)


def test_a_state_home_that_is_not_absolute_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDGEAGENT_STATE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "here")
    assert state_root(Settings()) == Path("~/.local/state/edgeagent").expanduser()
