"""The main job on the real model: a typed call, its result, an answer; recorded, replayed, offline; and each fault."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.model

GREENHOUSE = Path(__file__).parents[3] / "examples" / "greenhouse.py"
REQUESTS = (
    "Open the north valve for 30 seconds.",
    "Read the soil moisture sensor 5 times.",
    "Tell the operator that the mist valve is stuck.",
    "Set channel 3 to 21.5 degrees.",
    "Send the line 'version'.",
)


def rows_of(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_request_becomes_a_typed_call_a_result_and_an_answer_and_replays(edgeagent, smollm2):
    rows = rows_of(edgeagent("run", "--json", GREENHOUSE, REQUESTS[0]))
    kinds = [row.get("event") or row.get("effect") for row in rows]
    assert kinds.index("CallTool") < kinds.index("ToolReturned") < kinds.index("Say")
    replayed = edgeagent("replay", rows[-1]["trace"])
    assert (replayed.returncode, "identical" in replayed.stdout) == (0, True)


@pytest.mark.deep
def test_five_requests_in_one_session_decode_and_reuse_the_prefix(edgeagent, smollm2):
    rows = rows_of(edgeagent("chat", "--json", GREENHOUSE, stdin="\n".join(REQUESTS), timeout=300))
    called = [row["tool"] for row in rows if row.get("effect") == "CallTool"]
    # That a valve is stuck orders nothing of the valve: it is what is told, and the whole of it.
    assert called == ["set_valve", "read_sensor", "notify", "set_setpoint", "send_line"]
    told = next(row for row in rows if row.get("effect") == "CallTool" and row["tool"] == "notify")
    assert json.loads(told["arguments"]) == {"to": "operator", "text": "the mist valve is stuck"}
    assert not [r for r in rows if r.get("event") == "ToolFailed"]
    assert not [
        r for r in rows if r.get("event") == "ModelAnswered" and r["usage"]["prompt"] == r["usage"]["evaluated"]
    ][1:]
    shown = edgeagent("trace", "show", rows[-1]["trace"])
    assert "eval" in shown.stdout


@pytest.mark.deep
def test_the_same_seed_writes_the_same_text(edgeagent, smollm2):
    texts = []
    for _ in range(2):
        rows = rows_of(edgeagent("run", "--json", "--seed", "7", GREENHOUSE, REQUESTS[1]))
        texts.append([r["text"] for r in rows if r.get("event") == "ModelAnswered"])
    assert texts[0] == texts[1]


def test_nothing_touches_the_network(edgeagent, smollm2, tmp_path):
    """Runs in a network namespace that has no interface but a loopback that is down."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rn", "true"], check=False).returncode:
        pytest.skip("SKIPPED ALOUD: this kernel lets us make no network namespace")
    done = edgeagent("run", "--json", GREENHOUSE, REQUESTS[0], before=["unshare", "-rn"])
    assert rows_of(done)[-1]["outcome"]["kind"] == "answered"


def test_a_truncated_model_file_is_refused_before_it_is_loaded(edgeagent, smollm2, tmp_path):
    cut = tmp_path / "cut.gguf"
    with smollm2.open("rb") as source:
        cut.write_bytes(source.read(2_000_000))
    done = edgeagent("run", GREENHOUSE, "go", "--model", cut)
    assert done.returncode == 5
    assert "cut.gguf" in done.stderr


def test_a_text_file_called_gguf_is_refused(edgeagent, tmp_path):
    (tmp_path / "notes.gguf").write_text("These are my notes.")
    done = edgeagent("run", GREENHOUSE, "go", "--model", tmp_path / "notes.gguf")
    assert done.returncode == 5
    assert "notes.gguf" in done.stderr


@pytest.mark.deep
def test_a_template_that_loops_for_ever_is_ended_and_said(edgeagent, smollm2, tmp_path):
    looping = tmp_path / "looping.gguf"
    looping.write_bytes(with_template(smollm2.read_bytes(), "{% for a in range(99999) %}{% for b in range(99999) %}x"))
    done = edgeagent("run", GREENHOUSE, "go", "--model", looping, timeout=60)
    assert done.returncode == 5
    assert "template" in done.stderr


def test_a_type_that_no_grammar_can_hold_is_refused_by_tool_and_field(edgeagent, smollm2, tmp_path):
    (tmp_path / "agent.py").write_text(
        "from typing import Annotated\nfrom msgspec import Meta\nfrom edgeagent import Agent, tool\n"
        "@tool(idempotent=True)\ndef f(x: Annotated[str, Meta(pattern='^(?=ab)')]) -> None:\n  'F'\n"
        "agent = Agent(name='a', tools=[f])\n"
    )
    done = edgeagent("run", tmp_path / "agent.py", "go")
    assert done.returncode == 2
    assert "tool f" in done.stderr
    assert "x" in done.stderr


def test_check_finds_nothing_wrong_with_the_examples(edgeagent, smollm2):
    for example in ("greenhouse.py", "gateway.py"):
        done = edgeagent("check", GREENHOUSE.with_name(example))
        assert (done.returncode, "FAIL" in done.stdout) == (0, False), done.stdout


def test_check_names_what_would_fail(edgeagent, tmp_path):
    (tmp_path / "notes.gguf").write_text("These are my notes.")
    done = edgeagent("check", GREENHOUSE, "--model", tmp_path / "notes.gguf")
    assert done.returncode == 6
    assert "FAIL model file" in done.stdout


def test_check_says_where_the_engines_grammar_is_wider_than_the_type(edgeagent, tmp_path):
    (tmp_path / "steps.py").write_text(
        "from typing import Annotated\nimport annotated_types as at\nfrom edgeagent import Agent, tool\n"
        "@tool(idempotent=True)\ndef step(n: Annotated[int, at.MultipleOf(7), at.Ge(0)]) -> str:\n"
        '    """Step."""\n    return ""\nagent = Agent(name="a", tools=[step])\n'
    )
    (tmp_path / "notes.gguf").write_text("These are my notes.")
    done = edgeagent("check", tmp_path / "steps.py", "--engine", "gbnf", "--model", tmp_path / "notes.gguf")
    assert "multipleOf is checked after writing, llama.cpp's grammars do not count in steps" in done.stdout


def with_template(gguf: bytes, template: str) -> bytes:
    """The same file with another chat template of the same length."""
    key = b"tokenizer.chat_template"
    at = gguf.index(key) + len(key) + 4  # After the key comes its type (u32), then a length (u64), then the text.
    length = int.from_bytes(gguf[at : at + 8], "little")
    text = template.encode() + b"{% endfor %}{% endfor %}"
    assert len(text) <= length
    return gguf[: at + 8] + text.ljust(length) + gguf[at + 8 + length :]
