"""The client in C: the transcripts, lines of any kind under the sanitizers, and a lamp that a real agent switches."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.doors.acp.garden import ROOT, Garden, call
from tests.doors.host.replayer import FOLDER, steps_of

pytestmark = pytest.mark.long

SOURCES = ROOT / "host" / "c"
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-O1", "-g"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
OTHERS = ("aarch64-linux-gnu-gcc", "arm-linux-gnueabihf-gcc", "riscv64-linux-gnu-gcc")


def built(folder: Path, source: str, *more: str, compiler: str = "cc") -> Path:
    """Build one program, without a warning. Skips aloud where there is no such compiler."""
    if shutil.which(compiler) is None:
        why = f"{compiler} is missing, so the client in C was NOT tried: install gcc"
        pytest.fail(why) if os.environ.get("HOST_TEST") and compiler == "cc" else pytest.skip(why)
    program = folder / source.removesuffix(".c")
    done = subprocess.run(
        [compiler, *FLAGS, *more, str(SOURCES / source), "-o", str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return program


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    return built(tmp_path_factory.mktemp("check"), "check.c", *SANITIZERS)


def told(*command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_transcript_is_read_alike_cut_at_every_byte_and_written_as_it_stands(check):
    files = sorted(FOLDER.glob("*.jsonl"))
    messages = sum(len(steps_of(file)[1]) for file in files)
    assert told(check, "play", *files) == f"{messages} messages\n"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_line_makes_it_read_or_write_past_its_memory(check, seed):
    assert told(check, "any", "100000", str(seed)) == "100000 lines\n"


@pytest.mark.parametrize("compiler", OTHERS)
def test_it_builds_for_the_boards(tmp_path, compiler):
    assert built(tmp_path, "lamp.c", compiler=compiler).stat().st_size > 0


def test_a_real_agent_switches_its_lamp(tmp_path):
    garden = Garden(tmp_path, call("set_lamp", on=True), "It is on: ü \U0001f331.")
    command = [each if each != "acp" else "host" for each in garden.command()]
    program = [built(tmp_path, "lamp.c", *SANITIZERS), 'Switch the "lamp" on.', *command]
    done = subprocess.run(program, capture_output=True, text=True, env=garden.env, check=False)
    assert (done.returncode, done.stdout) == (0, "lamp: on\nIt is on: ü 🌱.\n"), done.stderr


def test_what_goes_wrong_at_the_agent_is_told(tmp_path):
    garden = Garden(tmp_path)
    (tmp_path / "garden.py").write_text("agent = 1 / 0\n")
    command = [each if each != "acp" else "host" for each in garden.command()]
    program = [built(tmp_path, "lamp.c"), "Switch it on.", *command]
    done = subprocess.run(program, capture_output=True, text=True, env=garden.env, check=False)
    assert (done.returncode, "ZeroDivisionError" in done.stderr) == (0, True)
