"""The same API behind a certificate of one's own."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.edge.conftest import MakeServer
from tests.support.programs import need

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


def test_plain_http_gets_no_answer_there(make_server: MakeServer, certificate: Certificate) -> None:
    cert, key = certificate
    server = make_server(server={"tls_cert": str(cert), "tls_key": str(key), "port": 0})

    with pytest.raises(httpx.TransportError):
        httpx.get(server.url.replace("https", "http") + "/readyz", trust_env=False)
