"""SIGHUP to the program itself: it reads its settings again and goes on; without its terminal it ends."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.driver.remote.peer import peer, saying

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
AGENT = 'from edgeagent import Agent\nwell = Agent("well", "You watch a well.", ())\n'


@contextlib.contextmanager
def running(folder: Path, *arguments: str, **streams) -> Iterator[subprocess.Popen]:
    """The command, with an agent and an edgeagent.toml beside it."""
    (folder / "well.py").write_text(AGENT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "EDGEAGENT_STATE": str(folder / "state"), "NO_COLOR": "1"}
    given = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    command = [sys.executable, "-m", "edgeagent", *arguments]
    process = subprocess.Popen(command, **given, text=True, cwd=folder, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
            stream.close()


def names(folder: Path, first: str, **urls: str) -> None:
    models = "".join(f'[models.{name}]\nendpoint = "{url}"\nmodel = "m"\n' for name, url in urls.items())
    (folder / "edgeagent.toml").write_text(f'model = ["{first}"]\n{models}')


def line_with(stream, text: str) -> str:
    """The next line that holds the text."""
    for line in stream:
        if text in line:
            return line
    raise AssertionError(f"it ended without {text!r}")


def told_at_hangup(process: subprocess.Popen, text: str) -> str:
    """The line with the text that SIGHUP brings. A signal in the very moment before a read is taken behind that read,
    so it is sent until the line is there."""
    told = threading.Event()

    def send() -> None:
        process.send_signal(signal.SIGHUP)
        while not told.wait(2):
            process.send_signal(signal.SIGHUP)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        return line_with(process.stderr, text)
    finally:
        told.set()
        sender.join()


def test_a_chat_asks_another_model_after_the_signal_and_a_bad_file_changes_nothing(tmp_path):
    with peer(saying("One.")) as one, peer(saying("Two.")) as two:
        urls = {"one": one.url, "two": two.url}
        names(tmp_path, "one", **urls)
        with running(tmp_path, "chat", "well.py") as chat:

            def said(text: str) -> str:
                chat.stdin.write(text + "\n")
                chat.stdin.flush()
                return chat.stdout.readline()

            assert said("How deep?") == "One.\n"
            names(tmp_path, "three", **urls)
            assert "model.order names three" in told_at_hangup(chat, "the settings stay as they were")
            assert said("How deep?") == "One.\n"
            names(tmp_path, "two", **urls)
            told_at_hangup(chat, "from the next turn on these models are asked: two")
            assert said("How deep?") == "Two.\n"
            chat.stdin.close()
            assert chat.wait(60) == 0


def test_a_server_asks_another_model_after_the_signal(tmp_path):
    with peer(saying("One.")) as one, peer(saying("Two.")) as two:
        urls = {"one": one.url, "two": two.url}
        names(tmp_path, "one", **urls)
        with running(tmp_path, "serve", "well.py", "--port", "0") as server:
            base = line_with(server.stderr, "serving on").split()[-1]

            def said() -> str:
                body = json.dumps({"model": "well", "messages": [{"role": "user", "content": "How deep?"}]}).encode()
                headers = {"Content-Type": "application/json"}
                request = urllib.request.Request(f"{base}/v1/chat/completions", body, headers)
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.load(answer)["choices"][0]["message"]["content"]

            assert said() == "One."
            names(tmp_path, "two", **urls)
            told_at_hangup(server, "from the next turn on these models are asked: two")
            assert said() == "Two."
            server.send_signal(signal.SIGTERM)
            assert server.wait(60) == 0


def test_what_waits_ends_with_its_terminal(tmp_path):
    with peer(saying("One.")) as one:
        names(tmp_path, "one", one=one.url)
        outer, inner = pty.openpty()
        streams = {"stdin": inner, "stdout": inner, "stderr": inner, "start_new_session": True}
        with running(tmp_path, "run", "well.py", "How deep?", "--wait", **streams) as waiting:
            os.close(inner)
            shown = b""
            while b"One." not in shown:
                shown += os.read(outer, 4096)
            waiting.send_signal(signal.SIGHUP)
            while b"nothing has changed" not in shown:  # The terminal is there: the settings are read again.
                shown += os.read(outer, 4096)
            os.close(outer)
            waiting.send_signal(signal.SIGHUP)
            assert waiting.wait(60) == -signal.SIGHUP
