"""What an author's own test of an agent looks like, without weights."""

from edgeagent import Agent, Budget, confirm_before, tool
from edgeagent.testing import call, scripted


@tool(idempotent=False)
def set_valve(valve: str, seconds: int) -> str:
    """Open a valve for some seconds."""
    return f"{valve} is open for {seconds} s"


AGENT = Agent("garden", "You water.", (set_valve,), (confirm_before("set_valve"),), Budget(tool_calls=1))
NORTH = call("set_valve", valve="north", seconds=30)


def test_the_valve_is_opened_with_a_yes():
    with scripted(AGENT, [NORTH, "It is open."], decide=lambda question: "north" in question.arguments) as session:
        answer = session.ask("Open the north valve.")
    assert [called.result for called in answer.calls] == ["north is open for 30 s"]


def test_nothing_is_opened_without_one():
    with scripted(AGENT, [NORTH, "I may not."]) as session:
        answer = session.ask("Open the north valve.")
    assert (answer.calls, answer.outcome.kind) == ((), "refused")


def test_a_limit_is_a_limit():
    with scripted(AGENT, [NORTH, NORTH.replace("30", "40"), "Enough."], decide=lambda question: True) as session:
        assert session.ask("Open it twice.").outcome.kind == "budget"
