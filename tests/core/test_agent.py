"""What an author declares, and what is wrong with it when it is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator

import pytest

from edgeagent.core.agent import Agent, Tool, tool
from edgeagent.core.names import is_writable
from edgeagent.core.values import ToolCall
from edgeagent.errors import ConfigError, ShapeError


@tool(idempotent=True)
def good(count: int = 1) -> int:
    """Do good."""
    return count + 1


def test_a_tool_can_still_be_called_as_a_function():
    assert good(2) == 3


def test_a_type_that_no_schema_can_express_names_tool_and_field():
    @tool(idempotent=True)
    def bad(what: complex) -> None:
        """Do."""

    with pytest.raises(ShapeError, match=r"bad.*what"):
        Agent(name="a", tools=[bad])


def test_an_argument_without_a_type_names_tool_and_field():
    @tool(idempotent=True)
    def bad(what) -> None:
        """Do."""

    with pytest.raises(ShapeError, match=r"bad.*what"):
        Agent(name="a", tools=[bad])


def test_a_tool_without_a_docstring_is_refused():
    @tool(idempotent=True)
    def silent() -> None: ...

    with pytest.raises(ShapeError, match=r"silent.*docstring"):
        Agent(name="a", tools=[silent])


def test_a_plain_function_among_the_tools_is_refused_with_the_remedy():
    with pytest.raises(ConfigError, match=r"@tool\(idempotent"):
        Agent(name="a", tools=[len])


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="two tools called good"):
        Agent(name="a", tools=[good, good])


@pytest.mark.parametrize("name", ["", "9lives", "a b", "x" * 65, 'a"b'])
def test_a_name_that_could_break_a_grammar_is_refused(name):
    with pytest.raises(ConfigError, match="name"):
        Agent(name=name)


def test_the_digest_changes_with_what_the_agent_may_do():
    digests = {
        Agent(name="a", tools=[good]).digest,
        Agent(name="a").digest,
        Agent(name="a", system="x").digest,
    }
    assert len(digests) == 3
    assert Agent(name="a", tools=[good]).digest in digests


def test_a_forgotten_idempotent_is_told_with_the_two_ways_to_write_it():
    with pytest.raises(ConfigError, match=r"tool blink: idempotent is missing; write @tool\(idempotent=True\)"):

        @tool()
        def blink() -> None:
            """Blink."""


def test_tool_without_brackets_is_told():
    with pytest.raises(ConfigError, match="tool blink: @tool stands without brackets"):

        @tool
        def blink() -> None:
            """Blink."""


def test_a_name_that_is_no_keyword_is_told():
    with pytest.raises(ConfigError, match="by keyword"):
        tool("blink", idempotent=True)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"effect": "raed"}, "effect is 'raed'; it must be one of read, write, irreversible"),
        ({"effect": ["read"]}, "effect is"),
        ({"idempotent": "no"}, "idempotent is 'no'; it must be True or False"),
        ({"confirm": "always"}, "confirm is 'always'; it must be True or False"),
        ({"timeout_s": 0}, "timeout_s is 0; it must be above 0"),
        ({"timeout_s": "5"}, "timeout_s is '5'"),
        ({"timeout_s": float("nan")}, "timeout_s is nan"),
        ({"timeout_s": float("inf")}, "timeout_s is inf; it must be above 0 and at most 1,000,000,000"),
        ({"timeout_s": 10**400}, "timeout_s is 1000"),
        ({"examples": "Blink."}, "examples is 'Blink.'; it must be a list of requests"),
        ({"pre": "volts > 3"}, "pre is 'volts > 3'; it must be a function"),
        ({"notes": ["lost"]}, "notes is ['lost']; it must be a function that gives texts"),
        ({"readonly": True}, "there is no option readonly; there are: idempotent, effect"),
    ],
)
def test_a_word_that_is_none_of_the_known_ones_is_refused_when_it_is_declared(options, reason):
    with pytest.raises(ConfigError, match=f"^tool blink: {re.escape(reason)}"):

        @tool(**{"idempotent": True, **options})
        def blink() -> None:
            """Blink."""


@pytest.mark.parametrize(
    ("say", "reason"),
    [
        ("{valve} is open for {secs} s", "and there is no secs; there are: valve, seconds, result"),
        ("{} is open", "and there is no name in its braces; there are:"),
        ("{valve is open", "whose braces do not match"),
        ("{valve} is open}", "whose braces do not match"),
    ],
)
def test_what_is_said_after_a_call_can_name_only_what_there_is(say, reason):
    @tool(idempotent=True, say=say)
    def open_valve(valve: str, seconds: int) -> bool:
        """Open a valve."""

    with pytest.raises(ConfigError, match=f"^tool open_valve: say is .*{re.escape(reason)}"):
        Agent("garden", tools=[open_valve])


def test_what_is_said_after_a_call_may_hold_braces_of_its_own():
    @tool(idempotent=True, say="{{{valve}}}: {result}")
    def open_valve(valve: str) -> bool:
        """Open a valve."""

    assert Agent("garden", tools=[open_valve]).tools[0].say == "{{{valve}}}: {result}"


def test_a_language_that_is_not_read_is_refused_when_it_is_declared():
    with pytest.raises(ConfigError, match=r"agent garden: language is 'klingon'; it is one of en, de"):
        Agent("garden", language="klingon")


@pytest.mark.parametrize(
    "returned",
    [Iterator[int], Generator[int, None, None], list[Iterator[str]], complex, Callable[[], int], dict[str, complex]],
    ids=str,
)
def test_a_declared_result_that_no_text_can_be_made_of_is_refused(returned):
    def listing():
        """List."""

    listing.__annotations__["return"] = returned
    with pytest.raises(ShapeError, match="tool listing: it returns"):
        Agent(name="a", tools=[tool(idempotent=True)(listing)])


def test_a_generator_without_a_declared_result_is_refused():
    @tool(idempotent=True)
    def listing():
        """List."""
        yield 1

    with pytest.raises(ShapeError, match=r"tool listing: it yields .* return a list"):
        Agent(name="a", tools=[listing])


ROOM = {"type": "object", "properties": {"room": {"enum": ["hall", "attic"]}}, "required": ["room"]}


def lamp(name: str, **options) -> Tool:
    return Tool.of_schema(name, "Switch a lamp.", ROOM, lambda given: given["room"], idempotent=True, **options)


def test_a_tool_by_schema_gets_its_arguments_as_one_mapping():
    made = lamp("home/lamp.set", effect="read")
    assert made.function(**made.parameters.decode({"room": "hall"})) == "hall"
    assert (made.name, made.effect, made.description) == ("home/lamp.set", "read", "Switch a lamp.")
    with pytest.raises(ShapeError, match="room"):
        made.parameters.decode({"room": "cellar"})


@pytest.mark.parametrize(
    ("schema", "reason"),
    [({"type": "array"}, "of an object"), ({"$ref": "#/nowhere"}, "points at nothing"), ([], "of an object")],
)
def test_a_schema_that_says_nothing_about_arguments_is_refused(schema, reason):
    with pytest.raises(ShapeError, match=f"tool lamp: .*{reason}"):
        Tool.of_schema("lamp", "Switch.", schema, print, idempotent=True)


@pytest.mark.parametrize("name", ["", "a b", "a" * 129, "a\nb", "-a", "ü", "a:b"])
def test_a_tool_name_that_no_protocol_knows_is_refused(name):
    with pytest.raises(ConfigError, match="tool name"):
        lamp(name)


def test_names_are_written_so_that_a_model_can_and_no_two_alike():
    names = [
        "home/lamp.set",
        "home_lamp_set",
        "home.lamp.set",
        "9lives",
        "_hidden",
        "x" * 128,
        "x" * 127 + "y",
        "plain",
    ]
    agent = Agent(name="a", tools=[lamp(name) for name in names])
    written = [t.written for t in agent.tools]
    assert agent.tool_names == tuple(names)
    assert written[:4] == ["home_lamp_set_2", "home_lamp_set", "home_lamp_set_3", "t_9lives"]
    assert len(set(written)) == len(names) and all(is_writable(each) for each in written)
    assert [agent.as_declared(ToolCall(each, {})).tool for each in written] == names


def test_a_tool_of_two_agents_is_one_tool_though_each_writes_its_name_differently():
    both = lamp("home.lamp")
    below = Agent(name="below", tools=[both])
    agent = Agent(name="a", tools=[both, lamp("home_lamp"), below.as_tool(description="Ask below.")])
    assert set(agent.family) == {"home.lamp", "home_lamp", "below", "result_more"}
