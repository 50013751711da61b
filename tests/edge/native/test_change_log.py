"""Changes leave facts: who, from where, what, before and after.  And keys over HTTP."""

from __future__ import annotations

import base64
from contextlib import closing
from typing import Any

import pytest

from penstock.domain.access.api_key import Role
from tests.clocks import ManualClock
from tests.edge.api import Api, a_name, assert_refused, ok
from tests.edge.live import LiveServer
from tests.edge.native.conftest import LetIn
from tests.support.waiting import eventually


def changes(api: Api, subject: str) -> list[dict[str, Any]]:
    """The latest first."""
    query = {"kind": "changed_by_caller", "subject": subject}
    return [fact["data"] for fact in api.get("/v1/facts", **query)["facts"]]


@pytest.mark.both_stores
def test_a_change_of_a_queue_leaves_a_fact_with_its_settings_before_and_after(
    let_in: LetIn, clock: ManualClock
) -> None:
    api = let_in(Role.OPERATE)
    name = a_name("logged")

    def change(method: str, path: str, body: Any = None) -> dict[str, Any]:
        clock.advance(ms=1)
        ok(api.call(method, f"/v1/queues/{name}{path}", body))
        return changes(api, name)[0]

    created = change("PUT", "", {"max_attempts": 3})
    assert created["operation"] == "putQueue"
    assert created["from"] == "127.0.0.1"
    assert created["key"] == str(api.http.headers["Authorization"]).split("_")[1]
    assert created["after"]["max_attempts"] == 3

    patched = change("PATCH", "", {"lease_ms": 5_000, "labels": {"a": "b"}})
    assert patched["before"] == {"lease_ms": 30_000, "labels": {}}
    assert patched["after"] == {"lease_ms": 5_000, "labels": {"a": "b"}}
    assert change("POST", "/pause")["after"] == {"is_paused": True}
    many = len(changes(api, name))
    change("PATCH", "", {"lease_ms": 5_000})
    assert len(changes(api, name)) == many, "nothing has changed"


def test_replaced_secrets_leave_a_fact_that_does_not_contain_them(
    api: Api, clock: ManualClock
) -> None:
    topic = a_name("topic")

    def put(path: str, body: Any, subject: str) -> list[dict[str, Any]]:
        clock.advance(ms=1)
        ok(api.call("PUT", path, body))
        return changes(api, subject)

    def endpoint(secret: bytes, authorization: str) -> list[dict[str, Any]]:
        signing = "whsec_" + base64.b64encode(secret * 24).decode()
        headers = {"authorization": authorization}
        wanted = {"url": "http://127.0.0.1:9/", "signing_secrets": [signing], "headers": headers}
        return put(f"/v1/topics/{topic}/subscriptions/hook", {"endpoint": wanted}, topic)

    def route(authorization: str) -> list[dict[str, Any]]:
        headers = [{"header": "authorization", "value": authorization}]
        rules = {f"/{topic}": {"url": "http://127.0.0.1:9/", "headers": headers}}
        return put("/v1/routes", {"rules": rules}, "/v1/routes")

    [created] = endpoint(b"a", "hush one")
    assert "replaced" not in created
    assert len(endpoint(b"a", "hush one")) == 1, "nothing has changed"
    assert endpoint(b"b", "hush one")[0]["replaced"] == ["signing_secrets"]
    assert endpoint(b"b", "hush two")[0]["replaced"] == ["headers"]
    many = len(route("hush one"))
    assert len(route("hush one")) == many, "nothing has changed"
    replaced = route("hush two")
    assert (len(replaced), replaced[0]["replaced"]) == (many + 1, ["rules"])
    answer = api.call("GET", "/v1/facts?kind=changed_by_caller").text
    assert "hush" not in answer
    assert "whsec" not in answer


def test_acts_on_many_messages_leave_a_fact_and_dry_runs_none(api: Api, clock: ManualClock) -> None:
    name = api.make_queue("bulk")
    for _ in range(3):
        api.send(name)
    wanted = {"act": "cancel", "where": {"state": "ready"}, "reason": "a mistake"}
    path = f"/v1/queues/{name}/messages/bulk"
    clock.advance(ms=1)

    ok(api.call("POST", path, {**wanted, "is_dry_run": True}))
    assert [one["operation"] for one in changes(api, name)] == ["putQueue"]
    ok(api.call("POST", path, wanted))

    [done, _] = changes(api, name)
    assert (done["operation"], done["by"]) == ("changeMessages", "anyone")
    assert done["request"]["reason"] == "a mistake"
    assert done["answer"]["changed"] == 3
    assert_refused(api.call("POST", f"/v1/queues/{a_name('none')}/pause"), 404, "queue_not_found")


@pytest.mark.both_stores
def test_a_key_is_created_used_expires_and_is_revoked(
    server_with_keys: LiveServer, let_in: LetIn
) -> None:
    server = server_with_keys
    admin = let_in(Role.OPERATE, Role.PRODUCE)
    wanted = {"name": "shop", "roles": ["produce"], "queues": ["mail.*"]}
    expires_at = server.clock.now() + 60_000

    made = ok(admin.call("POST", "/v1/keys", {**wanted, "expires_at": expires_at}))
    other = ok(admin.call("POST", "/v1/keys", {**wanted, "roles": ["produce", "operate"]}))
    refused = admin.call("POST", "/v1/keys", {**wanted, "roles": ["consume"]})
    assert_refused(refused, 403, "forbidden")
    wrong: dict[str, Any]
    for wrong in ({"roles": []}, {"name": ""}, {"queues": []}, {"expires_at": 1}):
        assert_refused(admin.call("POST", "/v1/keys", {**wanted, **wrong}), 400, "invalid_request")

    server.broker.refresh_keys()
    shop = Api(server.url, key=made["secret"])
    assert_refused(
        shop.call("POST", "/v1/queues/mail.x/messages", {"body": 1}), 404, "queue_not_found"
    )
    assert_refused(shop.call("GET", "/v1/keys"), 403, "forbidden")
    server.broker.refresh_keys()

    def listed(key_id: str) -> dict[str, Any]:
        return next(key for key in admin.get("/v1/keys")["keys"] if key["id"] == key_id)

    # The server's own refresh may have noted the use, and may still be writing it.
    eventually(lambda: "last_used_at" in listed(made["key"]["id"]))
    key = listed(made["key"]["id"])
    assert (key["name"], key["roles"], key["queues"]) == ("shop", ["produce"], ["mail.*"])
    assert key["created_at"] <= key["last_used_at"] <= admin.get("/v1/stats")["now"]
    assert "last_used_at" not in listed(other["key"]["id"])
    assert made["secret"] not in admin.call("GET", "/v1/facts").text
    names = {one["request"]["name"] for one in changes(admin, "/v1/keys")}
    assert names == {"shop"}

    shop.close()
    assert admin.call("DELETE", f"/v1/keys/{other['key']['id']}").status_code == 204
    assert_refused(admin.call("DELETE", f"/v1/keys/{other['key']['id']}"), 404, "not_found")
    assert "revoked_at" in listed(other["key"]["id"])


def test_a_key_that_expires_creates_no_key_that_is_valid_for_longer(
    server_with_keys: LiveServer,
) -> None:
    server = server_with_keys
    until = server.clock.now() + 60_000
    made = server.broker.keys.create("tonight", roles=(Role.OPERATE,), expires_at=until).result()
    server.broker.refresh_keys()
    wanted = {"name": "next", "roles": ["operate"]}

    with closing(Api(server.url, key=made.secret)) as api:
        for longer in ({}, {"expires_at": until + 1}):
            refused = api.call("POST", "/v1/keys", {**wanted, **longer})
            assert_refused(refused, 403, "forbidden")
        created = ok(api.call("POST", "/v1/keys", {**wanted, "expires_at": until}))

    assert created["key"]["name"] == "next"
