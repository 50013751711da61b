"""AweQ's queue is an ordinary one: visible, limited and guarded like all others."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from penstock.domain.access.api_key import Role
from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.edge.aweq.answers import refusal
from penstock.edge.server.request import Request
from penstock.settings.values import AweqSettings
from tests.edge.api import Api, ok
from tests.edge.aweq.client import AweqClient
from tests.edge.aweq.conftest import MakeClient
from tests.edge.conftest import MakeServer
from tests.edge.live import LiveServer


def test_the_queue_is_made_when_it_is_first_needed(aweq: AweqClient, api: Api) -> None:
    assert api.call("GET", "/v1/queues/aweq").status_code == 404

    assert aweq.lengths() == (0, 0)

    settings = api.queue("aweq")["settings"]
    assert settings["lease_ms"] == 120_000
    assert settings["redelivery"] == "back"
    assert settings["max_attempts"] is None


def test_a_queue_that_was_removed_is_made_again(aweq: AweqClient, api: Api) -> None:
    aweq.send("job")
    api.call("DELETE", "/v1/queues/aweq", params={"force": "true"})

    aweq.send("another job")

    assert aweq.texts(2) == ["another job"]


def test_a_message_that_is_sent_through_one_api_is_received_through_the_other(
    aweq: AweqClient, api: Api
) -> None:
    key = aweq.send({"a": 1})
    [claimed] = api.claim("aweq")
    assert (claimed["id"], claimed["body"]) == (key, {"a": 1})

    sent = api.send("aweq", body="from the other side")
    [entry] = aweq.receive()["messages"]
    assert (entry["key"], entry["message"]) == (sent, "from the other side")


def test_a_lease_of_the_native_api_is_not_ended_by_a_bare_key(aweq: AweqClient, api: Api) -> None:
    key = aweq.send("job")
    [claimed] = api.claim("aweq", claimed_by="worker")

    assert not aweq.delete(key)

    assert ok(api.act(claimed["receipt"], "complete"))["state"] == "done"


def test_messages_of_other_queues_are_out_of_reach(aweq: AweqClient, api: Api) -> None:
    queue = api.make_queue()
    key = api.send(queue)
    api.claim(queue, claimed_by="aweq:another")

    assert not aweq.delete(key)

    assert api.counts(queue) == {"leased": 1}


def test_operators_see_the_consumer_that_holds_a_message(make_client: MakeClient, api: Api) -> None:
    client = make_client("worker 7")
    key = client.send("job")
    client.texts()

    assert api.message(key)["leased_by"] == "aweq:worker 7"


def test_a_consumer_name_has_an_end(aweq: AweqClient) -> None:
    answer = aweq.http.get("/receive-message", headers={"X-Aweq-Consumer": "x" * 201})

    assert answer.status_code == 400
    assert answer.text == "X-Aweq-Consumer takes at most 200 characters."


def test_the_queue_has_the_name_that_the_settings_give_it(
    make_server: MakeServer,
) -> None:
    server = make_server(aweq={"queue": "old-jobs"})
    aweq, api = AweqClient(server.url), Api(server.url)

    aweq.send("job")

    assert api.counts("old-jobs") == {"ready": 1}
    aweq.close()
    api.close()


def test_switched_off_it_is_not_there(make_server: MakeServer) -> None:
    server = make_server(aweq={"enabled": False})
    aweq = AweqClient(server.url)

    assert aweq.http.get("/get-stats").status_code == 404
    assert aweq.http.options("/send-message").status_code == 404
    aweq.close()


def test_a_key_for_other_queues_opens_nothing_here(make_server: MakeServer) -> None:
    server = make_server()
    secret = make_key(server, Role.PRODUCE, Role.CONSUME, Role.READ, queues=("mail",))
    aweq = AweqClient(server.url)

    without = aweq.http.get("/receive-message")
    refused = aweq.http.get("/receive-message", headers={"Authorization": f"Bearer {secret}"})

    assert (without.status_code, refused.status_code) == (401, 403)
    for answer in (without, refused):
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "access-control-allow-origin" not in answer.headers
    assert "&#x27;aweq&#x27;" in refused.text
    aweq.close()


def test_a_key_with_its_role_is_let_in(make_server: MakeServer) -> None:
    server = make_server()
    secret = make_key(server, Role.PRODUCE, queues=("aw*",))
    aweq = AweqClient(server.url)
    aweq.http.headers["Authorization"] = f"Bearer {secret}"

    aweq.send("job")

    assert aweq.http.get("/receive-message").status_code == 403
    assert aweq.http.get("/get-stats").status_code == 403
    assert aweq.http.options("/get-stats", headers={"Authorization": ""}).status_code == 200
    aweq.close()


@pytest.mark.parametrize("error", [StoreUnavailable("the disk is full"), PenstockError("oh")])
def test_internal_errors_have_the_texts_of_aweq(error: PenstockError) -> None:
    asked = Request("POST", "/send-message", b"", {}, b"")

    answer = refusal("Queue failure on publish.")(asked, error)

    assert (answer.status, answer.body) == (500, b"Queue failure on publish.")


def test_the_page_in_docs_lists_the_settings() -> None:
    page = (Path(__file__).parents[3] / "docs" / "aweq.md").read_text()

    documented = dict(re.findall(r"^\| `aweq\.(\w+)` \| `?(\w+)`? \|", page, re.MULTILINE))

    defaults = msgspec.to_builtins(AweqSettings())
    assert documented == {name: str(value).lower() for name, value in defaults.items()}


def make_key(server: LiveServer, *roles: Role, queues: tuple[str, ...]) -> str:
    made = server.broker.keys.create("a key", roles=roles, queues=queues).result()
    server.broker.refresh_keys()
    return made.secret
