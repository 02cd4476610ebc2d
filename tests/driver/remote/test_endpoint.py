"""What may be spoken to at all: verified TLS, or in the clear to this machine, or where the operator says so."""

from __future__ import annotations

import pytest

from edgeagent.driver.remote.endpoint import Endpoint, check_endpoint
from edgeagent.errors import ConfigError


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "[::1]", "localhost", "127.0.0.1:8080"])
def test_in_the_clear_to_this_machine(host):
    endpoint = check_endpoint(Endpoint(url=f"http://{host}/v1", model="m"), "models.lan")
    assert endpoint.is_here


@pytest.mark.parametrize(
    "host",
    ["192.168.1.5", "example.com", "localhost.example.com", "127.0.0.1.example.com", "0.0.0.0", "[::]", "10.0.0.1"],
)
def test_nothing_in_the_clear_over_a_network(host):
    endpoint = Endpoint(url=f"http://{host}/v1", model="m")
    with pytest.raises(ConfigError, match=r"models\.lan\.plain_http"):
        check_endpoint(endpoint, "models.lan")
    assert not endpoint.is_here
    assert check_endpoint(Endpoint(url=endpoint.url, model="m", plain_http=True), "models.lan").plain_http


@pytest.mark.parametrize(
    "url",
    [
        "example.com/v1",
        "ftp://example.com/v1",
        "file:///etc/passwd",
        "https://",
        "https://user:pass@example.com/v1",
        "https://example.com/v1?key=1",
        "https://example.com/v1#x",
        "https://example.com:99999/v1",
        "https://[::1/v1",
    ],
)
def test_what_is_no_address_is_refused_by_its_key(url):
    with pytest.raises(ConfigError, match=r"models\.lan\.endpoint"):
        check_endpoint(Endpoint(url=url, model="m"), "models.lan")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ca", "/no/such/file.pem"),
        ("proxy", "http://user:pass@proxy:3128"),
        ("connect_s", 0.0),
        ("idle_s", float("nan")),
        ("first_event_s", float("inf")),
    ],
)
def test_a_setting_that_cannot_hold_is_named(field, value):
    with pytest.raises(ConfigError, match=rf"models\.lan\.{field}"):
        check_endpoint(Endpoint(url="https://example.com/v1", model="m", **{field: value}), "models.lan")


def test_the_operator_may_say_that_a_server_is_here_or_is_not():
    assert Endpoint(url="https://gateway.lan/v1", model="m", here=True).is_here
    assert not Endpoint(url="http://127.0.0.1/v1", model="m", here=False).is_here  # A tunnel to elsewhere.
    assert Endpoint(url="http://localhost/v1", model="m", socket="/run/model.sock").is_here
