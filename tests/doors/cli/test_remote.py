"""A model elsewhere from the command line; and its key, which is nowhere but in what was sent to it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.doors.cli.conftest import runner
from tests.driver.remote.peer import OK, calling, chunk, peer, refusing, saying

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
KEY = "Canary+/7f3a9c52e81b4d60"
AGENT = '''
import subprocess
from edgeagent import Agent, tool

@tool(idempotent=True, effect="read")
def look() -> str:
    """Look at the environment that a tool's child is given."""
    return subprocess.run(["env"], capture_output=True, text=True, check=True).stdout

agent = Agent("garden", "You water a garden.", [look])
'''


def spellings(key: str) -> set[str]:
    """The key as it may stand in a file."""
    raw = key.encode()
    return {
        key,
        quote(key, safe=""),
        raw.hex(),
        base64.b64encode(raw).decode(),
        base64.b64encode(b"1" + raw + b"23").decode()[2:-3],  # All that does not depend on what stands around it.
        base64.b64encode(b"12" + raw + b"3").decode()[3:-2],
        json.dumps(key)[1:-1].replace("/", "\\/"),
        key[::-1],
    }


def held_in(text: str) -> list[str]:
    return [each for each in spellings(KEY) if each in text]


def edgeagent(folder: Path, *arguments: str, watch=None, **variables: str) -> subprocess.CompletedProcess[str]:
    """What a command has written; `watch` is told of the process while it runs."""
    (folder / "garden.py").write_text(AGENT)
    names = ("PATH", "HOME", "LANG", "VIRTUAL_ENV")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    environment |= {"PYTHONPATH": str(ROOT), "EDGEAGENT_STATE": str(folder / "state"), "PYTHONFAULTHANDLER": "1"}
    command = [sys.executable, "-m", "edgeagent", *arguments]
    with subprocess.Popen(
        command, cwd=folder, env=environment | variables, stdin=subprocess.DEVNULL, stdout=-1, stderr=-1, text=True
    ) as process:
        if watch is not None:
            watch(process.pid)
        out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def at(served, key: str = "env:CLOUD_KEY") -> tuple[str, ...]:
    return ("--endpoint", served.url, "--model", "m", "--credential", key)


def test_the_commands_of_the_page_run(tmp_path):
    page = (ROOT / "docs" / "remote.md").read_text()
    lines = [each for each in page.splitlines() if each.startswith("edgeagent ")]
    assert [each.split()[1] for each in lines] == ["check", "run"]
    with peer(saying("It is open.")) as served:
        for line in lines:
            url = line.partition("--endpoint ")[2].split()[0]
            told = line.replace(url, served.url).replace('"Open the north valve for 30 seconds."', "Open!")
            done = edgeagent(tmp_path, *told.split()[1:])
            assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout == "It is open.\n"


def test_check_fails_where_an_endpoint_cannot_be_asked(tmp_path):
    with peer(refusing(401, b'{"error": {"message": "Wrong key."}}')) as served:
        done = edgeagent(tmp_path, "check", "garden.py", *at(served), CLOUD_KEY=KEY)
    assert done.returncode == 6
    assert "FAIL endpoint" in done.stdout and "name the right key" in done.stdout


def echoing(connection, _):
    """Say the key back in every way there is, in pieces too, in words, in a call and in an error."""
    half = len(KEY) // 2
    words = [KEY, *spellings(KEY), KEY[:half], KEY[half:], " ", *KEY]
    connection.sendall(OK + b"".join(chunk({"content": f" {each}" if len(each) > 9 else each}) for each in words))
    connection.sendall(chunk({}, "stop") + b"data: [DONE]\n\n")


FAILURES = {
    "answered": saying("Dry."),
    "called": lambda connection, n: connection.sendall(calling(("look", "{}")) if n == 1 else saying("Dry.")),
    "echoed": echoing,
    "echoed in a call": calling(("look", json.dumps({KEY: KEY}))),
    "echoed in a tool's name": calling((KEY, "{}")),
    "refused": refusing(401, json.dumps({"error": {"message": f"Incorrect API key: {KEY}"}}).encode()),
    "refused with a part of it": refusing(403, f"<html><title>{quote(KEY, safe='')}</title></html>".encode()),
    "echoed in a header": refusing(500, b"", f"X-Key: {KEY}"),
    "echoed in the middle": OK + chunk({"content": KEY}),
    "echoed as an error": OK + b"data: " + json.dumps({"error": {"message": KEY}}).encode() + b"\n\n",
    "redirected": refusing(302, b"", f"Location: http://127.0.0.1:1/{KEY}"),
    "too busy": refusing(429, KEY.encode(), "retry-after-ms: 5"),
    "cut": b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + KEY.encode(),
    "no http": KEY.encode() + b"\r\n",
    "closed": lambda connection, _: connection.close(),
    "not json": refusing(200, KEY.encode(), "Content-Type: application/json"),
}


@pytest.mark.deep
@pytest.mark.parametrize("name", FAILURES)
def test_the_key_is_in_nothing_that_is_written_or_shown(tmp_path, forks, name):
    seen: list[str] = []

    def look(pid: int) -> None:
        assert asked.wait(30)  # The key has been read by now, and the process waits for its answer.
        seen.extend(Path(f"/proc/{pid}/{file}").read_bytes().decode("latin-1") for file in ("cmdline", "environ"))
        looked.set()

    def answer(connection, number):
        asked.set()
        assert looked.wait(30)
        fails = FAILURES[name]
        connection.sendall(fails) if isinstance(fails, bytes) else fails(connection, number)

    asked, looked = threading.Event(), threading.Event()
    with peer(answer) as served:
        done = edgeagent(
            tmp_path, "run", "garden.py", "Hi", "--verbose", "--json", *at(served), watch=look, CLOUD_KEY=KEY
        )
        assert served.requests
        assert f"Authorization: Bearer {KEY}".encode() in served.requests[0]
        assert KEY.encode() not in served.requests[0].partition(b"\r\n\r\n")[2]
    assert "CLOUD_KEY" in seen[0]
    for verb, *more in (("export", "--audit"), ("export", "--otlp"), ("show",)):
        out = runner(tmp_path, forks)("trace", verb, *more)  # Started anew, each took a third of a second.
        assert out.stdout, out.stderr
        (tmp_path / "-".join((verb, *more))).write_text(out.stdout + out.stderr)
    told = [done.stdout, done.stderr, *seen]
    told += [file.read_bytes().decode("latin-1") for file in tmp_path.rglob("*") if file.is_file()]
    assert [held_in(each) for each in told if held_in(each)] == []


def test_a_key_in_a_file_is_sent_and_nothing_else_knows_it(tmp_path):
    key = tmp_path / "cloud.key"
    key.write_text(KEY + "\n")
    with peer(saying("Dry.")) as served:
        key.chmod(0o644)
        refused = edgeagent(tmp_path, "run", "garden.py", "Hi", *at(served, f"file:{key}"))
        key.chmod(0o600)
        done = edgeagent(tmp_path, "run", "garden.py", "Hi", *at(served, f"file:{key}"))
    assert (refused.returncode, done.returncode, done.stdout) == (2, 0, "Dry.\n")
    assert "chmod 600" in refused.stderr
    assert len(served.requests) == 1
    assert held_in(refused.stderr + done.stderr) == []


def test_a_key_of_systemd_is_found_by_its_name(tmp_path):
    (tmp_path / "cloud").write_text(KEY)
    (tmp_path / "cloud").chmod(0o400)
    with peer(saying("Dry.")) as served:
        where = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
        done = edgeagent(tmp_path, "run", "garden.py", "Hi", *at(served, "credential:cloud"), **where)
    assert done.stdout == "Dry.\n"
    assert KEY.encode() in served.requests[0]
