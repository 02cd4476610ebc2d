"""Write a tiny model with random weights: a recurrent one, of which no small real one is at hand.

The format is docs/gguf.md of ggml-org/ggml, version 3; the tensors are those of llama.cpp's `mamba`.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

EMBEDDING, INNER, STATE, RANK, KERNEL, LAYERS = 32, 64, 16, 4, 4, 2
ALIGNMENT = 32


def write_mamba(path: Path, seed: int = 1) -> None:
    """A recurrent model: its memory is one state, which cannot be cut at an earlier token."""
    pieces = [*_byte_pieces(), "<end>"]
    metadata = {
        "general.architecture": "mamba",
        "mamba.context_length": 1024,
        "mamba.embedding_length": EMBEDDING,
        "mamba.feed_forward_length": 0,
        "mamba.block_count": LAYERS,
        "mamba.attention.head_count": 0,
        "mamba.attention.layer_norm_rms_epsilon": 1e-5,
        "mamba.ssm.conv_kernel": KERNEL,
        "mamba.ssm.inner_size": INNER,
        "mamba.ssm.state_size": STATE,
        "mamba.ssm.time_step_rank": RANK,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": pieces,
        "tokenizer.ggml.token_type": [1] * 256 + [3],
        "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.eos_token_id": 256,
        "tokenizer.ggml.bos_token_id": 256,
    }
    _write(path, metadata, _tensors(len(pieces), np.random.default_rng(seed)))


def _tensors(vocabulary: int, random: np.random.Generator) -> dict[str, np.ndarray]:
    def drawn(*shape: int) -> np.ndarray:
        return (random.standard_normal(shape) * 0.3).astype(np.float32)

    tensors = {"token_embd.weight": drawn(vocabulary, EMBEDDING), "output_norm.weight": 1 + drawn(EMBEDDING)}
    for layer in range(LAYERS):
        tensors |= {
            f"blk.{layer}.{name}": value
            for name, value in {
                "attn_norm.weight": 1 + drawn(EMBEDDING),
                "ssm_in.weight": drawn(2 * INNER, EMBEDDING),
                "ssm_conv1d.weight": drawn(INNER, KERNEL),
                "ssm_conv1d.bias": drawn(INNER),
                "ssm_x.weight": drawn(RANK + 2 * STATE, INNER),
                "ssm_dt.weight": drawn(INNER, RANK),
                "ssm_dt.bias": drawn(INNER),
                "ssm_a": -np.exp(drawn(INNER, STATE)),
                "ssm_d": drawn(INNER),
                "ssm_out.weight": drawn(EMBEDDING, INNER),
            }.items()
        }
    return tensors


def _byte_pieces() -> list[str]:
    """The 256 bytes as GPT-2's vocabulary spells them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def _write(path: Path, metadata: dict[str, object], tensors: dict[str, np.ndarray]) -> None:
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(_text(key) + _typed(value) for key, value in metadata.items())
    body = b""
    for name, value in tensors.items():
        body += bytes(-len(body) % ALIGNMENT)
        # Dimensions are written innermost first; type 0 is 32-bit floats.
        shape = struct.pack(f"<I{value.ndim}Q", value.ndim, *reversed(value.shape))
        head += _text(name) + shape + struct.pack("<IQ", 0, len(body))
        body += value.tobytes()
    path.write_bytes(head + bytes(-len(head) % ALIGNMENT) + body + bytes(-len(body) % ALIGNMENT))


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _typed(value: object) -> bytes:
    match value:
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + _text(value)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_text, value))
        case [int(), *_]:
            return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
    raise AssertionError(value)
