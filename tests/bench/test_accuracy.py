"""The accuracy bench's lists, its split and its checker."""

from __future__ import annotations

import pytest

pytest.importorskip("llama_cpp")

from bench.accuracy.cases import Case, cases_of, json_schema, own_name
from bench.accuracy.judge import is_right, wilson
from edgeagent.core.values import ToolCall
from examples.greenhouse import agent

OPEN = Case("one", "Open it.", agent, {"set_valve": {"valve": ["north"], "open": [True], "seconds": [60]}})


def test_forty_greenhouse_requests_ten_of_which_should_not_call():
    cases = cases_of("greenhouse", "report", 100)
    assert (len(cases), sum(case.right is None for case in cases)) == (40, 10)


@pytest.mark.parametrize("name", ["greenhouse", "gateway"])
def test_every_right_call_of_our_lists_is_one_that_its_tool_takes(name):
    for case in cases_of(name, "report", 100):
        for tool, arguments in (case.right or {}).items():
            case.agent.by_name[tool].parameters.decode({key: values[0] for key, values in arguments.items()})


def test_no_greenhouse_request_is_an_example_of_its_tools():
    examples = {each for tool in agent.tools for each in tool.examples}
    assert not examples & {case.request for case in cases_of("greenhouse", "report", 100)}


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        ({"valve": "north", "open": True, "seconds": 60}, True),
        ({"valve": "north", "open": True}, True),  # 60 is the default.
        ({"valve": "north", "open": True, "seconds": 30}, False),
        ({"valve": "south", "open": True}, False),
        ({"valve": "north", "open": 1}, False),
    ],
)
def test_a_call_is_right_when_every_argument_is(arguments, right):
    assert is_right(OPEN, ToolCall("set_valve", arguments)) is right


def test_a_call_of_another_tool_is_wrong():
    assert not is_right(OPEN, ToolCall("notify", {}))


def test_wilsons_interval():
    low, high = wilson(34, 40)
    assert (round(low, 3), round(high, 3)) == (0.709, 0.929)
    assert wilson(0, 10)[0] == 0
    assert wilson(0, 0) == (0, 1)


def test_bfcls_schemas_become_json_schemas():
    said = {
        "type": "dict",
        "properties": {"a": {"type": "float", "default": 1}, "b": {"type": "any"}},
        "required": ["a"],
    }
    wanted = {"type": "object", "properties": {"a": {"type": "number"}, "b": {}}, "required": ["a"]}
    assert json_schema(said) == wanted
    assert own_name("math.factorial") == "math_factorial"
