"""The port on real pseudo-terminals and sockets: who owns it, what is lost (nothing), how it goes away (one way)."""

from __future__ import annotations

import contextlib
import errno
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgeagent.driver.line import identity
from edgeagent.driver.line.identity import PortFound, locate
from edgeagent.driver.line.port import LinkLost, PortBusy, PortSettings, SerialPort
from edgeagent.errors import ConfigError, DriverUnavailable

pytestmark = pytest.mark.long

serial = pytest.importorskip("serial", reason="pyserial is not installed: pip install edgeagent[serial]")
ROOT = Path(__file__).parents[3]


class Line:
    """A pseudo-terminal: the device's end as a descriptor, ours as a path."""

    def __init__(self) -> None:
        self.device, self.held = pty.openpty()
        tty.setraw(self.held)
        self.place = os.ttyname(self.held)

    def unplug(self) -> None:
        """Take the device away."""
        for end in (self.held, self.device):
            with contextlib.suppress(OSError):
                os.close(end)


@pytest.fixture
def line() -> Iterator[Line]:
    """A line that is unplugged at the end."""
    line = Line()
    yield line
    line.unplug()


@pytest.fixture
def port(line: Line) -> Iterator[SerialPort]:
    """An open port on it."""
    port = SerialPort(PortSettings(line.place))
    port.open()
    yield port
    port.close()


def hear(port: SerialPort, wanted: bytes, since: int = 0) -> bytes:
    """Wait until it was heard."""
    until = time.monotonic() + 60
    while wanted not in (heard := port.heard(since)):
        assert time.monotonic() < until, heard
        time.sleep(0.005)
    return heard


# -- nothing is lost


def test_the_banner_that_came_before_opening_is_kept(line: Line) -> None:
    """pyserial's open throws it away."""
    os.write(line.device, b"U-Boot 2023.01\r\n")
    port = SerialPort(PortSettings(line.place))
    port.open()
    assert hear(port, b"U-Boot 2023.01\r\n")
    port.close()


def test_bytes_that_come_between_two_turns_are_kept_with_their_time(line: Line, port: SerialPort) -> None:
    os.write(line.device, b"first")
    hear(port, b"first")
    os.write(line.device, b" second")
    assert hear(port, b"first second") == b"first second"
    device = [moment for moment in port.timeline() if moment.who == "device"]
    assert [m.at_ns for m in device] == sorted(m.at_ns for m in device)
    assert port.last_byte_at_ns == device[-1].at_ns


def test_a_flood_is_heard_whole(line: Line, port: SerialPort) -> None:
    flood = bytes(range(256)) * 400
    sender = threading.Thread(
        target=lambda: [os.write(line.device, flood[at : at + 512]) for at in range(0, len(flood), 512)]
    )
    sender.start()
    until = time.monotonic() + 60
    while port.offset < len(flood) and time.monotonic() < until:
        time.sleep(0.01)
    sender.join()
    assert port.heard(0) == flood


def test_what_is_waited_for_comes_with_the_offset_after_it(line: Line, port: SerialPort) -> None:
    assert port.wait(0, 0.01) == (b"", 0)
    os.write(line.device, b"ab")
    hear(port, b"ab")
    assert port.wait(0, 60) == (b"ab", 2)
    assert port.wait(1, 60) == (b"b", 2)


# -- counts are real


def test_a_write_counts_what_the_line_accepted(line: Line, port: SerialPort) -> None:
    assert port.write(b"hello") == 5
    assert os.read(line.device, 100) == b"hello"


def arrived(line: Line, wanted: int) -> int:
    """How many bytes came to the device: as many as it waits for, and what comes behind them."""
    count = 0
    while select.select([line.device], [], [], 60 if count < wanted else 0.3)[0]:
        count += len(os.read(line.device, 65_536))
    return count


def test_agentic_hil_275_a_write_that_runs_out_of_time_says_how_much_was_accepted(line: Line, port: SerialPort) -> None:
    """pyserial#281, agentic-hil#275: a time-out although it was written; a short write reported whole."""
    block = b"x" * 300_000
    accepted = 0
    while not accepted:  # A machine that is busy elsewhere may take nothing within the time.
        accepted = port.write(block, timeout_s=0.3)
    assert accepted < len(block)
    assert arrived(line, accepted) == accepted


def test_pyserial_281_a_write_without_time_is_not_reported_as_failed_when_it_went_out(
    line: Line, port: SerialPort
) -> None:
    accepted = port.write(b"abc", timeout_s=0)
    assert arrived(line, accepted) == accepted


# -- one way of going away


def test_an_unplug_is_one_link_lost_from_every_call(line: Line, port: SerialPort) -> None:
    """pyserial: three exception types over five calls."""
    os.write(line.device, b"last words")
    hear(port, b"last words")
    line.unplug()
    until = time.monotonic() + 60
    with pytest.raises(LinkLost) as lost:
        while time.monotonic() < until:
            port.wait(port.offset, 0.2)
    for call in (lambda: port.wait(port.offset, 0), lambda: port.write(b"x"), port.reset):
        with pytest.raises(LinkLost) as again:
            call()
        assert again.value is lost.value
    assert lost.value.last_byte_at_ns == port.last_byte_at_ns > 0


def test_what_was_heard_before_the_unplug_can_still_be_read(line: Line, port: SerialPort) -> None:
    os.write(line.device, b"last words")
    hear(port, b"last words")
    line.unplug()
    assert port.wait(0, 1)[0] == b"last words"


def test_a_write_under_way_ends_when_the_line_goes(line: Line, port: SerialPort) -> None:
    ended: list[BaseException | int] = []

    def write() -> None:
        try:
            ended.append(port.write(b"x" * 300_000, timeout_s=120))
        except LinkLost as lost:
            ended.append(lost)

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(0.1)
    line.unplug()
    writer.join(timeout=60)
    assert isinstance(ended[0], LinkLost)


def test_the_board_comes_back_under_its_name(tmp_path: Path) -> None:
    first, second = Line(), Line()
    name = tmp_path / "usb-Board_1234"
    name.symlink_to(first.place)
    port = SerialPort(PortSettings(str(name)))
    port.open()
    os.write(first.device, b"one ")
    hear(port, b"one ")
    first.unplug()
    name.unlink()
    name.symlink_to(second.place)
    port.reopen(60)
    os.write(second.device, b"two")
    assert hear(port, b"one two")
    lost, opened = port.take_notes()
    assert lost.startswith("link lost: ")
    assert opened == f"opened {name}"
    assert port.take_notes() == ()
    port.close()
    second.unplug()


def test_a_line_that_was_only_opened_and_closed_leaves_no_note(line: Line, port: SerialPort) -> None:
    port.close()
    assert port.take_notes() == ()


def test_coming_back_gives_up_after_its_time(tmp_path: Path) -> None:
    port = SerialPort(PortSettings(str(tmp_path / "nothing")))
    with pytest.raises(DriverUnavailable, match="not there"):
        port.reopen(0.2)


def test_tio_13_waiting_costs_no_processor_time(port: SerialPort) -> None:
    """tio#13: 100 % CPU on a dead port."""
    before = time.process_time()
    port.wait(0, 2)
    assert time.process_time() - before < 1


# -- one owner


def hold(place: str, code: str) -> subprocess.Popen[str]:
    """Start another process that holds the port; wait until it does."""
    before = f"import sys; sys.path.insert(0, {str(ROOT)!r}); place = {place!r}"
    script = f"{before}\n{code}\nprint('held', flush=True)\nsys.stdin.read()"
    holder = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline().strip() == "held"
    return holder


OURS = "from edgeagent.driver.line.port import *\nport = SerialPort(PortSettings(place))\nport.open()"


def end(holder: subprocess.Popen[str], by: int) -> None:
    """End it and close its pipes."""
    os.kill(holder.pid, by)
    holder.wait()
    for pipe in (holder.stdin, holder.stdout):
        assert pipe is not None
        pipe.close()


def test_pyserial_341_86_a_held_port_is_refused_and_the_holder_named(line: Line) -> None:
    """pyserial#341, #86: two readers steal each other's bytes."""
    holder = hold(line.place, OURS)
    try:
        with pytest.raises(PortBusy, match=rf"in use by python.* \(process {holder.pid}\)"):
            SerialPort(PortSettings(line.place)).open()
    finally:
        end(holder, signal.SIGTERM)


def test_iotile_683_a_crash_of_the_holder_frees_the_port(line: Line) -> None:
    """iotile coretools#683: locked for long after a crash."""
    end(hold(line.place, OURS), signal.SIGKILL)
    port = SerialPort(PortSettings(line.place))
    port.open()
    port.close()


def test_a_holder_without_a_lock_is_seen(line: Line) -> None:
    holder = hold(line.place, "import os\nheld = os.open(place, os.O_RDWR | os.O_NOCTTY)")
    try:
        assert holder.pid in identity.holders(line.place)
    finally:
        end(holder, signal.SIGTERM)


def test_opening_twice_in_one_process_is_refused(port: SerialPort) -> None:
    with pytest.raises(DriverUnavailable, match="open already"):
        port.open()


def test_a_port_that_is_closed_can_be_opened_again(line: Line, port: SerialPort) -> None:
    port.close()
    port.open()
    os.write(line.device, b"again")
    assert hear(port, b"again")


# -- opening resets nothing


def test_pyserial_124_729_opening_and_closing_touch_no_modem_line(line: Line) -> None:
    """pyserial#124, #729: the board resets when its port is opened."""
    import termios

    lines = {termios.TIOCMBIS, termios.TIOCMBIC, termios.TIOCMSET}
    seen: list[int] = []
    watching = True

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event == "fcntl.ioctl":
            seen.append(arguments[1])

    sys.addaudithook(watch)
    port = SerialPort(PortSettings(line.place))
    port.open()
    port.close()
    watching = False
    assert not lines & set(seen)


def test_micropython_9659_closing_does_not_hang_up(line: Line, port: SerialPort) -> None:
    """Without HUPCL the kernel leaves DTR alone when the last holder closes the line, or crashes."""
    import termios

    assert not termios.tcgetattr(line.held)[2] & termios.HUPCL


class Edges:
    """A serial device behind pyserial's RFC 2217 server; notes every change of its modem lines."""

    baudrate, bytesize, parity, stopbits = 115_200, 8, "N", 1
    rtscts = xonxoff = break_condition = False
    cts = dsr = ri = cd = False

    def __init__(self) -> None:
        object.__setattr__(self, "edges", [])

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("dtr", "rts"):
            self.edges.append((name, value))
        object.__setattr__(self, name, value)

    def reset_input_buffer(self) -> None:
        """A purge would throw the banner away."""
        self.edges.append(("purge", True))

    reset_output_buffer = reset_input_buffer


def seen(edges: Edges, *wanted: tuple[str, bool]) -> None:
    """Wait until the device has seen as many changes; they are these."""
    until = time.monotonic() + 60
    while len(edges.edges) < len(wanted) and time.monotonic() < until:
        time.sleep(0.005)
    assert edges.edges == list(wanted)


@pytest.fixture
def remote() -> Iterator[tuple[str, Edges, socket.socket]]:
    """An RFC 2217 server with one client; gives its URL, its device and the client's connection once there is one."""
    import serial.rfc2217

    edges = Edges()
    listening = socket.create_server(("127.0.0.1", 0))
    connected: list[socket.socket] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            connection, _ = listening.accept()
            connected.append(connection)
            answer = type("Answer", (), {"write": lambda self, data: connection.sendall(data)})()
            manager = serial.rfc2217.PortManager(edges, answer)
            connection.sendall(b"banner\r\n")
            while portion := connection.recv(1024):
                for byte in manager.filter(portion):
                    connection.sendall(b"".join(manager.escape(byte)))

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    yield f"rfc2217://127.0.0.1:{listening.getsockname()[1]}", edges, listening
    listening.close()
    for connection in connected:
        connection.close()
    server.join(timeout=60)


@pytest.mark.filterwarnings("ignore:setDaemon:DeprecationWarning", "ignore:setName:DeprecationWarning")
def test_opening_a_remote_port_sends_no_edge_and_a_reset_is_one_pulse(remote: tuple[str, Edges, Any]) -> None:
    url, edges, _ = remote
    port = SerialPort(PortSettings(url))
    port.open()
    assert hear(port, b"banner\r\n")
    assert port.write(b"echo me") == 7
    assert hear(port, b"echo me")
    assert edges.edges == []
    port.reset(pulse_s=0.01)
    seen(edges, ("dtr", False), ("dtr", True))
    port.close()


@pytest.mark.filterwarnings("ignore:setDaemon:DeprecationWarning", "ignore:setName:DeprecationWarning")
def test_a_modem_line_is_switched_and_told(remote: tuple[str, Edges, Any]) -> None:
    url, edges, _ = remote
    port = SerialPort(PortSettings(url))
    port.open()
    assert hear(port, b"banner\r\n")
    port.switch("rts")
    seen(edges, ("rts", False))
    assert port.modem_lines() == {"dtr": True, "rts": False, "cts": False, "dsr": False, "cd": False, "ri": False}
    assert port.timeline()[-1].note == "rts off"
    port.close()


def test_a_line_without_modem_lines_says_so(port: SerialPort) -> None:
    with pytest.raises(DriverUnavailable, match="no DTR line"):
        port.reset()


def test_a_socket_is_a_port_too() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    port = SerialPort(PortSettings(f"socket://127.0.0.1:{listening.getsockname()[1]}"))
    port.open()
    device, _ = listening.accept()
    device.sendall(b"hello")
    assert hear(port, b"hello")
    assert port.write(b"there") == 5
    assert device.recv(100) == b"there"
    device.close()
    with pytest.raises(LinkLost):
        port.wait(port.offset, 60)
    port.close()
    listening.close()


def test_ser2net_33_a_network_line_is_kept_alive() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    port = SerialPort(PortSettings(f"socket://127.0.0.1:{listening.getsockname()[1]}"))
    port.open()
    connection = port._line._socket
    assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15
    port.close()
    listening.close()


# -- which port


FOUND = (
    PortFound("/dev/ttyUSB0", "usb:1a86:7523", vendor=0x1A86, product=0x7523),
    PortFound("/dev/ttyUSB1", "usb:1a86:7523:B", serial_number="B", vendor=0x1A86, product=0x7523),
    PortFound("/dev/ttyACM0", "usb:2e8a:0005:E66", serial_number="E66", vendor=0x2E8A, product=5),
)


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("usb:E66", "/dev/ttyACM0"),
        ("usb:2e8a:0005", "/dev/ttyACM0"),
        ("usb:1A86:7523:B", "/dev/ttyUSB1"),
        ("by-id:usb-FTDI_1", "/dev/serial/by-id/usb-FTDI_1"),
        ("/dev/ttyS0", "/dev/ttyS0"),
        ("socket://127.0.0.1:7", "socket://127.0.0.1:7"),
        ("rfc2217://host:7", "rfc2217://host:7"),
    ],
)
def test_a_port_is_found_by_what_does_not_change(name: str, device: str) -> None:
    assert locate(name, FOUND) == device


def test_a_name_that_fits_two_ports_is_refused() -> None:
    with pytest.raises(ConfigError, match="fits 2 ports"):
        locate("usb:1a86:7523", FOUND)


def test_a_board_that_is_not_plugged_in_is_unavailable() -> None:
    with pytest.raises(DriverUnavailable, match="device list"):
        locate("usb:nothere", FOUND)


@pytest.mark.parametrize("name", ["", "ttyUSB0", "usb:", "usb:12:34:56:78", "two words"])
def test_a_name_that_cannot_be_read_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        locate(name, FOUND)


def test_tio_81_a_forbidden_port_names_the_group() -> None:
    """tio#81: no message. As another user, so that the refusal is the kernel's."""
    if os.getuid() != 0:
        pytest.skip("needs root to become somebody else")
    line = Line()
    Path(line.place).chmod(0o600)
    code = (
        f"import sys, os; sys.path.insert(0, {str(ROOT)!r})\n"
        "import serial\nfrom edgeagent.driver.line.port import *\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        f"try: SerialPort(PortSettings({line.place!r})).open()\nexcept DriverUnavailable as e: print(e)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    line.unplug()
    assert "may not be opened by this user" in said
    assert "usermod -aG" in said


def test_the_usual_group_is_dialout() -> None:
    assert "dialout" in identity.why_not_opened("/nonexistent", errno.EACCES)


def test_a_tool_that_closes_the_line_has_nothing_written_into_its_own_file(port: SerialPort, tmp_path: Path) -> None:
    assert port._wake is not None
    closed = (port._line.fd, *port._wake)
    for descriptor in closed:
        os.close(descriptor)
    foreign = [os.open(tmp_path / "foreign", os.O_RDWR | os.O_CREAT) for _ in range(8)]
    assert set(closed) <= set(foreign)
    with pytest.raises(LinkLost, match="the line is gone"):
        port.write(b"a password")
    port.close()
    assert (tmp_path / "foreign").read_bytes() == b""
    for descriptor in foreign:
        os.close(descriptor)  # Each is still open: none was taken for ours.
