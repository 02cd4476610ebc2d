"""acpx, a client of the protocol in another language, drives the door: asked, refused, killed and gone on with."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors.acp.garden import SENSOR, VALVE, Garden

pytestmark = pytest.mark.long

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edgeagent" / "editors"
SOON = 120


class Acpx:
    """acpx with a home of its own, which holds its sessions."""

    def __init__(self, program: Path, garden: Garden) -> None:
        self.program, self.garden = program, garden
        self.agent = shlex.join(["sh", "-c", f"echo $$ > {garden.folder}/pid; exec {shlex.join(garden.command())}"])
        self.env = garden.env | {"HOME": str(garden.folder)}

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        command, folder = self.command(*arguments), self.garden.folder
        return subprocess.run(
            command, env=self.env, cwd=folder, capture_output=True, text=True, timeout=SOON, check=False
        )

    def command(self, *arguments: str) -> list[str]:
        """What is typed."""
        return [str(shutil.which("node")), str(self.program), "--agent", self.agent, *arguments]

    def kill_agent(self) -> None:
        """End the agent as a power cut does."""
        os.kill(int((self.garden.folder / "pid").read_text()), signal.SIGKILL)


@pytest.fixture
def acpx(tmp_path) -> Iterator[Acpx]:
    found = sorted(CACHE.glob("acpx-*/node_modules/.bin/acpx"))
    if not found or shutil.which("node") is None:
        why = "acpx is missing, so this promise was NOT tested: run tests/doors/acp/setup.sh (`make host-test` does)"
        pytest.fail(why) if os.environ.get("CI") and os.environ.get("HOST_TEST") else pytest.skip(why)
    made = Acpx(found[-1], Garden(tmp_path, SENSOR, "The soil is at 41 %.", VALVE, "It is open."))
    yield made
    made("sessions", "close")


def test_a_prompt_is_answered(acpx):
    done = acpx("--format", "quiet", "exec", "How wet is the soil?")
    assert (done.returncode, done.stdout.strip()) == (0, "The soil is at 41 %.")


@pytest.mark.parametrize(("policy", "code", "effects"), [("--approve-all", 0, ["north 30"]), ("--deny-all", 5, [])])
def test_a_question_is_answered_as_its_policy_says(acpx, policy, code, effects):
    acpx.garden.write_script(VALVE, "That is all.")
    done = acpx(policy, "--format", "json", "exec", "Open the north valve for 30 seconds.")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, acpx.garden.effects) == (code, effects)
    assert sum(row.get("method") == "session/request_permission" for row in rows) == 1


def test_a_session_goes_on_after_its_agent_was_killed_and_nothing_is_done_twice(acpx):
    assert acpx("sessions", "new").returncode == 0
    first = acpx("--approve-all", "--format", "quiet", "How wet is the soil?")
    assert first.stdout.strip() == "The soil is at 41 %."
    acpx.kill_agent()
    second = acpx("--approve-all", "--format", "quiet", "Open the north valve for 30 seconds.")
    assert second.stdout.strip() == "It is open."
    assert acpx.garden.effects == ["north 30"]


def test_a_turn_is_cancelled_from_another_shell(acpx):
    acpx.garden.write_script(VALVE, "Never said.")
    acpx.garden.hold()
    assert acpx("sessions", "new").returncode == 0
    command = acpx.command("--approve-all", "--format", "json", "Open the north valve for 30 seconds.")
    with subprocess.Popen(command, env=acpx.env, cwd=acpx.garden.folder, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if '"in_progress"' in line:
                break
        assert acpx("cancel").returncode == 0
        rows = [json.loads(line) for line in running.stdout]
    acpx.garden.let_go()
    assert [row["result"]["stopReason"] for row in rows if "result" in row] == ["cancelled"]
