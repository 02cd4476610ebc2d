"""A call that may have happened or not is named wherever one looks at its session, without its agent."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgeagent.core.events import EffectLost, ModelAnswered, ToolReturned
from edgeagent.doors.cli.sessions import sessions
from edgeagent.doors.cli.trace import trace
from edgeagent.runtime.folder import root_of
from edgeagent.runtime.vouched import accept
from edgeagent.trace.file import examine_file

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.crash.world import QUICK, live, revive, start


def nothing(what: str) -> None:
    """Hear nothing."""


def killed_in(root: Path, number: int) -> Path:
    """The directory of a session that was killed while the call which the `number`-th answer asks for was out."""
    session = start(root, nothing, QUICK)
    live(session)
    path = session.trace_path
    asked = [r for r in examine_file(path).records if isinstance(r.event, ModelAnswered)][number]
    path.write_bytes(path.read_bytes()[: asked.offset + asked.size])
    accept(session.directory)
    return session.directory


def looked(group, *arguments: str) -> str:
    return CliRunner().invoke(group, arguments, standalone_mode=False).stdout


@pytest.mark.parametrize("is_resumed", [False, True])
def test_a_payment_of_unknown_fate_is_named_by_every_view_of_its_session(tmp_path: Path, is_resumed: bool) -> None:
    directory = killed_in(tmp_path, 0)
    if is_resumed:
        revive(directory, nothing, QUICK)
    state = ("--state", str(root_of(directory)))
    said = "pay(bill=1) was interrupted" if is_resumed else "pay(bill=1) has no result"
    assert f"unknown: {said}" in looked(trace, "show", str(directory))
    assert "  1 unknown " in looked(sessions, "list", *state)
    assert f"unknown      {said}" in looked(sessions, "show", directory.name, *state)
    (row,) = (json.loads(line) for line in looked(sessions, "list", "--json", *state).splitlines())
    assert [said in each for each in row["unknown"]] == [True]
    page = tmp_path / "page.html"
    looked(trace, "show", str(directory), "--html", str(page))
    assert said in page.read_text()
    if is_resumed:
        rows = [json.loads(line) for line in looked(trace, "show", str(directory), "--json").splitlines()]
        (lost,) = (row for row in rows if row["type"] == "EffectLost")
        assert (lost["tool"], lost["arguments"]) == ("pay", '{"bill":1}')


def test_every_call_of_a_batch_that_was_out_is_named(tmp_path: Path) -> None:
    directory = killed_in(tmp_path, 2)
    told = looked(trace, "show", str(directory))
    assert "pay(bill=2) has no result" in told
    revive(directory, nothing, QUICK)
    lost = [r.event for r in examine_file(directory / "trace.cbor").records if isinstance(r.event, EffectLost)]
    assert [(each.tool, each.arguments) for each in lost] == [("pay", '{"bill":2}'), ("", "")]  # To look costs nothing.


def test_a_session_in_which_everything_has_a_result_has_nothing_unknown(tmp_path: Path) -> None:
    session = start(tmp_path, nothing, QUICK)
    live(session)
    assert "unknown" not in looked(trace, "show", str(session.directory))
    assert "  ok  " in looked(sessions, "list", "--state", str(tmp_path))
    path = session.trace_path
    returned = next(r for r in examine_file(path).records if isinstance(r.event, ToolReturned))
    path.write_bytes(path.read_bytes()[: returned.offset + returned.size])
    (session.directory / "snapshot.cbor").unlink()
    accept(session.directory)
    assert "unknown" not in looked(trace, "show", str(session.directory))
