"""The right tool among those of which a request's words speak most."""

from __future__ import annotations

from bench.accuracy.cases import Case, Wanted
from bench.accuracy.recall import merged_tools, own_tools, place_of
from edgeagent.core.agent import Agent, tool


def named(*names):
    def made(name):
        @tool(idempotent=True, name=name)
        def do() -> None:
            """Do something."""

        return do

    return [made(name) for name in names]


def case(request, right, *names):
    return Case(request, request, Agent(name="one", tools=named(*names)), (Wanted(right, {}),))


def test_a_tool_that_the_request_names_is_the_first_and_one_that_fits_alike_counts_before_it():
    asked = next(own_tools([case("Open the valve.", "open_valve", "close_door", "open_valve")]))
    assert place_of(asked) == 0
    tied = next(own_tools([case("Open it.", "open_valve", "open_door", "open_valve", "close_door")]))
    assert place_of(tied) == 1


def test_merged_agents_have_no_more_tools_than_is_said_and_each_request_its_right_one():
    cases = [case(f"Do {n}.", f"a{n}", f"a{n}", f"b{n}") for n in range(5)]
    merged = list(merged_tools(cases, 4))
    assert [len(tools) for _, tools, _ in merged] == [4, 4, 4, 4]
    assert all(right in {tool.name for tool in tools} for _, tools, right in merged)
