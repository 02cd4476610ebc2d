"""A build of llama.cpp that this CPU cannot run is a sentence and not a signal."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from edgeagent.errors import ExitCode, ModelError
from edgeagent.models import cpu
from edgeagent.models.cpu import LIBRARIES, check_cpu, describe_cpu, library_folder, this_cpu
from edgeagent.models.elf import NotElf, read_library

ROOT = Path(__file__).parents[3]

GGML = """
#include <stddef.h>
#include <stdbool.h>
#include <stdlib.h>
struct init { size_t size; void *buffer; bool none; };
void *ggml_init(struct init i) { return malloc(i.size); }
void ggml_free(void *c) { free(c); }
float memory[65536];
void *ggml_new_tensor_2d(void *c, int t, long long w, long long h) { return memory; }
size_t ggml_nbytes(void *t) { return 64; }
void *ggml_get_data(void *t) { return memory; }
void *ggml_mul_mat(void *c, void *a, void *b) { return memory; }
void *ggml_rms_norm(void *c, void *a, float e) { return memory; }
void *ggml_soft_max(void *c, void *a) { return memory; }
void *ggml_new_graph(void *c) { return memory; }
void ggml_build_forward_expand(void *g, void *t) {}
void ggml_cpu_init(void) {}
int ggml_cpu_has_%s(void) { return 1; }
int ggml_graph_compute_with_ctx(void *c, void *g, int n) { %s; return 0; }
"""


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def built(tmp_path):
    """A function that compiles libraries whose arithmetic does something, and returns their folder."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("SKIPPED ALOUD: no C compiler here")

    def build(does, has="avx"):
        folder = tmp_path / "lib"
        folder.mkdir()
        source = folder / "ggml.c"
        source.write_text(GGML % (has, does))
        for name in LIBRARIES:
            subprocess.run([compiler, "-shared", "-fPIC", "-w", "-o", folder / name, source], check=True)
        return folder

    return build


RIGHT = "for (int i = 0; i < 64; i++) memory[i] = 1.0f / 16"


def test_the_installed_llama_cpp_runs_here():
    check_cpu()
    assert this_cpu().machine in describe_cpu()


def test_a_build_that_computes_rightly_is_good(built):
    check_cpu(built(RIGHT))


def test_an_unknown_instruction_is_a_sentence(built):
    with pytest.raises(ModelError, match=r"uses an instruction that this CPU .* does not have; rebuild") as caught:
        check_cpu(built("__builtin_trap()"))
    assert caught.value.exit_code == ExitCode.MODEL


def test_the_sentence_names_the_feature_that_the_cpu_lacks(built):
    names = cpu._GGML_NAMES[this_cpu().machine]
    lacking = next((ggml for ggml, feature in names.items() if feature not in this_cpu().features), None)
    if lacking is None:
        pytest.skip("SKIPPED ALOUD: this CPU has every feature that ggml knows")
    with pytest.raises(ModelError, match=f"needs {names[lacking]}, which this CPU"):
        check_cpu(built("__builtin_trap()", has=lacking))


def test_another_death_is_told_apart(built):
    with pytest.raises(ModelError, match="its trial died of SIGABRT"):
        check_cpu(built("abort()"))


def test_wrong_arithmetic_is_noticed(built):
    with pytest.raises(ModelError, match=r"ggml computed 0\.0 where"):
        check_cpu(built(""))


def test_a_library_that_cannot_be_loaded_is_said_in_the_loaders_words(built):
    folder = built(RIGHT)
    (folder / "libggml-cpu.so").write_bytes((folder / "libggml-base.so").read_bytes()[:4096])
    with pytest.raises(ModelError, match=r"libggml-cpu\.so"):
        check_cpu(folder)


def test_a_good_verdict_is_kept(built):
    folder = built(RIGHT)
    check_cpu(folder)
    kept = list(Path(os.environ["XDG_CACHE_HOME"], "edgeagent", "cpu").glob("*.json"))
    assert len(kept) == 1
    before = kept[0].stat().st_mtime_ns
    check_cpu(folder)
    assert kept[0].stat().st_mtime_ns == before


def test_another_build_is_tried_anew(built):
    folder = built(RIGHT)
    check_cpu(folder)
    (folder / "ggml.c").write_text(GGML % ("avx", "__builtin_trap()"))
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", folder / "libggml-cpu.so", folder / "ggml.c"], check=True)
    with pytest.raises(ModelError):
        check_cpu(folder)


def test_a_bad_verdict_is_not_kept(built):
    folder = built("__builtin_trap()")
    for _ in range(2):
        with pytest.raises(ModelError):
            check_cpu(folder)


def test_a_cache_that_cannot_be_written_only_costs_time(built, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    check_cpu(built(RIGHT))


def test_missing_libraries_are_said(tmp_path):
    with pytest.raises(ModelError, match="install llama-cpp-python again"):
        check_cpu(tmp_path)


def test_finding_the_libraries_does_not_load_them():
    code = "import sys, edgeagent.models.cpu as cpu; cpu.library_folder(); sys.exit('llama_cpp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def elf(machine, *, section=0, content=b""):
    """A 32-bit (ARM) or 64-bit ELF file with one section."""
    wide = machine != 40
    size = 64 if wide else 52
    head = b"\x7fELF" + bytes([2 if wide else 1, 1, 1]) + bytes(9) + struct.pack("<HHI", 3, machine, 1)
    tail = struct.pack("<IHHHHHH", 0, size, 0, 0, 64 if wide else 40, 1, 0)
    table = size + len(content)
    head += struct.pack("<QQQ" if wide else "<III", 0, 0, table) + tail
    row = struct.pack("<IIQQQQ" if wide else "<IIIIII", 0, section, 0, 0, size, len(content))
    return head + content + row.ljust(64 if wide else 40, b"\0")


def attributes(vendor, values):
    inner = struct.pack("<BI", 1, len(values) + 5) + values
    body = vendor + b"\0" + inner
    return b"A" + struct.pack("<I", len(body) + 4) + body


NEON = elf(40, section=0x70000003, content=attributes(b"aeabi", bytes([6, 10, 10, 5, 12, 2, 5]) + b"7-A\0"))
RISCV = elf(243, section=0x70000003, content=attributes(b"riscv", b"\x05rv64i2p1_m2p0_a2p1_v1p0_zicsr2p0\0"))


@pytest.fixture
def library(tmp_path):
    """A function that puts bytes into a file and reads it as a library."""

    def read(content):
        file = tmp_path / "library.so"
        file.write_bytes(content)
        return read_library(file)

    return read


def test_an_arm_library_says_that_it_needs_neon(library):
    found = library(NEON)
    assert (found.machine, found.needs) == ("armv7l", {"neon", "vfpv4", "vfpd32"})


def test_a_riscv_library_says_its_extensions(library):
    found = library(RISCV)
    assert (found.machine, found.needs) == ("riscv64", {"i", "m", "a", "v"})


def test_a_library_for_another_machine_is_refused_before_it_is_tried(tmp_path):
    foreign = 243 if this_cpu().machine != "riscv64" else 183
    for name in LIBRARIES:
        (tmp_path / name).write_bytes(elf(foreign))
    with pytest.raises(ModelError, match=r"is built for .*, and this Python runs as"):
        check_cpu(tmp_path)


def test_a_cut_library_is_not_elf(library):
    for end in range(len(NEON)):
        with pytest.raises(NotElf):
            library(NEON[:end])


def test_a_damaged_library_is_read_or_refused(library):
    for at in range(len(NEON)):
        for value in (0, 1, 0x7F, 0xFF):
            try:
                library(NEON[:at] + bytes([value]) + NEON[at + 1 :])
            except NotElf:
                continue


def test_the_libraries_are_where_llama_cpp_will_load_them_from(monkeypatch, tmp_path):
    assert (library_folder() / "libllama.so").exists()
    monkeypatch.setenv("LLAMA_CPP_LIB_PATH", str(tmp_path))
    assert library_folder() == tmp_path
