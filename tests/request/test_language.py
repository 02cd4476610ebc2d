"""Tables of a language: nothing missing, nothing unknown, and what a sign weighs is always said."""

from __future__ import annotations

from importlib import resources

import pytest

from edgeagent.errors import ConfigError
from edgeagent.request.language import ENGLISH, language_of
from edgeagent.request.parts.signs import NumberSign, TextSign

TEXT = resources.files("edgeagent.request").joinpath("english.toml").read_text("utf-8")


def test_the_shipped_tables_are_whole():
    assert language_of(TEXT, "english.toml") == ENGLISH


@pytest.mark.parametrize("sign", [*NumberSign, *TextSign], ids=str)
def test_a_sign_without_a_weight_is_an_error_that_names_it(sign):
    table = "numbers" if sign in list(NumberSign) else "texts"
    head, mark, rest = TEXT.partition(f"[{table}.weights]\n")
    lines = [line for line in rest.splitlines(True) if not line.startswith(f'"{sign}" =')]
    with pytest.raises(ConfigError, match=rf"english.toml: {table}.weights has no weight for ['\"]{sign}"):
        language_of(head + mark + "".join(lines), "english.toml")


def test_an_unknown_sign_is_an_error_that_names_it():
    told = TEXT.replace('"named behind" = 3.9', '"named behind" = 3.9\n"named beneath" = 1.0')
    with pytest.raises(ConfigError, match="named beneath"):
        language_of(told, "english.toml")


@pytest.mark.parametrize("key", ["stop", "indefinite", "polite", "opposites", "which_of", "joint"])
def test_a_missing_table_of_words_is_an_error_that_names_it(key):
    lines = TEXT.splitlines(True)
    begin = next(place for place, line in enumerate(lines) if line.startswith(f"{key} = "))
    end = begin + 1
    if lines[begin].rstrip().endswith('"""'):
        end = next(place for place in range(begin + 1, len(lines)) if lines[place].startswith('"""')) + 1
    if key == "stop":  # The first of that name; another is a verb.
        assert begin < lines.index("[verbs.acts]\n")
    with pytest.raises(ConfigError, match=f"missing required field `{key}`"):
        language_of("".join(lines[:begin] + lines[end:]), "english.toml")


def test_an_unknown_key_is_an_error_that_names_it():
    with pytest.raises(ConfigError, match="unknown field `politely`"):
        language_of(TEXT.replace("\npolite =", '\npolitely = "kindly"\npolite =', 1), "english.toml")


def test_a_pattern_that_is_none_and_a_file_that_is_no_toml_are_errors_with_the_files_name():
    with pytest.raises(ConfigError, match=r"^klingon.toml: "):
        language_of(TEXT.replace("still_asks = '''", "still_asks = '''("), "klingon.toml")
    with pytest.raises(ConfigError, match=r"^klingon.toml: "):
        language_of(TEXT + "\n[words", "klingon.toml")
