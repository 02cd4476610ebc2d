"""Settings and agent files that are wrong say what there is, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeagent.codec.dialect import dialect_for
from edgeagent.errors import ConfigError
from edgeagent.runtime.config import ModelSettings, read_settings
from edgeagent.runtime.wiring import dialect_of, given_template, load_agent


@pytest.mark.parametrize(
    ("text", "likely"), [('[model]\nmodle = "x"', "model.modle"), ('statte = "x"', "did you mean state")]
)
def test_an_unknown_key_is_named_with_those_that_there_are(tmp_path: Path, text: str, likely: str):
    file = tmp_path / "edgeagent.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_settings(file, beside=None)
    assert likely in str(refused.value)
    assert str(file) in str(refused.value)
    assert "There are: " in str(refused.value)


def test_an_error_in_an_agent_file_has_its_line_for_a_relative_path_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "agent_with_a_fault.py").write_text("x = 1\ny = 1 / 0\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="line 2: ZeroDivisionError"):
        load_agent("agent_with_a_fault.py")


@pytest.mark.parametrize(("module", "package"), [("no_such_gpio.lines", "no_such_gpio"), ("RPi.GPIO", "RPi.GPIO")])
def test_an_import_that_fails_names_the_package_to_install(tmp_path: Path, module: str, package: str):
    file = tmp_path / "agent_on_a_pi.py"
    file.write_text(f"import {module}\n")
    with pytest.raises(ConfigError, match=rf"pip install {package}\)"):
        load_agent(str(file))


def test_the_state_folder_may_be_named_alone_or_in_a_section_with_what_caches_may_take(tmp_path):
    (tmp_path / "edgeagent.toml").write_text('state = "/var/lib/edgeagent"\n')
    assert read_settings(None, beside=tmp_path).state.folder == "/var/lib/edgeagent"
    (tmp_path / "edgeagent.toml").write_text('[state]\nfolder = "/var/lib/edgeagent"\ncache_mb = 1.5\n')
    state = read_settings(None, beside=tmp_path).state
    assert (state.folder, state.cache_mb, state.reserve_mb) == ("/var/lib/edgeagent", 1.5, None)


def test_a_negative_limit_of_caches_is_refused_by_name(tmp_path):
    (tmp_path / "edgeagent.toml").write_text("[state]\ncache_mb = -1\n")
    with pytest.raises(ConfigError, match="cache_mb"):
        read_settings(None, beside=tmp_path)


def test_a_templates_file_is_found_from_the_folder_of_the_settings(tmp_path, monkeypatch):
    (tmp_path / "edgeagent.toml").write_text('[model]\ntemplate = "mine.jinja"\n')
    (tmp_path / "mine.jinja").write_text("{{ messages[0].content }}")
    monkeypatch.chdir("/")
    assert read_settings(None, beside=tmp_path).model.template == str(tmp_path / "mine.jinja")


def test_a_built_in_template_is_named(tmp_path):
    (tmp_path / "edgeagent.toml").write_text('[model]\ntemplate = "gemma"\n')
    given = given_template(read_settings(None, beside=tmp_path).model)
    assert given is not None
    assert "<start_of_turn>" in given.text


def test_a_template_that_there_is_not_names_file_key_and_those_that_there_are(tmp_path):
    (tmp_path / "edgeagent.toml").write_text('[model]\ntemplate = "chatlm"\n')
    with pytest.raises(ConfigError) as refused:
        read_settings(None, beside=tmp_path)
    assert f"{tmp_path / 'edgeagent.toml'}: model.template is 'chatlm'" in str(refused.value)
    assert "chatml, gemma" in str(refused.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "Is a directory"), (b"\xff\xfe", "UTF-8"), (b" \n", "has no text"), (b"x" * (1 << 21), "has more than")],
)
def test_a_file_that_is_no_template_is_refused_by_key(tmp_path, content, said):
    file = tmp_path / "mine.jinja"
    file.mkdir() if content is None else file.write_bytes(content)
    with pytest.raises(ConfigError, match=said) as refused:
        given_template(ModelSettings(template=str(file)))
    assert str(refused.value).startswith(f"model.template ({file})")


def test_the_dialect_goes_by_the_template_that_is_given(tmp_path):
    (tmp_path / "mine.jinja").write_text("{# <tool_call> #}")
    assert dialect_for((tmp_path / "mine.jinja").read_text()) == "hermes"
    gguf = tmp_path / "no.gguf"
    assert dialect_of(ModelSettings(name=str(gguf), template=str(tmp_path / "mine.jinja"))) == "hermes"


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        (section, key, value)
        for section, key in [
            ("model", "temperature"),
            ("model", "threads"),
            ("model", "context_tokens"),
            ("state", "cache_mb"),
            ("state", "reserve_mb"),
        ]
        for value in ("nan", "inf", "-1", "-1.5", "100000000000000000000", "true", '"x"')
    ],
)
def test_a_number_that_none_can_keep_is_refused_by_its_key(tmp_path: Path, section: str, key: str, value: str):
    (tmp_path / "edgeagent.toml").write_text(f"[{section}]\n{key} = {value}\n")
    with pytest.raises(ConfigError, match=key):
        read_settings(None, beside=tmp_path)
