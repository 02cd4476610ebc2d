"""Programs and libraries that tools run: what they write past Python says whose it is, and moves no terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from tests.doors.cli.forked import ROOT

pytestmark = pytest.mark.long  # Seconds of CPU: `make test` runs it, `make quick` does not.

AGENT = """
import asyncio, ctypes, multiprocessing, os, subprocess, sys, threading
from edgeagent import Agent, tool

NASTY = "printf 'one\\\\033]0;t\\\\007 \\\\342\\\\200\\\\256two\\\\n'"

async def shell(command):
    await (await asyncio.create_subprocess_shell(command)).wait()

@tool(idempotent=True)
def run() -> str:
    \"\"\"Run a program.\"\"\"
    {does}
    return "ok"

@tool(idempotent=True)
def other() -> str:
    \"\"\"Do nothing.\"\"\"
    return "ok"

agent = Agent("runner", tools=[run, other])
"""

WAYS = {
    "a program's stdout": "subprocess.run(NASTY, shell=True)",
    "a program's stderr": "subprocess.run(NASTY + ' >&2', shell=True)",
    "a program that opens its stderr": "subprocess.run(NASTY + ' > /dev/stderr', shell=True)",
    "os.system": "os.system(NASTY)",
    "a program that is spawned": "os.waitpid(os.posix_spawn('/bin/sh', ['sh', '-c', NASTY], os.environ), 0)",
    "a program of asyncio": "asyncio.run(shell(NASTY))",
    "a forked child": "os.fork() or os.execv('/bin/sh', ['sh', '-c', NASTY]); os.wait()",
    "a library": "(lambda c: (c.puts(b'one\\x1b]0;t\\x07 \\xe2\\x80\\xaetwo'), c.fflush(None)))(ctypes.CDLL(None))",
    "the descriptor": "os.write(2, b'one\\x1b]0;t\\x07 \\xe2\\x80\\xaetwo')",
    "another thread": "[(t.start(), t.join()) for t in [threading.Thread(target=os.system, args=(NASTY,))]]",
    "a program that is given our stdout": "subprocess.run(NASTY, shell=True, stdout=sys.stdout)",
    "a program that is given our stderr": "subprocess.run(NASTY, shell=True, stdout=sys.stderr)",
    "the bytes below stderr": "sys.stderr.buffer.write(b'one\\x1b]0;t\\x07 \\xe2\\x80\\xaetwo\\n')"
    "; sys.stderr.buffer.flush()",
    "a stream that it has closed": "sys.stdout.close(); sys.stderr.close(); os.system(NASTY)",
    "a process of Python": "[(p.start(), p.join()) for p in [multiprocessing.get_context('fork').Process("
    "target=print, args=('one\\x1b]0;t\\x07 \\u202etwo',))]]",
}


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


@pytest.mark.parametrize("way", WAYS)
def test_what_a_tool_s_program_writes_is_told_with_the_tool_s_name(edgeagent, script, tmp_path, way):
    (tmp_path / "agent.py").write_text(AGENT.format(does=WAYS[way]))
    done = edgeagent("run", "agent.py", "go", "--quiet", "--model", script(call("run"), "Done."))
    assert (done.stdout, done.returncode) == ("Done.\n", 0)
    told = [line for line in done.stderr.splitlines() if not line.startswith(("agent.py", "  "))]
    assert told == [r"run printed: one\x1b]0;t\x07 \u202etwo"]


def test_lines_stand_in_the_order_in_which_they_were_written(edgeagent, script, tmp_path):
    does = "[(print('tool', n), os.system(f'echo program {n}'), os.write(1, b'library %d\\n' % n)) for n in range(20)]"
    (tmp_path / "agent.py").write_text(AGENT.format(does=does))
    done = edgeagent("run", "agent.py", "go", "--quiet", "--model", script(call("run"), "Done."))
    assert done.stderr.splitlines() == [
        f"run printed: {who} {n}" for n in range(20) for who in ("tool", "program", "library")
    ]


TOGETHER = """
import os, threading
from edgeagent import Agent, tool

both, is_told = threading.Barrier(2), threading.Event()

@tool(idempotent=True)
def first() -> str:
    \"\"\"Run a program while the other one runs.\"\"\"
    both.wait()
    os.system("echo from one of them")
    is_told.set()
    return "ok"

@tool(idempotent=True)
def second() -> str:
    \"\"\"Wait for the other one.\"\"\"
    both.wait()
    is_told.wait()
    return "ok"

agent = Agent("runner", tools=[first, second])
"""


def test_of_calls_that_run_together_all_are_named(edgeagent, script, tmp_path):
    (tmp_path / "agent.py").write_text(TOGETHER)
    model = script([call("first"), call("second")], "Done.")
    done = edgeagent("run", "agent.py", "go", "--quiet", "--model", model)
    (told,) = done.stderr.splitlines()
    assert told in [f"{names} printed: from one of them" for names in ("first or second", "second or first")]


def test_many_lines_and_one_without_an_end_are_told_whole(edgeagent, script, tmp_path):
    does = "os.system('seq 20000; printf %0100000d 7; printf end')"
    (tmp_path / "agent.py").write_text(AGENT.format(does=does))
    done = edgeagent("run", "agent.py", "go", "--quiet", "--model", script(call("run"), "Done."))
    said = [line.removeprefix("run printed: ") for line in done.stderr.splitlines()]
    assert said[:20_000] == [str(n) for n in range(1, 20_001)]
    assert "".join(said[20_000:]) == "0" * 99_999 + "7end"


def test_a_program_that_a_tool_leaves_behind_may_write_after_the_end(edgeagent, script, tmp_path):
    os.mkfifo(tmp_path / "go-on")
    does = "subprocess.Popen('read go < go-on; echo late && echo later && touch lived', shell=True)"
    (tmp_path / "agent.py").write_text(AGENT.format(does=does))
    command = [sys.executable, "-m", "edgeagent", "run", "agent.py", "go", "--model", script(call("run"), "Done.")]
    environment = {**os.environ, "EDGEAGENT_STATE": "state", "PYTHONPATH": str(ROOT)}
    with (tmp_path / "err").open("w") as err:
        ran = subprocess.run(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=err, check=True)
    assert ran.stdout == b"Done.\n"
    (tmp_path / "go-on").write_text("go\n")
    until = time.monotonic() + 60
    while not (tmp_path / "lived").exists():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_chat_keeps_its_terminal_while_tools_run_programs(terminal, script, tmp_path):
    (tmp_path / "agent.py").write_text(AGENT.format(does="os.system(NASTY)"))
    chat = terminal("chat", "agent.py", "--model", script(call("run"), "First.", call("run"), "Second."))
    chat.wait_for("> ")
    chat.type("go\n")
    chat.wait_for("First.")
    chat.wait_for(r"run printed: one\x1b]0;t\x07 \u202etwo")
    chat.type("again\n")
    chat.wait_for("Second.")
    chat.type("/quit\n")
    assert chat.end() == 0
    assert chat.written.count(rb"run printed: one\x1b]0;t\x07 \u202etwo") == 2
    assert b"\x1b]0;t" not in chat.written


def test_a_call_that_was_given_up_and_still_runs_leaves_the_prompt_on_the_terminal(terminal, script, tmp_path):
    os.mkfifo(tmp_path / "go-on")
    text = AGENT.format(does="os.system('read go < go-on; echo late')")
    (tmp_path / "agent.py").write_text(
        text.replace("@tool(idempotent=True)\ndef run", "@tool(idempotent=True, timeout_s=0.1)\ndef run")
    )
    chat = terminal("chat", "agent.py", "--model", script(call("run"), "It hangs.", "I am here."))
    chat.wait_for("> ")
    chat.type("go\n")
    chat.wait_for("It hangs.")
    chat.type("are you there?\n")
    chat.wait_for("I am here.")
    assert b"printed: > " not in chat.written
    (tmp_path / "go-on").write_text("go\n")
    chat.type("/quit\n")
    assert chat.end() == 0
    assert b"\n> " in chat.written
