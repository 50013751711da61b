"""The same API over TLS, with a self-signed certificate."""

from __future__ import annotations

import select
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.edge.conftest import MakeProcess, MakeServer
from tests.edge.raw import Raw
from tests.support.programs import need
from tests.support.waiting import eventually

Certificate = tuple[Path, Path]


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make = [need("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    make += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*make, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return cert, key


def test_with_a_certificate_the_server_speaks_https(
    make_server: MakeServer, certificate: Certificate
) -> None:
    cert, key = certificate
    server = make_server(server={"tls_cert": str(cert), "tls_key": str(key), "port": 0})
    trusted = ssl.create_default_context(cafile=str(cert))

    answer = httpx.get(f"{server.url}/readyz", verify=trusted, trust_env=False)

    assert server.url.startswith("https://")
    assert answer.json() == {"status": "ready"}


def test_several_processes_speak_https_on_one_port(
    make_process: MakeProcess, certificate: Certificate
) -> None:
    cert, key = certificate
    server = make_process(server_processes=2, server_tls_cert=cert, server_tls_key=key)
    trusted = ssl.create_default_context(cafile=str(cert))

    answers = [
        httpx.get(f"{server.url}/readyz", verify=trusted, trust_env=False).json() for _ in range(8)
    ]

    assert server.url.startswith("https://")
    assert answers == [{"status": "ready"}] * 8


def test_plain_http_gets_no_answer_there(make_server: MakeServer, certificate: Certificate) -> None:
    cert, key = certificate
    server = make_server(server={"tls_cert": str(cert), "tls_key": str(key), "port": 0})

    with pytest.raises(httpx.TransportError):
        httpx.get(server.url.replace("https", "http") + "/readyz", trust_env=False)


def test_connections_count_before_their_handshake(
    make_server: MakeServer, certificate: Certificate
) -> None:
    cert, key = certificate
    tls = {"tls_cert": str(cert), "tls_key": str(key), "port": 0}
    server = make_server(server={**tls, "max_connections": 3})
    trusted = ssl.create_default_context(cafile=str(cert))

    wires = [Raw(server.port) for _ in range(8)]

    eventually(lambda: len(select.select([wire.socket for wire in wires], [], [], 0)[0]) == 5)
    answer = httpx.get(f"{server.url}/readyz", verify=trusted, trust_env=False)
    assert answer.json() == {"status": "ready"}
    for wire in wires:
        wire.close()


def test_a_handshake_has_a_deadline(make_server: MakeServer, certificate: Certificate) -> None:
    cert, key = certificate
    tls = {"tls_cert": str(cert), "tls_key": str(key), "port": 0}
    server = make_server(server={**tls, "receive_timeout_ms": 1_000})

    with Raw(server.port) as silent, Raw(server.port) as slow:
        slow.send(b"\x16\x03\x01")  # the start of a handshake
        assert silent.is_closed()
        assert slow.is_closed()


def test_a_connection_counts_once_with_its_handshake(
    make_server: MakeServer, certificate: Certificate
) -> None:
    cert, key = certificate
    tls = {"tls_cert": str(cert), "tls_key": str(key), "port": 0}
    server = make_server(server={**tls, "max_connections": 1})
    trusted = ssl.create_default_context(cafile=str(cert))

    with httpx.Client(verify=trusted, trust_env=False) as client:
        answers = [client.get(f"{server.url}/readyz") for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200] * 3
