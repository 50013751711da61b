"""Access to deliveries, routes and circuits: roles, and keys for some queues."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.access.api_key import Role
from penstock.domain.circuit.circuit import circuit_hash
from penstock.services.circuits import transitions
from tests.edge.api import Api, assert_refused, ok
from tests.edge.gateleen.conftest import (
    BREAKER,
    CIRCUITS,
    LOGGING,
    RULES,
    UNREACHABLE,
    delivery_of,
    push,
)
from tests.edge.live import LiveServer
from tests.edge.native.conftest import LetIn

PATTERN = "/guarded/.*"
CLOSED = {"status": "closed"}


@pytest.fixture
def admin(let_in: LetIn) -> Api:
    admin = let_in()
    assert admin.call("PUT", RULES, {PATTERN: {"url": UNREACHABLE}}).status_code == 200
    return admin


def test_a_key_opens_only_its_own_queues(admin: Api, let_in: LetIn) -> None:
    mailer = let_in(Role.PRODUCE, queues=("mail-*",))

    assert push(mailer, "/guarded/a", "mail-first").status_code == 202
    assert_refused(push(mailer, "/guarded/a", "bank-1"), 403, "forbidden")
    assert_refused(push(mailer, "/other", "bank-1"), 403, "forbidden")  # and nothing is revealed
    native = {"queue": "bank-1", "uri": "/guarded/a"}
    assert_refused(mailer.call("POST", "/v1/deliveries", native), 403, "forbidden")
    assert admin.call("GET", "/v1/queues/bank-1").status_code == 404


def test_the_key_itself_is_not_kept(admin: Api) -> None:
    answer = push(admin, "/guarded/a", "pushed-only")

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
def test_a_key_for_some_queues_cannot_change_what_concerns_all_queues(
    admin: Api,
    let_in: LetIn,
    method: str,
    path: str,
    body: Any,
) -> None:
    for client in (let_in(queues=("mail-*",)), let_in(Role.READ, Role.PRODUCE, Role.CONSUME)):
        assert_refused(client.call(method, path, body), 403, "forbidden")

    assert list(admin.get(RULES)) == [PATTERN]


def test_a_reader_sees_circuits_and_routes_but_no_secrets(
    admin: Api,
    let_in: LetIn,
) -> None:
    rule = {
        "url": UNREACHABLE,
        "headers": {"x-token": "s3cret"},
        "basicAuth": {"username": "u", "password": "s3cret"},
        "signingSecret": "whsec_" + "czNjcmV0" * 4,
    }
    assert admin.call("PUT", RULES, {PATTERN: rule}).status_code == 200
    reader = let_in(Role.READ)

    answer = reader.call("GET", "/v1/routes")

    [route] = answer.json()["routes"]
    assert (route["is_signed"], set(route["header_names"])) == (True, {"x-token", "Authorization"})
    assert "s3cret" not in answer.text
    assert "czNjcmV0" not in answer.text
    own = f"/v1/circuits/{circuit_hash(PATTERN)}/settings"
    limited = let_in(Role.READ, queues=("mail-*",))
    for path in ("/v1/routes", "/v1/breaker", "/v1/circuits/settings", own, CIRCUITS):
        assert reader.call("GET", path).status_code == 200
        assert_refused(limited.call("GET", path), 403, "forbidden")


def test_a_queue_is_unheld_with_the_role_operate_for_it(admin: Api, let_in: LetIn) -> None:
    name = admin.make_queue("mail")
    theirs = let_in(Role.OPERATE, queues=("mail-*",))

    assert theirs.call("POST", f"/v1/queues/{name}/unhold").status_code == 200
    for client in (let_in(Role.OPERATE, queues=("bank-*",)), let_in(Role.READ, Role.CONSUME)):
        assert_refused(client.call("POST", f"/v1/queues/{name}/unhold"), 403, "forbidden")


def test_a_limited_key_sees_the_circuits_that_hold_its_queues(
    admin: Api, let_in: LetIn, server_with_keys: LiveServer
) -> None:
    ours, theirs = admin.make_queue("mail"), admin.make_queue("bank")
    one = circuit_hash(PATTERN)
    ok(admin.call("POST", f"/v1/circuits/{one}/open"))
    hold(server_with_keys, one, ours, theirs)
    mailer = let_in(Role.READ, queues=("mail-*",))
    stranger = let_in(Role.READ, queues=("shop-*",))

    [seen] = mailer.get("/v1/circuits")["circuits"]
    assert (seen["hash"], seen["state"], seen["held"]) == (one, "open", 1)
    assert mailer.get(f"/v1/circuits/{one}")["held_queues"] == [ours]
    assert mailer.call("GET", f"/v1/circuits/{one}/samples").status_code == 200

    assert stranger.get("/v1/circuits") == {"circuits": [], "held": 0, "awaiting_unhold": 0}
    assert stranger.get("/v1/circuits", route=PATTERN)["circuits"] == []
    for path in (f"/v1/circuits/{one}", f"/v1/circuits/{one}/samples"):
        assert_refused(stranger.call("GET", path), 404, "circuit_not_found")
    assert set(admin.get(f"/v1/circuits/{one}")["held_queues"]) == {ours, theirs}
    ok(admin.call("POST", f"/v1/circuits/{one}/close"))


def hold(server: LiveServer, circuit: str, *queues: str) -> None:
    def do(session: Any) -> None:
        numbers = [session.queues.find(queue).queue_no for queue in queues]
        session.circuits.lock({circuit: PATTERN})
        transitions.hold(session, {circuit: numbers}, now=1)

    server.broker.store.write(do).result()


def test_figures_of_a_limited_key_are_of_its_own_queues(admin: Api, let_in: LetIn) -> None:
    ours, theirs = admin.make_queue("figures-mail"), admin.make_queue("figures-bank")
    admin.send(ours)
    admin.send_many(theirs, range(5))
    mailer = let_in(Role.READ, queues=("figures-mail*",))

    stats = mailer.get("/v1/stats")
    metrics = mailer.call("GET", "/metrics").text

    assert (stats["queues"], stats["counts"]["ready"], stats["totals"]["sent"]) == (1, 1, 1)
    assert stats["waiting_claims"] == 0
    assert ours in metrics
    assert theirs not in metrics
    assert "penstock_circuit" not in metrics
    assert "penstock_deliveries" not in metrics
