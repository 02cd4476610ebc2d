"""The embedder: a tiny one written here, held to the arithmetic of its formulas; and the real one, where it is."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
import pytest

from edgeagent.driver.meaning.embedder import Embedder
from edgeagent.driver.meaning.pieces import SPACE, Pieces
from edgeagent.driver.meaning.weights import WeightsFile
from edgeagent.errors import ModelError
from edgeagent.models.catalogue import EMBEDDER
from edgeagent.models.store import stored_model

WIDTH, INNER, HEADS, TOKENS = 32, 64, 2, 8
WORDS = ["<s>", "<pad>", "</s>", "<unk>", SPACE, f"{SPACE}valve", "valve", "s", f"{SPACE}gate", "a", "b", "ab", "é"]
SCORES = [0.0, 0.0, 0.0, 0.0, -2.0, -3.0, -6.0, -4.0, -3.0, -5.0, -5.0, -7.0, -5.0]


def four_bits(weights: np.ndarray) -> bytes:
    """Weights in blocks of 32: a scale, then a byte for each weight of the first half with one of the second."""
    told = b""
    for block in weights.reshape(-1, 32):
        scale = np.float16(np.abs(block).max() / 7)
        whole = np.clip(np.round(block / float(scale)) + 8, 0, 15).astype(np.uint8)
        told += scale.tobytes() + (whole[:16] | whole[16:] << 4).tobytes()
    return told


def file_bytes() -> bytes:
    """An embedder of one layer with random weights."""
    random = np.random.default_rng(7)
    square = [f"l0.{name}.w" for name in ("q", "k", "v", "ao")]
    shapes = {"emb.word": (len(WORDS), WIDTH), **dict.fromkeys(square, (WIDTH, WIDTH))}
    shapes |= {"l0.fi.w": (INNER, WIDTH), "l0.fo.w": (WIDTH, INNER)}
    tensors = {name: (1, math.prod(of), four_bits(random.normal(size=of))) for name, of in shapes.items()}
    plain = ["emb.ln.w", "emb.ln.b", *(f"l0.{each}" for each in ("q.b", "k.b", "v.b", "ao.b", "fo.b"))]
    plain += [f"l0.{each}" for each in ("aln.w", "aln.b", "oln.w", "oln.b")]
    sizes = {"emb.pos": TOKENS * WIDTH, "emb.type": WIDTH, "l0.fi.b": INNER, **dict.fromkeys(plain, WIDTH)}
    tensors |= {n: (0, size, random.normal(size=size).astype("<f4").tobytes()) for n, size in sizes.items()}
    blob = [word.encode() for word in WORDS]
    offsets = np.cumsum([0, *map(len, blob)]).astype("<u4").tobytes()
    folds = struct.pack("<IB2I", ord("Ω"), 2, ord("a"), ord("b"))
    head = b"E5S1" + struct.pack("<I7ifi", 1, WIDTH, 1, HEADS, INNER, len(WORDS), TOKENS, 1, 1e-12, 32)
    head += struct.pack("<5iQ", len(WORDS), 0, 2, 1, 3, len(b"".join(blob))) + offsets
    head += np.array(SCORES, "<f4").tobytes() + b"".join(blob) + struct.pack("<iI", 1, len(folds)) + folds
    head += struct.pack("<i", len(tensors))
    at = len(head) + sum(2 + len(name) + 21 for name in tensors)
    body = b""
    for name, (kind, count, data) in tensors.items():
        head += (
            struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", kind, count, at + len(body), len(data))
        )
        body += data
    return head + body


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.e5"
    file.write_bytes(file_bytes())
    return file


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("valves", [f"{SPACE}valve", "s"]),
        ("gate  valve", [f"{SPACE}gate", f"{SPACE}valve"]),  # Two spaces are one.
        ("ab", [SPACE, "ab"]),  # -7 for the whole, -10 for the two letters.
        ("Ω", [SPACE, "ab"]),  # Folded before it is looked up.
        ("é", [SPACE, "é"]),
        ("agate", [SPACE, "a", "<unk>", "a", "<unk>", "<unk>"]),
    ],
)
def test_a_text_is_cut_into_its_likeliest_pieces(tiny: Path, text: str, pieces: list[str]) -> None:
    found = Pieces(WeightsFile(tiny).vocabulary).of(text)
    assert [WORDS[each] for each in found] == ["<s>", *pieces, "</s>"]


def test_a_vector_is_what_a_plain_loop_over_the_formulas_gives(tiny: Path) -> None:
    file = WeightsFile(tiny)
    found = Embedder(tiny)._vector("valves ab")
    assert np.allclose(found, in_plain_loops(file, Pieces(file.vocabulary).of("valves ab")), atol=2e-6)
    assert np.linalg.norm(found) == pytest.approx(1)


def in_plain_loops(file: WeightsFile, pieces: list[int]) -> np.ndarray:
    """The same network, a piece, a head and a number at a time, in double precision."""

    def of(name: str, columns: int = 0) -> np.ndarray:
        return file.tensor(name, columns).astype(np.float64)

    def even(row: np.ndarray, name: str) -> np.ndarray:
        row = row - row.mean()
        return row / math.sqrt((row * row).mean() + 1e-12) * of(f"{name}.w") + of(f"{name}.b")

    def sent(row: np.ndarray, name: str, columns: int = WIDTH) -> np.ndarray:
        return of(f"l0.{name}.w", columns) @ row + of(f"l0.{name}.b")

    words, places = of("emb.word", WIDTH), of("emb.pos", WIDTH)
    told = [even(words[p] + places[n] + of("emb.type"), "emb.ln") for n, p in enumerate(pieces)]
    seen, size = [], WIDTH // HEADS
    for asking in told:
        row = np.zeros(WIDTH)
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            looks = [math.exp(sent(asking, "q")[part] @ sent(o, "k")[part] / math.sqrt(size)) for o in told]
            row[part] = sum(w * sent(o, "v")[part] for w, o in zip(looks, told, strict=True)) / sum(looks)
        seen.append(row)
    told = [even(row + sent(look, "ao"), "l0.aln") for row, look in zip(told, seen, strict=True)]
    inner = [[x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in sent(row, "fi")] for row in told]
    told = [even(row + sent(np.array(i), "fo", INNER), "l0.oln") for row, i in zip(told, inner, strict=True)]
    mean = np.mean(told, axis=0)
    return mean / np.linalg.norm(mean)


def test_what_was_embedded_once_is_read_from_its_folder(tiny: Path, tmp_path: Path) -> None:
    texts = {"one": "gate", "other": "valves"}
    first = Embedder(tiny, digest="d", folder=tmp_path / "kept").alike("valve", texts)
    kept = sorted((tmp_path / "kept").iterdir())
    assert [file.stat().st_size for file in kept] == [4 * WIDTH] * 2
    for file in kept:
        file.write_bytes(np.eye(1, WIDTH, dtype="<f4").tobytes())
    again = Embedder(tiny, digest="d", folder=tmp_path / "kept").alike("valve", texts)
    assert again["one"] == again["other"] != first["one"]
    assert Embedder(tiny, digest="another", folder=tmp_path / "kept").alike("valve", texts) == first


def test_a_damaged_vector_is_made_anew(tiny: Path, tmp_path: Path) -> None:
    first = Embedder(tiny, folder=tmp_path / "kept").alike("valve", {"one": "gate"})
    (file,) = (tmp_path / "kept").iterdir()
    file.write_bytes(b"torn")
    assert Embedder(tiny, folder=tmp_path / "kept").alike("valve", {"one": "gate"}) == first


@pytest.mark.parametrize("end", [0, 3, 100, -1])
def test_a_file_that_is_cut_or_another_is_said_to_be_no_embedder(tmp_path: Path, end: int) -> None:
    file = tmp_path / "cut.e5"
    file.write_bytes(file_bytes()[:end])
    with pytest.raises(ModelError, match=r"cut\.e5.*pull it again"):
        Embedder(file)


@pytest.mark.long
def test_the_real_one_finds_the_same_meaning_in_other_words_and_languages() -> None:
    stored = stored_model(EMBEDDER)
    if stored is None:
        pytest.skip(f"{EMBEDDER} is not here")
    texts = {"wifi": "switch the wireless network on or off", "fan": "set the speed of the fan"}
    embedder = Embedder(stored.path)
    for request in ("Kill the wireless", "Schalte das WLAN aus", "Coupe le wifi"):
        alike = embedder.alike(request, texts)
        assert alike["wifi"] > alike["fan"] + 0.02, request
