"""Both proxies pass requests, waiting claims and live updates to a server, over TLS."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.deploy.tools import DEPLOY, program, run
from tests.edge.process import ServerProcess
from tests.support.private_servers import free_port
from tests.support.waiting import eventually

HOST = "penstock.example.org"


class Answer(NamedTuple):
    status: int
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class Call:
    def __init__(self, port: int, certificate: Path, key: str) -> None:
        self._port = port
        self._context = ssl.create_default_context(cafile=str(certificate / "fullchain.pem"))
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def __call__(self, method: str, path: str, document: object = None) -> Answer:
        body = None if document is None else json.dumps(document)
        return self._send(method, path, body, self.headers)

    def without_key(self, method: str, path: str) -> Answer:
        return self._send(method, path, None, {})

    def connect(self) -> ProxiedConnection:
        return ProxiedConnection(HOST, self._port, context=self._context, timeout=60)

    def is_answered(self) -> bool:
        """Also with the key, which servers know within a second of its creation."""
        try:
            return self("GET", "/v1/stats").status == 200
        except OSError:
            return False

    def _send(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> Answer:
        connection = self.connect()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return Answer(response.status, response.read())
        finally:
            connection.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificate")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    place = ["-keyout", f"{folder}/privkey.pem", "-out", f"{folder}/fullchain.pem"]
    name = ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"]
    run(program("openssl"), "req", "-x509", *key, *place, *name)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """As behind a proxy: it knows keys, so it serves any host name."""
    data = tmp_path_factory.mktemp("server") / "data"
    with ServerProcess(data, {"auth_required": "always"}) as server:
        yield server


@pytest.fixture(scope="module")
def key(server: ServerProcess) -> str:
    roles = [word for role in ("operate", "produce", "consume") for word in ("--role", role)]
    penstock = [sys.executable, "-m", "penstock"]
    made = run(
        *penstock, "keys", "create", "--name", "proxy", *roles, "--data", server.data, "--json"
    )
    return str(json.loads(made)["secret"])


@pytest.fixture(scope="module", params=["caddy", "nginx"])
def call(
    request: pytest.FixtureRequest,
    server: ServerProcess,
    key: str,
    certificate: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Call]:
    """Send a request through a proxy in front of the server."""
    start = {"caddy": start_caddy, "nginx": start_nginx}[request.param]
    port = free_port()
    proxy = start(port, server.port, certificate, tmp_path_factory.mktemp("proxy"))
    call = Call(port, certificate, key)
    try:
        eventually(call.is_answered)
        yield call
    finally:
        proxy.terminate()
        proxy.wait()


def test_the_proxy_passes_requests_with_their_key(call: Call) -> None:
    assert call("PUT", "/v1/queues/mail", {}).status in (200, 201)
    assert call("GET", "/v1/queues/mail").status == 200
    assert call.without_key("GET", "/v1/queues/mail").status == 401


def test_a_waiting_claim_gets_its_message_through_the_proxy(call: Call) -> None:
    call("PUT", "/v1/queues/wait", {})

    with ThreadPoolExecutor(1) as thread:
        claim = thread.submit(call, "POST", "/v1/queues/wait/claims", {"wait_ms": 20_000})
        call("POST", "/v1/queues/wait/messages", {"body": {"n": 1}})
        [message] = claim.result().document["messages"]

    assert message["body"] == {"n": 1}


def test_live_updates_arrive_before_the_response_ends(call: Call) -> None:
    connection = call.connect()
    connection.request("GET", "/v1/live", headers=call.headers)

    line = connection.getresponse().readline()
    connection.close()

    assert line == b"event: live\n"


def test_a_large_batch_passes_the_proxy(call: Call) -> None:
    call("PUT", "/v1/queues/large", {})
    messages = [{"body": "x" * 900_000} for _ in range(10)]

    answer = call("POST", "/v1/queues/large/messages/batch", {"messages": messages})

    assert answer.status in (200, 201)


def start_caddy(port: int, server: int, certificate: Path, folder: Path) -> subprocess.Popen[bytes]:
    text = (DEPLOY / "proxies" / "Caddyfile").read_text(encoding="utf-8")
    tls = f"tls {certificate}/fullchain.pem {certificate}/privkey.pem"
    text = text.replace(f"{HOST} {{", f"{HOST}:{port} {{\n\tbind 127.0.0.1\n\t{tls}")
    text = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + text
    path = folder / "Caddyfile"
    path.write_text(text.replace("127.0.0.1:7654", f"127.0.0.1:{server}"))
    environment = {"HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    command = [program("caddy"), "run", "--config", str(path), "--adapter", "caddyfile"]
    return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)


def start_nginx(port: int, server: int, certificate: Path, folder: Path) -> subprocess.Popen[bytes]:
    text = (DEPLOY / "proxies" / "nginx.conf").read_text(encoding="utf-8")
    text = text.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
    text = text.replace("127.0.0.1:7654", f"127.0.0.1:{server}")
    text = text.replace("/etc/ssl/penstock", str(certificate))
    places = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "\n".join(f"{name}_temp_path {folder}/{name};" for name in places)
    main = f"pid {folder}/nginx.pid;\nerror_log {folder}/error.log;\ndaemon off;\n"
    main += f"events {{}}\nhttp {{\naccess_log off;\n{temporary}\n{text}\n}}\n"
    path = folder / "nginx.conf"
    path.write_text(main)
    path.chmod(0o644)
    nginx = program("nginx", "nginx-light")
    return subprocess.Popen([nginx, "-e", f"{folder}/error.log", "-c", str(path)])


class ProxiedConnection(HTTPSConnection):
    """To the proxy on this machine under its public name, which its certificate must have."""

    def connect(self) -> None:
        self.sock = self._context.wrap_socket(  # type: ignore[attr-defined]
            socket.create_connection(("127.0.0.1", self.port), self.timeout), server_hostname=HOST
        )
