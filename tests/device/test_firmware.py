"""Our own firmware: built for this machine and for an emulated Cortex-M3, spoken with by smpclient and by us."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from edgeagent.driver.bus import smp
from edgeagent.driver.bus.smp_client import SmpClient, SmpDone, SmpNotSent
from edgeagent.driver.device.board_tools import Board
from edgeagent.driver.device.description import CALL, GROUP
from edgeagent.driver.line.port import SerialPort
from edgeagent.driver.unknown import CommandFailed, EffectUnknown
from edgeagent.errors import DriverUnavailable

pytestmark = pytest.mark.device
ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build" / "firmware"
SETUP = "run tests/device/setup.sh"
BUILDS = ("host", "cortex_m3")


def make(*words: str, compiler: str) -> str:
    """Run the firmware's makefile and return what it printed; skip where the compiler is not installed."""
    if not shutil.which(compiler) or not shutil.which("make"):
        pytest.skip(f"SKIPPED ALOUD: {compiler} or make is not installed: {SETUP}")
    command = ["make", "-f", "firmware_host/firmware.mk", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def host(start_module_target: Any) -> Any:
    """The board as a program of this machine, with sanitizers."""
    make("firmware-host", compiler="cc")
    return start_module_target("our firmware", [str(BUILT / "thermostat")])


@pytest.fixture(scope="module")
def cortex_m3(start_module_target: Any, qemu_module: str) -> Any:
    """The board on an emulated MPS2 AN385."""
    make("firmware-arm", compiler="arm-none-eabi-gcc")
    command = f"{qemu_module} -M mps2-an385 -nographic -monitor none -nic none -serial pty -kernel"
    return start_module_target("our firmware on a Cortex-M3", [*command.split(), str(BUILT / "thermostat.elf")])


@pytest.fixture(params=BUILDS)
def target(request: pytest.FixtureRequest) -> Any:
    """Each build, one after the other."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def port(target: Any) -> Iterator[SerialPort]:
    """Its line, let go afterwards so that others can have it."""
    port = target.port(wait_s=60)
    yield port
    port.close()


@pytest.fixture
def board(target: Any) -> Iterator[Board]:
    """The board, asked for its tools."""
    board = Board(target.place)
    yield board
    board.close()


def call(board: Board, name: str, **arguments: object) -> Any:
    """Call one of the board's tools."""
    return next(each for each in board.tools if each.name == name)(**arguments)


def test_smpclient_which_is_not_ours_speaks_with_it_before_and_after_a_reset(target: Any) -> None:
    from smpclient import SMPClient
    from smpclient.generics import success
    from smpclient.requests.os_management import EchoWrite, MCUMgrParametersRead, ResetWrite
    from smpclient.transport.serial import SMPSerialTransport

    async def conversation() -> None:
        async with SMPClient(SMPSerialTransport(), target.place) as client:
            for text in ("hi", "x" * 100, "y" * 480):
                answer = await client.request(EchoWrite(d=text))
                assert success(answer), answer
                assert answer.r == text
            parameters = await client.request(MCUMgrParametersRead())
            assert success(parameters), parameters
            assert parameters.buf_size == 516
            assert success(await client.request(ResetWrite()))
            answer = await client.request(EchoWrite(d="back"))
            assert success(answer), answer
            assert answer.r == "back"

    asyncio.run(conversation())


def test_our_client_echoes_every_size_also_in_bursts(port: SerialPort) -> None:
    """zephyr#34891: several fragments at once are not lost here."""
    client = SmpClient(port, fragment_ms=0)
    assert client.greet() == SmpDone({"buf_size": 516, "buf_count": 1})
    most = client.buffer_bytes - len(smp.encode(smp.Message(smp.WRITE, 0, 0, 0, {"d": "x" * 300}))) + 300
    for number in range(40):
        text = chr(97 + number % 26) * (1 + number * (most - 1) // 39)
        assert client.echo(text) == SmpDone({"r": text}), len(text)
    assert isinstance(client.echo("x" * (most + 1)), SmpNotSent)


def test_it_answers_every_vector_byte_for_byte(port: SerialPort) -> None:
    client = SmpClient(port)
    assert isinstance(client.reset(), SmpDone)
    blocks = (ROOT / "firmware_host" / "vectors.txt").read_text().split("\n\n")
    vectors = [dict(line.split(" ", 1) for line in b.strip().split("\n")) for b in blocks if b.startswith("name ")]
    assert len(vectors) > 50
    for vector in vectors:
        answer = b"" if vector["answer"] == "-" else bytes.fromhex(vector["answer"])
        assert heard_until_echo(port, bytes.fromhex(vector["ask"])) == answer, vector["name"]


def heard_until_echo(port: SerialPort, ask: bytes) -> bytes:
    """Send something, then an echo, and return what was heard before the echo's answer."""
    text = f"after {port.offset}"
    question = b"".join(smp.lines(smp.encode(smp.Message(smp.WRITE, smp.OS, smp.ECHO, 99, {"d": text}))))
    end = b"".join(smp.lines(smp.encode(smp.Message(smp.WRITE_ANSWER, smp.OS, smp.ECHO, 99, {"r": text}))))
    since, heard, until = port.offset, b"", time.monotonic() + 60
    port.write(ask)
    # After a reset the board takes nothing in for a moment; nothing is lost, but the line must have been read.
    port.write(question)
    while not heard.endswith(end):
        assert time.monotonic() < until, heard
        portion, since = port.wait(since, 1)
        heard += portion
        if not portion:
            port.write(question)
    return heard.split(end)[0]


def test_zephyr_118715_no_single_corrupted_byte_makes_an_accepted_frame(host: Any) -> None:
    """Exhaustive, on the real thing: a call that counts up, with every byte replaced by every other."""
    port = host.port(wait_s=60)
    client = SmpClient(port)
    frame = b"".join(smp.lines(smp.encode(smp.Message(smp.WRITE, GROUP, CALL, 1, {"tool": "count_up", "args": {}}))))
    before, count = frames_accepted(client), counted(client)
    sent = 0
    for at in range(len(frame)):
        wrong = [frame[:at] + bytes([byte]) + frame[at + 1 :] for byte in range(256) if byte != frame[at]]
        assert port.write(b"".join(wrong)) == sum(map(len, wrong))
        sent += len(wrong)
    assert sent == len(frame) * 255
    assert counted(client) == count
    assert frames_accepted(client) == before + 3, "more than our own three questions"
    port.write(frame)
    assert counted(client) == count + 1
    port.close()


def frames_accepted(client: SmpClient) -> int:
    """Ask the board how many frames it took for right, this one included."""
    outcome = client.statistics("link", timeout_s=20)
    assert isinstance(outcome, SmpDone), outcome
    return int(outcome.body["fields"]["frames"])


def counted(client: SmpClient) -> int:
    """Ask the board what its counter holds."""
    outcome = client.request(smp.WRITE, GROUP, CALL, {"tool": "read_counter", "args": {}}, 20)
    assert isinstance(outcome, SmpDone), outcome
    return int(outcome.body["results"]["count"])


def test_the_boards_words_become_typed_tools_that_ask_before_they_write(board: Board) -> None:
    assert {each.name: (each.effect, each.confirm) for each in board.tools} == {
        "read_thermostat": ("read", False),
        "set_thermostat": ("write", True),
        "switch_relay": ("write", True),
        "read_counter": ("read", False),
        "count_up": ("write", True),
        "clear_counter": ("irreversible", True),
        "show_text": ("write", True),
    }
    assert call(board, "set_thermostat", celsius=21.5) == {"celsius": 21.5}
    assert call(board, "switch_relay", position="on") == {"position": "on"}
    assert call(board, "read_thermostat") == {"target": 21.5, "measured": 20.4, "relay": "on"}
    assert call(board, "show_text", text="21.5 now") == {"text": "21.5 now"}


def test_the_board_itself_holds_to_its_bounds_and_says_why(board: Board) -> None:
    with pytest.raises(CommandFailed, match=r"does not take 'celsius' \('out of bounds'\)"):
        call(board, "set_thermostat", celsius=30.1)
    call(board, "set_thermostat", celsius=8.0)
    with pytest.raises(CommandFailed, match="the interlock keeps the relay off below 10 degrees"):
        call(board, "switch_relay", position="on")


def test_the_counter_survives_a_reset_and_nothing_else_does(board: Board) -> None:
    call(board, "set_thermostat", celsius=12.5)
    before = call(board, "count_up")
    assert isinstance(board.client().reset(), SmpDone)
    after = call(board, "read_counter")
    assert after == {"count": before["count"], "starts": before["starts"] + 1}
    assert call(board, "read_thermostat")["target"] == 19.0


def test_a_call_without_an_answer_is_unknown_was_made_once_and_is_not_made_again(host: Any) -> None:
    board = Board(host.place)
    before = call(board, "read_counter")["count"]
    os.kill(host.process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(EffectUnknown, match="was sent and its effect is unknown"):
            call(board, "count_up")
    finally:
        os.kill(host.process.pid, signal.SIGCONT)
    with pytest.raises(EffectUnknown, match="not sent again"):
        call(board, "count_up")
    assert call(board, "read_counter")["count"] == before + 1
    assert len(board.looked()) == 1
    assert call(board, "count_up")["count"] == before + 2
    board.close()


def test_a_board_that_describes_other_tools_than_before_is_refused(target: Any, board: Board) -> None:
    known = board.description
    board.close()
    other = replace(known, tools=(replace(known.tools[0], help="Read the oven."), *known.tools[1:]))
    changed = Board(target.place, description=other)
    with pytest.raises(DriverUnavailable, match=r"otherwise than before \(read_thermostat\)"):
        call(changed, "read_thermostat")
    same = Board(target.place, description=known)
    assert call(same, "read_thermostat")["measured"] == 20.4
    same.close()


def test_a_device_that_speaks_no_smp_is_not_there(u_boot: Any) -> None:
    with pytest.raises(DriverUnavailable, match="did not say how much it takes in"):
        Board(u_boot.place)


def environment(place: str, tmp_path: Path) -> dict[str, str]:
    """Return the environment that the agent runs in."""
    ours = {"EDGEAGENT_STATE": str(tmp_path), "EDGEAGENT_BOARD": place, "XDG_RUNTIME_DIR": str(tmp_path)}
    return {**os.environ, **ours, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}


def run_and_confirm(words: list[str], settings: dict[str, str]) -> tuple[int, str]:
    """Run the program on a terminal, say yes when it asks, and return its exit code and what was on the screen."""
    screen, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "edgeagent", *words], stdin=theirs, stdout=theirs, stderr=theirs, env=settings
    )
    os.close(theirs)
    shown, said, until = b"", False, time.monotonic() + 60
    while time.monotonic() < until:
        if not select.select([screen], [], [], 0.2)[0]:
            continue
        try:
            shown += os.read(screen, 4096)
        except OSError:  # The terminal's other end was closed: the program has ended.
            break
        if b"[y/N]" in shown and not said:
            said = os.write(screen, b"y\n") > 0
    code = process.wait(timeout=60)
    os.close(screen)
    return code, shown.decode(errors="replace")


def test_an_agent_sets_the_thermostat_after_a_person_said_yes_and_its_trace_replays(
    target: Any, tmp_path: Path
) -> None:
    script = [json.dumps({"name": "set_thermostat", "arguments": {"celsius": 23.5}}), "It is set to 23.5 degrees."]
    (tmp_path / "script.json").write_text(json.dumps(script))
    settings = environment(target.place, tmp_path)
    words = ["run", str(ROOT / "examples" / "thermostat.py"), "Set the thermostat to 23.5 degrees."]
    code, shown = run_and_confirm([*words, "--model", f"script:{tmp_path / 'script.json'}"], settings)
    assert code == 0, shown
    assert "set_thermostat(celsius=23.5)" in shown
    assert "Run exactly this? [y/N]" in shown
    assert '{"celsius":23.5}' in shown
    board = Board(target.place)
    assert call(board, "read_thermostat")["target"] == 23.5
    board.close()
    trace = next(tmp_path.glob("sessions/*/trace.cbor"))
    replay = [sys.executable, "-m", "edgeagent", "replay", str(trace)]
    replayed = subprocess.run(replay, capture_output=True, text=True, env=settings, timeout=60, check=False)
    assert replayed.returncode == 0, replayed.stderr


def test_without_a_person_nothing_is_set(target: Any, tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(
        json.dumps([json.dumps({"name": "set_thermostat", "arguments": {"celsius": 29.5}}), "It was not set."])
    )
    words = ["run", str(ROOT / "examples" / "thermostat.py"), "Set it.", "--model", f"script:{tmp_path}/script.json"]
    done = subprocess.run(
        [sys.executable, "-m", "edgeagent", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(target.place, tmp_path),
        timeout=60,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    board = Board(target.place)
    assert call(board, "read_thermostat")["target"] != 29.5
    board.close()


def test_the_library_keeps_to_its_limits_on_a_cortex_m3() -> None:
    printed = make("firmware-arm", compiler="arm-none-eabi-gcc")
    found = re.search(r"flash (\d+) of (\d+) bytes, RAM (\d+) \+ stack at most (\d+) of (\d+) bytes", printed)
    assert found, printed
    flash, flash_most, ram, stack, ram_most = map(int, found.groups())
    assert (flash_most, ram_most) == (12 * 1024, 2 * 1024)
    assert 0 < flash <= flash_most
    assert 1024 < ram + stack <= ram_most


def test_its_reader_is_fuzzed_and_its_vectors_hold_with_sanitizers() -> None:
    printed = make("firmware-test", "FUZZ_RUNS=20000", compiler="cc")
    assert re.search(r"^\d+ vectors in portions of 1, 0 wrong$", printed, re.MULTILINE)
    skipped = re.search(r"SKIPPED ALOUD: .*", printed)
    if skipped:
        pytest.skip(skipped.group())
    assert "fuzzed 20000 inputs" in printed
