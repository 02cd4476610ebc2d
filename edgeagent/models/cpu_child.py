"""The child process that tries llama.cpp's arithmetic on this CPU. Run as a program, never imported by us.

    cpu_child.py FOLDER     the folder holds libggml-base.so and libggml-cpu.so

One line a stage, so that the parent knows how far it came when it is killed: `loaded`, `built for NAME ...` (what the
compiler was allowed to use, by ggml's own words), `ran`. Imports the standard library alone, so that it starts fast.
"""

from __future__ import annotations

import ctypes
import os
import sys

_F32 = 0
_TYPES = (0, 1, 3, 8, 12, 14)  # F32, F16, Q4_1, Q8_0, Q4_K, Q6_K: each has vector code of its own
_COLUMNS, _ROWS, _BATCH = 256, 16, 4  # 256 is the block of the K types
_HAS = (
    *("sse3", "ssse3", "avx", "avx_vnni", "avx2", "bmi2", "f16c", "fma", "avx512", "avx512_vbmi", "avx512_vnni"),
    *("avx512_bf16", "amx_int8", "neon", "arm_fma", "fp16_va", "dotprod", "matmul_int8", "sve", "sme", "riscv_v"),
)


class _Init(ctypes.Structure):
    _fields_ = (("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool))


def main(folder: str) -> None:
    """Load, ask, compute; say after each that it was reached."""
    base = ctypes.CDLL(os.path.join(folder, "libggml-base.so"), mode=ctypes.RTLD_GLOBAL)  # noqa: PTH118 # 5 ms
    cpu = ctypes.CDLL(os.path.join(folder, "libggml-cpu.so"))  # noqa: PTH118
    _say("loaded")
    _say("built for", *(name for name in _HAS if getattr(cpu, f"ggml_cpu_has_{name}", int)()))
    cpu.ggml_cpu_init()
    for number in _TYPES:
        _multiply(base, cpu, number)
    _say("ran")


def _say(*words: str) -> None:
    print(*words, flush=True)


def _multiply(base: ctypes.CDLL, cpu: ctypes.CDLL, number: int) -> None:
    """A matrix of this type times one of F32, then what every layer does around it."""
    pointer = ctypes.c_void_p
    base.ggml_init.restype = pointer
    context = pointer(base.ggml_init(_Init(4 << 20, None, False)))
    matrix = _tensor(base, context, number, _ROWS)
    vectors = _tensor(base, context, _F32, _BATCH)
    product = _made(base, "ggml_mul_mat", context, matrix, vectors)
    normed = _made(base, "ggml_rms_norm", context, product, ctypes.c_float(1e-5))
    result = _made(base, "ggml_soft_max", context, normed)
    graph = _made(base, "ggml_new_graph", context)
    base.ggml_build_forward_expand(graph, result)
    if cpu.ggml_graph_compute_with_ctx(context, graph, 1) != 0:
        sys.exit("ggml could not compute")
    _check(base, result)
    base.ggml_free(context)


def _made(base: ctypes.CDLL, function: str, *arguments: object) -> ctypes.c_void_p:
    call = getattr(base, function)
    call.restype = ctypes.c_void_p
    return ctypes.c_void_p(call(*arguments))


def _tensor(base: ctypes.CDLL, context: ctypes.c_void_p, number: int, rows: int) -> ctypes.c_void_p:
    tensor = _made(base, "ggml_new_tensor_2d", context, number, ctypes.c_int64(_COLUMNS), ctypes.c_int64(rows))
    base.ggml_nbytes.restype = ctypes.c_size_t
    ctypes.memset(_made(base, "ggml_get_data", tensor), 0, base.ggml_nbytes(tensor))
    return tensor


def _check(base: ctypes.CDLL, result: ctypes.c_void_p) -> None:
    """Of equal numbers the soft maximum is one part in as many as there are."""
    values = (ctypes.c_float * (_ROWS * _BATCH)).from_address(_made(base, "ggml_get_data", result).value or 0)
    if any(abs(value - 1 / _ROWS) > 1e-3 for value in values):
        sys.exit(f"ggml computed {values[0]} where {1 / _ROWS} is right")


if __name__ == "__main__":
    main(sys.argv[1])
