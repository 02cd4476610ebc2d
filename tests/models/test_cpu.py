"""A build of llama.cpp that this CPU cannot run is a sentence and not a signal."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edgeagent.errors import ExitCode, ModelError
from edgeagent.models import cpu
from edgeagent.models.cpu import LIBRARIES, check_cpu, describe_cpu, library_folder, this_cpu

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
    (folder / "libggml-cpu.so").write_bytes((folder / "libggml-base.so").read_bytes()[:40])
    with pytest.raises(ModelError, match=r"libggml-cpu\.so: .*; install llama-cpp-python again"):
        check_cpu(folder)


def test_a_library_that_is_cut_off_ends_its_trial_and_not_us(built):
    folder = built(RIGHT)
    (folder / "libggml-cpu.so").write_bytes((folder / "libggml-base.so").read_bytes()[:4096])
    with pytest.raises(ModelError, match=r"its trial .*; install llama-cpp-python again") as caught:
        check_cpu(folder)
    assert caught.value.exit_code == ExitCode.MODEL


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


def test_a_library_for_another_machine_is_refused_before_it_is_tried(tmp_path):
    foreign = 243 if this_cpu().machine != "riscv64" else 183
    whole = (library_folder() / LIBRARIES[0]).read_bytes()[:64]
    for name in LIBRARIES:
        (tmp_path / name).write_bytes(whole[:18] + foreign.to_bytes(2, "little") + whole[20:])
    with pytest.raises(ModelError, match=r"is built for (riscv64|aarch64), and this Python runs as"):
        check_cpu(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"not a library at all"])
def test_what_is_no_library_is_refused_before_it_is_tried(tmp_path, content):
    for name in LIBRARIES:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match="is no shared library; install"):
        check_cpu(tmp_path)


def test_the_libraries_are_where_llama_cpp_will_load_them_from(monkeypatch, tmp_path):
    assert (library_folder() / "libllama.so").exists()
    monkeypatch.setenv("LLAMA_CPP_LIB_PATH", str(tmp_path))
    assert library_folder() == tmp_path
