"""The accuracy bench's lists, its split and its judges, on rows of our own."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("llama_cpp")

from bench.accuracy.cases import Case, Wanted, bfcl_case, cases_of, is_set, json_schema, own_name
from bench.accuracy.engines import call_schema, first_call
from bench.accuracy.judge import is_right, is_right_tool
from edgeagent.core.values import ToolCall
from edgeagent.errors import EdgeAgentError
from examples.greenhouse import agent

NORTH = Wanted("set_valve", {"valve": ["north"], "open": [True], "seconds": [60]})
SOUTH = Wanted("set_valve", {"valve": ["south"], "open": [True]})
OPEN = Case("one", "Open it.", agent, (NORTH,))
BOTH = Case("both", "Open both.", agent, (NORTH, SOUTH))
NOTHING = Case("none", "Hello.", agent)

ROW = {
    "id": "simple_python_0",
    "question": [[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Square 3."}]],
    "function": [
        {
            "name": "math.square",
            "description": "Square a number.",
            "parameters": {"type": "dict", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
        }
    ],
}


def north(**arguments):
    return ToolCall("set_valve", {"valve": "north", "open": True} | arguments)


def south(**arguments):
    return ToolCall("set_valve", {"valve": "south", "open": True} | arguments)


def test_forty_greenhouse_requests_ten_of_which_should_not_call():
    cases = cases_of("greenhouse", "report")
    assert (len(cases), sum(not case.wanted for case in cases)) == (40, 10)


GARDEN = '''
from edgeagent import Agent, tool

@tool(idempotent=True)
def water(bed: int) -> str:
    """Water a bed."""

agent = Agent(name="garden", system="", tools=[water])
'''


@pytest.fixture
def listed(tmp_path):
    """The cases of a list of requests for a small agent."""
    (tmp_path / "garden.py").write_text(GARDEN)

    def cases(*rows):
        (tmp_path / "mine.json").write_text(json.dumps(rows))
        return cases_of(f"{tmp_path}/garden.py={tmp_path}/mine.json", "report")

    return cases


def test_anybodys_list_for_anybodys_agent_is_a_set(listed):
    water, hello = listed({"request": "Bed 2", "call": {"water": {"bed": [2]}}}, {"request": "Hello", "call": None})
    assert (water.request, water.wanted, water.agent.name) == ("Bed 2", (Wanted("water", {"bed": [2]}),), "garden")
    assert hello.wanted == ()


@pytest.mark.parametrize(
    "row",
    [
        {"request": "Bed 2"},
        {"call": None},
        {"request": "Bed 2", "call": {"mow": {}}},
        {"request": "Bed 2", "call": {"water": {"bed": ["two"]}}},
        {"request": "Bed 2", "call": {"water": {"bed": []}}},
        {"request": "Bed 2", "call": {"water": 2}},
    ],
)
def test_a_request_that_the_agent_cannot_take_is_named(listed, row):
    with pytest.raises(ValueError, match="request 1 is not understood"):
        listed({"request": "Hello", "call": None}, row)


def test_no_greenhouse_request_is_an_example_of_its_tools():
    examples = {each for tool in agent.tools for each in tool.examples}
    assert not examples & {case.request for case in cases_of("greenhouse", "report")}


def test_fewer_rows_are_spread_over_the_whole_set():
    ids = [case.id for case in cases_of("greenhouse", "report", 3)]
    assert ids == ["greenhouse_0", "greenhouse_13", "greenhouse_26"]


@pytest.mark.parametrize("name", ["greenhouse", "needle", "needle:wearable", "bfcl:parallel"])
def test_a_set_has_a_name(name):
    assert is_set(name)


@pytest.mark.parametrize("name", ["bfcl", "bfcl:", "bfcl:sql", "needle:", "greenhouse:x", ""])
def test_what_is_no_set_is_told(name):
    assert not is_set(name)


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        ({"seconds": 60}, True),
        ({}, True),  # 60 is the default.
        ({"seconds": 30}, False),
        ({"valve": "south"}, False),
        ({"open": 1}, False),
    ],
)
def test_a_call_is_right_when_every_argument_is(arguments, right):
    assert is_right(OPEN, north(**arguments)) is right


def test_a_call_of_another_tool_is_wrong():
    assert not is_right(OPEN, ToolCall("notify", {}))
    assert not is_right_tool(OPEN, ToolCall("notify", {}))


def test_of_several_calls_all_are_wanted_once_in_any_order():
    assert is_right(BOTH, south(), north())
    assert not is_right(BOTH, north(), north())
    assert not is_right(BOTH, north())
    assert not is_right(BOTH, north(), south(), south())


def test_the_right_tools_may_have_wrong_arguments():
    assert is_right_tool(BOTH, south(seconds=5), north(seconds=5))
    assert not is_right_tool(BOTH, north())


def test_no_call_is_right_where_none_is_wanted_and_only_there():
    assert is_right(NOTHING)
    assert not is_right(NOTHING, north())
    assert not is_right(OPEN)


def test_a_row_of_bfcl_becomes_a_case():
    case = bfcl_case(ROW, [{"math.square": {"x": [3]}}])
    assert case.request == "Square 3."
    assert case.agent.system == "You call functions.\nBe brief."
    assert case.wanted == (Wanted("math_square", {"x": [3]}),)


def test_a_row_of_bfcl_without_an_answer_wants_no_call():
    assert bfcl_case(ROW, []).wanted == ()


def test_a_tool_that_cannot_be_declared_is_not_passed_over():
    with pytest.raises(EdgeAgentError):
        bfcl_case(ROW | {"function": [ROW["function"][0], ROW["function"][0]]}, [])


def test_bfcls_schemas_become_json_schemas():
    said = {
        "type": "dict",
        "properties": {"a": {"type": "float", "default": 1}, "b": {"type": "any"}},
        "required": ["a"],
    }
    wanted = {"type": "object", "properties": {"a": {"type": "number"}, "b": {}}, "required": ["a"]}
    assert json_schema(said) == wanted


def test_bfcls_names_become_names_of_tools():
    assert own_name("math.factorial") == "math_factorial"
    assert own_name("__list_users") == "list_users"


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "notify", "arguments": {"to": "a"}}',
        'Sure! {"tool": "notify", "args": {"to": "a"}} Done.',
        '{"name": "other", "arguments": {}} {"function": "notify", "parameters": {"to": "a"}}',
        '{"calls": [{"name": "notify", "arguments": {"to": "a"}}]}',
    ],
)
def test_the_first_call_of_a_tool_is_found_in_what_was_written(text):
    assert first_call(text, ("notify",)) == ToolCall("notify", {"to": "a"})


@pytest.mark.parametrize("text", ["", "I cannot.", '{"name": "notify", "arg', '{"name": "x", "arguments": {}}', "{{"])
def test_words_and_halves_of_calls_are_no_call(text):
    assert first_call(text, ("notify",)) is None


def test_the_schema_of_a_call_names_each_tool():
    schema = call_schema(agent)
    assert [each["properties"]["name"]["const"] for each in schema["anyOf"]] == list(agent.tool_names)
