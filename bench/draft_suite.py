"""The official JSON Schema Test Suite against our decoder, with the package jsonschema as the judge.

    python -m bench.draft_suite            # the figures of each draft
    python -m bench.draft_suite --write    # and both tables of docs/grammar.md anew

The suite is a part of jsonschema's source distribution, which pip downloads once into the user's cache. It is not
copied here. Exit 6 when we accept what the suite or the judge rejects.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import jsonschema

from edgeagent.errors import EdgeAgentError, ExitCode, ShapeError
from edgeagent.shape.foreign import foreign
from edgeagent.shape.formats import PATTERNS
from edgeagent.shape.keywords import DRAFTS, KEYWORDS

SOURCE = "jsonschema==4.26.0"
CACHE = Path.home() / ".cache" / "edgeagent" / "json-schema-test-suite"
PAGE = Path(__file__).parent.parent / "docs" / "grammar.md"
FOLDERS = {name: f"draft{name}" for name in ("3", "4", "6", "7", "2019-09", "2020-12")}
JUDGES: dict[str, Any] = {
    "3": jsonschema.Draft3Validator,
    "4": jsonschema.Draft4Validator,
    "6": jsonschema.Draft6Validator,
    "7": jsonschema.Draft7Validator,
    "2019-09": jsonschema.Draft201909Validator,
    "2020-12": jsonschema.Draft202012Validator,
}


class SuiteMissing(Exception):
    """The suite is neither in the cache nor to be had from the package index."""


def suite(folder: Path = CACHE) -> Path:
    """Return the folder of the suite's tests; fetch it on the first day. Raises SuiteMissing."""
    tests = folder / "tests"
    if tests.is_dir():
        return tests
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "jsonschema", "-d", str(folder)]
    done = subprocess.run([*pip, SOURCE], capture_output=True, text=True, check=False)
    archive = next(folder.glob("jsonschema-*.tar.gz"), None)
    if archive is None:
        raise SuiteMissing(f"pip cannot download {SOURCE}: {done.stderr.strip()[-300:]}")
    with tarfile.open(archive) as packed:
        for member in packed.getmembers():
            _, _, inside = member.name.partition("/json/tests/")
            if inside.endswith(".json") and ".." not in inside and member.isfile():
                member.name = f"tests/{inside}"
                packed.extract(member, folder, filter="data")
    archive.unlink()
    return tests


def groups(tests: Path, draft: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every group of a draft, one schema with its values, optional ones and formats too."""
    folder = tests / FOLDERS[draft]
    for file in sorted(folder.rglob("*.json")):
        for group in json.loads(file.read_text()):
            yield str(file.relative_to(folder).with_suffix("")), group


def named(schema: Any, draft: str) -> Any:
    """The schema with its draft said in it, as the suite's folders say it."""
    return {"$schema": DRAFTS[draft], **schema} if isinstance(schema, dict) else schema


FORMATS = jsonschema.FormatChecker(sorted(PATTERNS.keys() & jsonschema.FormatChecker.checkers.keys() - {"time"}))
"""The formats that we hold (the judge's time is that of draft 3); another one, and what a text holds, is a note."""


def judged(draft: str, file: str, group: dict[str, Any]) -> tuple[Counter[str], list[str]]:
    """Return what became of each value of a group, and which ones we accept and must not."""
    count: Counter[str] = Counter()
    wrong: list[str] = []
    try:
        node = foreign(named(group["schema"], draft))
    except ShapeError:
        count["refused by name"] += len(group["tests"])
        return count, wrong
    is_note = file == "optional/content" or (
        file.startswith("optional/format/") and node.schema.get("format") not in PATTERNS
    )
    # Python's own regular expressions, which the judge uses, are not those of ECMA 262.
    judge = None if "regex" in file else JUDGES[draft](group["schema"], format_checker=FORMATS)
    for test in group["tests"]:
        ours = not node.why_not(test["data"], "")
        if is_note:
            count["a note"] += 1
        elif ours and not (test["valid"] and (judge is None or _is_valid(judge, test["data"]))):
            count["accepted, and must not be"] += 1
            wrong.append(f"{group['description']}: {test['description']}")
        elif ours:
            count["accepted by both"] += 1
        else:
            count["stricter" if test["valid"] else "rejected by both"] += 1
    return count, wrong


def _is_valid(judge: Any, value: Any) -> bool:
    try:
        return bool(judge.is_valid(value))
    except Exception:  # A reference that the judge would have to fetch, or endless recursion: no verdict.
        return True


COLUMNS = ("accepted by both", "rejected by both", "stricter", "a note", "refused by name", "accepted, and must not be")


def figures(tests: Path) -> tuple[dict[str, Counter[str]], list[str]]:
    """Return the figures of each draft, and every value that we accept and must not."""
    found: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    for draft in DRAFTS:
        found[draft] = Counter()
        for file, group in groups(tests, draft):
            count, bad = judged(draft, file, group)
            found[draft] += count
            wrong += [f"draft {draft}, {file}: {each}" for each in bad]
    return found, wrong


def figures_table(found: dict[str, Counter[str]]) -> str:
    """The figures as a table of Markdown."""
    lines = [f"| draft | values | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 2) + "|"]
    for draft, count in found.items():
        lines.append(f"| {draft} | {count.total()} | {' | '.join(str(count[each]) for each in COLUMNS)} |")
    return "\n".join(lines)


def keywords_table() -> str:
    """Every keyword of every draft and who holds a value to it, as a table of Markdown."""
    words = {"grammar": "in the grammar", "decoder": "checked by the decoder", "note": "restricts nothing"}
    lines = ["| keyword | drafts | | |", "|---|---|---|---|"]
    for name, each in KEYWORDS.items():
        drafts = each.since if each.since == each.until else f"{each.since} to {each.until}"
        held = "**refused by name**" if each.held == "refused" else words[each.held]
        lines.append(f"| `{name}` | {drafts} | {held} | {each.says} |")
    return "\n".join(lines)


def with_table(page: str, name: str, table: str) -> str:
    """The page with the table between its two marks."""
    begin, end = f"<!-- {name}: made by bench.draft_suite -->", f"<!-- end of {name} -->"
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}"


@click.command()
@click.option("--write", is_flag=True, help="Write both tables of docs/grammar.md anew.")
def main(write: bool) -> None:
    """Print the figures of each draft."""
    try:
        found, wrong = figures(suite())
    except (EdgeAgentError, SuiteMissing) as error:
        raise click.ClickException(str(error)) from None
    click.echo(figures_table(found))
    for each in wrong:
        click.echo(f"ACCEPTED, AND MUST NOT BE: {each}")
    if write:
        page = with_table(PAGE.read_text(), "keywords", keywords_table())
        PAGE.write_text(with_table(page, "suite", figures_table(found)))
    raise SystemExit(ExitCode.CHECK_FAILED if wrong else ExitCode.DONE)


if __name__ == "__main__":
    main()
