"""A server's calls as each dialect writes them: read again they are the same calls, one or several."""

from __future__ import annotations

import pytest

from edgeagent.codec.conversation import Call, Reply
from edgeagent.codec.dialect import DIALECTS
from edgeagent.core.reading import Answer, Calls, Unreadable
from edgeagent.driver.remote.talk import written

JSON = [name for name, each in DIALECTS.items() if not each.frame.string_mark]
ONE = Call("a", "set_valve", '{"valve": "</tool_call> [TOOL_CALLS] } {", "seconds": 30}')
OTHER = Call("b", "look", "{}")


@pytest.mark.parametrize("name", JSON)
@pytest.mark.parametrize("calls", [(ONE,), (ONE, OTHER), (OTHER, OTHER, ONE)], ids=["one", "two", "three"])
def test_calls_are_read_as_they_were_sent(name, calls):
    text = written(Reply(calls=calls), DIALECTS[name], is_answer=False)
    reading = DIALECTS[name].read(text)
    assert isinstance(reading, Calls), reading
    told = {"set_valve": {"valve": "</tool_call> [TOOL_CALLS] } {", "seconds": 30}, "look": {}}
    assert [(each.tool, each.arguments) for each in reading.calls] == [(c.tool, told[c.tool]) for c in calls]


@pytest.mark.parametrize("name", JSON)
@pytest.mark.parametrize("text", ["It is dry.", '{"soil": "dry"}', '[{"soil": 1}]', "{ dry }"])
def test_words_are_read_as_words(name, text):
    reading = DIALECTS[name].read(written(Reply(text=text), DIALECTS[name], is_answer=False))
    assert isinstance(reading, Answer), reading
    assert text in reading.text


@pytest.mark.parametrize("name", JSON)
@pytest.mark.parametrize("others", [(), (OTHER,)], ids=["alone", "beside another"])
def test_arguments_that_are_no_object_are_never_words(name, others):
    broken = Call("a", "set_valve", '{"valve": ')
    text = written(Reply(calls=(broken, *others)), DIALECTS[name], is_answer=False)
    assert isinstance(DIALECTS[name].read(text), Unreadable)


@pytest.mark.parametrize("name", JSON)
def test_a_call_that_the_model_wrote_as_words_is_a_call(name):
    frame = DIALECTS[name].frame
    call = f"{frame.before}look{frame.between}{{}}{frame.after}"
    assert written(Reply(text=call), DIALECTS[name], is_answer=False) == call
