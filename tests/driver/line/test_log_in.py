"""Log-ins in simulated time: a secret goes to its own prompt, whole, or nowhere; prompts of systems that are known."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from edgeagent.driver.line.console_machine import ConsoleMachine
from edgeagent.driver.line.log_in import log_in
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
