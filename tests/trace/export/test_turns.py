"""What people are shown of a session: turns, budgets, refusals; and the page that opens offline."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from edgeagent.runtime import golden
from edgeagent.runtime.recording import effects_of, load_recording
from edgeagent.trace.export.page import COLUMNS, page
from edgeagent.trace.export.turns import Turn, Use, turns_of
from edgeagent.trace.file import examine_file

TRACES = Path(__file__).parents[3] / "traces"


def turns(situation: str) -> list[Turn]:
    trace = TRACES / situation / "trace.cbor"
    recording = load_recording(trace, runs_beside=True)
    return turns_of(recording.agent, effects_of(recording, examine_file(trace)))


def test_a_turn_says_how_it_ended() -> None:
    assert [t.outcome for t in turns("call")] == ["answered"]
    assert [t.outcome for t in turns("limit_steps")] == ["budget: steps"]


def test_a_turn_says_what_was_refused_and_why() -> None:
    assert turns("refused")[0].refusals == ["water is short"]
    assert turns("denied")[0].refusals == ["asked a person: water is dear", "the user said no"]


def test_a_turn_says_what_it_used_of_each_limit() -> None:
    uses = {u.name: (u.used, u.limit) for u in turns("limit_tool_calls")[0].uses}
    assert uses["tool calls"] == (1, 1)
    assert uses["written tokens"] == (60, 1024)


@pytest.mark.parametrize("directory", golden.situations(TRACES), ids=lambda d: d.name)
def test_every_recording_has_its_turns(directory: Path) -> None:
    assert turns(directory.name)


class Reader(HTMLParser):
    """Collects tags and what they would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [str(value) for name, value in attrs if name in ("src", "href", "action", "srcset")]


def test_the_page_holds_everything_itself_and_runs_nothing() -> None:
    hostile = '<script>alert(1)</script><img src="http://x">'
    turn = Turn(1, hostile, 0, 1000, (Use("steps", 2, 8),), hostile, [hostile])
    reader = Reader()
    reader.feed(page(hostile, [("agent", hostile)], [turn], [tuple([hostile] * len(COLUMNS))]))
    assert reader.fetched == []
    assert "script" not in reader.tags
    assert "img" not in reader.tags
