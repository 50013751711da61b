"""Which callers are admitted, and for how long; roles are in test_rights.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.domain.access.api_key import Role
from penstock.domain.errors import InvalidRequest
from penstock.wiring.broker import open_broker
from tests.edge.api import Api, assert_refused
from tests.edge.conftest import MakeServer, some_settings
from tests.edge.live import LiveServer
from tests.edge.native.conftest import new_key
from tests.edge.raw import Raw, request
from tests.support.waiting import eventually

REVOKED_WITHIN_S = 15.0  # keys are read once a second, or later on a busy machine


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Bearer pk_",
        "Bearer pk__",
        "Bearer pk_0000000000_",
        "Bearer " + "pk_" * 50,
        "Bearer pk_" + "0" * 10 + "_" + "0" * 40,
        "Basic cGs6cGs=",
        "bearer\tx",
        "Bearer \xe9",
    ],
)
def test_a_wrong_key_is_rejected(server_with_keys: LiveServer, header: str) -> None:
    with Raw(server_with_keys.port) as wire:
        answer = wire.ask(request("GET", "/v1/stats", headers={"Authorization": header}))

    assert (answer.status, b"unauthenticated" in answer.body) == (401, True)


def test_every_character_of_a_key_counts(server_with_keys: LiveServer) -> None:
    key = new_key(server_with_keys)
    for wrong in (key[:-1], key + "0", key[:-1] + ("0" if key[-1] != "0" else "1"), key.upper()):
        refused = Api(server_with_keys.url, key=wrong).call("GET", "/v1/stats")

        assert_refused(refused, 401, "unauthenticated")
    assert Api(server_with_keys.url, key=key).call("GET", "/v1/stats").status_code == 200


def test_a_key_is_taken_from_the_header_only(server_with_keys: LiveServer) -> None:
    key = new_key(server_with_keys)

    for query in (f"key={key}", f"api_key={key}", f"access_token={key}"):
        refused = Api(server_with_keys.url).call("GET", f"/v1/queues?{query}")

        assert refused.status_code == 401


def test_a_revoked_key_opens_nothing_after_a_second_or_so(make_server: MakeServer) -> None:
    server = make_server()
    keys = server.broker.keys
    kept, lost = new_key(server), keys.create("lost", roles=tuple(Role)).result()
    server.broker.refresh_keys()
    holder, loser = Api(server.url, key=kept), Api(server.url, key=lost.secret)
    assert loser.call("GET", "/v1/stats").status_code == 200

    keys.revoke(lost.key.key_id).result()

    eventually(lambda: loser.call("GET", "/v1/stats").status_code == 401, within_s=REVOKED_WITHIN_S)
    assert holder.call("GET", "/v1/stats").status_code == 200


def test_a_new_key_is_accepted_within_seconds(make_server: MakeServer) -> None:
    server = make_server()
    made = server.broker.keys.create("new", roles=tuple(Role)).result()

    # The first key also locks out callers without one.
    stranger, holder = Api(server.url), Api(server.url, key=made.secret)
    eventually(
        lambda: stranger.call("GET", "/v1/stats").status_code == 401, within_s=REVOKED_WITHIN_S
    )
    assert holder.call("GET", "/v1/stats").status_code == 200


def test_revoking_the_last_key_does_not_open_the_server(
    make_server: MakeServer,
) -> None:
    server = make_server()
    keys = server.broker.keys
    made = keys.create("last", roles=tuple(Role)).result()
    keys.revoke(made.key.key_id).result()
    server.broker.refresh_keys()

    assert_refused(Api(server.url).call("GET", "/v1/stats"), 401, "unauthenticated")


def test_keys_can_be_demanded_before_there_are_any(make_server: MakeServer) -> None:
    server = make_server(auth={"required": "always"})

    assert_refused(Api(server.url).call("GET", "/v1/stats"), 401, "unauthenticated")


def test_keys_can_be_done_without_although_there_are_some(make_server: MakeServer) -> None:
    server = make_server(auth={"required": "never"})
    new_key(server, Role.READ)

    assert Api(server.url).make_queue()


def test_an_address_that_others_can_reach_is_not_served_without_keys(tmp_path: Path) -> None:
    broker = open_broker(some_settings(tmp_path, server={"host": "0.0.0.0"}))
    try:
        with pytest.raises(InvalidRequest, match="create a key first"):
            broker.refuse_public_without_keys()

        broker.keys.create("first", roles=tuple(Role)).result()
        broker.refresh_keys()
        broker.refuse_public_without_keys()
    finally:
        broker.close()
