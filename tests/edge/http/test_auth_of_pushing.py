"""Keys: roles, and those that are for some queues only."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.access import Role
from penstock.domain.circuit import circuit_hash
from tests.edge.api import Api, assert_refused
from tests.edge.http.conftest import LetIn
from tests.edge.push.conftest import BREAKER, CIRCUITS, LOGGING, NOBODY, RULES, delivery_of, push

PATTERN = "/guarded/.*"
CLOSED = {"status": "closed"}


@pytest.fixture
def admin(let_in: LetIn) -> Api:
    admin = let_in()
    assert admin.call("PUT", RULES, {PATTERN: {"url": NOBODY}}).status_code == 200
    return admin


def test_a_key_opens_only_its_own_queues(admin: Api, let_in: LetIn) -> None:
    mailer = let_in(Role.PRODUCE, queues=("mail-*",))

    assert push(mailer, "/guarded/a", "mail-1").status_code == 202
    assert_refused(push(mailer, "/guarded/a", "bank-1"), 403, "forbidden")
    assert_refused(push(mailer, "/other", "bank-1"), 403, "forbidden")  # nor is anything told
    native = {"queue": "bank-1", "uri": "/guarded/a"}
    assert_refused(mailer.call("POST", "/v1/deliveries", native), 403, "forbidden")
    assert admin.call("GET", "/v1/queues/bank-1").status_code == 404


def test_the_key_itself_is_not_kept(admin: Api) -> None:
    answer = push(admin, "/guarded/a", "mail-2")

    delivery = delivery_of(admin.message(answer.headers["x-message-id"]))
    assert delivery.header("authorization") is None


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", RULES, None),
        ("PUT", RULES, {}),
        ("DELETE", RULES, None),
        ("GET", BREAKER, None),
        ("PUT", BREAKER, {}),
        ("DELETE", BREAKER, None),
        ("PUT", LOGGING, {}),
        ("PUT", f"{CIRCUITS}_all/status", CLOSED),
        ("PUT", f"{CIRCUITS}{'0' * 32}/status", CLOSED),
        ("PUT", "/v1/routes", {"rules": {}}),
        ("POST", "/v1/circuits/close", None),
        ("POST", f"/v1/circuits/{circuit_hash(PATTERN)}/close", None),
        ("POST", f"/v1/circuits/{circuit_hash(PATTERN)}/open", None),
        ("POST", "/v1/circuits/unhold", None),
        ("POST", f"/v1/circuits/{circuit_hash(PATTERN)}/unhold", None),
        ("PUT", f"/v1/circuits/{circuit_hash(PATTERN)}/settings", {}),
        ("PATCH", f"/v1/circuits/{circuit_hash(PATTERN)}/settings", {}),
        ("DELETE", f"/v1/circuits/{circuit_hash(PATTERN)}/settings", None),
        ("PATCH", "/v1/breaker", {}),
        ("DELETE", "/v1/breaker", None),
    ],
)
def test_what_concerns_all_queues_is_not_for_a_key_that_is_for_some(
    admin: Api,
    let_in: LetIn,
    method: str,
    path: str,
    body: Any,
) -> None:
    for client in (let_in(queues=("mail-*",)), let_in(Role.READ, Role.PRODUCE, Role.CONSUME)):
        assert_refused(client.call(method, path, body), 403, "forbidden")

    assert list(admin.get(RULES)) == [PATTERN]


def test_whoever_reads_sees_circuits_and_routes_but_no_secrets(
    admin: Api,
    let_in: LetIn,
) -> None:
    rule = {
        "url": NOBODY,
        "headers": {"x-token": "s3cret"},
        "basicAuth": {"username": "u", "password": "s3cret"},
        "signingSecret": "whsec_" + "czNjcmV0" * 4,
    }
    assert admin.call("PUT", RULES, {PATTERN: rule}).status_code == 200
    reader = let_in(Role.READ, queues=("mail-*",))

    answer = reader.call("GET", "/v1/routes")

    [route] = answer.json()["routes"]
    assert (route["is_signed"], set(route["header_names"])) == (True, {"x-token", "Authorization"})
    assert "s3cret" not in answer.text
    assert "czNjcmV0" not in answer.text
    own = f"/v1/circuits/{circuit_hash(PATTERN)}/settings"
    for path in ("/v1/circuits", "/v1/breaker", "/v1/circuits/settings", own, CIRCUITS):
        assert reader.call("GET", path).status_code == 200


def test_a_queue_is_unheld_by_whoever_operates_it(admin: Api, let_in: LetIn) -> None:
    name = admin.make_queue("mail")
    theirs = let_in(Role.OPERATE, queues=("mail-*",))

    assert theirs.call("POST", f"/v1/queues/{name}/unhold").status_code == 200
    for client in (let_in(Role.OPERATE, queues=("bank-*",)), let_in(Role.READ, Role.CONSUME)):
        assert_refused(client.call("POST", f"/v1/queues/{name}/unhold"), 403, "forbidden")


def test_circuits_of_jobs_are_for_those_who_claim(let_in: LetIn) -> None:
    permits, outcomes = "/v1/circuits/permits", "/v1/circuits/outcomes"
    asked = {"routes": ["stripe"]}
    outcome = {"outcomes": [{"route": "stripe", "id": "1", "outcome": "success"}]}
    worker, other = let_in(Role.CONSUME, queues=("mail-*",)), let_in(Role.PRODUCE, Role.READ)

    assert worker.call("POST", permits, asked).status_code == 200
    assert worker.call("POST", outcomes, outcome).status_code == 204
    assert_refused(other.call("POST", permits, asked), 403, "forbidden")
    assert_refused(other.call("POST", outcomes, outcome), 403, "forbidden")
