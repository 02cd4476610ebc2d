"""Consoles that are known by what they show: prompts as they were reported, pagers, questions, failures, noise."""

from __future__ import annotations

import re

import pytest

from edgeagent.driver.line.consoles import identified, kinds, known_pagers
from edgeagent.driver.line.profile import load_profile
from edgeagent.driver.line.view import View


@pytest.mark.parametrize(
    "prompt",
    [
        "(palmer-elevator.sw) #",
        "(palmer-elevator.sw) (Config)#",
        "[admin@MikroTik] > ",
        "[admin@MikroTik] /ip address> ",
        "<switch-zone>",
        "[switch-zone-Vlan1]",
        "[~HUAWEI]",
        "msh />",
        "> ",
        "grub> ",
        "root@srx> ",
        "TL-SG3210(config)#",
        "[root@gateway ~]# ",
    ],
)
def test_oxidized_344_netmiko_3145_a_prompt_is_one(prompt: str) -> None:
    view = View(load_profile("generic"))
    view.feed(b"\r\n" + prompt.encode())
    assert view.prompt == "shell"


@pytest.mark.parametrize("text", ["[y/N] ", "--More--", "<--- More --->", "[confirm]", "Writing: ", "", "100 %"])
def test_a_pager_or_a_question_is_no_prompt(text: str) -> None:
    view = View(load_profile("generic"))
    view.feed(text.encode())
    assert view.prompt is None


def test_labgrid_1786_a_log_in_prompt_with_a_line_end_is_one() -> None:
    view = View(load_profile("linux"))
    view.feed(b"\r\nboard login: \r\n")
    assert view.prompt == "log_in"


def test_a_password_prompt_with_a_line_end_is_none() -> None:
    view = View(load_profile("linux"))
    view.feed(b"\r\nPassword: \r\n")
    assert view.prompt is None


@pytest.mark.parametrize(
    ("shown", "name"),
    [
        ("BusyBox v1.36.1 () built-in shell (ash)\n\n OpenWrt 23.05\nroot@OpenWrt:/# ", "openwrt"),
        ("BusyBox v1.30.1 built-in shell (ash)\n~ # ", "busybox"),
        ("Debian GNU/Linux 12 gateway ttyS0\n\ngateway login: ", "debian"),
        ("barebox 2023.01.0 #1\nbarebox@Board:/ ", "barebox"),
        ("GNU GRUB  version 2.06\ngrub> ", "grub"),
        (" \\ | /\n- RT -     Thread Operating System\n / | \\\nmsh />", "rt-thread"),
        ("User Access Verification\n\nUsername: ", "ios"),
        ("MikroTik 7.1 (stable)\nMikroTik Login: ", "mikrotik"),
        ("\n[admin@router] > ", "mikrotik"),
        ("(UBNT EdgeSwitch) #", "edgeswitch"),
        ("(palmer-elevator.sw) #", "edgeswitch"),
        ("\nmsh />", "rt-thread"),
        ("H3C Comware Software\n<switch-zone>", "comware"),
        ("\nTL-SG3210>", "tp-link"),
        ("Amnesiac (ttyu0)\n\nlogin: ", "junos"),
        ("nothing that is known\n", ""),
    ],
)
def test_a_console_is_identified_by_what_it_shows(shown: str, name: str) -> None:
    assert identified(shown) == name


@pytest.mark.parametrize("name", kinds())
def test_every_kind_is_a_profile(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.extends == kinds()[name].extends


def test_a_bare_press_any_key_is_a_question_and_no_pager() -> None:
    text = "Press any key to continue"
    assert not any(pattern.fullmatch(text) for pattern, _ in known_pagers())
    assert any(pattern.search(text) for pattern in load_profile("generic").question_patterns)


def test_a_profile_adds_a_pager_of_its_own(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "p.toml"
    path.write_text("name = 'p'\nextends = 'generic'\npager = 'weiter mit Leertaste'\npager_key = '^J'\n")
    pattern, key = load_profile(str(path)).pager_patterns[0]
    assert re.fullmatch(pattern, "weiter mit Leertaste")
    assert key == "\n"
