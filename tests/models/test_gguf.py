"""What `check_gguf` accepts, what it refuses, and that nothing else than `ModelError` ever comes out of it."""

from __future__ import annotations

import os
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeagent.errors import ModelError
from edgeagent.models.gguf import check_gguf, widened
from edgeagent.models.store import find

pytestmark = pytest.mark.long  # Seconds of CPU: `make test` runs it, `make quick` does not.

U8, U32, I32, F32, BOOL, STRING, ARRAY, U64 = 0, 4, 5, 6, 7, 8, 9, 10
_PACK = {U8: "<B", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B", U64: "<Q"}


def packed_text(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def packed_value(kind: int, value: Any) -> bytes:
    if kind == STRING:
        return packed_text(value)
    if kind == ARRAY:
        element, items = value
        return struct.pack("<IQ", element, len(items)) + b"".join(packed_value(element, item) for item in items)
    return struct.pack(_PACK[kind], value)


def base_metadata() -> dict[str, tuple[int, Any]]:
    return {
        "general.architecture": (STRING, "llama"),
        "general.name": (STRING, "tiny"),
        "general.file_type": (U32, 3),
        "llama.context_length": (U32, 128),
        "llama.block_count": (U32, 1),
        "llama.embedding_length": (U32, 64),
        "tokenizer.ggml.model": (STRING, "llama"),
        "tokenizer.ggml.tokens": (ARRAY, (STRING, ["<s>", "</s>", "<0x0A>", "hello"])),
        "tokenizer.ggml.scores": (ARRAY, (F32, [0.0, 0.0, 0.0, -1.0])),
        "tokenizer.ggml.token_type": (ARRAY, (I32, [3, 3, 6, 1])),
        "tokenizer.ggml.bos_token_id": (U32, 0),
        "tokenizer.ggml.eos_token_id": (U32, 1),
        "tokenizer.chat_template": (STRING, "{{ messages }}"),
    }


Tensor = tuple[str | bytes, list[int], int, int, int]  # name, dimensions, type, offset, bytes of data

TENSORS: list[Tensor] = [("token_embd.weight", [64, 4], 0, 0, 1024), ("output_norm.weight", [64], 0, 1024, 256)]


def gguf_bytes(
    metadata: dict[str, tuple[int, Any]] | None = None,
    tensors: list[Tensor] | None = None,
    *,
    version: int = 3,
    n_tensors: int | None = None,
    n_keys: int | None = None,
    extra_keys: bytes = b"",
    align: int = 32,
) -> bytes:
    metadata = base_metadata() if metadata is None else metadata
    tensors = TENSORS if tensors is None else tensors
    out = b"GGUF" + struct.pack("<I", version)
    out += struct.pack("<QQ", len(tensors) if n_tensors is None else n_tensors, n_keys or len(metadata))
    for key, (kind, value) in metadata.items():
        out += packed_text(key) + struct.pack("<I", kind) + packed_value(kind, value)
    out += extra_keys
    for name, dimensions, kind, offset, _ in tensors:
        out += packed_text(name) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *dimensions, kind, offset)
    out += b"\0" * (-len(out) % align)
    body = bytearray()
    for _, _, _, offset, size in tensors:
        body.extend(b"\0" * (min(offset, 1 << 20) + size - len(body)))
    return out + bytes(body)


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    return path


def refused(tmp_path: Path, content: bytes) -> str:
    path = written(tmp_path, content)
    with pytest.raises(ModelError) as caught:
        check_gguf(path)
    message = str(caught.value)
    assert str(path) in message
    assert "at byte" in message
    return message


def with_key(key: str, kind: int, value: Any) -> bytes:
    metadata = base_metadata()
    metadata[key] = (kind, value)
    return gguf_bytes(metadata)


# What passes.


def test_a_small_valid_file_says_what_the_driver_needs(tmp_path: Path) -> None:
    header = check_gguf(written(tmp_path, gguf_bytes()))
    assert (header.architecture, header.name, header.context_length) == ("llama", "tiny", 128)
    assert (header.vocab_size, header.tokenizer_model, header.file_type) == (4, "llama", 3)
    assert (header.chat_template, header.bos_token_id, header.eos_token_id) == ("{{ messages }}", 0, 1)
    assert (header.n_tensors, header.n_params, header.alignment, header.version) == (2, 320, 32, 3)
    assert header.size_bytes == header.data_offset + 1280


def test_version_2_is_read_as_well(tmp_path: Path) -> None:
    assert check_gguf(written(tmp_path, gguf_bytes(version=2))).version == 2


def test_an_alignment_of_its_own_is_followed(tmp_path: Path) -> None:
    metadata = base_metadata() | {"general.alignment": (U32, 64)}
    assert check_gguf(written(tmp_path, gguf_bytes(metadata, align=64))).data_offset % 64 == 0


def test_a_file_without_template_or_vocabulary_passes_and_says_so(tmp_path: Path) -> None:
    metadata = {"general.architecture": (STRING, "llama")}
    header = check_gguf(written(tmp_path, gguf_bytes(metadata)))
    assert (header.chat_template, header.vocab_size, header.block_count) == (None, 0, None)


@pytest.mark.model
def test_smollm2_passes() -> None:
    header = check_gguf(find("smollm2"))
    assert (header.architecture, header.vocab_size, header.context_length) == ("llama", 49_152, 8192)
    assert header.chat_template is not None
    assert header.n_params == 134_515_008


def test_the_table_of_block_sizes_is_that_of_the_installed_ggml() -> None:
    import ctypes

    llama_cpp = pytest.importorskip("llama_cpp")
    from edgeagent.models.gguf_format import BLOCKS

    libraries = sorted((Path(llama_cpp.__file__).parent / "lib").glob("libggml-base.so*"))
    if not libraries:
        pytest.skip("libggml-base.so is not beside llama_cpp here")
    ggml = ctypes.CDLL(str(libraries[0]))
    ggml.ggml_blck_size.restype = ctypes.c_int64
    ggml.ggml_type_size.restype = ctypes.c_size_t
    theirs = {number: (ggml.ggml_blck_size(number), ggml.ggml_type_size(number)) for number in BLOCKS}
    assert theirs == BLOCKS


def test_several_empty_tokens_are_no_repetition(tmp_path: Path) -> None:
    content = with_key("tokenizer.ggml.tokens", ARRAY, (STRING, ["", "\0", "<0x0A>", ""]))
    assert check_gguf(written(tmp_path, content)).vocab_size == 4


# What is not a model file at all.


def test_a_missing_file_names_the_command_that_gets_one(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"absent\.gguf: there is no such file.*edgeagent model pull"):
        check_gguf(tmp_path / "absent.gguf")


def test_a_path_through_a_file_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file"):
        check_gguf(written(tmp_path, b"x") / "below.gguf")


def test_a_path_with_a_zero_byte_is_refused() -> None:
    with pytest.raises(ModelError, match="cannot be opened"):
        check_gguf("a\0b.gguf")


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="this is a directory"):
        check_gguf(tmp_path)


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(ModelError, match="no regular file"):
        check_gguf(tmp_path / "pipe.gguf")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission_says_what_to_do(tmp_path: Path) -> None:
    path = written(tmp_path, gguf_bytes())
    path.chmod(0)
    with pytest.raises(ModelError, match="no permission"):
        check_gguf(path)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    assert "empty" in refused(tmp_path, b"")


def test_a_text_file_is_called_a_text_file(tmp_path: Path) -> None:
    assert "this is a text file that begins 'vers'" in refused(
        tmp_path, b"version https://git-lfs.github.com/spec/v1\n"
    )


def test_other_bytes_are_shown(tmp_path: Path) -> None:
    assert r"begins b'PK\x03\x04'" in refused(tmp_path, b"PK\x03\x04" + bytes(100))


# Truncation.


def test_truncation_at_every_length_is_refused(tmp_path: Path) -> None:
    whole = gguf_bytes()
    path = tmp_path / "model.gguf"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelError):
            check_gguf(path)


def test_truncated_tensor_data_names_the_tensor(tmp_path: Path) -> None:
    assert "the file is truncated: tensor 'output_norm.weight'" in refused(tmp_path, gguf_bytes()[:-1])


# Reported and other faults, one mutation each.

HUGE = (1 << 64) - 1

FAULTS: list[tuple[str, bytes, str]] = [
    ("version 1", gguf_bytes(version=1), "GGUF version 1"),
    ("version 4", gguf_bytes(version=4), "GGUF version 4"),
    ("big-endian", gguf_bytes(version=0x03000000), "big-endian"),
    ("llama.cpp#15711: tensor count 2^64-1", gguf_bytes(n_tensors=HUGE), "18446744073709551615 tensors"),
    ("tensor count beyond the file", gguf_bytes(n_tensors=19_999), "do not fit into the file"),
    ("no tensors", gguf_bytes(tensors=[]), "0 tensors"),
    ("key count 2^63", gguf_bytes(n_keys=1 << 63), "metadata keys"),
    ("one key more than there is", gguf_bytes(n_keys=len(base_metadata()) + 1), "a tensor's name"),
    ("duplicate key", gguf_bytes(n_keys=14, extra_keys=packed_text("general.name") + b"\4\0\0\0\0\0\0\0"), "twice"),
    ("empty key", with_key("", U32, 1), "not printable ASCII"),
    ("key with an escape", with_key("a\x1b[2J", U32, 1), "not printable ASCII"),
    ("key of 600 bytes", with_key("k" * 600, U32, 1), "600 bytes"),
    ("unknown value type", gguf_bytes(n_keys=14, extra_keys=packed_text("odd") + b"\x0d\0\0\0"), "value type 13"),
    ("boolean 2", with_key("odd", BOOL, 2), "boolean with the value 2"),
    ("a number that is none", with_key("llama.rope.freq_base", F32, float("nan")), "is nan, which is no number"),
    (
        "negative epsilon, on which ggml aborts",
        with_key("llama.attention.layer_norm_rms_epsilon", F32, -1.0),
        "epsilon' is -1.0; 0 to 1 can be",
    ),
    (
        "string past the end",
        gguf_bytes(n_keys=14, extra_keys=packed_text("odd") + b"\x08\0\0\0" + b"\xff" * 8),
        "ends before",
    ),
    ("nested array", with_key("odd", ARRAY, (ARRAY, [(U8, [1])])), "unusable element type 9"),
    (
        "array of 2^61 numbers",
        gguf_bytes(n_keys=14, extra_keys=packed_text("odd") + struct.pack("<IIQ", ARRAY, U64, 1 << 61)),
        "ends before",
    ),
    (
        "array of 2^61 strings",
        gguf_bytes(n_keys=14, extra_keys=packed_text("odd") + struct.pack("<IIQ", ARRAY, STRING, 1 << 61)),
        "claims 2305843009213693952 strings",
    ),
    ("no architecture", gguf_bytes({"general.name": (STRING, "x")}), "general.architecture is missing"),
    ("architecture with a path in it", with_key("general.architecture", STRING, "../x"), "general.architecture"),
    ("name that is not UTF-8", with_key("general.name", STRING, b"\xff\xfe"), "not UTF-8"),
    ("llama.cpp#25821: 513 blocks", with_key("llama.block_count", U32, 513), "block_count is 513; 1 to 512"),
    ("0 blocks", with_key("llama.block_count", U32, 0), "block_count is 0"),
    ("block count as text", with_key("llama.block_count", STRING, "1"), "block_count is '1'"),
    ("context of 2^63", with_key("llama.context_length", U64, 1 << 63), "context_length"),
    ("llama.cpp#24997: alignment 2^31", with_key("general.alignment", U32, 1 << 31), "general.alignment is 2147483648"),
    ("alignment 0", with_key("general.alignment", U32, 0), "general.alignment is 0"),
    ("alignment 48", with_key("general.alignment", U32, 48), "general.alignment is 48"),
    ("alignment as text", with_key("general.alignment", STRING, "32"), "general.alignment is '32'"),
    ("one of two parts", with_key("split.count", U32, 2), "part 1 of 2 of a model, and by its name a whole model"),
    ("a template that is a list", with_key("tokenizer.chat_template", ARRAY, (STRING, ["x"])), "chat_template"),
    ("vocabulary as one text", with_key("tokenizer.ggml.tokens", STRING, "x"), "a list of texts"),
    ("vocabulary as one long text", with_key("tokenizer.ggml.tokens", STRING, "x" * (2 << 20)), "a list of texts"),
    ("vocabulary of numbers", with_key("tokenizer.ggml.tokens", ARRAY, (U32, [1, 2, 3, 4])), "elements of type 4"),
    ("too few scores", with_key("tokenizer.ggml.scores", ARRAY, (F32, [0.0])), "a list of 1 beside 4 tokens"),
    (
        "llama.cpp#26690: narrow token types",
        with_key("tokenizer.ggml.token_type", ARRAY, (U8, [3, 3, 6, 1])),
        "misread",
    ),
    (
        "llama.cpp#25969: byte token <0x-1>",
        with_key("tokenizer.ggml.tokens", ARRAY, (STRING, ["<s>", "</s>", "<0x-1>", "hello"])),
        "token 2 stands for a byte and is written b'<0x-1>'",
    ),
    (
        "a byte token that is not declared one",
        with_key("tokenizer.ggml.tokens", ARRAY, (STRING, ["<s>", "</s>", "<0x0A>", "<0xZZ>"])),
        "token 3 stands for a byte and is written b'<0xZZ>'",
    ),
    (
        "a token twice",
        with_key("tokenizer.ggml.tokens", ARRAY, (STRING, ["<s>", "hello", "<0x0A>", "hello"])),
        "token 3, b'hello', stands in the vocabulary twice",
    ),
    (
        "a token twice up to a zero byte",
        with_key("tokenizer.ggml.tokens", ARRAY, (STRING, ["<s>", "hello", "<0x0A>", "hello\0x"])),
        "token 3, b'hello', stands in the vocabulary twice",
    ),
    (
        "a byte token that is a word",
        with_key("tokenizer.ggml.tokens", ARRAY, (STRING, ["<s>", "</s>", "word", "hello"])),
        "token 2 stands for a byte and is written b'word'",
    ),
    (
        "llama.cpp#18674: dimension 2^42+1",
        gguf_bytes(tensors=[("t", [(1 << 42) + 1], 0, 0, 64)]),
        "impossible dimensions",
    ),
    ("product past 2^64", gguf_bytes(tensors=[("t", [1 << 32] * 4, 0, 0, 64)]), "impossible dimensions"),
    ("dimension 0", gguf_bytes(tensors=[("t", [0], 0, 0, 64)]), "impossible dimensions"),
    ("5 dimensions", gguf_bytes(tensors=[("t", [1] * 5, 0, 0, 64)]), "5 dimensions"),
    ("removed tensor type", gguf_bytes(tensors=[("t", [32], 4, 0, 64)]), "unknown type 4"),
    ("tensor type 2^32-1", gguf_bytes(tensors=[("t", [32], 0xFFFFFFFF, 0, 64)]), "unknown type"),
    ("row that is no whole block", gguf_bytes(tensors=[("t", [33], 2, 0, 64)]), "block of 32"),
    ("crooked offset", gguf_bytes(tensors=[("t", [8], 0, 0, 32), ("u", [8], 0, 33, 32)]), "multiple of the alignment"),
    ("overlapping tensors", gguf_bytes(tensors=[("t", [16], 0, 0, 64), ("u", [8], 0, 32, 32)]), "ends at 64"),
    ("offset 2^63", gguf_bytes(tensors=[("t", [8], 0, 1 << 63, 32)]), "lies at 9223372036854775808"),
    ("tensor beyond the file", gguf_bytes(tensors=[("t", [1 << 20], 0, 0, 64)]), "truncated"),
    ("the same tensor twice", gguf_bytes(tensors=[("t", [8], 0, 0, 32), ("t", [8], 0, 32, 32)]), "twice"),
    ("tensor name of 64 bytes", gguf_bytes(tensors=[("t" * 64, [8], 0, 0, 32)]), "64 bytes"),
    ("tensor name not UTF-8", gguf_bytes(tensors=[(b"\xff", [8], 0, 0, 32)]), "not UTF-8"),
]


@pytest.mark.parametrize(("content", "found"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_refused_with_what_was_found(tmp_path: Path, content: bytes, found: str) -> None:
    assert found in refused(tmp_path, content)


# Whatever the bytes are.


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "fuzz.gguf"


def only_model_error(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    try:
        check_gguf(path)
    except ModelError as error:
        assert len(str(error)) < 4_000


@given(tail=st.binary(max_size=600))
@settings(max_examples=300)
def test_random_bytes_after_the_magic_are_only_ever_a_model_error(fuzzed: Path, tail: bytes) -> None:
    only_model_error(fuzzed, b"GGUF\3\0\0\0" + tail)


@pytest.mark.long
@given(flips=st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), min_size=1, max_size=4))
@settings(max_examples=600)
def test_flipped_bits_are_only_ever_a_model_error(fuzzed: Path, flips: list[tuple[int, int]]) -> None:
    content = bytearray(gguf_bytes())
    header = len(content) - 1280
    for place, mask in flips:
        content[place % header] ^= mask
    only_model_error(fuzzed, bytes(content))


@given(place=st.integers(4, 10_000), value=st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**42 + 1, 2**63, 2**64 - 1]))
@settings(max_examples=400)
def test_a_hostile_number_anywhere_is_only_ever_a_model_error(fuzzed: Path, place: int, value: int) -> None:
    content = bytearray(gguf_bytes())
    at = 4 + place % (len(content) - 1280 - 12)
    content[at : at + 8] = struct.pack("<Q", value)
    only_model_error(fuzzed, bytes(content))


def test_memory_stays_bounded_whatever_a_length_claims(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        for _, content, _ in FAULTS:
            with pytest.raises(ModelError):
                check_gguf(written(tmp_path, content))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 16 << 20


def test_a_machine_of_32_bits_takes_no_two_tokens_for_one() -> None:
    # There Python's hash has 32 bits, and a whole model was called damaged in every fourth start.
    texts = [b"token %d" % number for number in range(400_000)]
    short = [hash(text) & 0xFFFFFFFF for text in texts]
    assert len(set(short)) < len(texts)
    assert len({widened(hashed, text) for hashed, text in zip(short, texts, strict=True)}) == len(texts)
