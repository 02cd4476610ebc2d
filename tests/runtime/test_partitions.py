"""State folders on small partitions, really mounted: every session begins, every trace is whole, caches yield.

Mounting needs root; without it these promises are not tested, and that is said. `test_full_disk.py` holds the same on a
disk that only counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeagent import Agent, tool
from edgeagent.core.agent import Agent as AnyAgent
from edgeagent.driver.llama.kv_head import MAGIC
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.errors import EdgeAgentError, ExitCode
from edgeagent.runtime.attached import Attached
from edgeagent.runtime.config import ModelSettings
from edgeagent.runtime.door import QuietDoor
from edgeagent.runtime.open import OpenRequest, open_session
from edgeagent.runtime.recording import effects_of, load_recording, records_of
from edgeagent.trace.disk import DISK, Disk
from edgeagent.trace.file import examine_file
from edgeagent.trace.recover import Clean

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MB = 1_000_000
SESSION_BYTES, AGENT_BYTES, TEXTS_BYTES = 7 * MB, 4 * MB, 3 * MB
"""What SmolLM2's memory takes of a session of 300 tokens, of its agent, and of its tools' texts."""

SESSIONS, TURNS = 20, 5


@pytest.fixture(params=["600k", "20m", "40m"])
def partition(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path / "state", request.param)


def mounted(place: Path, size: str) -> Iterator[Path]:
    """A file system of that size in memory."""
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "edgeagent-test", str(place)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"nothing can be mounted here, so this promise was NOT tested: {done.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@tool(idempotent=False, effect="write")
def set_valve(valve: str, seconds: int) -> str:
    """Open a valve for some seconds."""
    return f"{valve} is open for {seconds} s"


GARDENER = Agent("gardener", "You open valves.", [set_valve])
CALL = json.dumps({"name": "set_valve", "arguments": {"valve": "north", "seconds": 30}})


class WarmScript(ScriptedModel):
    """A script that leaves memories as large as a model's, through the same door, when its session closes."""

    folders: tuple[Path, Path] | None = None
    disk: Disk = DISK

    @property
    def warm(self) -> WarmScript:
        return self

    def keep_warm(self, session_folder: Path, prefix_folder: Path, secret: bytes, disk: Disk = DISK) -> None:
        self.folders, self.disk = (session_folder, prefix_folder), disk

    def close(self) -> None:
        super().close()
        if self.folders is None:
            return
        session, shared = self.folders
        for path, size in (
            (shared / "texts" / f"{'b' * 32}.kv", TEXTS_BYTES),
            (session / "session.kv", SESSION_BYTES),
            (shared / f"{'a' * 32}.kv", AGENT_BYTES),
        ):
            self.disk.write_cache(path, MAGIC, os.urandom(size))


class WarmModel:
    """The model of these sessions."""

    settings = ModelSettings(name="script", dialect="plain")
    dialect = "plain"

    def driver(self, agent: AnyAgent, doors: Attached, root: Path, answered: int) -> ScriptedModel:
        return WarmScript(([CALL, "It is open."] * 200)[answered:])

    def close(self) -> None:
        """Nothing is held."""


class Listening(QuietDoor):
    """Keeps what is said about what goes on."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def activity(self, text: str) -> None:
        self.said.append(text)


def test_a_hundred_turns_in_twenty_sessions(partition: Path) -> None:
    for number in range(SESSIONS):
        door = Listening()
        with open_session(OpenRequest(agent=GARDENER, state=partition), door, WarmModel()) as session:
            for _ in range(TURNS):
                assert session.ask("Open the north valve for 30 seconds.").text == "It is open.", number
        assert sum("is not kept" in said for said in door.said) <= 1  # Once for each program.
    traces = sorted(partition.glob("sessions/*/trace.cbor"))
    assert len(traces) == SESSIONS
    for trace in traces:
        assert isinstance(examine_file(trace).verdict, Clean)
        assert sum(1 for _ in effects_of(load_recording(trace, GARDENER), records_of(trace))) == 1 + 4 * TURNS
    assert list(partition.rglob("*.new")) == []
    space = os.statvfs(partition)
    kept = sum(p.stat().st_size for p in partition.rglob("*.kv"))
    assert kept <= space.f_blocks * space.f_frsize // 2
    if kept:
        assert space.f_bavail >= space.f_blocks // 4


@pytest.mark.parametrize("partition", ["600k"], indirect=True)
def test_sessions_go_on_until_traces_alone_fill_the_disk_and_after_pruning_again(partition: Path) -> None:
    """Each session is new; the one that does not fit is refused and leaves nothing; pruning makes room."""
    begun = 0
    with pytest.raises(EdgeAgentError, match="No space left"):
        while True:
            with open_session(OpenRequest(agent=GARDENER, state=partition), Listening(), WarmModel()) as session:
                session.ask("Open the north valve for 30 seconds.")
            begun += 1
    assert begun >= 25
    for trace in partition.glob("sessions/*/trace.cbor"):
        assert isinstance(examine_file(trace).verdict, Clean)
    from edgeagent.runtime.prune import Wanted, plan_of, prune

    plan = plan_of(partition, Wanted(keep=begun // 2), 2**50)
    named = [stays[0] for stays in plan.staying][: begun // 2]  # Without snapshots nobody can tell that they rest.
    list(prune(partition, plan_of(partition, Wanted(named=tuple(named)), 2**50)))
    with open_session(OpenRequest(agent=GARDENER, state=partition), Listening(), WarmModel()) as session:
        assert session.ask("Open the north valve for 30 seconds.").text == "It is open."


@pytest.mark.model
@pytest.mark.parametrize("size", ["600k", "20m", "40m"])
def test_the_real_model_answers_on_a_small_partition(tmp_path: Path, smollm2: Path, size: str) -> None:
    for state in mounted(tmp_path / "state", size):
        before = -1
        for _ in range(3):
            request = OpenRequest(agent=GARDENER, state=state, model=str(smollm2))
            with open_session(request, Listening()) as session:
                assert session.ask("Open the north valve for 30 seconds.").text
            for trace in state.glob("sessions/*/trace.cbor"):
                assert isinstance(examine_file(trace).verdict, Clean)
            now = sum(p.stat().st_size for p in state.rglob("*.kv"))
            assert now <= max(before, 20 * MB)
            before = now
        assert len(list(state.glob("sessions/*/trace.cbor"))) == 3
        assert (before > MB) == (size != "600k"), "saved memories fit on the larger ones only"


AGENT = """
from edgeagent import Agent, tool

@tool(idempotent=False, effect="write")
def set_valve(valve: str, seconds: int) -> str:
    "Open a valve for some seconds."
    return f"{valve} is open for {seconds} s"

agent = Agent("gardener", "You open valves.", [set_valve])
"""


def run(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The command, as a user starts it."""
    environment = {**os.environ, "EDGEAGENT_STATE": str(folder / "state"), "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "edgeagent", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, input="", capture_output=True, text=True, check=False)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A folder with an agent, a script, and a state folder of 600 kB in which one session has answered."""
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "script.json").write_text(json.dumps([CALL, "It is open."] * 9))
    for _ in mounted(tmp_path / "state", "600k"):
        assert run(tmp_path, "run", "agent.py", "Open it.", "--model", "script:script.json").returncode == 0
        yield tmp_path


def test_a_session_is_read_on_a_read_only_file_system_and_its_last_answer_said_again(small: Path) -> None:
    remount(small / "state", "ro")
    again = run(small, "run", "--continue")
    assert (again.returncode, again.stdout) == (0, "It is open.\n")
    asked = run(small, "run", "--continue", "And now?")
    assert asked.returncode == 6
    assert "can be read but not written (Read-only file system)" in asked.stderr
    begun = run(small, "run", "agent.py", "Open it.", "--model", "script:script.json")
    assert begun.returncode == 2
    assert "Read-only file system" in begun.stderr
    for looking in (("sessions", "list"), ("sessions", "prune", "--dry-run", "--keep", 0), ("trace", "check")):
        assert run(small, *looking).returncode == 0
    remount(small / "state", "rw")
    assert run(small, "run", "--continue", "And now?").returncode == 0


def test_a_session_goes_on_as_far_as_it_can_on_a_full_disk_and_wholly_once_there_is_room(small: Path) -> None:
    filling = small / "state" / "photographs"
    with contextlib.suppress(OSError), filling.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(512))
    again = run(small, "run", "--continue")
    assert (again.returncode, again.stdout) == (0, "It is open.\n")
    long = "And now? " * 150
    answers = [run(small, "run", "--continue", long) for _ in range(6)]  # The last page may have had some room.
    assert answers[-1].returncode == 6
    assert "No space left on device" in answers[-1].stderr
    assert run(small, "trace", "check").returncode == 0
    filling.unlink()
    # Where its head found no room, a call that is on record has not left; it is said to be unknown and not made again.
    assert run(small, "run", "--continue").returncode in (ExitCode.DONE, ExitCode.UNKNOWN)
    assert run(small, "run", "--continue", "And now?").returncode == 0


def remount(place: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(place)], check=True)
