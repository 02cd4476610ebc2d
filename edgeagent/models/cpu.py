"""Can this build of llama.cpp run on this CPU? Asked before it is loaded, so that the answer is a sentence, not SIGILL.

A child process loads it and computes a little (cpu_child.py): if an instruction is unknown, the child dies and not we.
What ggml says it was built for is then held against what the kernel says of the CPU. A good verdict is kept under the
libraries' names, sizes and times and the CPU's features; a bad one is found anew each time.
It does not know models.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import signal
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from edgeagent.errors import ModelError

LIBRARIES = ("libggml-base.so", "libggml-cpu.so", "libggml.so", "libllama.so")
CHILD_S_MAX = 120.0
"""The child takes 0.04 s here and 3 s under emulation; a board that swaps from an SD card may take far longer."""

_CHILD = Path(__file__).with_name("cpu_child.py")
_AT_HWCAP, _AT_HWCAP2 = 16, 26

_HWCAP = {
    "armv7l": {"neon": 12, "vfpv3": 13, "vfpv4": 16, "idiva": 17, "vfpd32": 19},
    "aarch64": {"asimd": 1, "asimdhp": 10, "asimddp": 20, "sve": 22},
    "riscv64": {letter: ord(letter) - ord("a") for letter in "acdfimv"},
}
_HWCAP2 = {"aarch64": {"i8mm": 13, "sme": 23}}
"""The bits of the kernel's <asm/hwcap.h>, by the names that /proc/cpuinfo gives them."""

_GGML_NAMES = {
    "x86_64": {
        "sse3": "pni",
        "avx512": "avx512f",
        "avx512_vbmi": "avx512vbmi",
        **{n: n for n in ("ssse3", "avx", "avx_vnni", "avx2", "bmi2", "f16c", "fma")},
        **{n: n for n in ("avx512_vnni", "avx512_bf16", "amx_int8")},
    },
    "aarch64": {
        "neon": "asimd",
        "arm_fma": "asimd",
        "fp16_va": "asimdhp",
        "dotprod": "asimddp",
        "matmul_int8": "i8mm",
        "sve": "sve",
        "sme": "sme",
    },
    "armv7l": {"neon": "neon", "arm_fma": "vfpv4"},
    "riscv64": {"riscv_v": "v"},
}
"""What ggml says it was compiled with → the name of the CPU's feature."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """This machine's CPU: what the kernel calls it and the features that it says are there."""

    machine: str
    model: str
    features: frozenset[str]

    @property
    def digest(self) -> str:
        """Names the CPU for the cache of verdicts."""
        return hashlib.sha256("\n".join([self.machine, self.model, *sorted(self.features)]).encode()).hexdigest()


def check_cpu(folder: Path | None = None) -> None:
    """Return if llama.cpp runs on this CPU. Raises `ModelError` that names what the build needs and the CPU lacks.

    `folder` holds the libraries; without it they are those of the installed llama-cpp-python.
    """
    folder = folder or library_folder()
    cpu = this_cpu()
    kept = _verdict_file(folder, cpu)
    if kept.exists():
        return
    for name in LIBRARIES:
        _check_machine(folder / name, cpu)
    _try(folder, cpu)
    _keep(kept, folder)


def describe_cpu() -> str:
    """One line on a CPU on which llama.cpp has run."""
    cpu = this_cpu()
    known = " ".join(sorted(cpu.features & _worth_saying(cpu.machine)))
    return f"{cpu.model} ({cpu.machine}: {known}); llama.cpp ran"


def library_folder() -> Path:
    """Where llama-cpp-python will load llama.cpp from. Raises `ModelError` if it is not installed."""
    if named := os.environ.get("LLAMA_CPP_LIB_PATH"):
        return Path(named)
    spec = importlib.util.find_spec("llama_cpp")  # finds it without running it, which would load the libraries
    if spec is None or not spec.submodule_search_locations:
        raise ModelError("llama-cpp-python is not installed; pip install llama-cpp-python")
    return Path(next(iter(spec.submodule_search_locations))) / "lib"


def this_cpu() -> Cpu:
    """Ask the kernel."""
    info = _cpuinfo()
    machine = _machine()
    features = frozenset(info.get("flags", info.get("features", "")).split())
    if machine in _HWCAP:  # cpuinfo may be the host's (emulation) or absent; this vector is the process's own
        vector = _auxiliary_vector()
        features = _named(vector.get(_AT_HWCAP, 0), _HWCAP[machine])
        features |= _named(vector.get(_AT_HWCAP2, 0), _HWCAP2.get(machine, {}))
    model = info.get("model name") or info.get("uarch") or info.get("hardware") or "unnamed CPU"
    return Cpu(machine, model, features)


def _machine() -> str:
    """The machine that this process is, which on a 64-bit kernel may be the 32-bit one."""
    machine = platform.machine()
    if struct.calcsize("P") == 4:
        return {"aarch64": "armv7l", "armv8l": "armv7l", "x86_64": "i686"}.get(machine, machine)
    return machine


def _cpuinfo() -> dict[str, str]:
    """The first processor's lines, keys in small letters."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.splitlines())
    found: dict[str, str] = {}
    for name, _, value in pairs:
        found.setdefault(name.strip().lower(), value.strip())
    return found


def _auxiliary_vector() -> dict[int, int]:
    try:
        block = Path("/proc/self/auxv").read_bytes()
    except OSError:
        return {}
    layout = struct.Struct("@LL")
    return dict(layout.iter_unpack(block[: len(block) // layout.size * layout.size]))


def _named(bits: int, names: dict[str, int]) -> frozenset[str]:
    return frozenset(name for name, bit in names.items() if bits >> bit & 1)


def _worth_saying(machine: str) -> frozenset[str]:
    return frozenset(_GGML_NAMES.get(machine, {}).values()) | frozenset(_HWCAP.get(machine, {}))


_MACHINES = {3: "i686", 40: "armv7l", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
"""ELF's machine number → the name that `platform.machine()` uses."""


def _check_machine(library: Path, cpu: Cpu) -> None:
    """Refuse what is missing, or built for another machine: the loader's words for that help nobody."""
    try:
        with library.open("rb") as file:
            head = file.read(20)
    except OSError as error:
        raise ModelError(f"{library}: {error.strerror}; install llama-cpp-python again") from error
    if head[:4] != b"\x7fELF" or len(head) < 20:
        raise ModelError(f"{library} is no shared library; install llama-cpp-python again")
    built_for = _MACHINES.get(int.from_bytes(head[18:20], "little"), "another machine")
    if built_for != cpu.machine:
        raise ModelError(
            f"{library} is built for {built_for}, and this Python runs as {cpu.machine}; "
            f"install the artefact for {cpu.machine}"
        )


def _try(folder: Path, cpu: Cpu) -> None:
    """Let a child load and compute."""
    command = [sys.executable, "-I", "-S", str(_CHILD), str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHILD_S_MAX, check=False)
    except subprocess.TimeoutExpired as error:
        raise ModelError(f"llama.cpp did not multiply a small matrix in {CHILD_S_MAX:g} s on {cpu.model}") from error
    except OSError as error:
        raise ModelError(f"no child process could be started to try llama.cpp: {error.strerror}") from error
    stages = done.stdout.splitlines()
    if done.returncode == 0 and stages[-1:] == ["ran"]:
        return
    if done.returncode in (-signal.SIGILL, 128 + signal.SIGILL):
        raise ModelError(_sentence(_lacking(stages, cpu), cpu))
    raise ModelError(_broken(folder, done.returncode, done.stderr))


def _lacking(stages: list[str], cpu: Cpu) -> frozenset[str]:
    """Of what the build was compiled with, what this CPU does not have; empty if it died before it could say."""
    said = next((line.split()[2:] for line in stages if line.startswith("built for")), [])
    names = _GGML_NAMES.get(cpu.machine, {})
    return frozenset(names[each] for each in said if each in names) - cpu.features


def _sentence(missing: frozenset[str], cpu: Cpu) -> str:
    """What was found and the remedy."""
    remedy = "rebuild llama-cpp-python on this machine, or with CMAKE_ARGS=-DGGML_NATIVE=OFF"
    if cpu.machine == "armv7l":
        remedy = "install the artefact armv7-no-neon"
    elif cpu.machine in ("aarch64", "riscv64"):
        remedy = f"install the artefact {cpu.machine}, which is built for every such CPU"
    lacks = f"needs {' and '.join(sorted(missing))}, which" if missing else "uses an instruction that"
    return f"this build of llama.cpp {lacks} this CPU ({cpu.model}, {cpu.machine}) does not have; {remedy}"


def _broken(folder: Path, code: int, said: str) -> str:
    last = (said.strip().splitlines() or ["it said nothing"])[-1][:300]
    how = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    return f"llama.cpp in {folder} cannot be used here, its trial {how}: {last}; install llama-cpp-python again"


# Verdicts that are kept.


def _verdict_file(folder: Path, cpu: Cpu) -> Path:
    found = [(folder / name).stat() if (folder / name).exists() else None for name in LIBRARIES]
    files = [f"{each.st_size} {each.st_mtime_ns}" if each else "" for each in found]
    whole = "\n".join([cpu.digest, str(folder), sys.executable, *files])
    cache = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache"
    return base / "edgeagent" / "cpu" / f"{hashlib.sha256(whole.encode()).hexdigest()[:32]}.json"


def _keep(file: Path, folder: Path) -> None:
    """By rename, so that a reader never sees half. On a read-only disk the trial is simply made again."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, suffix=".new", delete=False) as out:
            json.dump({"folder": str(folder), "verdict": "runs"}, out)
        Path(out.name).replace(file)
    except OSError:
        return
