"""The console before devices that lose bytes, print noise and fall over; and before real shells on this machine."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shutil
import signal
import subprocess
import threading
import time
import tty
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edgeagent.driver.line.console import Console
from edgeagent.driver.line.outcome import (
    DeviceReset,
    Done,
    Failed,
    LinkWasLost,
    NotSent,
    Outcome,
    TimedOut,
    WaitingForInput,
)
from edgeagent.driver.line.port import PortSettings, SerialPort
from edgeagent.driver.line.profile import load_profile

pytestmark = pytest.mark.long

pytest.importorskip("serial", reason="pyserial is not installed: pip install edgeagent[serial]")

PROMPT = "root@board:~# "
NOISE = "[   37.360123] systemd-journald[9]: Time jumped backwards, rotating.\r\n"


class Board:
    """A small shell on a pseudo-terminal. It notes every line that it executes; the rest is set by each test."""

    def __init__(self) -> None:
        self.device, ours = pty.openpty()
        tty.setraw(ours)
        self.place, self._held = os.ttyname(ours), ours
        self.executed: list[str] = []
        self.heard = b""
        self.lose: set[int] = set()
        self.prompt = PROMPT
        self.before_answer = self.after_answer = ""
        self.commands: Callable[[str], str | None] = lambda command: ""
        self._line = ""
        self._count = 0
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def say(self, text: str) -> None:
        """Print."""
        with contextlib.suppress(OSError):
            os.write(self.device, text.encode())

    def unplug(self) -> None:
        """Go away. No thread of ours reads a descriptor whose number may be another test's by then."""
        if self._held >= 0:
            os.close(self._held)
            self._held = -1
        if threading.current_thread() is not self._thread:
            self._thread.join(60)
        self._hang_up()

    def _hang_up(self) -> None:
        device, self.device = self.device, -1
        if device >= 0:
            os.close(device)

    def _live(self) -> None:
        with contextlib.suppress(OSError):
            while portion := os.read(self.device, 256):
                self.heard += portion
                for byte in portion:
                    self._key(byte)

    def _key(self, byte: int) -> None:
        self._count += 1
        if self._count in self.lose:
            return
        if byte == 0x15:
            self.say("\b \b" * len(self._line))
            self._line = ""
        elif byte == 0x03:
            self._line = ""
            self.say(f"^C\r\n{self.prompt}")
        elif byte == 0x0D:
            self._enter()
        elif byte >= 0x20:
            self._line += chr(byte)
            self.say(chr(byte))

    def _enter(self) -> None:
        line, self._line = self._line, ""
        self.say("\r\n")
        if line:
            self.executed.append(line)
        for part in line.split("; ") if line else []:
            if not self._run(part):
                return
        self.say(f"{self.after_answer}{self.prompt}")

    def _run(self, command: str) -> bool:
        marker = re.fullmatch(r'echo "(\w+)""(\w+)"( \$\?)?', command)
        if marker:
            self.say(f"{marker.group(1)}{marker.group(2)}{' 0' if marker.group(3) else ''}\r\n")
            return True
        answer = self.commands(command)
        if answer is None:
            return False
        self.say(self.before_answer + answer)
        return True

    def commands_run(self) -> list[str]:
        """Return the commands that were executed inside our transactions, probes left out."""
        inner = [re.findall(r'^echo "\w+""a"; (.*); echo "\w+""\w+" \$\?$', line) for line in self.executed]
        plain = [line for line in self.executed if not line.startswith('echo "')]
        return [found[0] for found in inner if found] + plain


def until(holds: Callable[[], bool]) -> None:
    """Wait until this holds, which it will."""
    ends = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.005)


@pytest.fixture
def board() -> Iterator[Board]:
    """A board with a prompt."""
    board = Board()
    yield board
    board.unplug()


@pytest.fixture
def console(board: Board) -> Iterator[Console]:
    """A console on it."""
    port = SerialPort(PortSettings(board.place))
    port.open()
    yield Console(port, load_profile("linux"))
    port.close()


def test_a_command_is_answered_with_its_output_and_status(board: Board, console: Console) -> None:
    board.commands = lambda command: "Linux 6.1\r\n"
    assert sent(console, "uname -sr") == Done("Linux 6.1")


@pytest.mark.deep
def test_labgrid_1749_a_lost_character_never_becomes_another_command(board: Board, console: Console) -> None:
    """`dmesg -n 1` arrived as `mesg -n 1`."""
    assert sent(console, "true") == Done("")
    typed = len(board.heard)
    # Lose a byte at every place of the next transaction in turn: its probe, its line, its Enter.
    for place in range(1, 90, 8):
        board.lose = {board._count + place}
        outcome = console.run("dmesg -n 1", 6.0)
        board.lose = set()
        assert isinstance(outcome, Done | NotSent | TimedOut), (place, outcome)
        console.interrupt()
    assert set(board.commands_run()) <= {"true", "dmesg -n 1"}
    assert len(board.heard) > typed


def test_labgrid_1763_noise_between_marker_and_prompt_costs_nothing(board: Board, console: Console) -> None:
    board.after_answer = NOISE
    board.commands = lambda command: "answer\r\n"
    assert sent(console, "x") == Done("answer", 0, (NOISE.strip(),))


def test_noise_in_the_middle_of_an_answers_line_is_kept_aside(board: Board, console: Console) -> None:
    board.commands = lambda command: f"hel{NOISE}lo\r\n"
    assert sent(console, "x") == Done("hello", 0, (NOISE.strip(),))


def test_noise_glued_to_the_prompt_does_not_hide_it(board: Board, console: Console) -> None:
    board.prompt = f"{PROMPT}{NOISE}"
    assert sent(console, "x") == Done("", 0, (NOISE.strip(),))


def test_labgrid_969_1397_a_pasting_prompt_is_found(board: Board, console: Console) -> None:
    board.prompt = f"\x1b[?2004h{PROMPT}"
    assert sent(console, "x") == Done("")


def test_a_cursor_query_is_not_answered_by_itself(board: Board, console: Console) -> None:
    board.prompt = "~ # \x1b[6n"
    assert sent(console, "x") == Done("")
    assert b"\x1b[1;1R" not in board.heard


def test_a_cursor_query_is_answered_as_one_one_when_the_profile_says_so(board: Board) -> None:
    import msgspec

    board.prompt = "~ # \x1b[6n"
    port = SerialPort(PortSettings(board.place))
    port.open()
    console = Console(port, msgspec.structs.replace(load_profile("linux"), answer_cursor_query=True))
    console.run("x")
    until(lambda: b"\x1b[1;1R" in board.heard)
    port.close()


def test_labgrid_546_nothing_is_typed_at_a_password_prompt(board: Board, console: Console) -> None:
    board.say("board login: [   12.000000] systemd: init message\r\nPassword: ")
    until(lambda: b"Password: " in console.port.heard(0))
    before = board.heard
    outcome = console.run("helper_function() { true; }")
    assert isinstance(outcome, NotSent)
    assert "password" in outcome.because
    assert board.heard == before


def test_labgrid_1700_garbage_before_the_prompt_is_cleared(board: Board, console: Console) -> None:
    board._line = "echoPBTAJJAOZT"
    assert sent(console, "x") == Done("")
    assert board.commands_run() == ["x"]


def test_pexpect_55_a_line_that_is_too_long_is_refused_before_a_byte_is_sent(board: Board, console: Console) -> None:
    before = board.heard
    outcome = console.run("echo " + "x" * 4096)
    assert isinstance(outcome, NotSent)
    assert "this device takes 1024" in outcome.because
    assert board.heard == before


@pytest.mark.parametrize("command", ["a\nb", "a\rb", "a\x03", "", "  ", "\x1b[A"])
def test_what_is_not_one_line_is_refused(board: Board, console: Console, command: str) -> None:
    assert isinstance(console.run(command), NotSent)
    assert board.heard == b""


def test_a_reset_in_the_middle_is_noticed(board: Board, console: Console) -> None:
    board.commands = lambda command: board.say("[    0.000000] Booting Linux on physical CPU 0x0\r\n")
    outcome = sent(console, "reboot")
    assert isinstance(outcome, DeviceReset)
    assert console.state == "booting"


def test_a_question_is_reported_and_answered_by_choice(board: Board, console: Console) -> None:
    def ask(command: str) -> None:
        board.say("Erase all of flash? [y/N] ")

    board.commands = ask
    outcome = sent(console, "erase")
    assert isinstance(outcome, WaitingForInput)
    assert outcome.question == "Erase all of flash? [y/N]"
    refused = console.run("echo other")
    assert isinstance(refused, NotSent)
    assert "erase" in refused.because


def test_a_password_is_not_an_answer(board: Board, console: Console) -> None:
    board.commands = lambda command: board.say("Enter password: ")
    assert isinstance(sent(console, "su"), WaitingForInput)
    before = board.heard
    assert isinstance(console.answer("s3cret"), NotSent)
    assert board.heard == before


def test_a_command_without_an_end_is_unknown_and_nothing_follows_it(board: Board, console: Console) -> None:
    board.commands = lambda command: None
    outcome = sent(console, "sleep 99", 2)
    assert isinstance(outcome, TimedOut)
    assert isinstance(console.run("next", 0.5), NotSent)
    assert board.commands_run() == ["sleep 99"]


def test_an_end_that_comes_late_frees_the_console(board: Board, console: Console) -> None:
    board.commands = lambda command: None
    assert isinstance(sent(console, "sleep 1", 2), TimedOut)
    end = re.findall(r'echo "(\w+)""(\w+)" \$\?', board.executed[-1])[0]
    board.say(f"{end[0]}{end[1]} 0\r\n{PROMPT}")
    board.commands = lambda command: ""
    until(lambda: console.look() == "shell")
    assert sent(console, "next") == Done("")


@pytest.mark.deep
def test_a_late_end_is_not_taken_for_the_next_commands(board: Board, console: Console) -> None:
    assert sent(console, "one") == Done("")
    end = re.findall(r'echo "(\w+)""(\w+)" \$\?', board.executed[-1])[0]
    board.commands = lambda command: board.say(f"{end[0]}{end[1]} 0\r\n{PROMPT}")
    assert isinstance(sent(console, "two", 2), TimedOut)


def test_an_unplug_in_a_command_leaves_its_effect_unknown(board: Board, console: Console) -> None:
    board.commands = lambda command: board.unplug()
    outcome = sent(console, "flash")
    assert isinstance(outcome, LinkWasLost)
    assert isinstance(console.run("next"), NotSent)


def test_after_an_unplug_the_console_is_found_again_and_nothing_sent_twice(tmp_path: Path) -> None:
    first, second = Board(), Board()
    name = tmp_path / "usb-Board_1"
    name.symlink_to(first.place)
    port = SerialPort(PortSettings(str(name)))
    port.open()
    console = Console(port, load_profile("linux"))
    first.commands = lambda command: first.unplug()
    assert isinstance(sent(console, "flash"), LinkWasLost)
    name.unlink()
    name.symlink_to(second.place)
    port.reopen(60)
    assert sent(console, "uname") == Done("")
    assert first.commands_run() == ["flash"]
    assert second.commands_run() == ["uname"]
    port.close()
    second.unplug()


def test_a_person_who_looked_frees_the_console(board: Board, console: Console) -> None:
    board.commands = lambda command: None
    assert isinstance(sent(console, "sleep 99", 2), TimedOut)
    console.break_in()
    console.person_types(b"\x03")
    until(lambda: PROMPT.encode() in console.port.heard(0).rpartition(b"^C")[2])
    console.hand_back()
    board.commands = lambda command: ""
    assert sent(console, "next") == Done("")


def test_a_silent_line_is_off(board: Board, console: Console) -> None:
    board.lose = set(range(10_000))
    assert console.confirm(2) == "off"


def test_a_person_has_precedence(board: Board, console: Console) -> None:
    with pytest.raises(ValueError, match="break in first"):
        console.person_types(b"x")
    console.break_in()
    console.person_types(b"uptime\r")
    until(lambda: "uptime" in board.executed)
    assert isinstance(console.run("agent"), NotSent)
    console.hand_back()
    assert sent(console, "agent") == Done("")
    assert board.commands_run() == ["agent", "uptime"]


# -- real shells


def sent(console: Console, command: str, timeout_s: float = 60.0) -> Outcome:
    """The outcome of a command that was sent: one that was not executed, as on a stalled machine, is tried again."""
    for _ in range(3):
        outcome = console.run(command, timeout_s)
        if not isinstance(outcome, NotSent):
            break
    return outcome


@pytest.fixture(params=["bash --norc --noprofile -i", "dash -i", "busybox ash -i"])
def real_shell(request: pytest.FixtureRequest) -> Iterator[Console]:
    """A real shell of this machine behind a terminal of 80 columns."""
    words = request.param.split()
    if not shutil.which(words[0]):
        pytest.skip(f"{words[0]} is not installed")
    inner, inner_end = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm", "PS1": PROMPT}
    process = subprocess.Popen(
        words, stdin=inner_end, stdout=inner_end, stderr=inner_end, env=environment, start_new_session=True
    )
    os.close(inner_end)
    outer, outer_end = pty.openpty()
    tty.setraw(outer_end)

    def carry(source: int, target: int) -> None:
        with contextlib.suppress(OSError):
            while portion := os.read(source, 1024):
                os.write(target, portion)

    wires = [threading.Thread(target=carry, args=pair, daemon=True) for pair in ((inner, outer), (outer, inner))]
    for wire in wires:
        wire.start()
    port = SerialPort(PortSettings(os.ttyname(outer_end)))
    port.open()
    yield Console(port, load_profile("linux"))
    port.close()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    os.close(outer_end)
    for wire in wires:
        wire.join(60)  # Before their descriptors are closed: the numbers are used again.
    os.close(inner)
    os.close(outer)


def test_a_real_shell_is_driven(real_shell: Console) -> None:
    assert real_shell.enter(60) == "shell"
    assert sent(real_shell, "echo one; echo two") == Done("one\ntwo")
    assert sent(real_shell, "printf no-newline") == Done("no-newline")
    assert sent(real_shell, "(exit 7)") == Failed("", 7)
    assert sent(real_shell, "echo '$HOME' \"a  b\"") == Done("$HOME a  b")


def test_pexpect_238_a_long_command_in_a_real_shell_is_executed_once(real_shell: Console) -> None:
    assert real_shell.enter(60) == "shell"
    text = "x" * 200
    assert sent(real_shell, f"n=$((n+1)); echo {text}") == Done(text)
    assert sent(real_shell, "echo $n") == Done("1")


def test_satpulse_117_garbage_has_the_lines_settings_applied_again_and_is_said(board: Board, console: Console) -> None:
    os.write(board.device, bytes(range(128, 255)) * 20)
    until(lambda: len(console.port.heard(0)) == 127 * 20)
    console.look()
    notes = [moment.note for moment in console.port.timeline() if moment.who == "port"]
    assert any("mostly no text" in note for note in notes), notes


def test_text_of_any_language_is_no_garbage(board: Board, console: Console) -> None:
    board.say(said := "温度 21,5 °C – alles in Ordnung\r\n" * 100)
    until(lambda: len(console.port.heard(0)) == len(said.encode()))
    console.look()
    assert not any("no text" in moment.note for moment in console.port.timeline())


def test_the_password_is_not_typed_at_a_log_in_that_gave_up_meanwhile(board: Board, console: Console) -> None:
    """labgrid#545: while the password was being fetched the log-in timed out; then it was typed as a user's name."""
    board.commands = lambda command: None

    def password() -> str:
        board.say("\r\nLogin timed out after 60 seconds\r\n\r\nboard login: ")
        until(lambda: console.port.heard(0).count(b"board login: ") == 2)
        return "s3cret"

    board.say("\r\nboard login: ")
    until(lambda: b"board login: " in console.port.heard(0))
    board.prompt = "Password: "
    console.log_in("root", password, 2.0)
    assert "s3cret" not in board.executed
