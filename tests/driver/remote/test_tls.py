"""A server is who its certificate says, by an authority that the operator trusts; nothing is sent to another one."""

from __future__ import annotations

import datetime
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.driver.remote.asking import SECOND, asking
from tests.driver.remote.peer import peer, saying


def certificate(folder, host: str):
    """A certificate of its own authority for a host, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    start = datetime.datetime(2020, 1, 1)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 77, start, datetime.datetime(2120, 1, 1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{host}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
    return file


@pytest.fixture
def served(tmp_path):
    """A server with TLS for localhost, its address and its certificate."""
    file = certificate(tmp_path, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with peer(saying("Dry."), tls=context) as served:
        yield served, served.url.replace("http://127.0.0.1", "https://localhost"), file


def test_a_server_whose_authority_the_operator_names_is_asked(served):
    _, url, file = served
    with asking(url, ca=str(file)) as asked:
        assert asked.event().text == "Dry."


def test_a_server_that_nobody_vouches_for_is_sent_nothing(served):
    peer_, url, _ = served
    with asking(url, driver=SECOND) as asked:
        event = asked.event()
    assert (event.reason, peer_.requests) == ("unavailable", [])
    assert "certificate" in event.message


def test_a_certificate_for_another_name_is_sent_nothing(served, tmp_path):
    peer_, url, file = served
    with asking(url.replace("localhost", "127.0.0.1"), ca=str(file), driver=SECOND) as asked:
        assert asked.event().reason == "unavailable"
    assert peer_.requests == []
