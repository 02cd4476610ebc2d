"""Is this file a GGUF model that llama.cpp may be trusted with?

llama.cpp reads a model file in C++: a wrong count, length or offset there is an abort, a wild write or a gigabyte of
memory, in our process. So the header is read here first, and anything that is not right is a `ModelError` that names
the file, the byte, what was found and what to do. Law of this file: every number is compared with a bound and with the
size of the file before it is used; nothing that the file can make large is copied. It does not know the engine.

The format is docs/gguf.md of ggml-org/ggml (versions 2 and 3, little-endian); block sizes are those of ggml's type
table; tensors must follow one another without gaps, as ggml's own reader wants it. Reported faults this refuses, each
in llama.cpp: #18674 (a dimension of 2^42+1), #15711 (tensor count), #25821 (more than 512 blocks), #25969 (byte token
`<0x-1>`), #24997 (alignment 2^31), #26690 (scores or token types of a narrower element type than is read). A
token that is there twice, or twice up to a zero byte, aborts llama.cpp; that was found by flipping bits of a real file.
"""

from __future__ import annotations

import math
import mmap
import os
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn
from zlib import crc32

from edgeagent.errors import ModelError
from edgeagent.models.disk import mapped
from edgeagent.models.gguf_format import (
    ALIGNMENT_MAX,
    ARRAY,
    BLOCKS,
    BLOCKS_MAX,
    BOOL,
    BYTE_TOKEN,
    BYTE_TOKEN_TYPE,
    COUNTS,
    DAMAGED,
    DIMENSION_MAX,
    DIMENSIONS_MAX,
    ELEMENT_TYPES,
    ELEMENTS_MAX,
    KEY_BYTES_MAX,
    KEYS_MAX,
    SCALARS,
    SCORES,
    STRING,
    STRINGS_MAX,
    TENSOR_NAME_BYTES_MAX,
    TENSORS_MAX,
    TEXT_BYTES_MAX,
    TOKEN_TYPES,
    TOKENS,
    U32,
    U64,
    VOCABULARY_BYTES_MAX,
    GgufHeader,
)
from edgeagent.models.split import parts_of


@dataclass(frozen=True, slots=True)
class _Array:
    """Where an array of the metadata lies; its elements are not copied."""

    element_type: int
    count: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class _LongText:
    """A text of the metadata that is too long to copy; none that we need is."""

    n_bytes: int


def check_gguf(path: str | os.PathLike[str]) -> GgufHeader:
    """Read and check the header of a model file; return what it says.

    Costs no copy of the vocabulary and, at 262,144 tokens, about 0.1 s. Raises `ModelError` for anything that is not a
    whole, well-formed GGUF file: missing, no permission, not a file, empty, text, truncated, hostile. Of a model in
    parts any may be named; all are checked, and the sizes are those of all.
    """
    parts = parts_of(Path(path))
    with mapped(parts[0]) as (data, size):
        header = _Reader(parts[0], data, size, (0, len(parts))).header()
    for number, part in enumerate(parts[1:], start=1):
        with mapped(part) as (data, size):
            n_tensors, n_params = _Reader(part, data, size, (number, len(parts))).further_part()
        header = replace(
            header,
            size_bytes=header.size_bytes + size,
            n_tensors=header.n_tensors + n_tensors,
            n_params=header.n_params + n_params,
        )
    return header


class _Reader:
    """A position in the mapped file that never passes its end."""

    def __init__(self, path: Path, data: mmap.mmap, size: int, part: tuple[int, int] = (0, 1)) -> None:
        self.part = part  # Which one, counted from 0, and of how many.
        self.path, self.data, self.size = path, data, size
        self.at = 0
        self.strings = 0
        self.metadata: dict[str, Any] = {}

    def refuse(self, found: str, at: int | None = None, remedy: str = DAMAGED) -> NoReturn:
        offset = self.at if at is None else at
        raise ModelError(f"{self.path}: {found} (at byte {offset} of {self.size}); {remedy}")

    # What the whole file is made of, in its order.

    def header(self) -> GgufHeader:
        version, n_tensors, alignment = self._preamble()
        self._check_metadata()
        n_params, data_offset = self._tensors(n_tensors, alignment)
        return self._described(version, alignment, n_tensors, n_params, data_offset)

    def further_part(self) -> tuple[int, int]:
        """Check a part behind the first, which says nothing of the model; return its tensors and weights."""
        _, n_tensors, alignment = self._preamble()
        return n_tensors, self._tensors(n_tensors, alignment)[0]

    def _preamble(self) -> tuple[int, int, int]:
        version = self._magic_and_version()
        n_tensors, n_keys = self._counts()
        for _ in range(n_keys):
            self._key_value()
        self._check_part()
        return version, n_tensors, self._alignment()

    def _magic_and_version(self) -> int:
        magic = self.data[:4]
        if magic != b"GGUF":
            if not magic.strip(b"\t\n\r" + bytes(range(32, 127))):
                self.refuse(f"this is a text file that begins {magic.decode()!r}, where a model begins 'GGUF'")
            self.refuse(f"the file begins {magic!r}, where a GGUF model begins b'GGUF'")
        self.at = 4
        version = self.u32("the version")
        if version & 0xFFFF == 0:
            self.refuse(f"the version reads {version:#x}: a big-endian file", 4, "convert the model for this machine")
        if version not in (2, 3):
            self.refuse(f"GGUF version {version}; versions 2 and 3 are known", 4, "convert the model to version 3")
        return version

    def _counts(self) -> tuple[int, int]:
        at = self.at
        n_tensors, n_keys = COUNTS.unpack_from(self.data, self._take(16, "the counts of tensors and keys"))
        fewest = 1 if self.part[1] == 1 else 0  # The first part may hold only what is said of the model.
        if not fewest <= n_tensors <= TENSORS_MAX:
            self.refuse(f"{n_tensors} tensors; {fewest} to {TENSORS_MAX} can be", at)
        if not 1 <= n_keys <= KEYS_MAX:
            self.refuse(f"{n_keys} metadata keys; 1 to {KEYS_MAX} can be", at + 8)
        # A tensor takes at least 33 bytes here and a key at least 14.
        if n_tensors * 33 + n_keys * 14 > self.size - self.at:
            self.refuse(f"{n_tensors} tensors and {n_keys} keys do not fit into the file", at)
        return n_tensors, n_keys

    def _key_value(self) -> None:
        at = self.at
        key = self.text("a metadata key", KEY_BYTES_MAX)
        if not key or not key.isascii() or not key.isprintable():
            self.refuse(f"metadata key {key!r}, which is not printable ASCII", at)
        if key in self.metadata:
            self.refuse(f"the metadata key {key!r} stands there twice", at)
        at = self.at
        value_type = self.u32(f"the type of {key!r}")
        if value_type == ARRAY:
            self.metadata[key] = self._array(key)
        elif value_type == STRING:
            self.metadata[key] = self._string_value(key)
        elif value_type in SCALARS:
            self.metadata[key] = self._scalar(key, value_type)
        else:
            self.refuse(f"{key!r} has the unknown value type {value_type}", at)

    def _string_value(self, key: str) -> Any:
        """Copy a text of usual length, which every template has; of a longer one remember only its length."""
        begin = self.at
        length = self.u64(f"the length of {key!r}")
        start = self._take(length, f"the text of {key!r}")
        if length > TEXT_BYTES_MAX:
            return _LongText(length)
        try:
            return self.data[start : self.at].decode()
        except UnicodeDecodeError as error:
            self.refuse(f"{key!r} is not UTF-8", begin + 8 + error.start)

    def _scalar(self, key: str, value_type: int) -> Any:
        form = SCALARS[value_type]
        at = self._take(form.size, f"the value of {key!r}")
        (value,) = form.unpack_from(self.data, at)
        if value_type == BOOL:
            if value > 1:
                self.refuse(f"{key!r} is a boolean with the value {value}", at)
            return bool(value)
        if isinstance(value, float) and not math.isfinite(value):
            self.refuse(f"{key!r} is {value}, which is no number", at)
        if key.endswith("_epsilon") and not 0 <= value <= 1:
            self.refuse(f"{key!r} is {value}; 0 to 1 can be", at)  # ggml aborts in the first evaluation
        return value

    def _array(self, key: str) -> _Array:
        at = self.at
        element_type = self.u32(f"the element type of {key!r}")
        count = self.u64(f"the length of {key!r}")
        if element_type not in ELEMENT_TYPES.get(key, (element_type,)):
            self.refuse(f"{key!r} has elements of type {element_type}, which llama.cpp would misread", at)
        begin = self.at
        if element_type == STRING:
            self._skip_strings(key, count)
        elif element_type in SCALARS:
            self._take(SCALARS[element_type].size * count, f"the {count} elements of {key!r}")
        else:
            self.refuse(f"{key!r} is an array of the unusable element type {element_type}", at)
        return _Array(element_type, count, begin, self.at)

    def _skip_strings(self, key: str, count: int) -> None:
        """Step over `count` strings: the only long loop here, so it makes no objects but the lengths."""
        self.strings += count
        if self.strings > STRINGS_MAX or count * 8 > self.size - self.at:
            self.refuse(f"{key!r} claims {count} strings; {STRINGS_MAX} can be, and as many as the file has room for")
        read, data, at, last = U64.unpack_from, self.data, self.at, self.size - 8
        for index in range(count):
            if at > last:
                self.refuse(f"string {index} of {key!r} begins past the end of the file", at)
            at += 8 + read(data, at)[0]
        if at > self.size:
            self.refuse(f"the last string of {key!r} ends past the end of the file, at byte {at}")
        self.at = at

    def _alignment(self) -> int:
        alignment = self.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 8 <= alignment <= ALIGNMENT_MAX or alignment & (alignment - 1):
            self.refuse(f"general.alignment is {_shown(alignment)}; a power of two from 8 to {ALIGNMENT_MAX} can be")
        return alignment

    # What the metadata must say.

    def _check_metadata(self) -> None:
        architecture = self.metadata.get("general.architecture")
        if not isinstance(architecture, str) or not re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,63}", architecture):
            self.refuse(f"general.architecture is {_shown(architecture)}; a short lower-case name must be there")
        self._integer(f"{architecture}.block_count", BLOCKS_MAX)
        self._integer(f"{architecture}.context_length", (1 << 31) - 1)
        self._integer(f"{architecture}.embedding_length", 1 << 20)
        self._integer(f"{architecture}.vocab_size", STRINGS_MAX)
        self._check_vocabulary()

    def _check_part(self) -> None:
        """The file is the part that its name says."""
        number, count = self.metadata.get("split.no", 0), self.metadata.get("split.count", 1) or 1
        if (number, count) == self.part:
            return
        part = number + 1 if isinstance(number, int) else _shown(number)
        by_name = f"part {self.part[0] + 1} of {self.part[1]}" if self.part[1] > 1 else "a whole model"
        remedy = "give each part the name that it had, NAME-00001-of-0000N.gguf, and name any of them"
        self.refuse(f"part {part} of {_shown(count)} of a model, and by its name {by_name}", None, remedy)

    def _integer(self, key: str, limit: int) -> int | None:
        value = self.metadata.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= limit:
            self.refuse(f"{key} is {_shown(value)}; 1 to {limit} can be")
        return value

    def _check_vocabulary(self) -> None:
        tokens = self.metadata.get(TOKENS)
        if tokens is None:
            return
        if not isinstance(tokens, _Array) or tokens.count == 0:
            self.refuse(f"{TOKENS} is {_shown(tokens)}; a list of texts must be there")
        if tokens.end - tokens.begin > VOCABULARY_BYTES_MAX:
            self.refuse(f"{TOKENS} takes {tokens.end - tokens.begin} bytes; {VOCABULARY_BYTES_MAX} at most can be")
        for key in (SCORES, TOKEN_TYPES):
            beside = self.metadata.get(key)
            if beside is not None and (not isinstance(beside, _Array) or beside.count != tokens.count):
                self.refuse(f"{key} is {_shown(beside)} beside {tokens.count} tokens; as many must be there")
        self._check_tokens(tokens)

    def _check_tokens(self, tokens: _Array) -> None:
        """No token twice, and every byte token written `<0xNN>`: llama.cpp aborts on the one, misreads the other.

        llama.cpp ends a token's text at its first zero byte and gives an empty one a name made of its index, so that is
        done here too. Only hashes are kept: two texts with one hash of 64 bits are as good as impossible.
        """
        kinds = self.metadata.get(TOKEN_TYPES)
        is_byte = memoryview(self.data[kinds.begin : kinds.end]).cast("i") if kinds else bytes(tokens.count)
        region, at, read = self.data[tokens.begin : tokens.end], 0, U64.unpack_from
        seen: set[int] = set()
        add = seen.add
        for index in range(tokens.count):
            end = at + 8 + read(region, at)[0]
            text = region[at + 8 : end]
            if is_byte[index] == BYTE_TOKEN_TYPE or (end - at == 14 and text[:3] == b"<0x" and text[5:] == b">"):
                if not BYTE_TOKEN.fullmatch(text):
                    self.refuse(f"token {index} stands for a byte and is written {text[:32]!r}", tokens.begin + at + 8)
            elif not text or b"\0" in text:
                text = text.partition(b"\0")[0] or b"[EMPTY_%d]" % index
            add(_fingerprint(text))
            if len(seen) == index:
                self.refuse(f"token {index}, {text[:32]!r}, stands in the vocabulary twice", tokens.begin + at + 8)
            at = end

    # The tensors.

    def _tensors(self, n_tensors: int, alignment: int) -> tuple[int, int]:
        """Check every tensor's place; return the number of weights and where the data begins."""
        names: set[str] = set()
        places: list[tuple[str, int, int, int]] = []
        n_params = 0
        for _ in range(n_tensors):
            at = self.at
            name = self.text("a tensor's name", TENSOR_NAME_BYTES_MAX)
            if name in names:
                self.refuse(f"the tensor {name!r} stands there twice", at)
            names.add(name)
            elements, size = self._tensor_size(name)
            places.append((name, self.at, self.u64(f"the offset of tensor {name!r}"), size))
            n_params += elements
        data_offset = -(-self.at // alignment) * alignment
        self._check_places(places, data_offset, alignment)
        return n_params, data_offset

    def _tensor_size(self, name: str) -> tuple[int, int]:
        """Elements and bytes of the tensor whose dimensions come next. Python's integers do not overflow."""
        at = self.at
        n_dimensions = self.u32(f"the number of dimensions of tensor {name!r}")
        if n_dimensions > DIMENSIONS_MAX:
            self.refuse(f"tensor {name!r} has {n_dimensions} dimensions; {DIMENSIONS_MAX} at most can be", at)
        dimensions = [self.u64(f"a dimension of tensor {name!r}") for _ in range(n_dimensions)]
        elements = 1
        for dimension in dimensions:
            elements *= dimension
            if not 1 <= dimension <= DIMENSION_MAX or elements > ELEMENTS_MAX:
                self.refuse(f"tensor {name!r} has the impossible dimensions {dimensions}", at + 4)
        at = self.at
        tensor_type = self.u32(f"the type of tensor {name!r}")
        if tensor_type not in BLOCKS:
            self.refuse(f"tensor {name!r} has the unknown type {tensor_type}", at, "convert the model again")
        per_block, block_bytes = BLOCKS[tensor_type]
        row = dimensions[0] if dimensions else 1
        if row % per_block:
            self.refuse(f"tensor {name!r} has rows of {row}, no multiple of its type's block of {per_block}", at)
        return elements, elements // per_block * block_bytes

    def _check_places(self, places: list[tuple[str, int, int, int]], data_offset: int, alignment: int) -> None:
        expected = 0
        for name, at, offset, size in places:
            if offset % alignment:
                self.refuse(f"tensor {name!r} lies at {offset}, no multiple of the alignment {alignment}", at)
            if offset != expected:
                self.refuse(f"tensor {name!r} lies at {offset}, and the one before it ends at {expected}", at)
            end = data_offset + offset + size
            if end > self.size:
                self.refuse(f"the file is truncated: tensor {name!r} would end at byte {end}", at)
            expected = -(-(offset + size) // alignment) * alignment

    def _described(self, version: int, alignment: int, n_tensors: int, n_params: int, data_offset: int) -> GgufHeader:
        architecture = self.metadata["general.architecture"]
        tokens = self.metadata.get(TOKENS)
        template = self.metadata.get("tokenizer.chat_template")
        if template is not None and not isinstance(template, str):
            self.refuse(f"tokenizer.chat_template is {_shown(template)}; a text up to {TEXT_BYTES_MAX} bytes can be")
        return GgufHeader(
            path=self.path,
            version=version,
            size_bytes=self.size,
            architecture=architecture,
            name=self._text_or_none("general.name"),
            context_length=self.metadata.get(f"{architecture}.context_length"),
            block_count=self.metadata.get(f"{architecture}.block_count"),
            embedding_length=self.metadata.get(f"{architecture}.embedding_length"),
            file_type=self._id_or_none("general.file_type"),
            tokenizer_model=self._text_or_none("tokenizer.ggml.model"),
            vocab_size=tokens.count if tokens else 0,
            bos_token_id=self._id_or_none("tokenizer.ggml.bos_token_id"),
            eos_token_id=self._id_or_none("tokenizer.ggml.eos_token_id"),
            chat_template=template,
            alignment=alignment,
            n_tensors=n_tensors,
            n_params=n_params,
            data_offset=data_offset,
        )

    def _text_or_none(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    def _id_or_none(self, key: str) -> int | None:
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    # The smallest parts.

    def _take(self, n_bytes: int, what: str) -> int:
        """Move past `n_bytes`; return where they begin."""
        at = self.at
        if n_bytes > self.size - at:
            self.refuse(f"the file ends before {what}: {n_bytes} bytes wanted, {self.size - at} left")
        self.at = at + n_bytes
        return at

    def u32(self, what: str) -> int:
        value: int = U32.unpack_from(self.data, self._take(4, what))[0]
        return value

    def u64(self, what: str) -> int:
        value: int = U64.unpack_from(self.data, self._take(8, what))[0]
        return value

    def text(self, what: str, bytes_max: int) -> str:
        at = self.at
        length = self.u64(f"the length of {what}")
        if length > bytes_max:
            self.refuse(f"{what} has {length} bytes; {bytes_max} at most can be", at)
        start = self._take(length, what)
        try:
            return self.data[start : self.at].decode()
        except UnicodeDecodeError:
            self.refuse(f"{what} is not UTF-8: {self.data[start : start + 32]!r}", start)


def _shown(value: object) -> str:
    """A metadata value as an error message may show it: short."""
    if isinstance(value, _Array):
        return f"a list of {value.count}"
    if isinstance(value, _LongText):
        return f"a text of {value.n_bytes} bytes"
    if value is None:
        return "missing"
    return repr(value)[:80]


def widened(hashed: int, text: bytes) -> int:
    """A hash of 32 bits made one of 64: of 50,000 texts two share one of 32 bits in every fourth process."""
    return hashed << 32 | crc32(text)


def _widened_hash(text: bytes) -> int:
    return widened(hash(text), text)


_fingerprint = hash if sys.hash_info.width >= 64 else _widened_hash
