"""`edgeagent run` with a scripted model: what is printed where, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

GREENHOUSE = Path(__file__).parents[3] / "examples" / "greenhouse.py"
READ = {"name": "read_sensor", "arguments": {"sensor": "soil_moisture"}}
SEND = {"name": "send_line", "arguments": {"line": "version"}}

AGENT = '''
import time
from edgeagent import Agent, Budget, tool

@tool(idempotent=False, confirm=True)
def erase() -> str:
    """Erase."""
    return "erased"

@tool(idempotent=True)
def fail() -> None:
    """Fail."""
    raise RuntimeError("valve stuck")

@tool(idempotent=True, timeout_s=0.2)
def hang() -> None:
    """Hang."""
    time.sleep(60)

@tool(idempotent=True)
def chatter() -> str:
    """Print."""
    print("noise on stdout")
    return "ok"

agent = Agent(name="tester", tools=[erase, fail, hang, chatter], budget=Budget(steps=3))
'''


@pytest.fixture
def agent(tmp_path):
    file = tmp_path / "agent.py"
    file.write_text(AGENT)
    return file


def call(name):
    return {"name": name, "arguments": {}}


def test_the_answer_is_on_stdout_and_the_activity_on_stderr(edgeagent, script):
    done = edgeagent("run", GREENHOUSE, "How dry is it?", "--model", script(READ, "It is 41 %."))
    assert (done.returncode, done.stdout) == (0, "It is 41 %.\n")
    assert '→ read_sensor(sensor="soil_moisture")' in done.stderr
    assert "trace.cbor" in done.stderr


def test_quiet_says_only_the_answer(edgeagent, script):
    done = edgeagent("run", "-q", GREENHOUSE, "How dry is it?", "--model", script("Dry."))
    assert (done.stdout, done.stderr) == ("Dry.\n", "")


def test_json_is_one_object_a_line_and_ends_with_the_outcome(edgeagent, script):
    done = edgeagent("run", GREENHOUSE, "version?", "--json", "--model", script(SEND, "2.4.1"))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0]["event"] == "SessionStarted"
    assert rows[-1]["outcome"] == {"kind": "answered", "detail": ""}
    assert Path(rows[-1]["trace"]).exists()


def test_the_answer_can_go_to_a_file(edgeagent, script, tmp_path):
    done = edgeagent("run", GREENHOUSE, "q", "-o", tmp_path / "answer.txt", "--model", script("Dry."))
    assert done.stdout == ""
    assert (tmp_path / "answer.txt").read_text() == "Dry.\n"


def test_piped_text_is_put_after_the_prompt(edgeagent, script):
    done = edgeagent("run", GREENHOUSE, "Sum up:", "--json", "--model", script("ok"), stdin="line one\n")
    said = next(r for r in map(json.loads, done.stdout.splitlines()) if r.get("event") == "UserSaid")
    assert said["text"] == "Sum up:\n\nline one"


def test_a_dash_reads_the_whole_prompt_from_stdin(edgeagent, script):
    done = edgeagent("run", GREENHOUSE, "-", "--model", script("ok"), stdin="How dry is it?")
    assert (done.returncode, done.stdout) == (0, "ok\n")


def test_nothing_to_ask_is_a_usage_error(edgeagent, script):
    done = edgeagent("run", GREENHOUSE, "--model", script("ok"))
    assert done.returncode == 2
    assert "nothing to ask" in done.stderr


def test_what_a_tool_prints_does_not_mix_with_the_answer(edgeagent, script, agent):
    done = edgeagent("run", agent, "go", "--model", script(call("chatter"), "done"))
    assert done.stdout == "done\n"
    assert "noise on stdout" in done.stderr


def test_a_tool_that_raises_is_shown_and_is_an_error(edgeagent, script, agent):
    done = edgeagent("run", agent, "go", "--model", script(call("fail"), "It failed."))
    assert (done.returncode, done.stdout) == (1, "It failed.\n")
    assert "RuntimeError: valve stuck" in done.stderr


def test_a_tool_that_never_returns_is_a_time_out_and_the_program_ends(edgeagent, script, agent):
    done = edgeagent("run", agent, "go", "--model", script(call("hang"), "It hangs."), timeout=30)
    assert (done.returncode, done.stdout) == (124, "It hangs.\n")
    assert "no result after 0.2 s" in done.stderr


def test_without_a_terminal_a_question_is_a_no_and_the_run_is_refused(edgeagent, script, agent):
    done = edgeagent("run", agent, "go", "--model", script(call("erase"), "I left it."))
    assert (done.returncode, done.stdout) == (3, "I left it.\n")


def test_a_reached_limit_is_said_and_has_its_own_code(edgeagent, script, agent):
    done = edgeagent("run", agent, "go", "--max-steps", "1", "--model", script(call("chatter")))
    assert done.returncode == 4
    assert "the limit of steps is reached" in done.stdout


def test_a_model_that_goes_away_is_an_error_with_its_words(edgeagent, script, agent):
    done = edgeagent("run", agent, "go", "--model", script())
    assert done.returncode == 1
    assert "the script has no more answers" in done.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_here", "agent.py, line 1: ModuleNotFoundError"),
        ("x = (", "agent.py, line 1: SyntaxError"),
        ("x = 1", "must hold one Agent"),
        ("from edgeagent import Agent\na = Agent(name='a')\nb = Agent(name='b')", "a, b"),
        (
            (
                "from edgeagent import Agent, tool\n@tool(idempotent=True)\ndef f(x: complex):\n  'F'\n"
                "a = Agent(name='a', tools=[f])"
            ),
            "tool f, argument x",
        ),
    ],
)
def test_a_wrong_agent_file_is_named_with_what_is_wrong(edgeagent, tmp_path, text, said):
    (tmp_path / "agent.py").write_text(text)
    done = edgeagent("run", tmp_path / "agent.py", "go")
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_agent_file_is_named(edgeagent):
    done = edgeagent("run", "nowhere.py", "go")
    assert (done.returncode, "nowhere.py: no such agent file" in done.stderr) == (2, True)


def test_a_missing_model_says_which_command_gets_it(edgeagent, tmp_path):
    done = edgeagent("run", GREENHOUSE, "go", EDGEAGENT_MODELS=str(tmp_path / "none"))
    assert done.returncode == 5
    assert "edgeagent model pull smollm2" in done.stderr


def test_wrong_settings_name_file_and_key(edgeagent, agent, script):
    (agent.parent / "edgeagent.toml").write_text("[model]\nnmae = 'x'\n")
    done = edgeagent("run", agent, "go", "--model", script("ok"))
    assert done.returncode == 2
    assert "edgeagent.toml" in done.stderr
    assert "nmae" in done.stderr


def test_a_state_folder_that_cannot_be_written_says_what_to_set(edgeagent, script, tmp_path):
    (tmp_path / "file").write_text("")
    done = edgeagent("run", GREENHOUSE, "go", "--state", tmp_path / "file", "--model", script("ok"))
    assert done.returncode == 2
    assert "--state" in done.stderr


def test_chat_keeps_one_session_over_its_lines(edgeagent, script):
    done = edgeagent("chat", GREENHOUSE, "--json", "--model", script("one", "two"), stdin="first\nsecond\n")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    asks = [r for r in rows if r.get("effect") == "AskModel"]
    assert [m["text"] for m in asks[1]["messages"]] == ["first", "one", "second"]
    assert done.returncode == 0


def test_a_program_answers_a_question_over_json_and_only_to_what_was_shown(edgeagent, script, agent):
    asked = edgeagent("chat", agent, "--json", "--model", script(call("erase"), "left"), stdin="go\n")
    question = next(r for r in map(json.loads, asked.stdout.splitlines()) if r.get("effect") == "AskUser")
    yes = {"effect_id": question["effect_id"], "approved": True, "digest": question["digest"]}
    for answer, calls in ((yes, 1), ({**yes, "digest": "other"}, 0), ({**yes, "effect_id": 99}, 0), ("yes", 0)):
        done = edgeagent(
            "chat", agent, "--json", "--model", script(call("erase"), "done"), stdin=f"go\n{json.dumps(answer)}\n"
        )
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert sum(r.get("effect") == "CallTool" for r in rows) == calls, answer
