"""What `sessions prune` takes and what it never takes."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from edgeagent import Agent, tool
from edgeagent import open as open_agent
from edgeagent.core.events import ModelAnswered, UserSaid
from edgeagent.driver.llama.kv_head import LENGTH, MAGIC
from edgeagent.errors import ConfigError
from edgeagent.runtime.folder import directories
from edgeagent.runtime.model import Script
from edgeagent.runtime.prune import Plan, Wanted, plan_of, prune, why_it_stays
from edgeagent.runtime.session import Session
from edgeagent.runtime.vouched import accept
from edgeagent.trace.file import examine_file
from edgeagent.version import __version__
from tests.crash.world import QUICK, live, revive, start  # the path above makes it importable

NOW_MS = time.time_ns() // 1_000_000
DAY_MS = 86_400_000


@tool(idempotent=False, effect="irreversible", confirm=True)
def pay(bill: int) -> str:
    """Pay a bill."""
    return f"paid {bill}"


PAYER = Agent("payer", "You pay bills.", [pay], timers=True)
CALL = json.dumps({"name": "pay", "arguments": {"bill": 1}})


def rested(root: Path, answer: str = "Hello.") -> Path:
    """A session that has answered and was closed."""
    with open_agent(PAYER, Script([answer]), state=root) as session:
        session.ask("Hello?")
    time.sleep(0.002)  # So that one is older than the other.
    return session.directory


def cut_off(session: Session) -> Path:
    """The directory of a session whose process has died: its lock is free, and nothing was closed."""
    os.close(session._held._descriptor)
    return session.directory


def names(plan: Plan) -> list[str]:
    return [item.path.name for item in plan.going if item.kind == "session"]


def gone(root: Path, wanted: Wanted, now_ms: int = NOW_MS) -> list[str]:
    plan = plan_of(root, wanted, now_ms)
    return [item.path.name for item, failed in prune(root, plan) if not failed and item.kind == "session"]


def test_without_a_word_about_sessions_none_goes(tmp_path: Path) -> None:
    rested(tmp_path)
    assert plan_of(tmp_path, Wanted(), NOW_MS + 1000 * DAY_MS).going == ()


def test_those_not_used_for_so_long_go(tmp_path: Path) -> None:
    one = rested(tmp_path)
    assert gone(tmp_path, Wanted(older_than_s=30 * 86_400)) == []
    assert gone(tmp_path, Wanted(older_than_s=30 * 86_400), NOW_MS + 31 * DAY_MS) == [one.name]
    assert directories(tmp_path) == []
    assert not (tmp_path / "heads" / one.name).exists()


def test_the_newest_are_kept(tmp_path: Path) -> None:
    made = [rested(tmp_path).name for _ in range(4)]
    assert gone(tmp_path, Wanted(keep=2)) == made[:2]
    assert [d.name for d in directories(tmp_path)] == sorted(made[2:])


def test_the_newest_are_kept_however_old_they_are(tmp_path: Path) -> None:
    made = [rested(tmp_path).name for _ in range(3)]
    assert gone(tmp_path, Wanted(keep=2, older_than_s=1), NOW_MS + DAY_MS) == made[:1]


def test_a_session_of_the_future_is_not_old(tmp_path: Path) -> None:
    rested(tmp_path)
    assert gone(tmp_path, Wanted(older_than_s=60), NOW_MS - 365 * DAY_MS) == []


def test_down_to_a_size_caches_go_first_and_then_the_oldest_sessions(tmp_path: Path) -> None:
    made = [rested(tmp_path) for _ in range(3)]
    (made[2] / "kv").mkdir()
    (made[2] / "kv" / "session.kv").write_bytes(MAGIC + bytes(500_000))
    size = plan_of(tmp_path, Wanted(), NOW_MS).size
    plan = plan_of(tmp_path, Wanted(to_bytes=size - 400_000), NOW_MS)
    assert [item.kind for item in plan.going] == ["session memory"]
    assert names(plan_of(tmp_path, Wanted(to_bytes=size - 505_000), NOW_MS)) == [made[0].name]
    assert names(plan_of(tmp_path, Wanted(to_bytes=0), NOW_MS)) == [d.name for d in made]


def test_a_session_that_somebody_works_in_stays_whoever_names_it(tmp_path: Path) -> None:
    with open_agent(PAYER, Script(["Hello."]), state=tmp_path) as session:
        session.ask("Hello?")
        assert gone(tmp_path, Wanted(keep=0)) == []
        with pytest.raises(ConfigError, match="in use"):
            plan_of(tmp_path, Wanted(named=(session.id,)), NOW_MS)


def test_an_unanswered_question_keeps_its_session_unless_it_is_named(tmp_path: Path) -> None:
    asked = threading.Event()

    def wait_for_ever(question: object) -> bool:
        asked.set()
        threading.Event().wait()
        return False

    (tmp_path / "payer.py").write_text(
        "from edgeagent import Agent, tool\n"
        "@tool(idempotent=False, effect='irreversible', confirm=True)\n"
        "def pay(bill: int) -> str:\n    'Pay a bill.'\n    return f'paid {bill}'\n"
        "agent = Agent('payer', 'You pay bills.', [pay])\n"
    )
    root = tmp_path / "state"
    session = open_agent(str(tmp_path / "payer.py"), Script([CALL]), decide=wait_for_ever, state=root)
    session.begin("Pay it.")
    assert asked.wait(60)
    directory = cut_off(session)
    assert why_it_stays(directory) == "a question waits for its answer"
    assert gone(root, Wanted(keep=0)) == []
    assert gone(root, Wanted(named=(directory.name,))) == [directory.name]


def test_an_unknown_fate_keeps_its_session(tmp_path: Path) -> None:
    directory = rested(tmp_path)
    from msgspec.structs import replace

    from edgeagent.core.values import Outcome
    from edgeagent.runtime import snapshot
    from edgeagent.runtime.wiring import with_dialect

    found = examine_file(directory / "trace.cbor")
    state = snapshot.sealed_state(directory, found)
    assert state is not None
    unknown = replace(state, outcome=Outcome("unknown", 'pay {"bill":1}'))
    (directory / "snapshot.cbor").unlink()
    snapshot.write_snapshot(directory, with_dialect(PAYER, "plain"), unknown, len(found.records), found.head)
    assert gone(tmp_path, Wanted(keep=0)) == []
    assert "what became of a call" in why_it_stays(directory)


def test_a_call_that_a_crash_took_keeps_its_session_whatever_was_said_since(tmp_path: Path) -> None:
    killed = start(tmp_path, lambda _: None, QUICK)
    live(killed)
    path, events = killed.trace_path, examine_file(killed.trace_path).records
    intent = next(r for r in events if isinstance(r.event, ModelAnswered))
    path.write_bytes(path.read_bytes()[: intent.offset + intent.size])
    accept(killed.directory)
    revive(killed.directory, lambda _: None, QUICK)
    assert why_it_stays(killed.directory) == 'what became of a call is not known: pay({"bill":1})'


def test_a_session_of_which_nothing_can_be_told_stays(tmp_path: Path) -> None:
    directory = rested(tmp_path)  # Its agent was given as a value, so without the snapshot nobody can fold it.
    (directory / "snapshot.cbor").unlink()
    assert gone(tmp_path, Wanted(keep=0)) == []
    assert gone(tmp_path, Wanted(named=(directory.name,))) == [directory.name]


def test_a_damaged_session_stays_unless_it_is_named(tmp_path: Path) -> None:
    directory = rested(tmp_path)
    trace = bytearray((directory / "trace.cbor").read_bytes())
    trace[200] ^= 1
    (directory / "trace.cbor").write_bytes(trace)
    assert gone(tmp_path, Wanted(keep=0)) == []


def test_a_session_that_never_began_goes(tmp_path: Path) -> None:
    directory = rested(tmp_path)
    (directory / "trace.cbor").unlink()
    (directory / "snapshot.cbor").unlink()
    assert gone(tmp_path, Wanted(keep=0)) == [directory.name]


def test_a_session_that_was_used_after_the_plan_stays(tmp_path: Path) -> None:
    directory = rested(tmp_path)
    plan = plan_of(tmp_path, Wanted(keep=0), NOW_MS)
    with open_agent(PAYER, Script(["Hello.", "Again."]), state=tmp_path, resume=directory.name) as session:
        session.ask("And now?")
    assert [failed for _, failed in prune(tmp_path, plan)] == ["it has been used meanwhile"]
    assert directory.exists()


def test_two_that_prune_at_once_get_in_nobodys_way(tmp_path: Path) -> None:
    for _ in range(12):
        rested(tmp_path)
    plans = [plan_of(tmp_path, Wanted(keep=0), NOW_MS) for _ in range(2)]
    failures: list[BaseException] = []

    def work(plan: Plan) -> None:
        try:
            list(prune(tmp_path, plan))
        except BaseException as error:  # whatever it is, the test must see it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(plan,)) for plan in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert list((tmp_path / "sessions").iterdir()) == []


def test_a_removal_that_was_killed_halfway_is_no_session_and_goes_with_the_next(tmp_path: Path) -> None:
    directory = rested(tmp_path)
    half = directory.with_name(f".{directory.name}.0123abcd.gone")
    directory.rename(half)
    (half / "session.json").unlink()
    assert directories(tmp_path) == []
    list(prune(tmp_path, plan_of(tmp_path, Wanted(), NOW_MS)))
    assert not half.exists()


def test_foreign_files_and_links_stay(tmp_path: Path) -> None:
    elsewhere = rested(tmp_path / "other")
    rested(tmp_path / "state")
    (tmp_path / "state" / "sessions" / "linked").symlink_to(elsewhere)
    (tmp_path / "state" / "notes.txt").write_text("mine")
    (tmp_path / "state" / "kv").mkdir()
    (tmp_path / "state" / "kv" / "mine.kv").write_text("mine")
    gone(tmp_path / "state", Wanted(keep=0, to_bytes=0))
    assert (elsewhere / "trace.cbor").exists()
    assert (tmp_path / "state" / "notes.txt").exists()
    assert (tmp_path / "state" / "kv" / "mine.kv").exists()


def kv_of(path: Path, mark: str) -> None:
    """A file that begins as a saved memory does."""
    import cbor2

    head = cbor2.dumps([2, mark, []])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(MAGIC + bytes(32) + LENGTH.pack(len(head)) + head + bytes(10_000))


def test_saved_memories_that_nothing_here_can_use_go(tmp_path: Path) -> None:
    import importlib.metadata
    import platform

    ours = importlib.metadata.version("llama_cpp_python")
    machine = platform.machine()
    marks = {
        "version": f"model=a; n_ctx=2048; edgeagent=0.0.1; llama_cpp={ours}; system=CPU : A = 1 | ; machine={machine}",
        "llama": f"model=a; edgeagent={__version__}; llama_cpp=0.0.1; machine={machine}",
        "machine": f"model=a; edgeagent={__version__}; llama_cpp={ours}; machine=z80",
        "model": f"model={'0' * 64}; edgeagent={__version__}; llama_cpp={ours}; machine={machine}",
    }
    for name, mark in marks.items():
        kv_of(tmp_path / "kv" / f"{name}.kv", mark)
    (tmp_path / "kv" / "noise.kv").write_bytes(b"edgeagent-kv\n and noise")
    plan = plan_of(tmp_path, Wanted(), NOW_MS)
    assert {item.path.stem: item.because for item in plan.going} == {
        "version": "of edgeagent 0.0.1",
        "llama": "of llama.cpp 0.0.1",
        "machine": "of another machine (z80)",
        "model": "of a model that is not here any more",
    }
    assert all(not failed for _, failed in prune(tmp_path, plan))
    assert [p.name for p in (tmp_path / "kv").iterdir()] == ["noise.kv"]


def test_a_session_that_has_a_timer_set_stays(tmp_path: Path) -> None:
    call = json.dumps({"name": "set_timer", "arguments": {"seconds": 3600, "note": "look again"}})
    with open_agent(PAYER, Script([call, "I will."]), state=tmp_path) as session:
        session.ask("Look again in an hour.")
    assert session.state.timers
    assert gone(tmp_path, Wanted(keep=0)) == []


def test_a_session_with_records_only_in_its_trace_is_judged_by_them(tmp_path: Path) -> None:
    session = start(tmp_path, lambda _: None, QUICK)
    live(session)
    assert any(isinstance(r.event, UserSaid) for r in examine_file(session.trace_path).records)
    assert why_it_stays(session.directory) == ""
