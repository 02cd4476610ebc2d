"""The saved memory of a model: what may reach llama.cpp, and that nothing differs afterwards. Reports are named."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("llama_cpp")

from edgeagent.driver.llama.batch import Beside
from edgeagent.driver.llama.decode import Wanted, generate
from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.kv import MAGIC, KvStore, SavedMemory, fingerprint
from edgeagent.trace.caches import Allowance, Kind, YieldingDisk
from edgeagent.trace.disk import Disk

pytestmark = pytest.mark.model

SECRET = bytes(range(32))
TEXT = "The greenhouse has four beds and a valve for each. Open the north valve when its soil is dry. "


@pytest.fixture
def store(tmp_path: Path) -> KvStore:
    return KvStore(tmp_path / "kv", SECRET)


def prompt(engine: Engine, count: int = 60) -> list[int]:
    return engine.tokenize(TEXT * 8, special=False, bos=engine.adds_bos)[:count]


def saved(engine: Engine, store: KvStore, count: int = 60) -> list[int]:
    """Evaluate a prompt, save it, forget it; return its tokens."""
    tokens = prompt(engine, count)
    engine.prefill(tokens)
    assert store.save(engine, "a")
    engine.forget()
    return tokens


def test_text_after_a_restore_matches_fresh(engine: Engine, store: KvStore) -> None:
    tokens = saved(engine, store)
    fresh = generate(engine, tokens, Wanted(max_tokens=12))
    engine.forget()
    assert store.restore(engine, "a") == len(tokens)
    restored = generate(engine, tokens, Wanted(max_tokens=12))
    assert restored.text == fresh.text
    assert restored.evaluated < len(tokens)


def test_a_longer_prompt_evaluates_only_what_is_new(engine: Engine, store: KvStore) -> None:
    tokens = saved(engine, store)
    store.restore(engine, "a")
    longer = [*tokens, *prompt(engine, 10)]
    assert engine.prefill(longer).evaluated == 10


def test_a_memory_can_be_restored_again_and_again(engine: Engine, store: KvStore) -> None:
    """llama-cpp-python#997: the second load_state aborted the process."""
    tokens = saved(engine, store)
    for _ in range(3):
        assert store.restore(engine, "a") == len(tokens)
        engine.evaluate(prompt(engine, 5))
    assert store.restore(engine, "a") == len(tokens)
    assert engine.kept() == tokens


def test_a_changed_bit_anywhere_never_reaches_llama_cpp(engine: Engine, store: KvStore) -> None:
    """llama-cpp-python#14: a state that was not what it claimed, and a segmentation fault in the next evaluation."""
    saved(engine, store)
    content = store.path("a").read_bytes()
    chance = random.Random(3)
    places = [*range(80), *(chance.randrange(len(content)) for _ in range(60))]
    for at in places:
        changed = bytearray(content)
        changed[at] ^= 1 << chance.randrange(8)
        store.path("a").write_bytes(changed)
        assert store.restore(engine, "a") == 0
        assert engine.kept() == []


@pytest.mark.parametrize(
    "content", [b"", MAGIC, MAGIC + bytes(32), MAGIC + bytes(40), b"\x80\x04\x95pickle", bytes(9999)]
)
def test_what_we_have_not_written_is_a_miss(engine: Engine, store: KvStore, content: bytes) -> None:
    store.folder.mkdir()
    store.path("a").write_bytes(content)
    assert store.restore(engine, "a") == 0


def test_a_cut_file_is_a_miss(engine: Engine, store: KvStore) -> None:
    saved(engine, store)
    content = store.path("a").read_bytes()
    for length in (0, 10, 100, len(content) // 2, len(content) - 1):
        store.path("a").write_bytes(content[:length])
        assert store.restore(engine, "a") == 0


def test_another_machines_key_is_a_miss(engine: Engine, store: KvStore) -> None:
    saved(engine, store)
    assert KvStore(store.folder, bytes(32)).restore(engine, "a") == 0


def test_another_window_is_a_miss(engine: Engine, store: KvStore, smollm2: Path, cache: Path) -> None:
    """load_state: a state of n_ctx 512 was put into a window of 2048."""
    saved(engine, store)
    other = Engine.load(smollm2, n_ctx=512, threads=1, cache=cache, digest=engine.model_digest)
    assert fingerprint(other) != fingerprint(engine)
    assert store.restore(other, "a") == 0
    other.close()


def test_another_model_of_the_same_shape_is_a_miss(smollm2: Path, engine: Engine, store: KvStore, cache: Path) -> None:
    """llama.cpp#2422, LLamaSharp#426: a state restored where it did not belong gave nonsense."""
    saved(engine, store)
    other = Engine.load(smollm2, n_ctx=2048, threads=1, cache=cache, digest="f" * 64)
    assert store.restore(other, "a") == 0
    other.close()


def test_a_memory_that_is_too_large_is_not_kept(engine: Engine, tmp_path: Path) -> None:
    small = KvStore(tmp_path, SECRET, file_bytes_max=1000)
    engine.prefill(prompt(engine))
    assert not small.save(engine, "a")
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_memories_make_room(engine: Engine, store: KvStore, tmp_path: Path) -> None:
    saved(engine, store)
    size = store.path("a").stat().st_size
    disk = YieldingDisk(tmp_path, (Kind("memory", "kv/*.kv", MAGIC),), Allowance(limit_bytes=2 * size + 9_000))
    narrow = KvStore(store.folder, SECRET, disk)
    for name in ("b", "c"):
        engine.prefill(prompt(engine))
        narrow.save(engine, name)
    assert sorted(p.stem for p in store.folder.glob("*.kv")) == ["b", "c"]


def test_what_an_agent_begins_with_is_kept_where_a_sessions_memory_has_no_room(engine: Engine, tmp_path: Path) -> None:
    engine.prefill(prompt(engine))
    session = KvStore(tmp_path / "session", SECRET, file_bytes_max=1000)
    SavedMemory(session, KvStore(tmp_path / "kv", SECRET), "agent").save(engine, lambda: 20)
    assert KvStore(tmp_path / "kv", SECRET).restore(engine, "agent") == 20


def test_a_full_disk_costs_only_the_cache(engine: Engine, tmp_path: Path) -> None:
    class Full(Disk):
        def write(self, descriptor: int, block: bytes | memoryview) -> int:
            raise OSError(28, "No space left on device")

    engine.prefill(prompt(engine))
    assert not KvStore(tmp_path, SECRET, disk=Full()).save(engine, "a")


def test_the_beginning_of_a_memory_can_be_saved_alone(engine: Engine, store: KvStore) -> None:
    tokens = prompt(engine)
    engine.prefill(tokens)
    store.save(engine, "prefix", length=20)
    engine.forget()
    assert store.restore(engine, "prefix") == 20
    assert engine.prefill(tokens).reused == 20


@pytest.fixture(scope="module")
def wide(smollm2: Path, cache: Path) -> Iterator[Engine]:
    """An engine with sequences beside the conversation."""
    loaded = Engine.load(smollm2, n_ctx=256, threads=1, sequences=4, cache=cache)
    yield loaded
    loaded.close()


def saved_beside(engine: Engine, store: KvStore) -> dict[int, list[int]]:
    """Judge two texts beside a conversation, save them, forget all; return what each sequence held."""
    engine.forget()
    engine.prefill(prompt(engine, 30))
    engine.score_beside([Beside(place, prompt(engine, 10 * place + 1), [5, 6]) for place in (1, 2)])
    held = {place: engine.kept(place) for place in (1, 2)}
    assert store.save_places(engine, "texts", {"one": 1, "two": 2})
    engine.forget()
    return held


def test_texts_come_back_into_their_sequences_beside_the_conversation(wide: Engine, store: KvStore) -> None:
    held = saved_beside(wide, store)
    wide.prefill(prompt(wide, 30))
    assert store.restore_places(wide, "texts") == {"one": 1, "two": 2}
    assert {place: wide.kept(place) for place in (1, 2)} == held
    assert wide.kept() == prompt(wide, 30)


def test_of_damaged_texts_none_is_restored(wide: Engine, store: KvStore) -> None:
    saved_beside(wide, store)
    content = bytearray(store.path("texts").read_bytes())
    content[-1] ^= 1
    store.path("texts").write_bytes(content)
    assert store.restore_places(wide, "texts") == {}
    assert wide.kept(1) == wide.kept(2) == []


@pytest.mark.deep
def test_texts_that_have_no_room_beside_the_conversation_are_left_out(wide: Engine, store: KvStore) -> None:
    saved_beside(wide, store)
    long = prompt(wide, 160) + prompt(wide, 80)
    wide.prefill(long)
    store.restore_places(wide, "texts")
    assert [len(wide.kept(place)) for place in range(3)] == [240, 10, 0]
    assert wide.kept() == long


def test_a_refused_import_empties_only_its_own_sequence(wide: Engine) -> None:
    wide.forget()
    wide.prefill(prompt(wide, 30))
    wide.score_beside([Beside(place, prompt(wide, 11), [5]) for place in (1, 2)])
    state = wide.export_state(1)
    assert not wide.import_state(state[: len(state) // 2], wide.kept(1), 2)
    assert (len(wide.kept()), len(wide.kept(1)), wide.kept(2)) == (30, 10, [])
    assert wide.import_state(state, wide.kept(1), 2)
    one, two = wide.score_beside([Beside(place, prompt(wide, 11), [5]) for place in (1, 2)]) or (0.0, 1.0)
    assert one == pytest.approx(two, abs=0.5)
