"""U-Boot writes a flash in QEMU: marks of progress, some of them like its prompt, and never "done" before the end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgeagent.driver.line.console import Console
from edgeagent.driver.line.outcome import Done, Failed, NotSent, TimedOut
from edgeagent.driver.line.profile import Transaction, load_profile
from tests.device.conftest import U_BOOT, emulator, need, start

pytestmark = pytest.mark.device
BANK_BYTES = 64 << 20
BANK = 0x4000000
PROGRESS = (
    "setexpr n ${n} + 1; for s in 0 4 8 c; do echo -n '=> '; sleep 1; erase 0x41${s}0000 +0x40000; done; echo last"
)
"""Four parts of the flash are erased, each after a mark that is the very prompt and a second in which nothing comes."""

ENDED = re.compile(rb"\nlast\r?\n(?:[^\n]*\r?\n)?=> ")
"""The last words, a marker if there is one, and the prompt."""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """U-Boot on an emulated ARM board with a second, empty flash."""
    need(U_BOOT, "U-Boot for QEMU")
    flash = Path(tmp_path_factory.mktemp("flash")) / "flash.img"
    flash.write_bytes(b"\xff" * BANK_BYTES)
    command = f"{emulator()} -M virt -nographic -nic none -monitor none -serial pty -bios {U_BOOT}"
    target = start("U-Boot with flash", [*command.split(), "-drive", f"if=pflash,unit=1,format=raw,file={flash}"])
    target.console("u-boot").port.close()
    yield target
    target.end()


@pytest.fixture(params=["marker", "prompt"])
def console(target: Any, request: pytest.FixtureRequest) -> Iterator[Console]:
    """A console at its prompt, with the counter at 0; the end of a command is told by its marker, or its prompt."""
    profile = load_profile("u-boot")
    if request.param == "prompt":
        way = Transaction(style="prompt", failure=(r"Can't write", r"^Unknown command"))
        profile = msgspec.structs.replace(profile, transaction=way)
    console = Console(target.port(), profile)
    assert console.enter(60) == "boot_loader"
    assert console.run("setexpr n 0") == Done("")
    yield console
    console.port.close()


def test_an_erasure_with_dots_is_done_when_its_last_sector_is(console: Console) -> None:
    outcome = console.run(f"erase {BANK + 0x100000:#x} +0x1000000", 60)
    assert isinstance(outcome, Done)
    assert outcome.output.splitlines()[-1] == "Erased 128 sectors"
    assert ".........." in outcome.output


def test_marks_of_progress_that_are_the_very_prompt_end_nothing(console: Console) -> None:
    outcome = console.run(PROGRESS, 60)
    assert isinstance(outcome, Done)
    assert outcome.output.count("=> ") == 4
    assert outcome.output.count("Erased 2 sectors") == 4
    assert outcome.output.splitlines()[-1] == "last"
    assert console.run("printenv n") == Done("n=1")


def test_an_erasure_that_outlasts_its_time_is_unknown_and_nothing_is_typed_into_it(console: Console) -> None:
    outcome = console.run(PROGRESS.replace("sleep 1", "sleep 5"), 3.5)  # A line that answers late adds to the 3.5 s.
    if isinstance(outcome, NotSent):
        pytest.skip("this machine is too busy to send a line within 3.5 s")
    assert isinstance(outcome, TimedOut)
    since = console.port.offset
    assert isinstance(console.run("echo into it", 0.5), NotSent)
    assert b"into it" not in console.port.heard(since)
    at = since
    while not ENDED.search(console.port.heard(since)):
        heard, at = console.port.wait(at, 30)
        assert heard, "the erasure came to no end"
    assert console.run("printenv n", 30) == Done("n=1")


def test_a_write_that_is_refused_has_failed(console: Console) -> None:
    outcome = console.run(f"cp.b 0x40000000 {BANK:#x} 0x100", 30)
    assert isinstance(outcome, Failed)
    assert "Can't write to protected Flash sectors" in outcome.output
