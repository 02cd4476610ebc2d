"""An argument can never become a second command."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeagent.driver.line.template import check_template, check_text_argument, filled, places, written
from edgeagent.errors import ConfigError

ATTACKS = [
    "a; reset",
    "a\nreset",
    "a\rreset",
    "$(reset)",
    "`reset`",
    "a && b",
    "a | b",
    "a > b",
    "'",
    '"',
    "\\",
    "a\x03",
    "\x1b[A",
    "${x}",
    "#",
    "é",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_gets_through_without_quotes(attack: str) -> None:
    with pytest.raises(ValueError, match="name"):
        written(attack, "none", "name")


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_gets_through_a_real_shell_is_one_word(attack: str) -> None:
    try:
        line = filled("printf '<%s>' {name}", {"name": attack}, "posix")
    except ValueError:
        return
    said = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout
    assert said == f"<{attack}>"


@given(st.text(max_size=12))
def test_any_text_is_refused_or_stays_one_word_of_a_shell(text: str) -> None:
    try:
        quoted = written(text, "posix", "name")
    except ValueError:
        return
    import shlex

    assert shlex.split(quoted) == [text]


@given(st.text(max_size=12))
def test_any_text_is_refused_or_stays_one_literal_of_python(text: str) -> None:
    import ast

    try:
        quoted = written(text, "python", "name")
    except ValueError:
        return
    assert ast.literal_eval(quoted) == text
    assert "\n" not in quoted


@pytest.mark.parametrize("option", ["-rf", "--force", "-"])
def test_a_text_is_never_an_option(option: str) -> None:
    with pytest.raises(ValueError, match="option"):
        written(option, "posix", "name")


def test_numbers_are_written_plainly() -> None:
    assert filled("set {a} {b} {c}", {"a": -5, "b": 21.5, "c": True}, "none") == "set -5 21.5 1"


def test_a_variable_of_the_device_is_left_alone() -> None:
    assert places("setexpr {name} ${n} + {by}") == ("name", "by")
    assert filled("setexpr {name} ${n} + {by}", {"name": "m", "by": 2}, "single") == "setexpr m ${n} + 2"


def test_an_argument_that_looks_like_a_place_is_not_filled_again() -> None:
    assert filled("f({a}, {b})", {"a": "{b}", "b": "x"}, "python") == "f('{b}', 'x')"


@pytest.mark.parametrize("template", ["", "  ", "a\nb", "a\x03", "é", "echo '{name}'", 'echo "x{name}"'])
def test_a_template_that_is_no_plain_line_is_refused(template: str) -> None:
    with pytest.raises(ConfigError, match=r"commands\.x\.command"):
        check_template(template, "commands.x")


def test_quotes_beside_an_argument_are_fine() -> None:
    check_template("echo \"a\" {name} 'b'", "commands.x")


@pytest.mark.parametrize(
    ("pattern", "quoting"),
    [
        ("", "posix"),
        (".*", "posix"),
        (".*", "none"),
        ("[a-z;]+", "none"),
        ("[a-z ]+", "none"),
        ("[^;]+", "single"),
        ("[a-z$]+", "single"),
        ("[a-z']+", "posix"),
        (r"[a-z\n]+", "posix"),
        (r"\S+", "posix"),
        (r"a|b;c", "none"),
        (r"(ab\|)+", "none"),
        (r"[ -~]+", "single"),
        ("[äöü]+", "posix"),
    ],
)
def test_free_text_that_could_hold_a_command_is_refused_at_load(pattern: str, quoting: str) -> None:
    with pytest.raises(ConfigError, match="name"):
        check_text_argument(pattern, quoting, "arguments.name")  # type: ignore[arg-type]  # parametrised


@pytest.mark.parametrize(
    ("pattern", "quoting"),
    [
        ("[A-Za-z0-9_.-]{1,32}", "none"),
        ("[A-Za-z0-9 _.,:/-]{1,64}", "single"),
        (r"[\x20-\x26\x28-\x7e]{1,80}", "posix"),
        (r"[ -~]+", "python"),
        (r"\d+(\.\d+)?", "none"),
    ],
)
def test_a_pattern_that_names_what_is_wanted_is_taken(pattern: str, quoting: str) -> None:
    check_text_argument(pattern, quoting, "arguments.name")  # type: ignore[arg-type]  # parametrised
