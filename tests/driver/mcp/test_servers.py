"""Servers in a session: listed, approved, started late, called as declared, stopped, and not needed for a replay."""

from __future__ import annotations

import json

import pytest

from edgeagent.core.events import ToolFailed, ToolReturned
from edgeagent.core.state import is_resting
from edgeagent.errors import ConfigError
from edgeagent.runtime.folder import read_about
from edgeagent.runtime.servers import approve
from tests.driver.mcp.conftest import a_call

LOOK = a_call("odd_look_up", text="tide")


def values(events):
    return [json.loads(event.value) for event in events if isinstance(event, ToolReturned)]


def failures(events):
    return [event.message for event in events if isinstance(event, ToolFailed)]


def test_nothing_is_admitted_before_a_person_has_approved_it(case):
    with pytest.raises(ConfigError, match=r"mcp\.odd: nobody has approved its tools yet; `edgeagent check"):
        case("obeys").open("Hello.")


def test_only_what_is_listed_is_admitted(case):
    odd = case("obeys", allow=["look_*"])
    assert odd.approve() == 1
    session = odd.open("Hello.")
    assert session.agent.tool_names == ("send_mail", "odd/look_up")
    session.close()


def test_what_was_seen_is_what_is_approved(case):
    odd = case("changes")
    seen = odd.look().seen
    odd.calls_file.touch()
    with pytest.raises(ConfigError, match="offers other tools than those that were shown"):
        approve(odd.state, "odd", odd.server, odd.look().offered, seen)


def test_another_command_is_another_server_that_nobody_has_approved(case):
    odd = case("obeys")
    odd.approve()
    odd.settings["command"] = [*odd.settings["command"], "--more"]
    odd.write_settings()
    with pytest.raises(ConfigError, match="nobody has approved"):
        odd.open("Hello.")


def test_a_server_is_not_started_before_it_is_needed(case):
    odd = case("obeys")
    odd.approve()
    odd.script.unlink()
    odd.run("Hello.", words=("Hello!",))
    assert odd.door.said == ["Hello."]


def test_a_call_reaches_the_server_with_its_arguments(case):
    odd = case("obeys")
    odd.approve()
    assert values(odd.run(LOOK, "Done.")) == ["tide is a word"]
    assert odd.calls == ['look_up {"text": "tide"}']


def test_arguments_that_the_schema_does_not_have_never_reach_it(case):
    odd = case("obeys")
    odd.approve()
    odd.run(a_call("odd_look_up", text="tide", force=True), "No.")
    assert odd.calls == []


def test_a_write_asks_a_person_first(case):
    odd = case("obeys", effect={"look_*": "read", "*": "write"})
    del odd.settings["confirm"]
    odd.write_settings()
    odd.approve()
    odd.run(a_call("odd_note_down", text="tide"), "Not written.")
    assert [question.tool for question in odd.door.questions] == ["odd/note_down"]
    assert odd.calls == []


def test_what_a_server_says_of_a_failure_is_told(case):
    for behaviour, said in (
        ("fails", "there is no such word"),
        ("refuses", "it refuses the call: not that word (error -32602)"),
        ("answers nonsense", "has no list `content`"),
    ):
        odd = case(behaviour)
        odd.approve()
        assert said in failures(odd.run(LOOK, "No."))[0]


def test_values_and_parts_of_a_result_are_kept_as_such(case):
    odd = case("gives values")
    odd.approve()
    assert values(odd.run(LOOK, "Done.")) == [{"words": ["tide"], "count": 1}]
    odd = case("gives many parts")
    odd.approve()
    [parts] = values(odd.run(LOOK, "Done."))
    assert (parts[0], parts[1]["kind"], parts[2]) == ("one", "image/png", "a note")


def test_a_list_by_pages_is_read_to_its_end(case):
    assert [row.name for row in case("lists by pages").look().rows] == ["look_up", "note_down"]


def test_an_old_server_is_spoken_to_in_its_version(case):
    assert "protocol 2024-11-05" in case("is old").look().about


def test_a_version_without_a_greeting_is_spoken_where_there_is_no_other(case):
    odd = case("is newest")
    odd.approve()
    assert "protocol 2026-07-28" in odd.look().about
    assert values(odd.run(LOOK, "A word.")) == ["tide is a word"]


def test_a_server_is_told_its_folders(case, tmp_path):
    odd = case("asks for folders", roots=[str(tmp_path / "notes")])
    odd.approve()
    assert values(odd.run(LOOK, "Done.")) == [(tmp_path / "notes").as_uri()]


def test_a_server_is_given_no_variable_but_those_that_are_named(case, monkeypatch):
    monkeypatch.setenv("ODD_TOKEN", "one")
    monkeypatch.setenv("OTHER_TOKEN", "two")
    odd = case("tells its variables", environment=["ODD_TOKEN"])
    odd.approve()
    [told] = values(odd.run(LOOK, "Done."))
    assert "ODD_TOKEN" in told and "OTHER_TOKEN" not in told


def test_resources_that_are_listed_are_read_by_one_tool(case):
    odd = case("has notes", allow=["resource:note:///garden", "resource:note:///shop*"])
    assert odd.approve() == 2
    garden, secret = (a_call("odd_read_resource", uri=f"note:///{name}") for name in ("garden", "secret"))
    assert values(odd.run(garden, secret, "It says that.")) == ["what stands in note:///garden"]


def test_a_session_goes_on_with_the_tools_that_it_began_with(case):
    odd = case("obeys")
    odd.approve()
    session = odd.open(LOOK, "Done.", LOOK, "Again.")
    session.say("Look it up.")
    session.close()
    again = odd.open(last=True, agent=odd.agent())
    again.say("Again!")
    again.close()
    assert len(odd.calls) == 2


def test_a_session_whose_server_is_not_listed_any_more_goes_on_without_calling_it(case):
    odd = case("obeys")
    odd.approve()
    session = odd.open(LOOK, "Done.", LOOK, "No.")
    session.say("Look it up.")
    session.close()
    (odd.folder / "edgeagent.toml").write_text("")
    again = odd.open(last=True, agent=odd.agent())
    assert is_resting(again.say("Again!"))
    again.close()
    assert len(odd.calls) == 1
    assert any("mcp.odd is not in edgeagent.toml as it was" in told for told in odd.door.told)


def test_what_a_session_has_of_its_servers_is_in_session_json(case):
    odd = case("obeys")
    odd.approve()
    session = odd.open("Hello.")
    session.close()
    kept = read_about(session.directory).servers["odd"]
    assert [each["name"] for each in kept["tools"]] == ["look_up", "note_down"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"allow": []}, r"mcp\.odd\.allow is missing"),
        ({"command": []}, r"mcp\.odd\.command is missing"),
        ({"effects": "read"}, r"no key mcp\.odd\.effects; did you mean mcp\.odd\.effect\?"),
        ({"effect": "reads"}, r"mcp\.odd: Invalid enum value"),
        ({"timeout_s": 0}, r"mcp\.odd: .*timeout_s"),
    ],
)
def test_a_setting_that_is_wrong_is_named(case, changed, why):
    odd = case("obeys")
    odd.settings |= changed
    odd.write_settings()
    with pytest.raises(ConfigError, match=why):
        odd.open("Hello.")
