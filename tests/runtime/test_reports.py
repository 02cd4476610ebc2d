"""Reported faults of resuming, as cases. The docstrings name the reports."""

from __future__ import annotations

import json
from pathlib import Path

from edgeagent.codec.dialect import dialect_called
from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import AskModel, AskUser, CallTool
from edgeagent.core.events import EffectLost, ModelAnswered, UserDecided
from edgeagent.core.state import State
from edgeagent.driver.person import Decision, PersonDriver
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.driver.tool import ToolDriver
from edgeagent.policy.ready import confirm_before
from edgeagent.runtime.folder import Beginning
from edgeagent.runtime.resume import resume_session
from edgeagent.runtime.session import Session, new_session
from edgeagent.runtime.vouched import accept
from edgeagent.runtime.wiring import step_of
from edgeagent.trace.file import examine_file


class World:
    """An agent with three tools that must not run twice, one that asks another agent, and what has run."""

    def __init__(self, root: Path, *, rules: tuple = (), asks: tuple[Decision, ...] = ()) -> None:
        self.root, self.ran = root, []
        self.questions: list[AskUser] = []
        self._decisions = list(asks)
        tools = [self._tool(name) for name in ("mail", "store", "pay")]
        clerk = Agent("clerk", "You pay.", tools[2:], dialect=dialect_called("plain"))
        below = clerk.as_tool(description="Have something paid.")
        self.agent = Agent("boss", "You work.", (*tools[:2], below), rules, dialect=dialect_called("plain"))

    def start(self, *script: str) -> Session:
        beginning = Beginning(agent_spec="boss.py", model="script", seed=1)
        return new_session(self.agent, step_of(self.agent), self._drivers(script), self.root, beginning)

    def resume(self, directory: Path, *script: str) -> Session:
        return resume_session(directory, self.agent, step_of(self.agent), self._drivers(script))

    def _drivers(self, script: tuple[str, ...]) -> dict:
        person = PersonDriver(self._decide)
        return {AskModel: ScriptedModel(script), CallTool: ToolDriver(self.agent.family), AskUser: person}

    def _decide(self, question: AskUser) -> Decision:
        self.questions.append(question)
        return self._decisions.pop(0)

    def _tool(self, name: str) -> object:
        def run(what: str) -> str:
            self.ran.append(f"{name} {what}")
            return f"{name} done"

        run.__name__, run.__doc__ = name, f"The tool {name}."
        return tool(idempotent=False)(run)


def call(*calls: tuple[str, dict]) -> str:
    return json.dumps([{"name": name, "arguments": arguments} for name, arguments in calls])


def cut_after(directory: Path, wanted: type, text: str = "") -> None:
    """Cut the trace behind the first event of this kind that holds this text."""
    path = directory / "trace.cbor"
    record = next(r for r in examine_file(path).records if isinstance(r.event, wanted) and text in str(r.event))
    path.write_bytes(path.read_bytes()[: record.offset + record.size])
    accept(directory)


def finish(session: Session) -> State:
    state = session.resume_turn()
    session.close()
    return state


def test_a_crash_in_the_third_call_of_a_batch_repeats_neither_of_the_first_two(tmp_path: Path) -> None:
    """agent-framework#3938: a crash in the third tool of a turn, and mail and store ran again."""
    world = World(tmp_path)
    batch = call(("mail", {"what": "a"}), ("store", {"what": "b"}), ("mail", {"what": "c"}))
    session = world.start(batch, "All done.")
    session.say("Mail a, store b, mail c.")
    session.close()
    path = session.trace_path
    returned = [r for r in examine_file(path).records if type(r.event).__name__ == "ToolReturned"]
    path.write_bytes(path.read_bytes()[: returned[1].offset + returned[1].size])
    accept(session.directory)
    before = list(world.ran)
    state = finish(world.resume(session.directory, "Two are done, one is unknown."))
    assert world.ran == before
    told = [m.text for exchange in state.past for m in exchange.messages if m.role == "tool"]
    assert sum("unknown" in text for text in told) == 1


def test_an_interrupt_below_repeats_nothing_above(tmp_path: Path) -> None:
    """langgraph#6792: an interrupt inside a subgraph, and the tasks before it ran again."""
    world = World(tmp_path)
    script = (call(("mail", {"what": "a"})), call(("clerk", {"request": "pay b"})), call(("pay", {"what": "b"})))
    session = world.start(*script, "Paid.", "Mailed and paid.")
    session.say("Mail a, then have b paid.")
    session.close()
    cut_after(session.directory, ModelAnswered, '"clerk"')
    before = world.ran[:1]
    world.ran.clear()
    state = finish(world.resume(session.directory, script[2], "Paid.", "Mailed and paid."))
    assert before == ["mail a"]
    assert world.ran == ["pay b"]
    assert state.outcome is not None
    assert state.outcome.kind == "answered"


def test_a_yes_is_for_what_was_shown_even_when_the_model_writes_something_else_after_a_crash(tmp_path: Path) -> None:
    """langflow#13633: resuming asked the model again, and what a person had approved was another call."""
    rules = (confirm_before("mail", because="mails cannot be taken back"),)
    world = World(tmp_path, rules=rules, asks=(Decision(True), Decision(False)))
    session = world.start(call(("mail", {"what": "a"})), "Mailed.")
    session.say("Mail a.")
    session.close()
    cut_after(session.directory, type(examine_file(session.trace_path).records[1].event))  # Only the word is left.
    world.ran.clear()
    finish(world.resume(session.directory, call(("mail", {"what": "everything"})), "Not mailed."))
    assert world.ran == []
    assert [json.loads(q.arguments)["what"] for q in world.questions] == ["a", "everything"]


def test_a_yes_that_was_recorded_is_used_once_and_for_that_call(tmp_path: Path) -> None:
    """The approved call was cut off before its result: it may have run, so it is reported and the yes is used up."""
    rules = (confirm_before("mail", because="mails cannot be taken back"),)
    world = World(tmp_path, rules=rules, asks=(Decision(True), Decision(False)))
    session = world.start(call(("mail", {"what": "a"})), "Mailed.")
    session.say("Mail a.")
    session.close()
    cut_after(session.directory, UserDecided)
    world.ran.clear()
    finish(world.resume(session.directory, call(("mail", {"what": "b"})), "I do not know."))
    assert world.ran == []
    assert len(world.questions) == 2, "another call asks again"


def test_a_batch_that_was_half_written_is_not_begun(tmp_path: Path) -> None:
    """redis, aof.tcl: an unfinished transaction at the end of the log is not applied."""
    world = World(tmp_path)
    batch = call(("mail", {"what": "a"}), ("store", {"what": "b"}))
    session = world.start(batch, "Done.")
    session.say("Mail a, store b.")
    session.close()
    path = session.trace_path
    written = next(r for r in examine_file(path).records if isinstance(r.event, ModelAnswered))
    path.write_bytes(path.read_bytes()[: written.offset + written.size // 2])
    accept(session.directory)
    world.ran.clear()
    state = finish(world.resume(session.directory, batch, "Done."))
    assert sorted(world.ran) == ["mail a", "store b"]
    assert not any(isinstance(r.event, EffectLost) and r.event.effect_id > 1 for r in examine_file(path).records)
    assert state.outcome is not None
    assert state.outcome.kind == "answered"
