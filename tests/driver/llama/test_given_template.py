"""A chat template that the operator gives: it is what the model reads, and memories of another one are not used."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from edgeagent.codec.dialect import dialect_called
from edgeagent.core.agent import Agent
from edgeagent.driver.llama.kv import fingerprint
from edgeagent.driver.llama.model import LlamaDriver
from edgeagent.driver.llama.template import GivenTemplate
from edgeagent.errors import ModelError

pytestmark = pytest.mark.model

AGENT = dataclasses.replace(Agent("a", "You help."), dialect=dialect_called("plain"))
MINE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant] "


def test_the_model_reads_what_the_given_template_makes_and_its_memory_says_so(smollm2: Path) -> None:
    own = LlamaDriver.load(smollm2, AGENT, n_ctx=512)
    ours = LlamaDriver.load(smollm2, AGENT, n_ctx=512, template=GivenTemplate(MINE, "model.template (mine.jinja)"))
    try:
        prompt = ours._engine.vocabulary.join(ours.prepared.prefix(""))
        assert prompt.startswith(b"[system] You help.")
        assert fingerprint(ours._engine) != fingerprint(own._engine)
        assert ours.model_digest != own.model_digest
    finally:
        own.close()
        ours.close()


def test_a_template_with_a_fault_is_named_by_its_key(smollm2: Path) -> None:
    given = GivenTemplate("{% for %}", "model.template (mine.jinja)")
    with pytest.raises(ModelError, match=r"the chat template of model.template \(mine.jinja\) cannot be read"):
        LlamaDriver.load(smollm2, AGENT, n_ctx=512, template=given)
