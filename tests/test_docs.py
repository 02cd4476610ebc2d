"""The docs say what is there: every command, every setting, and examples that run."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from edgeagent.doors.cli.main import VERBS
from edgeagent.driver.mcp.settings import ServerSettings
from edgeagent.errors import ExitCode
from edgeagent.runtime.config import ModelSettings, NamedModel, Use, read_settings

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_command_is_documented(verb):
    assert f"`edgeagent {verb}" in README


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_command_has_a_help_page(verb):
    done = subprocess.run(
        [sys.executable, "-m", "edgeagent", verb, "--help"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert "Usage:" in done.stdout
    assert "Example:" in done.stdout


def test_every_exit_code_is_documented():
    for code in ExitCode:
        assert re.search(rf"\b{int(code)} \w", README), code


def test_the_example_of_the_readme_runs(tmp_path):
    (tmp_path / "garden.py").write_text(blocks("python")[0])
    call = {"name": "set_valve", "arguments": {"valve": "north", "seconds": 30}}
    (tmp_path / "script.json").write_text(json.dumps([json.dumps(call), "It is open."]))
    command = [sys.executable, "-m", "edgeagent", "run", "garden.py", "Open it.", "--model", "script:script.json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "EDGEAGENT_STATE": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, input="", check=True)
    assert done.stdout == "It is open.\n"
    assert '"north is open for 30 s"' in done.stderr


def test_the_settings_of_the_readme_are_settings():
    settings = tomllib.loads(blocks("toml")[0])
    assert set(settings["model"]) <= set(ModelSettings.__struct_fields__)


def test_the_settings_of_the_page_about_disks_are_settings(tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "disks.md").read_text(), re.DOTALL)
    (tmp_path / "edgeagent.toml").write_text(text)
    state = read_settings(None, beside=tmp_path).state
    assert (state.folder, state.cache_mb, state.reserve_mb) == ("/var/lib/edgeagent", 64, 8)


def test_the_settings_of_the_page_about_servers_are_settings(tmp_path):
    page = (ROOT / "docs" / "mcp.md").read_text()
    started, asked = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "edgeagent.toml").write_text(started + asked)
    servers = read_settings(None, beside=tmp_path).mcp
    assert (servers["time"].allows("get_current_time"), servers["time"].allows("convert_time")) == (True, False)
    assert servers["words"].endpoint.origin == "https://words.example"
    told = {key for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)}
    told |= {"ca", "proxy", "socket", "plain_http"}  # The page about models says them.
    assert set(ServerSettings.__struct_fields__) <= told


def test_the_settings_of_the_page_about_models_elsewhere_are_settings(tmp_path):
    page = (ROOT / "docs" / "remote.md").read_text()
    named, uses = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "edgeagent.toml").write_text(named)
    settings = read_settings(None, beside=tmp_path)
    assert settings.model.order == ("lan", "cloud", "local") == tuple(settings.models)
    models = named[named.index("[models.lan]") :]
    (tmp_path / "edgeagent.toml").write_text(
        uses + models.replace('model = "qwen3"', 'model = "qwen3"\ncalls = "schema"')
    )
    assert set(read_settings(None, beside=tmp_path).model.uses) == set(get_args(Use))
    told = {key for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)}
    assert told == set(NamedModel.__struct_fields__) - {"name"}


def test_every_make_target_that_is_told_of_is_there():
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    targets |= set(re.findall(r"^([a-z-]+):", "".join(p.read_text() for p in ROOT.glob("*/*.mk")), re.MULTILINE))
    for page in ("README.md", "CONTRIBUTING.md"):
        told = set(re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)`", (ROOT / page).read_text(), re.MULTILINE))
        assert {a or b for a, b in told} <= targets, page


def test_the_licence_is_the_one_that_the_package_declares():
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert about["license"] == "Apache-2.0"
    assert about["license-files"] == ["LICENSE"]
    assert "Apache License\n                           Version 2.0" in (ROOT / "LICENSE").read_text()


def test_no_doc_names_a_file_that_is_not_there():
    for page in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]:
        if page.name == "CHANGELOG.md":
            continue  # It tells what was.
        for name in re.findall(r"`((?:edgeagent|examples|bench|tests|traces|docs)/[\w./-]+\.\w+)`", page.read_text()):
            assert (ROOT / name).exists(), f"{page.name} names {name}"


# -- ARCHITECTURE.md -------------------------------------------------------------------------------------------------

ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
FILE_ENDS = (".py", ".c", ".h", ".md", ".toml", ".json", ".cbor", ".txt", ".lark", ".gbnf")
PROSE = re.sub(r"```.*?```", "", ARCHITECTURE, flags=re.DOTALL)


@cache
def names_in_the_code() -> frozenset[str]:
    """All that is defined, imported, given as a parameter or written as a text in our code."""
    return frozenset(name for f in (ROOT / "edgeagent").rglob("*.py") for name in _names(ast.parse(f.read_text())))


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.Constant(value=str(name)):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name.split(".")[-1] for alias in names)


def is_there(named: str) -> bool:
    """Whether what stands between backticks is there: a file, a folder, or a name of the code."""
    if named.startswith("--") or named in {"match"}:
        return True  # An option (each is on a help page); a word of Python.
    if "/" in named or named.endswith(FILE_ENDS):
        below = named.rstrip("/")
        places = [ROOT, ROOT / "edgeagent", *(p for p in (ROOT / "edgeagent").rglob("*") if p.is_dir())]
        return any((place / below).exists() for place in places) or below in names_in_the_code()
    words = re.findall(r"[A-Za-z_]\w*", named)
    known = names_in_the_code() | {p.name.removesuffix(".py") for p in (ROOT / "edgeagent").rglob("*")}
    return all(word in known for word in words)


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`([^`]+)`", PROSE))))
def test_what_the_architecture_names_is_there(named):
    assert is_there(named), (
        f"ARCHITECTURE.md names `{named}`, and there is no such file, folder, class, function or field"
    )


def test_a_name_that_is_not_there_is_noticed():
    assert not is_there("_no_such_function")
    assert not is_there("core/no_such_file.py")
    assert not is_there("State.no_such_field")


def rooms_drawn() -> Iterator[tuple[str, str]]:
    """Each room that the picture of the rooms shows, with a name that stands in it."""
    drawn = re.search(r"## 5\. The rooms.*?```\n(.*?)```", ARCHITECTURE, re.DOTALL)
    assert drawn, "section 5 draws the rooms"
    lines = drawn[1].splitlines()
    width = lines[0].index("what there is")  # What stands from there on is prose.
    room = ""
    for line in (each[:width] for each in lines):
        if begin := re.match(r"[a-z]+(?=/)", line):
            room = begin[0]
        yield from ((room, name) for name in re.findall(r"[a-z_]+", line.removeprefix(f"{room}/")))


def test_every_file_in_the_picture_of_the_rooms_is_there():
    missing = [f"{room}/{name}" for room, name in rooms_drawn() if not _in_room(room, name)]
    assert missing == [], "section 5 of ARCHITECTURE.md draws what is not there: mend its line"


def _in_room(room: str, name: str) -> bool:
    return any(p.name in (name, f"{name}.py", f"{name}.toml") for p in (ROOT / "edgeagent" / room).rglob("*"))


def test_every_dependency_says_why_it_is_there():
    text = (ROOT / "pyproject.toml").read_text()
    listed = re.findall(r'^    "[a-z][\w-]*[>=<][^"]*",(.*)$', text, re.MULTILINE)
    above = text.count("placeholder, so there it is left out")
    assert sum("#" not in rest for rest in listed) <= above
