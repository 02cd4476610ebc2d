"""A fork knows what the session it was made from has done since: that counts, and is not done again by itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgeagent import Agent, Budget, tool
from edgeagent.core.agent import Tool
from edgeagent.core.effects import AskUser
from edgeagent.core.events import Forked, UserSaid
from edgeagent.doors.cli.sessions import fork as fork_command
from edgeagent.errors import ConfigError
from edgeagent.policy.ready import at_most
from edgeagent.runtime.door import Decision, QuietDoor
from edgeagent.runtime.folder import TRACE_NAME
from edgeagent.runtime.fork import MADE_MAX, fork_session
from edgeagent.runtime.open import OpenRequest, open_session
from edgeagent.trace.file import examine_file


class Answering(QuietDoor):
    """A door whose person says yes, or no, to everything, and is remembered."""

    def __init__(self, *, says: bool = False) -> None:
        self.asked: list[str] = []
        self._says = says

    def decide(self, question: AskUser) -> Decision:
        self.asked.append(question.because)
        return Decision(self._says, "", question.digest)


class Bank:
    """An agent that pays and looks, what it has done, and its sessions."""

    def __init__(
        self, root: Path, *policies: object, calls_of: dict[str, int] | None = None, below: bool = False
    ) -> None:
        self.root, self.done = root, []
        budget = None if calls_of is None else Budget(steps=99, calls_of=calls_of)
        tools = self._tools()
        if below:
            clerk = Agent("clerk", "You pay.", tools)
            tools = (clerk.as_tool(description="Have something paid."),)
        self.agent = Agent("bank", "You pay bills.", tools, policies=policies, session_budget=budget)

    def _tools(self) -> tuple[Tool, ...]:
        @tool(idempotent=False)
        def pay(bill: int) -> str:
            """Pay a bill."""
            self.done.append(f"pay {bill}")
            return "paid"

        @tool(idempotent=True)
        def look() -> str:
            """Look."""
            self.done.append("look")
            return "fine"

        return pay, look

    def open(self, *answers: str, door: QuietDoor | None = None, resume: str | None = None):
        script = self.root / "script.json"
        before = 0 if resume is None else sum(type(e).__name__ == "ModelAnswered" for e in self.events(resume))
        script.write_text(json.dumps([*["-"] * before, *answers]))
        request = OpenRequest(agent=self.agent, model=f"script:{script}", state=self.root / "state", resume=resume)
        return open_session(request, door or QuietDoor())

    def events(self, name: str) -> list[object]:
        return [r.event for r in examine_file(self.root / "state" / "sessions" / name / TRACE_NAME).records]

    def live(self, *answers: str, words: str = "Pay bill 1.") -> Path:
        with self.open(*answers) as session:
            session.say(words)
        self.done.clear()
        return session.directory

    def fork(self, source: Path, *, again: bool = False):
        at = 1 + next(n for n, e in enumerate(self.events(source.name)) if isinstance(e, UserSaid))
        return fork_session(self.root / "state", source, at=at, again=again, agent=self.agent)


def pays(*bills: int) -> str:
    return json.dumps([{"name": "pay", "arguments": {"bill": bill}} for bill in bills])


LOOKS = '{"name": "look", "arguments": {}}'


@pytest.mark.parametrize(("says", "done"), [(False, []), (True, ["pay 1"])])
def test_what_was_done_after_the_cut_is_asked_about_before_the_fork_does_it_again(
    tmp_path: Path, says: bool, done: list[str]
) -> None:
    bank = Bank(tmp_path)
    forked = bank.fork(bank.live(pays(1), "Paid."))
    assert forked.once == (("pay", '{"bill":1}'),)
    door = Answering(says=says)
    with bank.open(pays(1), "Done.", door=door, resume=forked.directory.name) as session:
        state = session.resume_turn()
    assert door.asked == ["the session that this one was forked from has made exactly this call of pay already"]
    assert bank.done == done
    assert state.outcome.kind == ("answered" if says else "refused")


def test_a_fork_of_a_fork_knows_what_both_have_done(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    first = bank.fork(bank.live(pays(1), "Paid.")).directory
    with bank.open(pays(2), "Paid.", resume=first.name) as session:
        session.resume_turn()
    assert bank.done == ["pay 2"]
    at = 1 + next(n for n, e in enumerate(bank.events(first.name)) if isinstance(e, Forked))
    second = fork_session(tmp_path / "state", first, at=at, agent=bank.agent).directory
    door = Answering()
    with bank.open(pays(1, 2), "Done.", door=door, resume=second.name) as session:
        session.resume_turn()
    assert bank.done == ["pay 2"]
    assert len(door.asked) == 2


def test_what_may_be_repeated_is_repeated_unasked(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    forked = bank.fork(bank.live(LOOKS, "Fine."))
    assert forked.once == ()
    with bank.open(LOOKS, "Fine.", door=(door := Answering()), resume=forked.directory.name) as session:
        session.resume_turn()
    assert (bank.done, door.asked) == (["look"], [])


def test_with_again_the_fork_knows_nothing_of_it(tmp_path: Path) -> None:
    bank = Bank(tmp_path, at_most(1, "pay", per="session"))
    forked = bank.fork(bank.live(pays(1), "Paid."), again=True)
    with bank.open(pays(1), "Paid.", resume=forked.directory.name) as session:
        session.resume_turn()
    assert bank.done == ["pay 1"]


def test_what_was_done_after_the_cut_counts_for_rules_of_a_session(tmp_path: Path) -> None:
    bank = Bank(tmp_path, at_most(1, "pay", per="session"))
    forked = bank.fork(bank.live(pays(1), "Paid."))
    with bank.open(pays(2), "Not paid.", resume=forked.directory.name) as session:
        assert session.resume_turn().outcome.kind == "refused"
    assert bank.done == []


def test_what_was_done_after_the_cut_counts_for_budgets_of_a_session(tmp_path: Path) -> None:
    bank = Bank(tmp_path, calls_of={"pay": 2})
    forked = bank.fork(bank.live(pays(1), "Paid."))
    with bank.open(pays(2), pays(3), "Not paid.", resume=forked.directory.name) as session:
        session.resume_turn()
    assert bank.done == ["pay 2"]


def test_what_a_sub_agent_did_after_the_cut_is_asked_about_too(tmp_path: Path) -> None:
    bank = Bank(tmp_path, below=True)
    ask = '{"name": "clerk", "arguments": {"request": "pay bill 1"}}'
    forked = bank.fork(bank.live(ask, pays(1), "Paid.", "It is paid."))
    door = Answering()
    with bank.open(ask, pays(1), "Not paid.", "It is not.", door=door, resume=forked.directory.name) as session:
        session.resume_turn()
    assert bank.done == []
    assert "exactly this call of pay" in door.asked[-1]


def test_a_fork_of_everything_needs_no_agent_and_one_before_a_call_says_so(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    source = bank.live(pays(1), "Paid.")
    assert fork_session(tmp_path / "state", source).once == ()
    with pytest.raises(ConfigError, match=r"what session .* has done after record 2 cannot be told.*--agent.*--again"):
        fork_session(tmp_path / "state", source, at=2)


def test_an_agent_that_would_have_acted_otherwise_does_not_tell_what_was_done(tmp_path: Path) -> None:
    bank, other = Bank(tmp_path), Bank(tmp_path, at_most(0, "pay"))
    with pytest.raises(ConfigError, match="cannot be told"):
        other.fork(bank.live(pays(1), "Paid."))


def test_more_calls_than_a_fork_can_know_of_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MADE_MAX == 512
    monkeypatch.setattr("edgeagent.runtime.fork.MADE_MAX", 1)
    bank = Bank(tmp_path)
    with pytest.raises(ConfigError, match="has made 2 calls after record 2, and 1 is the most"):
        bank.fork(bank.live(pays(1, 2), "Paid."))


def test_a_fork_folds_to_the_same_state_again(tmp_path: Path) -> None:
    bank = Bank(tmp_path, at_most(3, "pay", per="session"))
    forked = bank.fork(bank.live(pays(1), "Paid.")).directory
    with bank.open(pays(2), "Paid.", resume=forked.name) as session:
        state = session.resume_turn()
    (forked / "snapshot.cbor").unlink()
    with bank.open(resume=forked.name) as session:
        assert session.state == state
        assert len(session.state.done) == 1


def test_the_command_lists_what_was_done_and_takes_the_agent_that_it_is_told(tmp_path: Path) -> None:
    file = tmp_path / "payer.py"
    file.write_text(
        "from edgeagent import Agent, tool\n\n"
        "@tool(idempotent=False)\ndef pay(bill: int) -> str:\n    '''Pay.'''\n    return 'paid'\n\n"
        "agent = Agent('bank', 'You pay.', [pay])\n"
    )
    (tmp_path / "script.json").write_text(json.dumps([pays(1), "Paid."]))
    model, state = f"script:{tmp_path / 'script.json'}", tmp_path / "state"
    with open_session(OpenRequest(agent=str(file), model=model, state=state), QuietDoor()) as session:
        session.say("Pay.")
    moved = file.rename(tmp_path / "moved.py")
    arguments = [session.id, "--at", "2", "--state", str(state)]
    said = CliRunner().invoke(fork_command, arguments, standalone_mode=False).exception
    assert isinstance(said, ConfigError)
    done = CliRunner().invoke(fork_command, [*arguments, "--agent", str(moved)], standalone_mode=False)
    assert "went on to make pay(bill=1); the fork asks before it makes that call again" in done.stderr
    assert (state / "sessions" / done.stdout.strip() / TRACE_NAME).exists()
