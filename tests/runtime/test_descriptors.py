"""Tools that fork, or close descriptors which are not theirs: nothing is lost, and nothing reaches a foreign file."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeagent import Agent, tool
from edgeagent.core.events import ToolReturned
from edgeagent.errors import ConfigError, TraceError
from edgeagent.runtime.folder import Beginning, lock
from edgeagent.runtime.session import Session, new_session
from edgeagent.runtime.wiring import step_of
from edgeagent.trace.file import TraceFile, examine_file
from edgeagent.trace.recover import Clean

sys.path.insert(0, str(Path(__file__).parents[2]))

from edgeagent.codec.dialect import dialect_called
from edgeagent.core.effects import AskModel, CallTool
from edgeagent.core.events import UserSaid
from edgeagent.doors.cli.terminal import OUT_OF_REACH
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.driver.tool import ToolDriver

pytestmark = pytest.mark.long


def session_of(root: Path, do: Callable[[], str]) -> Session:
    """A session whose model calls the tool `work`, which does this, twice, and answers."""

    @tool(idempotent=False)
    def work(number: int) -> str:
        """Do some work."""
        return do()

    agent = Agent("worker", "You work.", [work], dialect=dialect_called("plain"))
    calls = (f'{{"name": "work", "arguments": {{"number": {n}}}}}' for n in (1, 2))
    drivers = {AskModel: ScriptedModel((*calls, "Done.")), CallTool: ToolDriver(agent.by_name)}
    return new_session(agent, step_of(agent), drivers, root, Beginning(agent_spec="a.py", model="script"))  # type: ignore[arg-type] # the drivers are the real ones


def results(session: Session) -> list[str]:
    found = examine_file(session.trace_path)
    assert isinstance(found.verdict, Clean)
    return [r.event.value for r in found.records if isinstance(r.event, ToolReturned)]


def _forks() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # From 3.12 on: other threads are running.
        child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    return child


def _multiprocesses() -> int:
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    assert child.pid is not None
    return child.pid


def _starts_a_program() -> int:
    return os.posix_spawnp("sleep", ["sleep", "60"], os.environ)


@pytest.mark.parametrize("begin", [_forks, _multiprocesses, _starts_a_program])
def test_a_child_that_a_tool_leaves_behind_does_not_keep_the_session(tmp_path: Path, begin: Callable[[], int]) -> None:
    children: list[int] = []

    def do() -> str:
        children.append(begin())
        return "begun"

    session = session_of(tmp_path, do)
    try:
        session.say("Work.")
        with pytest.raises(ConfigError, match="in use by process"):
            lock(session.directory)
        session.close()
        lock(session.directory).release()
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def test_a_tool_that_closes_every_descriptor_from_three_on_loses_nothing(tmp_path: Path) -> None:
    code = f"""
import sys; sys.path[:0] = [{str(Path(__file__).parents[2])!r}, {str(Path(__file__).parent)!r}]
import os
from pathlib import Path
from test_descriptors import results, session_of
foreign = Path({str(tmp_path / "foreign")!r})

def do():
    os.closerange(3, 256)
    files = [open(foreign, "ab") for _ in range(20)]  # They get the numbers that were ours.
    do.kept = files
    return "closed"

session = session_of(Path({str(tmp_path)!r}), do)
session.say("Work.")
session.close()
print(len(results(session)), foreign.stat().st_size, [f.write(b"x") for f in do.kept][0])
"""
    ran = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert ran.stdout.split() == ["2", "0", "1"], ran.stderr


def test_a_trace_whose_descriptor_was_closed_and_whose_file_was_exchanged_stops(tmp_path: Path) -> None:
    trace = TraceFile.create(tmp_path / "t")
    trace.append(UserSaid(1, "a"), (), sync=True)
    os.close(trace._descriptor)
    (tmp_path / "t").rename(tmp_path / "moved")
    (tmp_path / "t").write_bytes(b"another")
    with pytest.raises(TraceError, match="a tool closed the trace's descriptor, and another file is in its place"):
        trace.append(UserSaid(2, "b"), (), sync=True)
    trace.close()
    assert (tmp_path / "t").read_bytes() == b"another"


def test_a_lock_whose_descriptor_was_closed_is_taken_again_or_the_session_stops(tmp_path: Path) -> None:
    session = session_of(tmp_path, lambda: os.close(held._descriptor) or "closed")
    held = session._held
    session.say("Work.")
    with pytest.raises(ConfigError, match="in use by process"):
        lock(session.directory)
    os.close(held._descriptor)
    foreign = os.open("/dev/null", os.O_RDONLY)  # It gets the lock's number.
    other = lock(session.directory)
    with pytest.raises(ConfigError, match="in use by process"):
        session.say("And now?")
    other.release()
    session.close()
    os.close(foreign)


DAEMON = '''
import os, time
from edgeagent import Agent, tool

@tool(idempotent=True)
def begin() -> str:
    """Leave a child behind."""
    if os.fork() == 0:
        for descriptor in (0, 1, 2):
            os.close(descriptor)
        time.sleep(300)
        os._exit(0)
    return "begun"

agent = Agent("starter", "You start things.", [begin])
'''


def test_whoever_reads_our_answers_does_not_wait_for_a_child_that_a_tool_has_left_behind(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(DAEMON)
    (tmp_path / "script.json").write_text('["{\\"name\\": \\"begin\\", \\"arguments\\": {}}", "Begun."]')
    command = [sys.executable, "-m", "edgeagent", "run", "agent.py", "Begin.", "--model", "script:script.json"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "EDGEAGENT_STATE": "state"}
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=True
    )
    assert ran.stdout == "Begun.\n"


AGENT = '''
import os
from edgeagent import Agent, tool

@tool(idempotent=True)
def tidy() -> str:
    """Close what is open."""
    os.closerange(3, {most})
    open("foreign", "a")
    os.dup2(os.open("foreign", os.O_WRONLY), 1_000)
    return "closed"

agent = Agent("tidier", "You tidy up.", [tidy])
'''


@pytest.mark.parametrize("output", [(), ("-o", "answer")])
@pytest.mark.parametrize("most", [256, 4096, 70_000])
def test_an_answer_after_descriptors_were_closed_arrives_or_the_exit_code_says_that_it_did_not(
    tmp_path: Path, most: int, output: tuple[str, ...]
) -> None:
    (tmp_path / "agent.py").write_text(AGENT.format(most=most))
    (tmp_path / "script.json").write_text('["{\\"name\\": \\"tidy\\", \\"arguments\\": {}}", "All tidy."]')
    arguments = ("run", "agent.py", "Tidy up.", "--model", "script:script.json", "--state", "state", *output)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "edgeagent", *arguments]
    where = {"cwd": tmp_path, "env": environment, "timeout": 60}
    ran = subprocess.run(command, **where, check=False, capture_output=True, text=True)
    assert (tmp_path / "foreign").read_bytes() == b""
    answer = (tmp_path / "answer").read_text() if output else ran.stdout
    arrives = most < min(OUT_OF_REACH, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 16)
    # 120 is Python's own, where what is buffered cannot be written at the end; which of the two comes is luck.
    codes = (0,) if arrives else (1, 120)
    assert (answer, ran.returncode in codes) == ("All tidy.\n" if arrives else "", True)
    assert "Traceback" not in ran.stderr
