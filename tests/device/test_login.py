"""Log-ins by BusyBox and by the gettys of BusyBox and Debian: passwords, and where one may not go; a pager's pages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edgeagent.driver.device.device import Device, LogIn
from edgeagent.driver.line.console import Console
from edgeagent.driver.line.outcome import Done, Failed, NotSent
from edgeagent.driver.line.profile import load_profile
from tests.device.conftest import until

pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(os.getuid() != 0, reason="busybox login needs root for its own root directory"),
    pytest.mark.skipif(
        not Path("/bin/busybox").exists(), reason="busybox-static is missing: run tests/device/setup.sh"
    ),
]
PASSWORD = "s3cret-of-this-test"
AGETTY = Path("/sbin/agetty")


HOWS = ["login", "getty", pytest.param("agetty", marks=pytest.mark.skipif(not AGETTY.exists(), reason="no agetty"))]


@pytest.fixture(params=HOWS)
def console(start_target: Callable[..., Any], tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Console]:
    """A console that stands at the log-in prompt."""
    (tmp_path / "root").mkdir()
    command = [sys.executable, str(Path(__file__).parent / "login_device.py"), str(tmp_path / "root"), PASSWORD]
    name = {"login": "busybox login", "getty": "busybox getty", "agetty": "Debian agetty"}[request.param]
    target = start_target(name, [*command, request.param])
    console = Console(target.port(), load_profile("linux"))
    assert console.enter(60) == "log_in"
    yield console


def everything_kept(console: Console) -> bytes:
    """All that a trace, a mirror or a log could get."""
    return console.port.heard(0) + b"".join(moment.data for moment in console.port.timeline())


def test_the_right_password_leads_to_a_shell(console: Console) -> None:
    assert console.log_in("operator", lambda: PASSWORD) == "shell"
    assert console.run("echo $((6*7))") == Done("42")
    assert PASSWORD.encode() not in everything_kept(console)


def test_the_wrong_password_leads_back_to_the_log_in(console: Console) -> None:
    assert console.log_in("operator", lambda: "wrong") == "log_in"
    assert console.log_in("operator", lambda: PASSWORD) == "shell"


def test_a_command_at_the_log_in_is_not_sent(console: Console) -> None:
    since = console.port.offset
    outcome = console.run("rm -r /")
    assert isinstance(outcome, NotSent)
    assert "log_in" in outcome.because
    assert b"rm" not in console.port.heard(since)


def test_a_command_at_the_password_prompt_is_not_sent(console: Console) -> None:
    """labgrid#546: the log-in prompt was hidden by messages, and helper functions were typed as a password."""
    console.port.write(b"operator\r")
    until(lambda: console.look() == "password", "no password is asked for")
    assert isinstance(console.run("echo hello"), NotSent)
    sent = b"".join(moment.data for moment in console.port.timeline() if moment.who == "agent")
    assert b"hello" not in sent


def test_a_password_that_the_device_echoes_is_hidden(console: Console) -> None:
    console.port.hide(PASSWORD.encode())
    console.port.write(PASSWORD.encode())
    until(lambda: b"*" * len(PASSWORD) in console.port.heard(0), "nothing is echoed")
    heard = console.port.heard(0)
    console.port.hide(b"")
    assert PASSWORD.encode() not in heard
    assert b"*" * len(PASSWORD) in heard


def test_the_password_is_not_asked_for_before_its_prompt_stands_there(console: Console) -> None:
    asked: list[str] = []

    def password() -> str:
        asked.append(console.look())
        return PASSWORD

    assert console.log_in("operator", password) == "shell"
    assert asked == ["password"]


def test_after_a_log_out_somebody_logs_in_again(console: Console) -> None:
    assert console.log_in("operator", lambda: PASSWORD) == "shell"
    console.run("exit", 2)
    assert console.enter(60) == "log_in"
    assert console.log_in("operator", lambda: PASSWORD) == "shell"
    assert console.run("echo again") == Done("again")


def test_a_failure_on_the_last_page_of_a_pager_is_seen(console: Console, tmp_path: Path) -> None:
    """BusyBox `more` stops at each page; without a marker the words of the last one tell that the command failed."""
    pages = [f"line {number}" for number in range(60)]
    (tmp_path / "root" / "failed").write_text("\n".join([*pages, "% Error: flash is not usable", ""]))
    (tmp_path / "root" / "well").write_text("\n".join([*pages, "% Memory used: 12", ""]))
    assert console.log_in("operator", lambda: PASSWORD) == "shell"
    assert console.run("PS1='sw1# '") == Done("")
    switch = Console(console.port, load_profile("generic"))
    assert switch.enter(60) == "shell"
    failed, well = switch.run("more /failed"), switch.run("more /well")
    assert isinstance(failed, Failed)
    assert failed.output.split("\n") == [*pages, "% Error: flash is not usable"]
    assert well == Done("\n".join([*pages, "% Memory used: 12"]))


def test_a_device_is_logged_in_to_again_after_its_session_ended(console: Console) -> None:
    """Also where somebody had left it at the prompt of a password."""
    console.port.write(b"guest\r")
    until(lambda: console.look() == "password", "no password is asked for")
    console.port.close()
    device = Device(console.port.settings.identity, "linux", log_in=LogIn("operator", lambda: PASSWORD), mirrored=False)
    try:
        assert device.console().run("echo $((6*7))") == Done("42")
        assert not isinstance(device.console().run("exit", 2), Done)
        assert device.console().run("echo again") == Done("again")
    finally:
        device.close()
