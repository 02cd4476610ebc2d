"""`edgeagent new`: what it writes works at once, and what was there before stays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from edgeagent.doors.cli.new import new
from edgeagent.errors import ConfigError

ROOT = Path(__file__).parents[3]
LAMP = '{"name": "set_lamp", "arguments": {"lamp": "desk", "percent": 40}}'


def refusal(*arguments):
    error = CliRunner().invoke(new, [str(each) for each in arguments]).exception
    assert isinstance(error, ConfigError)
    return str(error)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.deep
def test_what_is_written_passes_its_own_tests_and_makes_the_call(edgeagent, tmp_path, script):
    made = edgeagent("new", "garden-lamps")
    assert made.returncode == 0, made.stderr
    assert "edgeagent run garden-lamps/garden_lamps.py" in made.stdout
    folder = tmp_path / "garden-lamps"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    tested = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stdout
    assert "3 passed" in tested.stdout
    ran = edgeagent("run", folder / "garden_lamps.py", "Desk lamp to 40.", "--model", script(LAMP, "It is."))
    assert '"the desk lamp is at 40 %"' in ran.stderr


@pytest.mark.model
@pytest.mark.deep
def test_what_is_written_gets_the_call_right_with_the_real_model(edgeagent, tmp_path, smollm2):
    edgeagent("new", "lamps")
    checked = edgeagent("check", "lamps/lamps.py", "--model", smollm2)
    assert checked.returncode == 0, checked.stdout
    for request, call in (
        ("Set the desk lamp to 40 percent.", 'set_lamp(lamp="desk", percent=40)'),
        ("How bright is the hall lamp?", 'read_lamp(lamp="hall")'),
    ):
        assert call in edgeagent("run", "lamps/lamps.py", request, "--model", smollm2).stderr


def test_what_is_written_has_the_usual_style(here, monkeypatch):
    CliRunner().invoke(new, ["lamps"])
    monkeypatch.chdir("lamps")
    for verb in (["check", "--select", "E,F,W,I,B,UP,RUF"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *verb, "--isolated", "--line-length", "120", "."]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_json_says_where_the_files_are(here):
    done = CliRunner().invoke(new, ["lamps", "--json"])
    row = {"name": "lamps", "agent": "lamps/lamps.py", "test": "lamps/test_lamps.py"}
    assert json.loads(done.stdout) == row
    assert all(Path(row[each]).is_file() for each in ("agent", "test"))


@pytest.mark.parametrize("there", ["folder", "file", "dangling link"])
def test_what_is_there_is_never_changed(here, there):
    place = here / "lamps"
    {"folder": place.mkdir, "file": place.touch, "dangling link": lambda: place.symlink_to("nowhere")}[there]()
    before = place.lstat()
    assert "is there already" in refusal("lamps")
    assert place.lstat() == before
    assert list(here.iterdir()) == [place]


@pytest.mark.parametrize("name", ["", ".", "..", "9lives", "my lamps", "lämpchen", "a" * 41, "-x", "a/..", "lamps.py"])
def test_a_name_that_cannot_be_is_refused(here, name):
    assert "name for an agent" in refusal("--", name)
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("name", ["json", "Class", "msgspec", "edgeagent", "pytest", "test"])
def test_a_name_that_would_hide_a_module_is_refused(here, name):
    assert "of its own" in refusal(name)
    assert list(here.iterdir()) == []


def test_a_folder_beside_that_is_called_so_does_not_matter(here):
    (here / "lamps.py").touch()
    assert CliRunner().invoke(new, ["rooms/lamps"]).exit_code != 0
    (here / "rooms").mkdir()
    assert CliRunner().invoke(new, ["rooms/lamps"]).exit_code == 0


def test_a_missing_folder_above_is_named(here):
    assert "there is no folder rooms; make it first (mkdir -p rooms)" in refusal("rooms/lamps")


def test_no_right_to_write_is_said(here):
    (here / "rooms").mkdir(mode=0o555)
    here.chmod(0o755)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)  # Root may write everywhere.
    try:
        said = refusal("rooms/lamps")
    finally:
        os.seteuid(user)
    assert "Permission denied; choose a folder in which you may write" in said


def test_a_disk_that_takes_no_more_leaves_nothing_half(edgeagent, tmp_path):
    done = edgeagent("new", "lamps", before=("prlimit", "--fsize=1000"), PYTHONDONTWRITEBYTECODE="1")
    assert done.returncode == 2
    assert "lamps cannot be made: File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []
