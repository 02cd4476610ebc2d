"""Constants of the GGUF format: value types, block sizes, and the bounds of every number that is believed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from struct import Struct

KEYS_MAX = 10_000  # real files have 20 to 60
KEY_BYTES_MAX = 512  # real ones stay under 80; the format would allow 65,535, times KEYS_MAX
TENSORS_MAX = 20_000  # 512 blocks of 30 tensors are 15,360
TENSOR_NAME_BYTES_MAX = 63  # GGML_MAX_NAME less the closing zero
DIMENSIONS_MAX = 4  # GGML_MAX_DIMS
DIMENSION_MAX = 1 << 32  # vocabulary × width of the largest models is under 2^33 elements in all
ELEMENTS_MAX = 1 << 46
ALIGNMENT_MAX = 1 << 16  # a memory page, at most; llama.cpp#24997
BLOCKS_MAX = 512  # LLAMA_MAX_LAYERS: llama.cpp writes past its arrays beyond it (#25821)
VOCABULARY_BYTES_MAX = 1 << 26  # 262,144 tokens take 5 MB; bounds our own time
STRINGS_MAX = 2_000_000  # vocabulary plus merges of the largest models are about 800,000; bounds our own time
TEXT_BYTES_MAX = 1 << 20  # a chat template; real ones stay under 100 kB

U32 = Struct("<I")
U64 = Struct("<Q")
COUNTS = Struct("<QQ")

# Metadata value types by number: how each is unpacked. 8 is a string, 9 an array.
SCALARS = {
    0: Struct("<B"),
    1: Struct("<b"),
    2: Struct("<H"),
    3: Struct("<h"),
    4: Struct("<I"),
    5: Struct("<i"),
    6: Struct("<f"),
    7: Struct("<B"),
    10: Struct("<Q"),
    11: Struct("<q"),
    12: Struct("<d"),
}
BOOL, STRING, ARRAY = 7, 8, 9

# Tensor type → (elements a block, bytes a block). Numbers that are missing were removed from the format.
BLOCKS = {
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    9: (32, 36),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
    15: (256, 292),
    16: (256, 66),
    17: (256, 74),
    18: (256, 98),
    19: (256, 50),
    20: (32, 18),
    21: (256, 110),
    22: (256, 82),
    23: (256, 136),
    24: (1, 1),
    25: (1, 2),
    26: (1, 4),
    27: (1, 8),
    28: (1, 8),
    29: (256, 56),
    30: (1, 2),
    34: (256, 54),
    35: (256, 66),
    39: (32, 17),
    40: (64, 36),
    41: (128, 18),
    42: (64, 18),
}

TOKENS, SCORES, TOKEN_TYPES = "tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type"
ELEMENT_TYPES = {TOKENS: (STRING,), SCORES: (6,), TOKEN_TYPES: (4, 5), "tokenizer.ggml.merges": (STRING,)}
BYTE_TOKEN_TYPE = 6
BYTE_TOKEN = re.compile(rb"<0x[0-9A-Fa-f]{2}>")

DAMAGED = "the file is damaged or no model: get it again and compare its SHA-256 with the publisher's"


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What the rest of the driver needs to know of a model file that passed. None: the file does not say."""

    path: Path
    version: int
    size_bytes: int
    architecture: str
    name: str | None
    context_length: int | None
    block_count: int | None
    embedding_length: int | None
    file_type: int | None
    tokenizer_model: str | None
    vocab_size: int
    bos_token_id: int | None
    eos_token_id: int | None
    chat_template: str | None
    alignment: int
    n_tensors: int
    n_params: int
    data_offset: int
