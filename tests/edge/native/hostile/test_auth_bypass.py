"""Forged credentials, manipulated paths and unknown names, on every route."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.domain.access.api_key import Role
from penstock.edge.server.router import HttpRoute
from penstock.edge.sqs.api import SQS
from tests.edge.live import LiveServer
from tests.edge.native.conftest import new_key
from tests.edge.native.rights_table import all_routes
from tests.edge.raw import Raw, request

TRICKS = {
    "as it is": "{path}",
    "with two slashes": "/{path}",
    "with a dot": "/.{path}",
    "with a detour": "/healthz/..{path}",
    "with a detour in disguise": "/healthz/%2e%2e{path}",
    "as to a proxy": "http://localhost{path}",
    "with a slash at the end": "{path}/",
    "with a query that looks like a key": "{path}?key=admin&authorization=Bearer",
    "with a letter in disguise": "/%76{rest}",
    "with a parameter": "{path};healthz",
}
FOREIGN = [
    {"Host": "evil.example"},
    {"X-Forwarded-For": "127.0.0.1"},
    {"X-Forwarded-Host": "localhost"},
    {"X-Real-IP": "127.0.0.1"},
    {"X-Original-URL": "/healthz"},
    {"X-Rewrite-URL": "/healthz"},
    {"X-HTTP-Method-Override": "GET"},
    {"Forwarded": "for=127.0.0.1"},
    {"Cookie": "session=admin"},
    {"Origin": "http://evil.example"},
]


@pytest.fixture(scope="module")
def every_route(server_with_keys: LiveServer) -> list[HttpRoute]:
    """All routes except those of SQS, which requires a signature (tests/edge/sqs)."""
    return [route for route in all_routes(server_with_keys.broker) if route.name != SQS]


def path_of(route: HttpRoute) -> str:
    """The path, with names that do not exist."""
    path = route.path
    for name in ("queue", "id", "receipt", "key"):
        path = path.replace("{" + name + "}", f"no-such-{name}")
    return f"{path}?events=1" if path == "/v1/live" else path  # the stream would never end


@pytest.fixture(scope="module")
def credentials(server_with_keys: LiveServer) -> list[str]:
    """Credentials, all of them invalid."""
    real = new_key(server_with_keys)
    lost = server_with_keys.broker.keys.create("lost", roles=(Role.READ,)).result()
    server_with_keys.broker.keys.revoke(lost.key.key_id).result()
    server_with_keys.broker.refresh_keys()
    prefix, key_id, secret = real.split("_")
    return [
        "",
        "Bearer null",
        f"Bearer {prefix}_{key_id}_{'0' * len(secret)}",
        f"Bearer {prefix}_{'0' * len(key_id)}_{secret}",
        f"Bearer {prefix}_{key_id}",
        f"Bearer {lost.secret}",
        f"Basic {real}",
        real,
        f"Bearer {real} {real}",
        f"Bearer {real},",
        f"Bearer {server_with_keys.broker.keys.all().result()[0].secret_hash}",
    ]


@pytest.fixture
def wire(server_with_keys: LiveServer) -> Iterator[Raw]:
    with Raw(server_with_keys.port) as connection:
        yield connection


@pytest.mark.parametrize("trick", TRICKS)
def test_no_forged_credential_opens_any_route(
    every_route: list[HttpRoute], wire: Raw, credentials: list[str], trick: str
) -> None:
    for route in every_route:
        if route.role is None:
            continue
        path = path_of(route)
        crooked = TRICKS[trick].format(path=path, rest=path[2:])
        for credential in credentials:
            headers = {"Authorization": credential}
            answer = wire.ask(request(route.method, crooked, headers=headers))

            assert answer.status in (401, 404, 405), f"{route.method} {crooked} {credential}"
            if route.operation is not None:
                assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_no_other_header_opens_any_route(
    every_route: list[HttpRoute], wire: Raw, headers: dict[str, str]
) -> None:
    for route in every_route:
        if route.role is None:
            continue
        answer = wire.ask(request(route.method, path_of(route), headers=headers))

        assert answer.status in (401, 403), f"{route.method} {route.path}"


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_no_other_method_opens_any_route(
    every_route: list[HttpRoute], wire: Raw, method: str
) -> None:
    is_open = {(route.method, route.path) for route in every_route if route.role is None}
    for path in {path_of(route) for route in every_route}:
        is_read = method in ("GET", "HEAD", "OPTIONS")
        if (method, path) in is_open or (is_read and ("GET", path) in is_open):
            continue
        answer = wire.ask(request(method, path))

        assert answer.status in (401, 403, 404, 405) or method == "OPTIONS", f"{method} {path}"


def test_two_credentials_are_one_too_many(server_with_keys: LiveServer, wire: Raw) -> None:
    real = new_key(server_with_keys)
    twice = f"Authorization: Bearer x\r\nAuthorization: Bearer {real}\r\n"

    answer = wire.ask(f"GET /v1/stats HTTP/1.1\r\nHost: a\r\n{twice}\r\n".encode())

    assert answer.status == 400


def test_a_credential_behind_the_body_is_ignored(server_with_keys: LiveServer, wire: Raw) -> None:
    real = new_key(server_with_keys)
    head = {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}
    wire.send(request("PUT", "/v1/queues/smuggled", headers=head))

    wire.send(f"2\r\n{{}}\r\n0\r\nAuthorization: Bearer {real}\r\n\r\n".encode())

    assert wire.answer().status == 401
