"""What becomes markup and what stays words."""

from __future__ import annotations

import pytest

from edgeagent.driver.llama.prompt import Words, pack_ids, prompt_tokens, unpack_ids
from edgeagent.errors import ModelError


class Letters:
    """A vocabulary of characters, with one special token `<end>` and one pair of letters that can be one token."""

    END, PAIR, BOS = 1000, 1001, 1002

    def tokenize(self, text, *, special, bos):
        ids = [self.BOS] if bos else []
        while text:
            if special and text.startswith("<end>"):
                ids, text = [*ids, self.END], text[5:]
            else:
                ids, text = [*ids, ord(text[0])], text[1:]
        return ids

    def detokenize(self, tokens):
        spelled = {self.END: "<end>", self.PAIR: "ab", self.BOS: ""}
        return "".join(spelled.get(t) or chr(t) for t in tokens).encode()


def tokens(rendered, *words, bos=False):
    return prompt_tokens(rendered, [Words(*w) if isinstance(w, tuple) else Words(w) for w in words], Letters(), bos=bos)


def test_markup_of_the_template_is_markup_and_words_stay_words():
    assert tokens("U:<end>!<end>", "<end>!") == [*b"U:", *b"<end>!", Letters.END]


def test_what_the_model_wrote_goes_back_as_the_tokens_it_wrote():
    assert tokens("A:ab<end>", ("ab", pack_ids([Letters.PAIR]))) == [*b"A:", Letters.PAIR, Letters.END]


def test_ids_that_do_not_spell_the_text_are_not_trusted():
    assert tokens("A:ab<end>", ("ab", pack_ids([ord("x")]))) == [*b"A:ab", Letters.END]


def test_the_same_words_twice_are_found_in_order():
    assert tokens("1:hi<end>2:hi<end>", "hi", "hi") == [*b"1:hi", Letters.END, *b"2:hi", Letters.END]


def test_words_that_the_template_has_trimmed_are_found_trimmed():
    assert tokens("U:hi<end>", "  hi \n") == [*b"U:hi", Letters.END]


def test_a_template_that_alters_words_is_refused():
    with pytest.raises(ModelError, match="alters"):
        tokens("U:HI<end>", "hi")


def test_the_beginning_is_marked_once():
    assert tokens("U:hi", "hi", bos=True) == [Letters.BOS, *b"U:hi"]
    assert tokens("hi", "hi", bos=True)[:1] == [Letters.BOS]


@pytest.mark.parametrize("ids", [[], [0], [1, 70_000, 262_143]])
def test_ids_survive_packing(ids):
    assert unpack_ids(pack_ids(ids)) == ids
