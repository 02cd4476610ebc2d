"""Which dialect a session gets: the one that is named, or the one that the model's template shows."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from edgeagent.errors import ConfigError
from edgeagent.runtime.config import ModelSettings
from edgeagent.runtime.wiring import dialect_of


def test_a_named_dialect_is_used_without_a_look_at_the_model():
    assert dialect_of(ModelSettings(name="not there", dialect="hermes")) == "hermes"


def test_an_unknown_dialect_is_refused_with_those_there_are():
    with pytest.raises(ConfigError, match=r"klingon.*plain, hermes"):
        dialect_of(ModelSettings(dialect="klingon"))


def test_a_script_is_plain():
    assert dialect_of(ModelSettings(name="script:answers.json")) == "plain"


@pytest.mark.model
def test_chatml_without_tools_is_plain(smollm2):
    assert dialect_of(replace(ModelSettings(), name=str(smollm2))) == "plain"
