"""What is known of a board: small trees that stand for real ones, and nothing that raises where a file is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgeagent.errors import ModelError
from edgeagent.runtime import board as board_module
from edgeagent.runtime.board import Machine

NOW_S = 1_790_000_000.0


def tree(folder, **files):
    """Write files, with `__` for `/`, and return the folder."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        place = folder / name.replace("__", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder


@pytest.fixture
def made(tmp_path):
    """A function that makes a board of these files; what is asked of the kernel is given as values."""

    def make(machine="aarch64", synchronised=None, now_s=NOW_S, trial=lambda: None, environment=(), **files):
        return Machine(
            state=tmp_path / "state",
            root=tree(tmp_path / "root", **files),
            models=tmp_path / "models",
            machine=machine,
            environment=dict(environment),
            synchronised=lambda: synchronised,
            now_s=lambda: now_s,
            trial=trial,
        )

    return make


@pytest.fixture
def become_nobody(tmp_path):
    """A function after which we are nobody, if we were root: root may do everything."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & 0o001:
            folder.chmod(0o755)  # What pytest made for us alone; nobody passes through it otherwise.
    user = os.geteuid()
    yield lambda: os.seteuid(65534 if user == 0 else user)
    os.seteuid(user)


@pytest.mark.long
def test_a_bare_container_is_told_of_without_an_error(made):
    board = made()
    found = {each.about: each for each in board.findings()}
    unknown = {name for name, each in found.items() if each.verdict == "unknown"}
    assert unknown == {"cpu", "memory", "clock", "time zone", "serial", "systemd"}
    assert [name for name, each in found.items() if each.verdict == "bad"] == ["models"]
    assert all(each.remedy for each in found.values() if each.verdict == "bad")


@pytest.mark.long
def test_what_takes_a_second_is_said_before_it_begins(made):
    begun: list[str] = []
    seen = [(each.about, len(begun)) for each in made().findings(begun.append)]
    assert dict(seen)["llama.cpp"] == 1
    assert dict(seen)["disk"] == 2


def test_a_pi_zero_with_384_mb_has_room_for_the_small_model_only(made):
    meminfo = "MemTotal:         393216 kB\nMemAvailable:     340000 kB\n"
    board = made("armv6l", proc__meminfo=meminfo)
    assert board.memory().verdict == "good"
    (models,) = board.model_files()
    assert "that fit: smollm2" in models.found
    assert models.remedy == "edgeagent model pull smollm2"


def test_too_little_memory_is_bad(made):
    found = made(proc__meminfo="MemTotal: 262144 kB\nMemAvailable: 120000 kB\n").memory()
    assert (found.verdict, "smallest model" in found.found) == ("bad", True)


@pytest.mark.parametrize("own", ["0::/\n", "0::/edge.slice/agent.service\n", ""])
def test_the_limit_of_a_control_group_counts(made, own):
    limit = {"sys__fs__cgroup__memory.max": "200000000\n", "sys__fs__cgroup__memory.current": "50000000\n"}
    meminfo = "MemTotal: 8388608 kB\nMemAvailable: 8000000 kB\n"
    found = made(proc__meminfo=meminfo, proc__self__cgroup=own, **limit).memory()
    assert found.found.startswith("200 MB in all, 150 MB free")
    assert found.verdict == "bad"


def test_no_limit_of_a_control_group_of_the_first_kind_is_none(made):
    limit = {"sys__fs__cgroup__memory__memory.limit_in_bytes": "9223372036854771712\n"}
    found = made(proc__meminfo="MemTotal: 4000000 kB\nMemAvailable: 3000000 kB\n", **limit).memory()
    assert found.found == "4096 MB in all, 3072 MB free"


@pytest.mark.parametrize(
    ("isa", "said"), [("rv64imafdc_zicsr_zifencei", "no vector unit"), ("rv64imafdcv_zicsr", "vectors by v")]
)
def test_a_riscv_cpu_says_whether_it_has_vectors(made, isa, said):
    found = made("riscv64", proc__cpuinfo=f"processor\t: 0\nisa\t\t: {isa}\nuarch\t\t: sifive,u74-mc\n").cpu()
    assert said in found.found
    assert "sifive,u74-mc (riscv64)" in found.found


def test_a_build_that_this_cpu_cannot_run_is_bad_with_its_remedy(made):
    def trial():
        raise ModelError("this build of llama.cpp needs v, which this CPU does not have; install the artefact riscv64")

    found = made(trial=trial).engine()
    assert (found.verdict, found.remedy) == ("bad", "install the artefact riscv64")


def test_a_damaged_model_is_bad(made, tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.gguf").write_text("<html>")
    sidecar = '{"sha256": "0", "size_bytes": 6, "source": "file", "licence": "MIT", "instruct": true}'
    (tmp_path / "models" / "mine.json").write_text(sidecar)
    (found,) = made().model_files()
    assert (found.verdict, "text file" in found.found) == ("bad", True)
    assert found.remedy.startswith("edgeagent model remove mine")


def test_a_state_that_cannot_be_written_is_bad(made, tmp_path, become_nobody):
    board = made()
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o555)
    become_nobody()
    found = board.state_folder()
    assert (found.verdict, "cannot be written" in found.found) == ("bad", True)
    assert "EDGEAGENT_STATE" in found.remedy
    assert board.disk().verdict == "unknown"


def test_a_state_that_others_may_read_is_bad(made, tmp_path):
    (tmp_path / "state" / "sessions").mkdir(parents=True)
    (tmp_path / "state" / "sessions").chmod(0o755)
    found = made().state_folder()
    assert found.remedy == f"chmod 700 {tmp_path / 'state' / 'sessions'}"


def test_a_state_in_memory_is_bad(made):
    found = made(proc__self__mounts="/dev/root / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\ntmpfs / tmpfs rw 0 0\n")
    assert "lost with the power" in found.state_folder().found


def test_a_slow_disk_is_bad(made, monkeypatch):
    monkeypatch.setattr(board_module, "_sync_ms", lambda folder: 900.0)
    assert "felt in each turn" in made().disk().found


def test_a_board_without_any_clock_is_bad(made, tmp_path):
    board = made(synchronised=False)
    (tmp_path / "root" / "sys" / "class" / "rtc").mkdir(parents=True)
    assert board.clock().verdict == "bad"
    assert "timedatectl" in board.clock().remedy


def test_a_clock_that_says_1970_is_bad_even_with_a_real_time_clock(made):
    found = made(now_s=86_400.0, sys__class__rtc__rtc0__name="ds3231").clock()
    assert (found.verdict, found.found[:18]) == ("bad", "it says 1970-01-02")


@pytest.mark.parametrize("files", [{"run__systemd__timesync__synchronized": ""}, {"synchronised": True}])
def test_a_synchronised_clock_is_good(made, files):
    assert made(**files).clock().verdict == "good"


def test_the_time_zone_is_the_links_name(made, tmp_path):
    board = made()
    (tmp_path / "root" / "etc").mkdir()
    (tmp_path / "root" / "etc" / "localtime").symlink_to("/usr/share/zoneinfo/Europe/Berlin")
    assert board.zone().found == "Europe/Berlin"


def test_a_port_without_rights_is_bad_and_the_others_are_told_of_too(made, tmp_path, become_nobody):
    board = made(dev__ttyUSB0="", dev__ttyACM0="", dev__ttyS0="")
    (tmp_path / "root" / "dev" / "ttyUSB0").chmod(0o600 if os.geteuid() == 0 else 0)
    (tmp_path / "root" / "dev" / "ttyACM0").chmod(0o666)
    become_nobody()
    good, bad = board.serial_ports()
    assert (good.verdict, bad.verdict) == ("good", "bad")
    assert "/dev/ttyUSB0 may not be opened" in bad.found
    assert bad.remedy


def test_systemd_is_seen_and_so_is_being_started_by_it(made, tmp_path):
    board = made(environment={"INVOCATION_ID": "x"})
    (tmp_path / "root" / "run" / "systemd" / "system").mkdir(parents=True)
    assert board.service_manager().found == "it runs here, and has started this"


def test_this_board_is_told_of(tmp_path):
    assert list(Machine(state=tmp_path / "state", root=Path("/")).serial_ports())
