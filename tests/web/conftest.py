"""A real browser at a real server: Chromium, and `edgeagent serve` as a process that can be killed."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edgeagent" / "web"
PICTURES = Path(os.environ.get("PICTURES") or CACHE / "pictures")
CHROMIUM = shutil.which("chromium")
KEY = "anne-" + "k" * 30

AGENT = '''
import os
import time
from pathlib import Path
from typing import Literal

from edgeagent import Agent, Budget, tool

HERE = Path(__file__).parent


@tool(idempotent=False, effect="write", confirm=True)
def set_valve(valve: Literal["north", "south"], seconds: int) -> str:
    """Open a valve for some seconds."""
    return f"{valve} is open for {seconds} s"


@tool(idempotent=True)
def read_sensor(sensor: Literal["soil", "air"]) -> str:
    """Read a sensor."""
    with (HERE / "reads").open("a") as file:
        file.write(f"{sensor}\\n")
    while (HERE / "hold").exists():
        time.sleep(0.02)
    return f"{sensor}: 41 %"


agent = Agent("garden", "You water a garden.", (set_valve, read_sensor), budget=Budget(seconds=None))
'''

TELLER = 'from edgeagent import Agent\n\nagent = Agent("teller", "You tell stories.")\n'


def call(tool: str, **arguments: object) -> str:
    """What a model writes to call this tool."""
    return json.dumps({"name": tool, "arguments": arguments})


class Served:
    """A server in a process of its own, always at the same port."""

    def __init__(self, folder: Path, *answers: str, agent: str = AGENT) -> None:
        self.folder, self.model = folder, "script:script.json" if answers else "smollm2"
        (folder / "garden.py").write_text(agent if answers else TELLER)
        (folder / "script.json").write_text(json.dumps(answers))
        (folder / "keys").write_text(f"anne {KEY}\n")
        (folder / "keys").chmod(0o600)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and return when it is ready."""
        command = [sys.executable, "-m", "edgeagent", "serve", "garden.py", "--port", str(self.port), "--keys", "keys"]
        command += ["--state", "state", "--model", self.model]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)}
            )
        for _ in range(600):
            try:
                if self.ask("GET", "/health")["ready"]:
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def ask(self, method: str, path: str, body: object = None) -> dict:
        """What it replies."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, HEADERS)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


HEADERS = {"Authorization": f"Bearer {KEY}"}


@pytest.fixture
def serve(tmp_path) -> Iterator:
    """A function that starts a server whose model writes these answers; without any it is SmolLM2."""
    begun: list[Served] = []

    def started(*answers: str, **more: str) -> Served:
        begun.append(Served(tmp_path, *answers, **more))
        begun[-1].start()
        return begun[-1]

    yield started
    for each in begun:
        each.kill()


@pytest.fixture(scope="session")
def chromium() -> Iterator:
    """A browser; where there is none the tests are skipped, and in CI they fail."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sync_playwright = None
    if CHROMIUM is None or sync_playwright is None:
        missing = "SKIPPED: no Chromium or no playwright; run tests/web/setup.sh"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
DESK = {"viewport": {"width": 1200, "height": 800}}


@pytest.fixture
def visit(chromium) -> Iterator:
    """A function that logs in at a server from a browser of its own, and returns the page.

    What the page's policy forbids and what its scripts trip over is a failure of the test.
    """
    contexts, wrong = [], []

    def visited(server: Served, where: str = "#/", locale: str = "en-GB", scheme: str = "light", **size: object):
        context = chromium.new_context(**(size or PHONE), locale=locale, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda told: wrong.append(told.text) if "Security Policy" in told.text else None)
        page.goto(f"{server.address}/{where}")
        page.locator("#key").fill(KEY)
        page.locator("form button").click()
        page.locator("#key").wait_for(state="detached")
        return page

    yield visited
    for each in contexts:
        each.close()
    assert wrong == []
