"""A person at a terminal: what reaches it, what a question takes for a yes, what chat answers by itself."""

from __future__ import annotations

import json
from io import StringIO

import pytest

from edgeagent.doors.cli.screen import Screen

pytestmark = pytest.mark.long  # Seconds of CPU: `make test` runs it, `make quick` does not.

NASTY = "\x1b]0;owned\x07 \x9b2J \u202eevil \u2028 \u200b"
RAW = ("\x1b", "\x07", "\x9b", "\u202e", "\u2028", "\u200b")

AGENT = f'''
import time
from pathlib import Path
from edgeagent import Agent, Budget, tool

@tool(idempotent=True)
def slow() -> str:
    """Take a while."""
    time.sleep(1)
    return "at last"

@tool(idempotent=False, confirm=True)
def erase(what: str) -> str:
    """Erase."""
    Path("erased").touch()
    return "erased"

@tool(idempotent=True)
def fail() -> None:
    """Fail."""
    raise RuntimeError({NASTY!r})

@tool(idempotent=True)
def chatter() -> str:
    """Print."""
    print('{{"event": "forged"}}', flush=True)
    return {NASTY!r}

agent = Agent(name="tester", tools=[slow, erase, fail, chatter], budget=Budget(steps=9, tool_calls=9))
'''


@pytest.fixture
def agent(tmp_path):
    file = tmp_path / "agent.py"
    file.write_text(AGENT)
    return file


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


ERASE = call("erase", what="the disk")


def test_a_yes_after_the_question_runs_the_call(terminal, script, agent, tmp_path):
    on = terminal("run", agent, "go", "--model", script(ERASE, "done"))
    on.wait_for("[y/N]")
    on.type("yes\n")
    assert on.end() == 0
    assert (tmp_path / "erased").exists()


@pytest.mark.parametrize("verb", ["run", "chat"])
def test_a_yes_that_was_typed_before_the_question_was_shown_is_thrown_away(terminal, script, agent, tmp_path, verb):
    model = script(call("slow"), ERASE, "done")
    on = terminal("run", agent, "go", "--model", model) if verb == "run" else terminal("chat", agent, "--model", model)
    if verb == "chat":
        on.wait_for("> ")
        on.type("go\n")
    on.wait_for("→ slow()")
    on.type("yes\ny\nyes\n")
    on.wait_for("[y/N]")
    on.type("\n")
    on.wait_for("trace:" if verb == "run" else "done")
    assert not (tmp_path / "erased").exists()


def test_what_is_neither_yes_nor_no_is_said_not_to_be_a_yes(terminal, script, agent, tmp_path):
    on = terminal("run", agent, "go", "--model", script(ERASE, "left"))
    on.wait_for("[y/N]")
    on.type("maybe\n")
    on.wait_for("'maybe' is not a yes, so it is not run")
    assert on.end() == 3
    assert not (tmp_path / "erased").exists()


def test_ctrl_c_at_a_question_lets_go_of_it_and_the_next_line_is_for_the_agent(terminal, script, agent, tmp_path):
    on = terminal("chat", agent, "--model", script(ERASE, "hello", "and again"))
    on.wait_for("> ")
    on.type("go\n")
    on.wait_for("[y/N]")
    on.type("\x03")
    on.wait_for("not waiting for this answer any more")
    on.type("yes\n")
    on.wait_for("hello")
    assert not (tmp_path / "erased").exists()


def test_no_byte_from_outside_reaches_a_terminal_raw(terminal, script, agent):
    on = terminal("run", agent, "go", "--model", script(call("fail"), call("erase", what=NASTY), f"It says {NASTY}"))
    on.wait_for("[y/N]")
    on.type("n\n")
    on.end()
    written = on.written.decode()
    assert [c for c in RAW if c in written] == []
    assert "\\x1b]0;owned" in written and "\\u202eevil" in written and "\\u2028" in written


@pytest.mark.parametrize(
    "command", [("trace", "show"), ("trace", "show", "--json"), ("trace", "show", "--why"), ("sessions", "list")]
)
def test_nothing_recorded_reaches_a_terminal_raw(edgeagent, terminal, script, agent, command):
    edgeagent("run", agent, f"go {NASTY}", "--model", script(call("chatter"), f"It says {NASTY}"))
    on = terminal(*command)
    assert on.end() == 0
    written = on.written.decode()
    found = [c for c in RAW if c in written]
    assert found in ([], ["\x1b"])  # The escape that rich draws its table's head with is our own.
    assert "\x1b]" not in written


def test_a_page_of_a_session_hides_and_turns_round_nothing(edgeagent, script, agent, tmp_path):
    edgeagent("run", agent, f"go {NASTY}", "--model", script(call("chatter"), f"It says {NASTY}"))
    assert edgeagent("trace", "show", "--html", tmp_path / "page.html").returncode == 0
    page = (tmp_path / "page.html").read_text()
    assert [c for c in RAW if c in page] == []
    assert "\\u202eevil" in page


def test_a_pipe_gets_the_answer_as_it_is(edgeagent, script, agent):
    done = edgeagent("run", agent, "go", "--model", script("caf\u00e9 \u202e"))
    assert done.stdout == "caf\u00e9 \u202e\n"


@pytest.mark.parametrize("verb", [("run", "go"), ("chat",)])
def test_what_a_tool_prints_forges_no_row(edgeagent, script, agent, verb):
    name, *prompt = verb
    done = edgeagent(name, agent, *prompt, "--json", "--model", script(call("chatter"), "ok"), stdin="go\n")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert not [r for r in rows if r.get("event") == "forged"]
    assert "forged" in done.stderr


def test_chat_answers_its_own_commands_and_says_which_there_are_not(edgeagent, script, agent):
    lines = "/help\n/tools\n/rules\n/budget\n/trace\n/foo\nhello\n/quit\nnever said\n"
    done = edgeagent("chat", agent, "--model", script("hi", "never"), stdin=lines)
    assert done.stdout == "hi\n"
    for told in (
        "/budget",
        "erase: Erase.",
        "steps of 9",
        "trace.cbor",
        "there is no /foo; /help says which there are",
    ):
        assert told in done.stderr


def test_a_path_is_no_command(edgeagent, script, agent):
    done = edgeagent("chat", agent, "--model", script("it is"), stdin="/etc/hosts is missing\n")
    assert done.stdout == "it is\n"


def test_words_that_are_too_many_are_said_and_the_chat_goes_on(edgeagent, script, agent):
    done = edgeagent("chat", agent, "--model", script("hi"), stdin="x" * 2_000_000 + "\nhello\n")
    assert (done.returncode, done.stdout) == (0, "hi\n")
    assert "bytes are the most" in done.stderr


def test_a_line_that_ends_in_a_backslash_goes_on_in_the_next(terminal, script, agent):
    on = terminal("chat", agent, "--model", script("hi"))
    on.wait_for("> ")
    on.type("good \\\n")
    on.wait_for("… ")
    on.type("morning\n")
    on.wait_for("hi")
    on.type("/quit\n")
    assert on.end() == 0
    shown = terminal("trace", "show", "--json")
    shown.end()
    assert b"good \\nmorning" in shown.written


def test_tab_completes_a_command(terminal, script, agent):
    on = terminal("chat", agent, "--model", script("hi"))
    on.wait_for("> ")
    on.type("/bud\t\n")
    on.wait_for("steps of 9")
    on.type("/quit\n")
    assert on.end() == 0


@pytest.mark.parametrize("words", [["It ", "is ", "dry."], ["é"], ["one\n", "two"]])
def test_how_far_the_prompt_is_read_is_not_told_between_the_words_of_an_answer(words):
    err = Lines()
    screen = Screen(Lines(), err, as_json=False, streams=True)
    screen.progress(1, 2)
    assert "reading the prompt: 1/2 tokens" in err.getvalue()
    screen.stream(words[0])
    before = err.getvalue()
    for word in words[1:]:
        screen.progress(1, 1)
        screen.stream(word)
    assert err.getvalue() == before


def test_how_far_the_prompt_is_read_is_in_no_log():
    err = StringIO()
    Screen(StringIO(), err, as_json=False).progress(1, 2)
    assert err.getvalue() == ""


class Lines(StringIO):
    """A terminal."""

    def isatty(self):
        return True


def test_the_lines_of_a_chat_are_there_in_the_next_one(terminal, script, agent, tmp_path):
    on = terminal("chat", agent, "--model", script("hi"))
    on.wait_for("> ")
    on.type("good morning\n")
    on.wait_for("hi")
    on.type("/quit\n")
    assert on.end() == 0
    history = tmp_path / "state" / "history"
    assert "good morning" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0
