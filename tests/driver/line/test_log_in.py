"""Log-ins in simulated time: a secret goes to its own prompt, whole, or nowhere; prompts of systems that are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from edgeagent.driver.line.console_machine import ConsoleMachine
from edgeagent.driver.line.log_in import log_in
from edgeagent.driver.line.outcome import NotSent, TimedOut, WaitingForInput
from edgeagent.driver.line.profile import Pacing, load_profile
from edgeagent.driver.line.view import State, View
from tests.driver.line.simulated import ONE_BY_ONE, Device, words

SYSTEMS = {
    "linux": ("board login: ", "root@board:~# "),
    "openwrt": ("OpenWrt login:\r\n\r\n", "root@OpenWrt:/# "),
    "ios": ("\r\nUser Access Verification\r\n\r\nUsername: ", "sw1>"),
    "huawei": ("Login authentication\r\n\r\nUsername:", "<HUAWEI>"),
    "junos": ("srx login: ", "{master:0}\r\nroot@srx> "),
    "mikrotik": ("MikroTik Login: ", "[admin@MikroTik] > "),
    "edgeswitch": ("User:", "(UBNT EdgeSwitch) >"),
}
SLOW = Pacing(char_ms=300)


def logged_in(
    device: Device, profile: str = "linux", *, meanwhile: Callable[[Device], None] | None = None, slow: bool = False
) -> State:
    """Log in at this device while something happens to it."""
    read = load_profile(profile)
    machine = ConsoleMachine(msgspec.structs.replace(read, pacing=SLOW) if slow else read, words())

    def password() -> str:
        if meanwhile is not None:
            meanwhile(device)
        return "s3cret"

    return device.carry(log_in(machine, "root", password, 10.0))


def at_log_in(profile: str = "linux") -> Device:
    """A device of this kind that asks who logs in."""
    asks, prompt = SYSTEMS[profile]
    device = Device(prompt, {})
    device.state, device.asks_user = "log_in", asks
    device.say(asks)
    return device


def secrets_at(device: Device) -> list[str]:
    """Where anything of the password was entered."""
    return [where for where, line in device.entered_at if line and "s3cret".startswith(line[:2])]


@pytest.mark.parametrize("cut", [-1, ONE_BY_ONE])
@pytest.mark.parametrize("profile", SYSTEMS)
def test_every_known_system_is_logged_in_to(profile: str, cut: int) -> None:
    device = at_log_in(profile)
    device.cut = cut
    assert logged_in(device, profile) == "shell"
    assert device.entered_at[:2] == [("log_in", "root"), ("password", "s3cret")]


@pytest.mark.parametrize("profile", SYSTEMS)
def test_a_log_in_that_gives_up_while_the_password_is_fetched_begins_again(profile: str) -> None:
    def gives_up(device: Device) -> None:
        device.idle(1.0)
        device.state = "log_in"
        device.say(f"\r\nLogin timed out\r\n{device.asks_user}")

    device = at_log_in(profile)
    assert logged_in(device, profile, meanwhile=gives_up) == "shell"
    assert secrets_at(device) == ["password"]


def test_the_password_is_not_typed_at_the_prompt_of_somebody_else() -> None:
    def another_user(device: Device) -> None:
        device.idle(1.0)
        device.say("\r\nLogin timed out\r\nboard login: guest\r\nPassword: ")

    device = at_log_in()
    assert logged_in(device, meanwhile=another_user) == "shell"
    assert device.entered_at[:4] == [("log_in", "root"), ("password", ""), ("log_in", "root"), ("password", "s3cret")]


def test_a_password_that_is_typed_slowly_stops_where_its_prompt_goes() -> None:
    def soon_gives_up(device: Device) -> None:
        def gives_up() -> None:
            device.state = "log_in"
            device._line = ""
            device.say("\r\nLogin timed out\r\nboard login: ")

        device._later(1.0, gives_up)

    device = at_log_in()
    assert logged_in(device, meanwhile=soon_gives_up, slow=True) == "shell"
    assert secrets_at(device) == ["password"]


def test_nothing_is_typed_into_a_boot_loader_that_counts_down() -> None:
    def starts_again(device: Device) -> None:
        device.idle(1.0)
        device.state = "boot"
        device.say("\r\nDRAM:  256 MiB\r\nHit any key to stop autoboot:  3 ")

    device = at_log_in()
    assert logged_in(device, meanwhile=starts_again) != "shell"
    assert device.entered_at == [("log_in", "root")]


def test_a_console_left_at_a_password_prompt_is_logged_in_to() -> None:
    device = at_log_in()
    device.state = "password"
    device.say("guest\r\nPassword: ")
    assert logged_in(device) == "shell"
    assert device.entered_at[:3] == [("password", ""), ("log_in", "root"), ("password", "s3cret")]


@pytest.mark.parametrize("profile", SYSTEMS)
@pytest.mark.parametrize("shown", ["Last login: ", "Last failed login: ", "New password: ", "Retype new password: "])
def test_what_is_printed_after_a_log_in_is_no_prompt_of_one(profile: str, shown: str) -> None:
    view = View(load_profile(profile))
    view.feed(f"\r\n{shown}".encode())
    assert view.prompt is None


def test_a_session_that_a_command_ended_is_over_when_somebody_logs_in_again() -> None:
    device = at_log_in()
    machine = ConsoleMachine(load_profile("linux"), words())
    machine.running = "exit"
    assert device.carry(log_in(machine, "root", lambda: "s3cret", 10.0)) == "shell"
    assert machine.running == ""


def with_session(profile: str, prompt: str, asks: str, command: str, script: list[list[Any]]) -> tuple[Device, Any]:
    """A console that was logged in to, and has one command."""
    device = Device(prompt, {command: script})
    device.state, device.asks_user = "log_in", asks
    device.say(asks)
    machine = ConsoleMachine(load_profile(profile), words())
    assert device.carry(log_in(machine, "root", lambda: "s3cret", 10.0)) == "shell"
    device.entered_at.clear()
    return device, machine


@pytest.mark.parametrize("asks", ["login: ", "other login: ", "Username: ", "Password: ", "root@10.0.0.2's password: "])
@pytest.mark.parametrize(("profile", "prompt"), [("linux", "root@board:~# "), ("generic", "sw1#")])
def test_nothing_is_typed_at_the_log_in_of_another_device(profile: str, prompt: str, asks: str) -> None:
    """`telnet` asks as the console's own log-in does: a name and a password went to the device behind it."""
    script = [[0.1, "Connected\r\n"], ["ask", asks], ["ask", "Password: "], [0, "bad\r\n"]]
    device, machine = with_session(profile, prompt, "board login: ", "telnet other", script)
    assert isinstance(device.carry(machine.run("telnet other", 6.0)), WaitingForInput)
    device.carry(log_in(machine, "root", lambda: "s3cret", 5.0))
    assert [line for _, line in device.entered_at if line.strip()][-1:] in (["telnet other"], [MARKED])
    assert machine.running == "telnet other"


MARKED = 'echo "w0004q""a"; telnet other; echo "w0004q""w0005q" $?'


def test_nothing_is_typed_by_a_log_in_into_a_command_that_runs() -> None:
    device, machine = with_session("generic", "sw1#", "board login: ", "format", [["ask", "Really (yes/no): "]])
    assert isinstance(device.carry(machine.run("format", 6.0)), WaitingForInput)
    device.entered_at.clear()
    device.carry(log_in(machine, "root", lambda: "s3cret", 5.0))
    assert device.entered_at == []


@pytest.mark.parametrize(("command", "asks_user"), [("exit", "Username: "), ("sleep 99", "board login: ")])
def test_the_consoles_own_log_in_is_known_by_what_ended_the_session_or_by_its_name(
    command: str, asks_user: str
) -> None:
    device, machine = with_session("generic", "sw1#", asks_user, command, [[0.1, "bye\r\n"], ["hang"]])
    device.after(3.0, device.leave_session)
    assert isinstance(device.carry(machine.run(command, 6.0)), TimedOut)
    assert device.carry(log_in(machine, "root", lambda: "s3cret", 10.0)) == "shell"
    assert machine.running == ""


@pytest.mark.parametrize(
    "asks",
    [
        *("Mot de passe : ", "Contraseña: ", "Passwort: ", "パスワード: ", "Пароль: ", "Verification code: "),
        *("Enter PEM pass phrase:", "Enter OTP: "),
    ],
)
def test_a_secret_is_asked_for_in_any_language_and_answered_with_nothing(asks: str) -> None:
    device = Device("sw1#", {"su": [["ask", asks], [0, "bad\r\n"]]})
    machine = ConsoleMachine(load_profile("generic"), words())
    assert isinstance(device.carry(machine.run("su", 6.0)), WaitingForInput)
    assert isinstance(device.carry(machine.answer("s3cret", 6.0)), NotSent)
    assert "s3cret" not in [line for _, line in device.entered_at]
