"""`edgeagent new`: a folder with a commented agent and its test, to begin from."""

from __future__ import annotations

import contextlib
import errno
import importlib.machinery
import keyword
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from edgeagent.doors.cli.terminal import tell, tell_row
from edgeagent.errors import ConfigError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_STARTER = Path(__file__).with_name("starter")


@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: the name, and where the files are.")
def new(name: str, as_json: bool) -> None:
    """Write a new folder NAME with a commented agent and a test of it; both work at once.

    NAME may be a path; its last part is the agent's name. Nothing that is there is ever changed.

    \b
    Example:
      edgeagent new lamps
      edgeagent run lamps/lamps.py "Set the desk lamp to 40 percent."
    """
    folder = Path(name).expanduser()
    module = _module_of(folder.name, name)
    agent, test = folder / f"{module}.py", folder / f"test_{module}.py"
    write_folder(folder, {agent.name: _filled("agent.txt", folder.name), test.name: _filled("test.txt", folder.name)})
    if as_json:
        tell_row({"name": folder.name, "agent": str(agent), "test": str(test)})
        return
    tell(f"{agent}  the agent: two tools, a rule and limits, each with a comment")
    tell(f"{test}  its test, which needs no model\n\nNext:", lines=True)
    tell("  edgeagent model pull smollm2   # once, 98 MB")
    tell(f'  edgeagent run {agent} "Set the desk lamp to 40 percent."')


def write_folder(folder: Path, files: Mapping[str, str]) -> None:
    """Make the folder with all the files, or nothing. Raises ConfigError."""
    if os.path.lexists(folder):
        raise ConfigError(f"{folder} is there already, and nothing of it was changed: choose another name")
    if not folder.parent.is_dir():
        raise ConfigError(f"{folder}: there is no folder {folder.parent}; make it first (mkdir -p {folder.parent})")
    scratch = folder.with_name(f".{folder.name}.new-{os.getpid()}")
    with _disk_errors(folder), contextlib.ExitStack() as undo:
        scratch.mkdir()
        undo.callback(shutil.rmtree, scratch, ignore_errors=True)
        for name, text in files.items():
            with (scratch / name).open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())  # Some disks say only then that they are full.
        scratch.rename(folder)


def _module_of(name: str, given: str) -> str:
    """The name of the Python file, which tests import. Raises ConfigError for one that cannot be."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{given!r} does not end in a name for an agent: begin with a letter, then letters, digits, '_' and '-', "
            "40 at most"
        )
    module = name.lower().replace("-", "_")
    if keyword.iskeyword(module) or _is_module(module):
        raise ConfigError(f"{name} cannot be the name: Python has a {module} of its own; try {name}-agent")
    return module


def _is_module(name: str) -> bool:
    """Whether an import of this name means another module, not counting what lies in the current folder."""
    here = ("", str(Path.cwd()))
    places = [place for place in sys.path if place not in here]
    return name in sys.stdlib_module_names or importlib.machinery.PathFinder.find_spec(name, places) is not None


def _filled(file: str, name: str) -> str:
    text = (_STARTER / file).read_text(encoding="utf-8")
    return text.replace("@NAME@", name).replace("@FILE@", name.lower().replace("-", "_"))


@contextlib.contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    """Say what the disk says, with the way out. Raises ConfigError."""
    try:
        yield
    except OSError as error:
        remedy = {
            errno.ENOSPC: "make room, or choose a folder on another disk",
            errno.EDQUOT: "make room, or choose a folder on another disk",
            errno.EACCES: "choose a folder in which you may write",
            errno.EPERM: "choose a folder in which you may write",
            errno.EROFS: "choose a folder on a disk that can be written",
        }.get(error.errno or 0, "choose another place")
        raise ConfigError(f"{folder} cannot be made: {error.strerror or error}; {remedy}; nothing is left") from error
