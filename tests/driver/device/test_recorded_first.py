"""Nothing is typed at a device without a record: the disk is full, and the trace is torn, wherever they may be."""

from __future__ import annotations

import errno
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("serial", reason="pyserial is not installed: pip install edgeagent[serial]")

from edgeagent.codec.dialect import dialect_called
from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskModel, AskUser, CallTool
from edgeagent.core.events import ModelAnswered
from edgeagent.driver.device.device import Device
from edgeagent.driver.person import PersonDriver
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.driver.tool import ToolDriver
from edgeagent.errors import TraceError
from edgeagent.runtime.folder import TRACE_NAME, Beginning
from edgeagent.runtime.resume import resume_session
from edgeagent.runtime.session import Outside, Session, new_session
from edgeagent.trace.disk import Disk
from edgeagent.trace.file import examine_file
from tests.driver.device.test_listener import Pump

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.crash.disks import Failing
from tests.crash.world import QUICK, Clock, step_for

pytestmark = pytest.mark.long

PROFILE = """
name = "pump"
extends = "generic"

[[commands]]
name = "stop_pump"
help = "Stop the pump."
command = "show stop"
effect = "write"
idempotent = false
"""
SCRIPT = (json.dumps({"name": "stop_pump", "arguments": {}}), "The pump is stopped.")


class Counted(Pump):
    """A pump that counts how often it was told to stop."""

    stops = 0
    stopping: Callable[[], object] | None = None

    def say(self, text: str) -> None:
        """Print; the answer of the command is what counts."""
        if "ALARM list" in text:
            self.stops += 1
            if self.stopping is not None:
                self.stopping()
        super().say(text)


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[tuple[Counted, Device]]:
    """A pump and its device, at its prompt."""
    (tmp_path / "pump.toml").write_text(PROFILE)
    pump = Counted()
    device = Device(pump.place, str(tmp_path / "pump.toml"), ruled=("stop_pump",), mirrored=False)
    device.console()
    yield pump, device
    device.close()
    pump.close()


def drivers(agent: Agent, answered: int = 0) -> dict[type, object]:
    """A model that goes on with the script, and the device's tools."""
    model = ScriptedModel(SCRIPT[answered:])
    return {AskModel: model, CallTool: ToolDriver(agent.by_name), AskUser: PersonDriver()}


def agent_of(device: Device) -> Agent:
    """An agent with the pump."""
    return Agent("plant", "You watch a pump.", device.tools, dialect=dialect_called("plain"))


def session_of(device: Device, root: Path, disk: Disk) -> Session:
    """A new session with the pump."""
    agent = agent_of(device)
    beginning = Beginning(agent_spec="plant.py", model="script", seed=1)
    return new_session(
        agent,
        step_for(),
        drivers(agent),  # type: ignore[arg-type]  # the drivers are the real ones
        root,
        beginning,
        Outside(clock_ms=Clock(), disk=disk),
    )


def was_decided(directory: Path) -> bool:
    """Whether the record is whole on the disk from which the call follows."""
    return any(isinstance(record.event, ModelAnswered) for record in examine_file(directory / TRACE_NAME).records)


@pytest.mark.deep
def test_with_a_full_disk_nothing_is_typed_at_a_device_without_its_record(
    plant: tuple[Counted, Device], tmp_path: Path
) -> None:
    pump, device = plant
    hit, number = True, 0
    while hit:
        number += 1
        disk, before = Failing(number, errno.ENOSPC, stays=True), pump.stops
        root = tmp_path / str(number)
        try:
            session = session_of(device, root, disk)
            try:
                session.say("Stop the pump, please.")
            finally:
                session.close()
        except (TraceError, OSError):
            pass
        hit = disk.hit
        traces = list(root.glob("sessions/*/trace.cbor"))
        assert pump.stops == before or (len(traces) == 1 and was_decided(traces[0].parent)), f"operation {number}"
        device.looked()
    assert number > 5
    assert pump.stops > 0


@pytest.mark.parametrize("torn", [0, 1, 9, 40])
@pytest.mark.deep
def test_a_trace_torn_in_the_middle_of_a_device_call_types_nothing_again(
    plant: tuple[Counted, Device], tmp_path: Path, torn: int
) -> None:
    """As the disk was while the pump was told: the call's fate is unknown, and the pump is not told again."""
    pump, device = plant
    pump.stopping = lambda: shutil.copytree(tmp_path / "state", tmp_path / "left")
    session = session_of(device, tmp_path / "state", QUICK)
    session.say("Stop the pump, please.")
    session.close()
    directory = tmp_path / "left" / "sessions" / session.directory.name
    with (directory / TRACE_NAME).open("ab") as trace:
        trace.write(session.trace_path.read_bytes()[trace.tell() :][:torn])
    agent = agent_of(device)
    again = resume_session(directory, agent, step_for(), drivers(agent, 1), outside=Outside(disk=QUICK))  # type: ignore[arg-type]
    try:
        turn = again.resume_turn()
    finally:
        again.close()
    assert turn is not None
    assert turn.outcome.kind == "unknown"
    assert pump.stops == 1
