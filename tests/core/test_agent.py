"""What an author declares, and what is wrong with it when it is wrong."""

from __future__ import annotations

import pytest

from edgeagent.core.agent import Agent, tool
from edgeagent.errors import ConfigError, ShapeError


@tool(idempotent=True)
def good(count: int = 1) -> int:
    """Do good."""
    return count + 1


def test_a_tool_can_still_be_called_as_a_function():
    assert good(2) == 3


def test_idempotent_has_no_default():
    with pytest.raises(TypeError, match="idempotent"):
        tool()


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
