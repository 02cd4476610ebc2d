"""A credential is a reference; what it means cannot be shown, and is in no text that a server sends back."""

from __future__ import annotations

import base64
import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import msgspec
import orjson
import pytest

from edgeagent.driver.remote.scrub import Scrub
from edgeagent.driver.remote.secret import Secret, check_reference, resolve
from edgeagent.errors import ConfigError

KEY = "sk-canary/4711+Zq=w"


def kept(folder: Path, mode: int = 0o600, content: str = KEY + "\n") -> Path:
    path = folder / "key"
    path.write_text(content)
    path.chmod(mode)
    return path


USES = {
    "str": str,
    "format": lambda s: f"{s}",
    "percent": lambda s: "%s" % s,  # noqa: UP031 # just that is to fail
    "equal": lambda s: s == KEY,
    "unequal": lambda s: s != KEY,
    "hash": hash,
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "json": json.dumps,
    "orjson": orjson.dumps,
    "msgspec": msgspec.to_builtins,
    "bytes": bytes,
    "length": len,
    "iterate": list,
    "vars": vars,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_secret_cannot_be_used_as_a_value(use):
    with pytest.raises(TypeError) as refused:
        use(Secret(KEY))
    assert KEY not in str(refused.value)


def test_a_secret_in_a_debugger_is_a_word():
    assert repr([Secret(KEY)]) == "[<secret>]"


def test_a_file_is_read_when_it_is_asked_for(tmp_path):
    path = kept(tmp_path)
    assert resolve(f"file:{path}").sent("x-api-key: ") == f"x-api-key: {KEY}"
    kept(tmp_path, content="another-key-8")
    assert resolve(f"file:{path}").told() == "another-key-8"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_a_file_that_others_may_read_is_refused(tmp_path, mode):
    with pytest.raises(ConfigError, match="others may read it") as refused:
        resolve(f"file:{kept(tmp_path, mode)}")
    assert KEY not in str(refused.value)


def test_a_credential_of_systemd_is_found_in_its_folder(tmp_path, monkeypatch):
    kept(tmp_path, 0o400)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert resolve("credential:key").told() == KEY
    with pytest.raises(ConfigError, match="has no /"):
        resolve("credential:../key")


def test_without_systemd_it_is_said_how_the_credential_comes(monkeypatch):
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    with pytest.raises(ConfigError, match="LoadCredential=key"):
        resolve("credential:key")


@pytest.mark.parametrize("key", [KEY, "env", "env:", "key:NAME", "envNAME"])
def test_a_key_in_the_place_of_a_reference_is_refused_and_not_repeated(key):
    with pytest.raises(ConfigError) as refused:
        check_reference(key, "model.lan.credential")
    assert "model.lan.credential: a credential is a reference" in str(refused.value)
    assert KEY not in str(refused.value)


@pytest.mark.parametrize("key", ["short", "two words here", "line\nbreaks-here", "ümlaut-in-key"])
def test_what_can_be_no_key_is_refused_and_not_repeated(key, monkeypatch):
    monkeypatch.setenv("EDGEAGENT_TEST_KEY", key)
    with pytest.raises(ConfigError) as refused:
        resolve("env:EDGEAGENT_TEST_KEY")
    assert key not in str(refused.value)


def test_a_variable_is_gone_from_the_environment_of_this_process_and_its_children():
    code = """
import os, subprocess, sys
from edgeagent.driver.remote.secret import resolve
one, two = resolve("env:KEY"), resolve("env:KEY")
assert one.told() == two.told()
print(one.told() in repr(dict(os.environ)), one.told().encode() in open("/proc/self/environ", "rb").read())
print(one.told() in subprocess.run(["env"], capture_output=True, text=True).stdout)
"""
    environment = {"KEY": KEY, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"] * 3


FORMS = {
    "as it is": KEY,
    "in a sentence": f"Incorrect API key provided: {KEY}.",
    "other case": KEY.upper(),
    "url": quote(KEY, safe=""),
    "url twice": quote(quote(KEY, safe=""), safe=""),
    "url wholly": "".join(f"%{ord(c):02X}" for c in KEY),
    "hex": KEY.encode().hex(),
    "json": json.dumps(f"key {KEY}").replace("/", "\\/"),
    "json escapes": "".join(f"\\u{ord(c):04x}" for c in KEY),
    "html": "".join(f"&#{ord(c)};" for c in KEY),
    "base32": base64.b32encode(KEY.encode()).decode(),
    "backwards": KEY[::-1],
    **{f"base64 at {n}": base64.b64encode(b"x" * n + KEY.encode() + b"y").decode() for n in range(6)},
    **{f"urlsafe at {n}": base64.urlsafe_b64encode(b"?" * n + KEY.encode()).decode() for n in range(3)},
    "base64 in lines": "\n".join(base64.b64encode(KEY.encode()).decode()[n : n + 7] for n in range(0, 40, 7)),
}


def holds_key(text: str) -> bool:
    forms = [KEY, quote(KEY, safe=""), KEY.encode().hex(), base64.b64encode(KEY.encode()).decode()[:-4]]
    forms += [base64.b64encode(b"x" * n + KEY.encode()).decode()[4:-4] for n in (1, 2)]
    flat = "".join(text.split()).replace("\\/", "/").replace("-", "+").replace("_", "/").casefold()
    return any(each.casefold().replace("-", "+").replace("_", "/") in flat for each in forms)


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_a_server_that_echoes_the_key_is_not_repeated(text):
    found = Scrub(Secret(KEY)).text(text)
    assert "[secret]" in found
    assert not holds_key(found)


@pytest.mark.parametrize("text", [v for k, v in FORMS.items() if "twice" not in k], ids=lambda v: v[:20])
def test_a_key_that_comes_in_two_reads_is_scrubbed_wherever_it_is_cut(text):
    scrub = Scrub(Secret(KEY))
    for cut in range(len(text)):
        stream = scrub.stream()
        shown = stream.feed("The key is " + text[:cut]) + stream.feed(text[cut:] + " and goes on") + stream.end()
        assert not holds_key(shown), (cut, shown)


def test_a_stream_without_the_key_comes_out_as_it_was():
    scrub = Scrub(Secret(KEY))
    stream = scrub.stream()
    assert "".join([*map(stream.feed, "ask sk- and sk-can"), stream.end()]) == "ask sk- and sk-can"


def test_without_a_credential_nothing_is_changed():
    assert Scrub(None).text(KEY) == Scrub(None).stream().feed(KEY) == KEY
