"""The model in the process: memory, batches, limits, faults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("llama_cpp")

import llama_cpp

from edgeagent.driver.llama.batch import BATCH_TOKENS, Beside
from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.native import model_params
from edgeagent.driver.llama.vocabulary import Vocabulary
from edgeagent.errors import ModelError

pytestmark = pytest.mark.model

STORY = "The greenhouse stands at the edge of the field. " * 40


def tokens_of(engine: Engine, count: int, text: str = STORY) -> list[int]:
    tokens = engine.tokenize(text, special=False, bos=False)
    assert len(tokens) >= count
    return tokens[:count]


@pytest.mark.deep
def test_a_prompt_that_grew_is_evaluated_from_where_it_grew(engine: Engine) -> None:
    first = tokens_of(engine, 100)
    assert (engine.prefill(first).reused, engine.prefill([*first, 5, 6, 7]).reused) == (0, 100)


@pytest.mark.deep
def test_a_shared_prefix_gives_the_logits_of_a_fresh_run(engine: Engine) -> None:
    prefix = tokens_of(engine, 2 * BATCH_TOKENS)
    mine, other = [*prefix, *tokens_of(engine, 9)], [*prefix, *tokens_of(engine, 30, STORY[100:])]
    engine.prefill(mine)
    fresh = engine.logits().copy()
    engine.forget()
    engine.prefill(other)
    assert engine.prefill(mine).reused >= len(prefix)
    assert np.array_equal(engine.logits(), fresh)


def test_the_same_prompt_again_evaluates_two_tokens_and_has_the_same_logits(engine: Engine) -> None:
    tokens = tokens_of(engine, 50)
    engine.prefill(tokens)
    fresh = engine.logits().copy()
    assert engine.prefill(tokens).evaluated == 2
    assert np.array_equal(engine.logits(), fresh)


@pytest.mark.deep
def test_a_prompt_that_grew_by_one_token_has_the_logits_of_a_fresh_one(engine: Engine) -> None:
    tokens = tokens_of(engine, 50)
    engine.prefill(tokens)
    fresh = engine.logits().copy()
    engine.forget()
    engine.prefill(tokens[:-1])
    assert engine.prefill(tokens).evaluated == 2
    assert np.array_equal(engine.logits(), fresh)


@pytest.fixture
def batches(monkeypatch):
    """How many tokens each pass of llama.cpp takes."""
    sizes, decode = [], llama_cpp.llama_decode
    monkeypatch.setattr(llama_cpp, "llama_decode", lambda to, batch: sizes.append(batch.n_tokens) or decode(to, batch))
    return sizes


@pytest.mark.parametrize("beyond", [1, 2, 63, 64, 65, 66, 127, 129])
@pytest.mark.deep
def test_no_batch_is_of_one_token_where_there_are_two(engine: Engine, batches: list[int], beyond: int) -> None:
    engine.prefill(tokens_of(engine, 40))
    engine.prefill(tokens_of(engine, 40 + beyond))
    assert min(batches) > 1 and max(batches) <= BATCH_TOKENS


def test_a_prompt_of_a_batch_and_one_token_more_is_judged_as_one_that_is_cut_elsewhere(engine: Engine) -> None:
    tokens = tokens_of(engine, BATCH_TOKENS + 1)
    engine.prefill(tokens)
    fresh = engine.logits().copy()
    engine.forget()
    engine.prefill(tokens[:20])
    engine.prefill(tokens)
    assert np.array_equal(engine.logits(), fresh)


def test_a_shorter_prompt_cuts_the_memory(engine: Engine) -> None:
    tokens = tokens_of(engine, 50)
    engine.prefill(tokens)
    engine.prefill(tokens[:20])
    assert engine.kept() == tokens[:20]


@pytest.mark.deep
def test_the_513th_token_of_512_is_a_clean_result(smollm2: Path, cache: Path) -> None:
    engine = Engine.load(smollm2, n_ctx=512, threads=1, cache=cache)
    tokens = tokens_of(engine, 350) + tokens_of(engine, 163)
    assert engine.prefill(tokens[:512]).outcome == "done"
    assert engine.evaluate([5]) == "context_full"
    assert engine.prefill(tokens).outcome == "context_full"
    assert engine.prefill(tokens[:100]).outcome == "done"
    engine.close()


def test_a_refused_batch_leaves_the_memory_as_it_was(engine: Engine) -> None:
    tokens = tokens_of(engine, 40)
    engine.prefill(tokens)
    with pytest.raises(ModelError, match="refused a batch"):
        engine.evaluate([engine.n_vocab + 5])
    assert engine.kept() == tokens
    assert engine.evaluate(tokens[:3]) == "done"


def test_a_recurrent_memory_matches_a_fresh_one(mamba: Path, cache: Path) -> None:
    # llama-cpp-python PR#2108 and others: it cannot be cut at a shared prefix, and going on gave wrong text.
    engine = Engine.load(mamba, n_ctx=512, threads=1, cache=cache)
    first, second = [*range(60), 1, 2, 3], [*range(60), 7]
    engine.prefill(first)
    assert engine.prefill([*first, 9]).evaluated == 1
    assert engine.prefill(second).evaluated == len(second)
    after_another = engine.logits().copy()
    engine.forget()
    engine.prefill(second)
    assert np.array_equal(engine.logits(), after_another)
    engine.close()


def test_a_halt_stops_between_batches_and_keeps_what_was_done(engine: Engine) -> None:
    tokens = tokens_of(engine, 3 * BATCH_TOKENS)
    answers = iter([None, None, "time"])
    assert engine.prefill(tokens, halt=lambda: next(answers)).outcome == "time"
    assert engine.kept() == tokens[: 2 * BATCH_TOKENS]
    assert engine.prefill(tokens).evaluated == BATCH_TOKENS


def test_progress_is_told_up_to_the_end(engine: Engine) -> None:
    seen: list[tuple[int, int]] = []
    engine.prefill(tokens_of(engine, 100), on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(BATCH_TOKENS, 100), (100, 100)]


def test_markup_in_plain_text_stays_plain_text(engine: Engine) -> None:
    text = "say <|im_start|>system"
    assert not set(engine.tokenize(text, special=False, bos=False)) & engine.vocabulary.control()
    assert set(engine.tokenize(text, special=True, bos=False)) & engine.vocabulary.control()


@pytest.mark.parametrize("text", ["", "é", "日本語", "🌱🌿", "a\x00b", "\ud800", "x" * 5000])
def test_every_text_comes_back_from_its_tokens(engine: Engine, text: str) -> None:
    tokens = engine.tokenize(text, special=False, bos=False)
    assert engine.detokenize(tokens) == text.encode("utf-8", "replace")


def test_the_end_of_turn_is_a_stop_token(engine: Engine) -> None:
    assert engine.tokenize("<|im_end|>", special=True, bos=False)[0] in engine.stop_ids


def test_the_template_is_the_files_own(engine: Engine) -> None:
    assert engine.template is not None and "<|im_start|>" in engine.template


def test_a_damaged_vocabulary_cache_is_made_anew(engine: Engine) -> None:
    content = engine.vocabulary.to_bytes()
    whole = Vocabulary.from_bytes(content)
    assert whole is not None and whole.pieces() == engine.vocabulary.pieces()
    assert Vocabulary.from_bytes(content[:-1]) is None
    assert Vocabulary.from_bytes(content[:100] + b"!" + content[101:]) is None
    assert Vocabulary.from_bytes(b"") is None


def test_the_vocabulary_is_kept_on_disk(engine: Engine, cache: Path) -> None:
    assert len(engine.vocabulary) == engine.n_vocab
    assert (cache / "vocabulary" / f"{engine.model_digest}.bin").is_file()


def test_a_missing_model_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="edgeagent model pull"):
        Engine.load(tmp_path / "none.gguf")


def test_a_text_file_is_refused_before_llama_cpp_sees_it(tmp_path: Path) -> None:
    file = tmp_path / "notes.gguf"
    file.write_text("not a model\n" * 100)
    with pytest.raises(ModelError, match=r"notes\.gguf"):
        Engine.load(file)


@pytest.mark.parametrize(("build", "used"), [("AVX512_VNNI = 1 | AMX_INT8 = 1 | ", False), ("AVX2 = 1 | ", True)])
def test_a_build_with_amx_does_not_use_it_where_it_would_crash(build: str, used: bool) -> None:
    assert model_params(build).use_extra_bufts is used


def test_after_close_nothing_can_be_asked(smollm2: Path, cache: Path) -> None:
    engine = Engine.load(smollm2, n_ctx=256, threads=1, cache=cache)
    engine.close()
    engine.close()
    with pytest.raises(ModelError, match="closed"):
        engine.evaluate([1])


def test_loading_and_leaving_prints_nothing(smollm2: Path, cache: Path) -> None:
    program = (
        "from pathlib import Path\nfrom edgeagent.driver.llama.engine import Engine\n"
        f"e = Engine.load({str(smollm2)!r}, n_ctx=256, cache=Path({str(cache)!r}))\n"
        "e.prefill([1, 2, 3])\n"  # and is not closed: the interpreter's exit has to do it
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture(scope="module")
def wide(smollm2, cache):
    """An engine with sequences beside the conversation."""
    engine = Engine.load(smollm2, n_ctx=512, threads=1, sequences=6, cache=cache)
    yield engine
    engine.close()


def beside(engine, *texts):
    """Texts to be judged, each in the sequence of its place."""
    pieces = [[engine.tokenize(part, special=False, bos=False) for part in text] for text in texts]
    return [Beside(place, prefix, continuation) for place, (prefix, continuation) in enumerate(pieces, 1)]


def test_a_score_is_the_log_probability_of_the_text_and_leaves_the_conversation_alone(wide):
    wide.forget()
    prefix, right = (wide.tokenize(text, special=False, bos=False) for text in ("The capital of France is", " Paris."))
    one_by_one = 0.0
    for place, token in enumerate(right):
        wide.prefill([*prefix, *right[:place]])
        logits = wide.logits().astype(float)
        one_by_one += logits[token] - logits.max() - np.log(np.exp(logits - logits.max()).sum())
    wide.prefill(tokens_of(wide, 20))
    [alone] = wide.score_beside([Beside(1, prefix, right)])
    assert alone == pytest.approx(one_by_one, abs=0.05)
    assert wide.kept() == tokens_of(wide, 20)


def test_texts_that_are_judged_together_are_judged_as_if_each_were_alone(wide):
    france, other = "The capital of France is", "My dog has eaten a whole"
    texts = beside(wide, (france, " Paris."), (france, " a potato."), (other, " cake, I fear."), (other, " Paris."))
    wide.forget()
    together = wide.score_beside(texts)
    for place, text in enumerate(texts):
        wide.forget()
        # The order of sums depends on where in memory a token stands; a neighbour that is seen would cost nats.
        assert wide.score_beside([text])[0] == pytest.approx(together[place], abs=0.5)
    assert together[0] > together[1]


def test_what_a_text_begins_with_stays_and_is_not_evaluated_again(wide):
    wide.forget()
    texts = beside(wide, (STORY[:200], " Yes."), (STORY[40:260], " No."))
    first = wide.score_beside(texts)
    assert [wide.kept(n) for n in (1, 2)] == [list(text.prefix[:-1]) for text in texts]
    assert wide.score_beside(texts) == pytest.approx(first, abs=0.5)


@pytest.mark.deep
def test_a_conversation_that_needs_the_room_takes_it_back(wide):
    wide.forget()
    assert wide.score_beside(beside(wide, (STORY[:400], " Yes."), (STORY[:300], " No."))) is not None
    assert wide.prefill(tokens_of(wide, 350) + tokens_of(wide, 150)).outcome == "done"
    assert wide.kept(1) == wide.kept(2) == []


@pytest.mark.deep
def test_texts_that_are_not_asked_for_give_way_to_those_that_are(wide):
    wide.forget()
    wide.prefill(tokens_of(wide, 350))
    first, second = beside(wide, (STORY[:500], " Yes."), (STORY[40:540], " No."))
    assert wide.score_beside([first]) is not None
    assert wide.score_beside([second]) is not None
    assert wide.kept(1) == [] and len(wide.kept()) == 350


@pytest.mark.deep
def test_without_room_or_time_nothing_is_judged_and_nothing_is_left(wide):
    wide.forget()
    wide.prefill(tokens_of(wide, 350) + tokens_of(wide, 150))
    texts = beside(wide, (STORY[:200], " Yes."))
    assert wide.score_beside(texts) is None
    assert len(wide.kept()) == 500 and wide.kept(1) == []
    wide.forget()
    assert wide.score_beside(texts, halt=lambda: "time") is None
    assert wide.kept(1) == []


def test_values_that_are_compared_share_what_stands_before_them(wide):
    wide.forget()
    prefix = wide.tokenize("The capital of France is", special=False, bos=False)
    texts = (
        " Paris.",
        " a potato.",
        " the city of Lyon, or so they say.",
        "!",
        " the city of Rome, or so they say.",
        " a",
    )
    values = [wide.tokenize(text, special=False, bos=False) for text in texts * 3]
    count = len(texts)
    together = wide.score_each(prefix, values)
    assert wide.kept() == prefix
    for place, value in enumerate(values[:count]):
        alone = wide.score_beside([Beside(1, prefix, value)])
        assert together[place] == pytest.approx(alone[0], abs=0.5)
        assert together[place] == pytest.approx(together[place + count], abs=0.5)
    assert together[0] > together[1]


def test_a_text_that_is_judged_by_one_token_is_not_evaluated_alone(wide, batches):
    wide.forget()
    [text] = beside(wide, ("The capital of France is", " Paris"))
    cold, warm = wide.score_beside([text]), wide.score_beside([text])
    one, two = wide.tokenize(" the city", special=False, bos=False)
    wide.score_each(text.prefix, [[one, two]])
    assert cold == warm
    assert min(batches) > 1


def test_nothing_of_what_was_compared_stays_and_writing_goes_on(wide):
    wide.forget()
    prefix = tokens_of(wide, 40)
    wide.prefill([*prefix, 5])
    before = wide.logits().copy()
    wide.score_each(prefix, [[5, 6, 7], [8, 9, 10]])
    wide.prefill([*prefix, 5])
    np.testing.assert_allclose(wide.logits(), before, atol=0.5)


@pytest.mark.deep
def test_values_are_not_compared_without_room_or_time(wide):
    wide.forget()
    prefix = tokens_of(wide, 350) + tokens_of(wide, 155)
    assert wide.score_each(prefix, [[5] * 10]) is None
    assert wide.kept() == prefix
    wide.forget()
    assert wide.score_each(prefix, [[5, 6]], halt=lambda: "time") is None
