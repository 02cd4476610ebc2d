"""What every model driver offers, whatever it is made of."""

from __future__ import annotations

from edgeagent.driver.model import ModelDriver
from edgeagent.driver.scripted import ScriptedModel


def test_a_script_is_a_model_driver_without_memory():
    driver: ModelDriver = ScriptedModel(["yes"])
    assert driver.warm is None
    assert "script" in driver.describe()
