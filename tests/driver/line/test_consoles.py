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
        "root@%",
        "root@srx:~ # ",
        "{master:0}\r\nuser@ex> ",
        "[edit interfaces]\r\nuser@srx# ",
        "[*HUAWEI-Vlanif10]",
        "HRP_M<USG6000>",
        "RP/0/RSP0/CPU0:router(config)#",
        "finsh />",
        "grub rescue> ",
        "rommon 1 >",
        "switch: ",
        "u-boot=> ",
        "barebox@Board:/ ",
    ],
)
def test_oxidized_344_netmiko_3145_a_prompt_is_one(prompt: str) -> None:
    view = View(load_profile("generic"))
    view.feed(b"\r\n" + prompt.encode())
    assert view.prompt == "shell"


@pytest.mark.parametrize(
    "text",
    [
        *("[y/N] ", "--More--", "<--- More --->", "[confirm]", "Writing: ", "", "100 %", "<more>", "<y/n>"),
        *("[  OK  ]", "[FAILED]", "[####      ]", "[=====>    ]", "<Press any key>", "[5/10]", "50%"),
    ],
)
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


@pytest.mark.parametrize(
    "prompt",
    [
        *("=> ", "U-Boot> ", "u-boot=> ", "Marvell>> ", "MX6Q SABRESD U-Boot > ", "hisilicon # ", "MT7621 # "),
        *("(IPQ40xx) # ", "Tegra124 (Jetson TK1) # ", "STM32MP> "),
    ],
)
def test_boards_give_u_boot_a_prompt_of_their_own(prompt: str) -> None:
    view = View(load_profile("u-boot"))
    view.feed(b"\r\n" + prompt.encode())
    assert view.prompt == "boot_loader"


@pytest.mark.parametrize(
    "shown",
    [
        *("--More-- or (q)uit", "---(more 100%)---", "  ---- More ----", "lines 1-22/300 5%", "log.txt lines 1-23 12%"),
        *("Press SPACE to continue or Q to quit:", "<space> for next page, q to quit", "press SPACE for next page"),
        *("Press Enter to continue or Q to quit", "-  (press RETURN)", "[More]", "(more)", "-- [Q quit|D dump|down]"),
        "Press any key to continue, 'n' for nonstop or 'q' to quit: ",
        "-- MORE --, next page: Space, next line: Enter, quit: Control-C",
    ],
)
def test_a_pager_is_one_in_whatever_words(shown: str) -> None:
    view = View(load_profile("generic"))
    view.feed(f"a line\r\n{shown}".encode())
    assert view.pager_key


NOISE = {
    "generic": [
        "000123: *Mar  1 00:01:02.003: %LINK-3-UPDOWN: Interface Fa0/1, changed state to up",
        "SW1: 000123: *Mar  1 00:01:02.003: %LINK-3-UPDOWN: Interface Fa0/1",
        "1w2d: %SYS-5-CONFIG_I: Configured from console",
        "00:00:46: %LINK-3-UPDOWN: Interface Fa0/1",
        "RP/0/RSP0/CPU0:Mar  1 00:01:02.003 : ifmgr[123]: %PKT_INFRA-LINK-3-UPDOWN : Interface Gi0",
        "2023 Mar  1 00:01:02.123 switch %$ VDC-1 %$ %ETHPORT-5-IF_DOWN_NONE: Interface Ethernet1",
        "<14> Mar  1 00:01:02 10.0.0.1-1 TRAPMGR[123]: traputil.c(721) 12 %% Link Down: 0/3",
        "#Apr 26 12:00:00:000 2013 H3C SHELL/4/LOGIN: Trap",
        "2020-4-1 10:00:00 sw %%01IFNET/4/LINK_STATE(l)[0]:The line protocol is down",
        "jan/02/1970 00:01:02 system,error,critical login failure for user x",
    ],
    "linux": ["<6>[   12.345678] usb 1-1: new", "[   12.345678][    T1] random: crng", "[  OK  ] Started getty."],
    "zephyr": ["[00000123] <wrn> net: no carrier", "[00:00:01.234] <err> os: stack"],
    "rt-thread": ["[I/wlan] connected", "[1234] D/drv: x", "01-02 03:04:05 I/NO_TAG: hello"],
}
PROMPT = {"generic": "sw1#", "linux": "root@b:~# ", "zephyr": "uart:~$ ", "rt-thread": "msh />"}


@pytest.mark.parametrize(("name", "line"), [(name, line) for name, lines in NOISE.items() for line in lines])
def test_a_log_line_behind_a_prompt_leaves_it_where_it_was(name: str, line: str) -> None:
    for between in ("", "\r\n"):
        view = View(load_profile(name))
        view.feed(f"{PROMPT[name]}{between}{line}\r\n".encode())
        assert view.last_line == PROMPT[name]
        assert view.clean[1] == (line,)


@pytest.mark.parametrize(
    "line",
    [
        *("% VLAN 10 not found in current VLAN database", "%Error copying flash:/x (No space left on device)"),
        *("Command rejected: x", "% Wrong parameter found at '^' position.", "Permission denied.", "     ^", "Failed!"),
        *("Command not found / Incomplete command. Use ? to list commands.", "Incorrect input! Use 'show x'"),
        *("expected end of command (line 1 column 5)", "failure: already have x", "no such item", "syntax error."),
        *("invalid value for argument address", "missing value(s) of argument(s) address", "'foo' is ambiguous."),
        *("foo: command not found.", "-sh: foo: not found", "Error 12: flash", "error: no such device: hd9."),
    ],
)
def test_a_complaint_is_a_failure_in_whatever_words(line: str) -> None:
    assert any(re.search(each, line, re.MULTILINE) for each in load_profile("generic").transaction.failure)


@pytest.mark.parametrize(
    "line",
    [
        *("% Memory used: 12", "% Invalid packets: 0", "% Error rate: 0.1", "Error: 0", "Error: none", "error: OK"),
        *("Invalid input packets: 0", "Unknown command count: 0", "Error: disabled", "Error:", "Errors at boot: none"),
        *("error in: 0", "Failed logins: 0", "Error correction: on", "Bad frames: 3", "errors: 0"),
    ],
)
def test_a_count_of_complaints_is_no_failure(line: str) -> None:
    assert not any(re.search(each, line, re.MULTILINE) for each in load_profile("generic").transaction.failure)


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
