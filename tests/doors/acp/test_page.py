"""docs/acp.md says what is there: its settings start an agent, its tables name every method and every tool."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from edgeagent.doors.acp.client import OFFERS
from edgeagent.doors.acp.door import KINDS
from edgeagent.doors.acp.opening import CLIENT_TOOLS
from edgeagent.doors.acp.session import MODES
from edgeagent.doors.acp.sessions import OPEN_MAX
from edgeagent.driver.peer import CALLS_MAX
from tests.doors.acp.garden import ROOT, Garden

PAGE = (ROOT / "docs" / "acp.md").read_text()


def test_the_settings_of_the_page_start_an_agent_that_says_hello(tmp_path):
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (server,) = json.loads(text)["agent_servers"].values()
    garden = Garden(tmp_path)
    places = {"/home/me/greenhouse.py": str(tmp_path / "garden.py"), "smollm2": f"script:{tmp_path / 'script.json'}"}
    command = [sys.executable, "-m", "edgeagent", *(places.get(each, each) for each in server["args"])]
    hello = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
    done = subprocess.run(command, input=hello, capture_output=True, env=garden.env, check=True)
    assert json.loads(done.stdout)["result"]["agentInfo"]["name"] == "edgeagent"


def test_the_tables_name_every_method_tool_mode_and_bound():
    assert {name for name in KINDS if f"`{name}`" not in PAGE} == set()
    assert set(OFFERS) == set(CLIENT_TOOLS)
    assert {tool for tool in OFFERS.values() if f"`{tool}(" not in PAGE} == set()
    assert {mode["id"] for mode in MODES if f"`{mode['id']}`" not in PAGE} == set()
    assert f"{CALLS_MAX} requests, {OPEN_MAX} sessions at work" in PAGE


def test_an_agent_that_is_not_there_is_said_at_once(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "edgeagent", "acp", "nowhere.py"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "nowhere.py: no such agent file" in done.stderr) == (2, True)
