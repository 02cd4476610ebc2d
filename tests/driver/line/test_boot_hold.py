"""Keys that hold a boot loader, by what it offers; and what offers something else."""

from __future__ import annotations

import msgspec
import pytest

from edgeagent.driver.line.boot_hold import hold_key, offer_in
from edgeagent.driver.line.console_machine import ConsoleMachine
from edgeagent.driver.line.profile import Boot, load_profile
from edgeagent.driver.line.view import View
from tests.driver.line.simulated import Device, words

HELD = (
    ("Hit any key to stop autoboot:  3 ", " "),
    ("Hit m for menu or any other key to stop autoboot:    3", " "),
    ("Press ESC to stop autoboot in 3 seconds", "\x1b"),
    ("Press <ESC> to interrupt boot: 5", "\x1b"),
    ("Hit 's' to stop autoboot:  1", "s"),
    ("Ctrl-C to interrupt", "\x03"),
    ("Press Ctrl+C to stop booting...", "\x03"),
    ("== Executing boot script in 1.000 seconds - enter ^C to abort", "\x03"),
    ("Press Control-C now to enter Aboot shell", "\x03"),
    ("Autobooting in 3 seconds, type 'tpl' to abort", "tpl"),
    ("type 'tpl' to stop", "tpl"),
    ("Autobooting in 1 seconds", "tpl"),
    ("Press SPACE to abort autoboot in 3 seconds", " "),
    ("Press 'x' now to abort autoboot: 2", "x"),
    ("Hit [Enter] to boot immediately, or space bar for command prompt.", " "),
    ("Hit [Enter] to boot immediately, or any other key for command prompt.", " "),
    ("Press ESC in 5 seconds to skip startup.nsh or any other key to continue.", "\x1b"),
    ("Press enter to boot the selected OS, `e' to edit the commands before booting or `c' for a command-line.", "c"),
    ("To stop autoboot, press SPACE", " "),
    ("*** Press any key to stop auto run (1 seconds) ***", " "),
    ("Press Ctrl-B for the iPXE command line...", "\x02"),
    ("Autoboot in 3 s - press ESC", "\x1b"),
    ("Press ESC within 2 seconds to enter the boot loader prompt", "\x1b"),
    ('Press "<Ctrl-U>" to break', "\x15"),
    ("Hit Enter to stop autoboot: 3", "\r"),
    ("Enter 'stop' to halt the boot: 4", "stop"),
    ("press the [DEL] key to enter the monitor", "\x7f"),
    ("Press s key to stop autoboot", "s"),
    ("\n\nPress the Enter key to enter the command line: 3", "\r"),
    ("Booting in 5 seconds. Press any key to cancel", " "),
    ('Type "stop" to halt boot, anything else to go on: 3', "stop"),
)
LEFT = (
    "Press Q to quit",
    "Press ESC to enter recovery mode",
    "Press any key to boot",
    "Press ENTER to continue",
    "Enter password in 3 seconds to stop autoboot",
    "Press F12 to stop autoboot",
    "Press RESET to restore defaults",
    "Hit any key to restore factory defaults: 3",
    "login: ",
    "Press ENTER to boot now, 3",
    "Loading kernel from sector 3",
    "Type 'help' for a list of commands",
    "Press 'r' to reset",
    "Press any key to continue",
    "Press ESC for boot menu",
    "Use the ^ and v keys to select which entry is highlighted.",
)


@pytest.mark.parametrize(("shown", "key"), HELD)
def test_the_key_that_holds_a_boot_loader_is_read_from_its_offer(shown: str, key: str) -> None:
    assert hold_key(offer_in(shown)) == key


@pytest.mark.parametrize("shown", LEFT)
def test_no_key_is_read_where_it_would_do_something_else(shown: str) -> None:
    assert hold_key(offer_in(shown)) == ""


def test_a_count_down_below_its_offer_leaves_it_an_offer() -> None:
    assert hold_key(offer_in("Press ESC to stop autoboot\n 3 2 ")) == "\x1b"
    assert hold_key(offer_in("Press ESC to stop autoboot\nStarting kernel\n")) == ""


def test_what_the_profile_says_of_its_loader_comes_first() -> None:
    profile = load_profile("u-boot")
    own = msgspec.structs.replace(profile, boot=Boot(autoboot="Press SPACE", autoboot_key="!"))
    seen = View(own)
    seen.feed(b"Press SPACE to abort autoboot in 3 seconds")
    assert seen.hold_key == "!"


def test_a_device_whose_profile_knows_no_boot_loader_boots_on() -> None:
    seen = View(load_profile("linux"))
    seen.feed(b"Press SPACE to abort autoboot in 3 seconds")
    assert seen.hold_key == ""


class Booting(Device):
    """A board that starts, offers to be held, and boots Linux when nobody holds it."""

    def __init__(self, offer: str, key: str) -> None:
        super().__init__("=> ", {"version": [[0, "U-Boot\r\n"]], "#": []})
        self.offer, self.key, self.pressed = offer, key, ""
        self.state = "boot"
        self.say("\r\nDRAM:  256 MiB\r\n")
        self.say(offer, 1.0)
        self._later(4.0, self._boots)

    def _key(self, char: str) -> None:
        if self.state != "boot":
            super()._key(char)
            return
        self.pressed += char
        if self.now > 1.0 and self.pressed.endswith(self.key):
            self.state = "shell"
            self.say(f"\r\n{self.prompt}")

    def _boots(self) -> None:
        if self.state == "boot":
            self.state = "linux"
            self.say("\r\nStarting kernel ...\r\n")


@pytest.mark.parametrize(("offer", "key"), [pair for pair in HELD if "\n" not in pair[0]][::3])
def test_a_board_that_starts_is_held_by_its_own_key(offer: str, key: str) -> None:
    board = Booting(offer, key)
    machine = ConsoleMachine(load_profile("u-boot"), words())
    assert board.carry(machine.enter(20.0)) == "boot_loader"
