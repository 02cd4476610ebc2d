"""docs/profiles.md: every profile on the page is right and makes tools."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from edgeagent.driver.device.device import device_of

pytest.importorskip("pymodbus", reason="pymodbus is not installed: pip install edgeagent[serial]")

PAGE = (Path(__file__).parents[3] / "docs" / "profiles.md").read_text()
PROFILES = {tomllib.loads(block)["name"]: block for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)}
TOOLS = {
    "board": {"read_variable", "set_boot_delay"},
    "switch": set(),
    "meter": {"read_flow", "read_setpoint", "set_setpoint"},
    "supply": {"read_voltage", "set_voltage"},
    "sensor": {
        *("read_statistics", "read_setting"),
        *("list_images", "upload_image", "try_image", "restart_device", "confirm_image"),
    },
}


def test_the_page_shows_every_kind_of_profile() -> None:
    assert set(PROFILES) == set(TOOLS)


@pytest.mark.parametrize("name", TOOLS)
def test_a_profile_of_the_page_makes_its_tools(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.toml"
    path.write_text(PROFILES[name])
    assert {tool.name for tool in device_of("usb:1a86:7523", str(path)).tools} == TOOLS[name]
