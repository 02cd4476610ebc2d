"""A model in several files opens where it lies, by any of its parts; what is missing or mixed up is named."""

from __future__ import annotations

import hashlib
import shutil
import struct
from pathlib import Path

import pytest

import edgeagent
from edgeagent.errors import ModelError
from edgeagent.models import gguf, store
from edgeagent.models.gguf import check_gguf
from edgeagent.models.gguf_format import SCALARS
from edgeagent.models.split import digest_of, parts_of


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _keys(number: int, count: int, n_tensors: int) -> bytes:
    values = (("split.no", 2, number), ("split.count", 2, count), ("split.tensors.count", 5, n_tensors))
    return b"".join(_text(key) + struct.pack("<I", kind) + SCALARS[kind].pack(value) for key, kind, value in values)


def split(model: Path, folder: Path, count: int) -> list[Path]:
    """Cut a model as llama-gguf-split does: what is said of it in the first part, tensors shared out in order."""
    with gguf.mapped(model) as (data, size):
        reader = gguf._Reader(model, data, size)
        reader._magic_and_version()
        n_tensors, n_keys = reader._counts()
        begin = reader.at
        for _ in range(n_keys):
            reader._key_value()
        metadata = data[begin : reader.at]
        infos = []
        for _ in range(n_tensors):
            at = reader.at
            reader.text("a name", 63)
            _, length = reader._tensor_size("t")
            head = data[at : reader.at]
            infos.append((head, reader.u64("the offset"), length))
        base = -(-reader.at // 32) * 32
        files = []
        for number in range(count):
            mine = infos[number * n_tensors // count : (number + 1) * n_tensors // count]
            out = b"GGUF" + struct.pack("<IQQ", 3, len(mine), 3 + (n_keys if number == 0 else 0))
            out += (metadata if number == 0 else b"") + _keys(number, count, n_tensors)
            offset, body = 0, []
            for head, at, length in mine:
                out += head + struct.pack("<Q", offset)
                padded = -(-length // 32) * 32
                body.append(data[base + at : base + at + length] + bytes(padded - length))
                offset += padded
            files.append(folder / f"model-{number + 1:05}-of-{count:05}.gguf")
            files[-1].write_bytes(out + bytes(-len(out) % 32) + b"".join(body))
        return files


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A whole model of four tensors that passes the pre-check."""
    names = [_text(f"t{n}") + struct.pack("<IQIQ", 1, 8, 0, 32 * n) for n in range(4)]
    out = b"GGUF" + struct.pack("<IQQ", 3, 4, 1) + _text("general.architecture") + struct.pack("<I", 8) + _text("llama")
    out += b"".join(names)
    path = tmp_path / "whole.gguf"
    path.write_bytes(out + bytes(-len(out) % 32) + bytes(4 * 32))
    return path


@pytest.mark.parametrize("named", [0, 1, 2])
def test_any_part_names_the_model_and_sizes_are_those_of_all(small: Path, tmp_path: Path, named: int) -> None:
    parts = split(small, tmp_path, 3)
    header = check_gguf(parts[named])
    assert header.path == parts[0]
    assert header.size_bytes == sum(each.stat().st_size for each in parts)
    assert (header.n_tensors, header.n_params) == (4, 32)
    assert store.find(parts[named]) == parts[0]
    assert digest_of(parts[named]) == hashlib.sha256(b"".join(each.read_bytes() for each in parts)).hexdigest()


@pytest.mark.parametrize("named", [0, 1])
def test_missing_parts_are_named(small: Path, tmp_path: Path, named: int) -> None:
    parts = split(small, tmp_path, 3)
    parts[1].unlink()
    for look in (check_gguf, store.find):
        with pytest.raises(ModelError, match=r"of 3 parts 1 are not in .*: model-00002-of-00003.gguf; get every part"):
            look(parts[named])


def test_parts_that_were_mixed_up_are_refused(small: Path, tmp_path: Path) -> None:
    parts = split(small, tmp_path, 3)
    shutil.copy(parts[2], parts[1])
    with pytest.raises(ModelError, match="part 3 of 3 of a model, and by its name part 2 of 3"):
        check_gguf(parts[0])


def test_a_part_under_another_name_is_refused_with_the_remedy(small: Path, tmp_path: Path) -> None:
    renamed = split(small, tmp_path, 3)[0].rename(tmp_path / "mine.gguf")
    with pytest.raises(ModelError, match=r"part 1 of 3 of a model, and by its name a whole model.*NAME-00001-of"):
        check_gguf(renamed)


def test_a_truncated_part_is_refused_by_its_own_name(small: Path, tmp_path: Path) -> None:
    parts = split(small, tmp_path, 2)
    parts[1].write_bytes(parts[1].read_bytes()[:-33])
    with pytest.raises(ModelError, match=r"model-00002-of-00002.gguf: the file is truncated"):
        check_gguf(parts[0])


@pytest.mark.parametrize("name", ["m-00000-of-00003.gguf", "m-00004-of-00003.gguf", "m-00001-of-99999.gguf"])
def test_a_number_that_no_part_has_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match="a part is named"):
        parts_of(tmp_path / name)


def test_the_store_says_that_it_takes_no_parts(small: Path, tmp_path: Path) -> None:
    parts = split(small, tmp_path, 2)
    with pytest.raises(ModelError, match="use this one where it lies: --model"):
        store.add(parts[0], root=tmp_path / "models")


@pytest.mark.model
@pytest.mark.deep
def test_a_real_model_in_parts_answers_as_the_whole_one(smollm2: Path, tmp_path: Path) -> None:
    parts = split(smollm2, tmp_path, 3)
    said = []
    agent = edgeagent.Agent("a", "You help.", budget=edgeagent.Budget(seconds=None))
    for path in (smollm2, parts[1]):
        with edgeagent.open(agent, str(path), state=str(tmp_path / "state")) as session:
            answer = session.ask("What is the capital of France?")
            assert answer.outcome.kind == "answered"
            said.append(answer.text)
    assert said[0] == said[1] != ""
