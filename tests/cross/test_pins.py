"""A device has no index to ask: whatever edgeagent needs there must be pinned for the wheelhouse."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PINS = ROOT / "cross" / "pins"
MADE_HERE = {"llama-cpp-python"}


def names(lines: list[str]) -> set[str]:
    """The packages that requirement lines name, as the index spells them."""
    found = (re.match(r"[A-Za-z0-9._-]+", line) for line in lines if not line.startswith("#"))
    return {re.sub(r"[-_.]+", "-", each[0]).lower() for each in found if each}


def pinned() -> set[str]:
    """What names.txt lists for every architecture."""
    return names((PINS / "names.txt").read_text().splitlines())


def settings(target: Path) -> dict[str, str]:
    """A target's table."""
    return dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', target.read_text(), flags=re.MULTILINE))


def test_everything_that_the_bundle_installs_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = names([*project["dependencies"], *project["optional-dependencies"]["serial"]])
    assert needed - MADE_HERE <= pinned()


@pytest.mark.parametrize("target", sorted((ROOT / "cross" / "targets").glob("*.env")), ids=lambda file: file.stem)
def test_each_architecture_takes_from_the_index_what_is_not_made_here(target: Path) -> None:
    table = settings(target)
    elsewhere = {name for key in ("FROM_DEBIAN", "COMPILED", "NOT_HERE") for name in table[key].split()}
    for system in table["SYSTEMS"].split():
        file = PINS / f"{table['PINS']}-{system.partition(':')[2]}.txt"
        assert names(file.read_text().splitlines()) == pinned() - elsewhere, file.name
