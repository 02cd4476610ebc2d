"""Servers behind HTTP: found, greeted, called as over a pipe; those that mean harm or are broken do none."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("pycurl", reason="pycurl is missing, so servers over HTTP were NOT tried: pip install pycurl")

from edgeagent.core.events import ToolFailed, ToolReturned
from edgeagent.driver.mcp import web
from edgeagent.driver.mcp.server import Server
from edgeagent.driver.mcp.settings import ServerSettings, check_server
from edgeagent.driver.unknown import CommandFailed, EffectUnknown
from edgeagent.errors import ConfigError, DriverUnavailable
from tests.driver.mcp.conftest import a_call
from tests.driver.mcp.odd_web import OddWeb

LOOK = a_call("odd_look_up", text="tide")
KEY = "sk-canary-4711-abcdef"


@pytest.fixture
def odd():
    """A server that behaves as it is told, and its approved client."""
    with contextlib.ExitStack() as stack:
        made = []

        def make(behaviour, elsewhere="", **settings):
            running = stack.enter_context(OddWeb(behaviour, elsewhere))
            asked = msgspec.convert({"url": running.url, "allow": ["*"], "timeout_s": 30.0} | settings, ServerSettings)
            with contextlib.closing(Server("odd", asked, {})) as first:
                approved = {each.name: each.digest for each in first.offer()}
            running.seen.clear()
            made.append(Server("odd", asked, approved))
            stack.callback(made[-1].close)
            return running, made[-1]

        yield make


def look(server, text="tide"):
    return server.call("look_up", {"text": text})


def test_it_is_called_as_a_program_is(odd):
    running, server = odd("obeys")
    assert (look(server), look(server, "ebb")) == ("tide is a word", "ebb is a word")
    assert running.calls == ["tide", "ebb"]
    assert server.about() == f"odd 1, protocol 2025-11-25, at {running.url.removesuffix('/mcp')}"


def test_session_and_version_are_in_each_request_after_the_greeting_and_the_end_is_told(odd):
    running, server = odd("obeys")
    look(server)
    server.close()
    first, *others = [headers for _, headers, message in running.seen if message.get("method") != "server/discover"]
    assert "Mcp-Session-Id" not in first
    assert {(each["Mcp-Session-Id"], each["MCP-Protocol-Version"]) for each in others} == {("s-2", "2025-11-25")}
    assert len(running.of("DELETE")) == 1


def test_one_that_knows_no_session_is_told_all_in_each_request(odd):
    running, server = odd("stands alone")
    assert look(server) == "tide is a word"
    assert server.about().startswith("odd 2, protocol 2026-07-28")
    server.close()
    assert {verb for verb, _, _ in running.seen} == {"POST"}
    for _, headers, message in running.seen:
        assert headers["MCP-Protocol-Version"] == "2026-07-28"
        assert headers["Mcp-Method"] == message["method"]
        assert message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert {headers["Mcp-Name"] for headers in running.of("tools/call")} == {"look_up"}


def test_one_that_could_not_say_that_its_tools_have_changed_is_asked_before_each_call(odd):
    running, server = odd("stands alone")
    look(server)
    running.about = "Looks a word up, and sends it on."
    with pytest.raises(DriverUnavailable, match="declares it otherwise than it was approved"):
        look(server, "ebb")
    assert running.calls == ["tide"]


def test_an_argument_is_told_in_a_header_where_the_tool_wants_it(odd):
    running, server = odd("stands alone with headers")
    assert [each.name for each in server.offer()] == ["look_up", "look_marked"]
    server.call("look_marked", {"text": "flut-höhe", "deep": True})
    server.call("look_marked", {"text": ""})
    first, second = running.of("tools/call")
    assert (first["Mcp-Param-Word"], first["Mcp-Param-Deep"]) == ("=?base64?Zmx1dC1ow7ZoZQ==?=", "true")
    assert (second["Mcp-Param-Word"], "Mcp-Param-Deep" in second) == ("", False)


def test_a_question_in_the_place_of_an_answer_is_declined(odd):
    _, server = odd("stands alone and asks")
    assert look(server) == {"inputResponses": {"who": {"action": "decline"}}, "requestState": "7"}
    assert any("asked the user for something" in note for note in server.take_notes())


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("stands alone and asks without end", "answered 8 times with a question"),
        ("stands alone and wants a model", "it wants sampling/createMessage before it answers, which is not allowed"),
    ],
)
def test_what_is_wanted_without_end_or_against_the_rules_ends_the_call(odd, behaviour, why):
    _, server = odd(behaviour)
    with pytest.raises(CommandFailed, match=why):
        look(server)


@pytest.mark.parametrize("behaviour", ["answers in events", "answers in events and lingers"])
def test_an_answer_may_come_as_events(odd, behaviour):
    _, server = odd(behaviour)
    assert look(server) == "tide is a word"


def test_an_answer_whose_stream_breaks_is_gone_on_with_where_the_server_names_the_place(odd):
    running, server = odd("cuts streams")
    assert look(server) == "the rest"
    assert running.calls == ["tide"]


def test_a_stream_that_always_breaks_ends_as_unknown(odd, monkeypatch):
    monkeypatch.setattr(web, "RESUMED_MAX", 3)
    running, server = odd("cuts streams for ever")
    with pytest.raises(EffectUnknown, match="the rest of its answer did not come"):
        look(server)
    assert (running.calls, len([each for each in running.of("GET") if "Last-Event-ID" in each])) == (["tide"], 3)


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("cuts without a place", "ended before its end"),
        ("dies", "did not answer"),
        ("is broken", 'HTTP 500: {"oh": "dear"}'),
        ("answers 50 MB", "longer than 4194304 bytes|more than 8 MB"),
        ("answers 50 MB in events", "too long"),
        ("takes it and says nothing", "ended before its end"),
        ("answers a page", "ended before its end"),
        ("floods", "wrote without end"),
    ],
)
def test_a_call_whose_answer_does_not_come_is_unknown_and_not_made_again(odd, behaviour, why):
    running, server = odd(behaviour)
    with pytest.raises(EffectUnknown, match=why):
        look(server)
    with pytest.raises(EffectUnknown, match="not sent again"):
        look(server)
    assert running.calls == ["tide"]


def test_a_server_that_never_answers_is_given_up_and_told_so(odd):
    running, server = odd("never answers", timeout_s=0.5)
    with pytest.raises(EffectUnknown, match=r"did not answer within 0\.5 s"):
        look(server)
    until = time.monotonic() + 60
    while not running.of("notifications/cancelled") and time.monotonic() < until:
        time.sleep(0.01)
    assert running.of("notifications/cancelled")


@pytest.mark.parametrize("behaviour", ["forgets", "forgets in other words"])
def test_a_server_that_has_forgotten_the_session_is_greeted_anew_and_called_once(odd, behaviour):
    running, server = odd(behaviour)
    running.sessions = 0
    assert look(server) == "tide is a word"
    assert (running.calls, len(running.of("initialize"))) == (["tide"], 2)


def test_nothing_is_sent_after_a_redirection(odd):
    with OddWeb("obeys") as elsewhere:
        _, server = odd("redirects", elsewhere.url)
        with pytest.raises(DriverUnavailable, match="it redirects elsewhere, and nothing is sent there"):
            look(server)
        assert elsewhere.seen == []


def test_a_server_that_wants_a_key_is_said_to(odd):
    _, server = odd("wants a key")
    with pytest.raises(DriverUnavailable, match="HTTP 401; which key it wants is said with `credential`"):
        look(server)


def test_a_refusal_is_one_though_its_status_is_none_of_success(odd):
    _, server = odd("refuses")
    with pytest.raises(CommandFailed, match="not that word"):
        look(server)


def test_an_answer_counts_for_its_own_request_alone(odd):
    _, server = odd("claims another id")
    assert look(server) == "the truth"
    assert any("what nobody had asked" in note for note in server.take_notes())


def test_a_name_of_a_session_that_fits_no_header_is_none(odd):
    running, server = odd("names it oddly")
    assert look(server) == "tide is a word"
    assert all("Mcp-Session-Id" not in headers for _, headers, _ in running.seen)


def test_what_it_asks_of_the_user_in_a_call_is_declined(odd):
    _, server = odd("asks the user")
    assert look(server) == "decline"


def test_what_has_changed_is_told_by_itself_and_looked_at_before_the_next_call(odd):
    running, server = odd("says it has changed")
    look(server)
    assert running.listens.wait(60)
    running.about = "Looks a word up, and sends it on."
    running.changed.set()
    until = time.monotonic() + 60
    while not server._connection.has_changed and time.monotonic() < until:
        time.sleep(0.01)
    with pytest.raises(DriverUnavailable, match="declares it otherwise than it was approved"):
        look(server, "ebb")
    assert running.calls == ["tide"]


def test_a_server_that_speaks_without_end_is_ended(odd):
    running, server = odd("speaks without end")
    look(server)
    connection = server._connection
    running.changed.set()
    until = time.monotonic() + 60
    while connection.why_lost is None and time.monotonic() < until:
        time.sleep(0.01)
    assert connection.why_lost == "it wrote without end, and was ended"


def test_a_key_that_is_sent_back_goes_no_further(odd, tmp_path):
    file = tmp_path / "key"
    file.write_text(KEY)
    file.chmod(0o600)
    running, server = odd("sends the key back", credential=f"file:{file}")
    assert look(server) == "your key is [secret], or [secret]"
    assert {headers["Authorization"] for _, headers, _ in running.seen} == {f"Bearer {KEY}"}


def test_nobody_there_is_said_with_the_address():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # Bound and not listening: nobody else gets it meanwhile.
        url = f"http://127.0.0.1:{held.getsockname()[1]}/mcp"
        server = Server("odd", ServerSettings(url=url, allow=("*",)), {})
        with (
            contextlib.closing(server),
            pytest.raises(DriverUnavailable, match=r"odd does not start: http.* not reached"),
        ):
            server.offer()


def test_a_session_with_one_is_recorded_and_folded_again_without_it(case):
    with OddWeb("obeys") as running:
        one = case("obeys", url=running.url)
        assert one.approve() == 1
        events = one.run(LOOK, "A word.")
    assert [event.value for event in events if isinstance(event, ToolReturned)] == ['"tide is a word"']
    assert (one.door.said, running.calls) == (["A word."], ["tide"])


def test_the_session_goes_on_after_one_has_failed(case):
    with OddWeb("dies") as running:
        one = case("dies", url=running.url)
        one.approve()
        events = one.run(LOOK, "It is not known.", "Hello.", words=("Look it up.", "Are you there?"))
    assert ["unknown" in event.message for event in events if isinstance(event, ToolFailed)] == [True]
    assert one.door.said == ["It is not known.", "Hello."]


def test_another_address_is_another_server_that_nobody_has_approved(case):
    with OddWeb("obeys") as running, OddWeb("obeys") as other:
        one = case("obeys", url=running.url)
        one.approve()
        one.settings["url"] = other.url
        one.write_settings()
        with pytest.raises(ConfigError, match="nobody has approved"):
            one.open("Hello.")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (
            {"url": "http://192.0.2.1/mcp"},
            r"mcp\.odd\.url: 192\.0\.2\.1 is not this machine.*mcp\.odd\.plain_http = true",
        ),
        ({"url": "ftp://host/mcp"}, r"mcp\.odd\.url is no address; write it as https://host/mcp"),
        ({"url": "https://host/mcp?key=1"}, r"mcp\.odd\.url: a user, a query"),
        ({"url": "https://host/mcp", "command": ("x",)}, r"mcp\.odd\.command has no place here"),
        ({"url": "https://host/mcp", "environment": ("X",)}, r"mcp\.odd\.environment has no place here"),
        ({"url": "https://host/mcp", "credential": "sk-123"}, r"mcp\.odd\.credential"),
        ({"command": ("x",), "credential": "env:KEY"}, r"mcp\.odd\.credential has no place here"),
        ({}, r'mcp\.odd\.command is missing.*url = "https://host/mcp"'),
    ],
)
def test_settings_that_fit_no_server_are_refused_by_their_key(settings, why):
    with pytest.raises(ConfigError, match=why):
        check_server("odd", ServerSettings(allow=("*",), **settings), "mcp.odd")


@pytest.mark.parametrize("way", ["events", "json", "stateless"])
def test_the_protocols_own_sdk_is_a_server_to_us(tmp_path, way):
    pytest.importorskip("mcp.server", reason="the MCP SDK is missing, so it was NOT tried: pip install mcp")
    port, calls = tmp_path / "port", tmp_path / "calls"
    command = [sys.executable, str(Path(__file__).with_name("sdk_web.py")), str(port), str(calls), way]
    with subprocess.Popen(command) as process:
        try:
            until = time.monotonic() + 60
            while not port.exists() and time.monotonic() < until:
                time.sleep(0.02)
            settings = ServerSettings(url=f"http://127.0.0.1:{port.read_text()}/mcp", allow=("*",))
            with contextlib.closing(Server("sdk", settings, {})) as first:
                approved = {each.name: each.digest for each in first.offer()}
            with contextlib.closing(Server("sdk", settings, approved)) as server:
                assert server.call("look_up", {"text": "tide"}) == {"result": "tide is a word"}
                assert server.call("look_long", {"text": "tide"}) == {"result": "tide is a long word"}
        finally:
            process.terminate()
    assert calls.read_text() == "look_up tide\n"
