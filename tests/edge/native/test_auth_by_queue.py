"""Keys for some queues: on every kind of route, other queues are inaccessible."""

from __future__ import annotations

from typing import Any

import pytest

from tests.edge.api import Api, assert_refused, ok
from tests.edge.native.conftest import LetIn


@pytest.fixture(scope="module")
def admin(let_in: LetIn) -> Api:
    return let_in()


@pytest.fixture(scope="module")
def mailer(let_in: LetIn) -> Api:
    """Has all roles, on queues whose names begin with `mail`."""
    return let_in(queues=("mail*", "shared"))


@pytest.fixture
def ours(admin: Api) -> str:
    return admin.make_queue("mail")


@pytest.fixture
def theirs(admin: Api) -> str:
    return admin.make_queue("bank")


def test_its_own_queues_are_open_to_it(mailer: Api, ours: str) -> None:
    message_id = mailer.finish(ours)

    assert mailer.queue(ours)["totals"]["done"] == 1
    assert mailer.message(message_id)["state"] == "done"
    assert len(mailer.get("/v1/history", queue=ours)["endings"]) == 1
    assert mailer.get(f"/v1/history/{message_id}")["endings"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("PUT", "", {}),
        ("PATCH", "", {}),
        ("DELETE", "?force=true", None),
        ("POST", "/pause", None),
        ("POST", "/resume", None),
        ("POST", "/purge", None),
        ("POST", "/redrive", None),
        ("POST", "/moves", None),
        ("GET", "/moves", None),
        ("GET", "/messages", None),
        ("POST", "/messages", {"body": 1}),
        ("POST", "/messages/batch", {"messages": [{"body": 1}]}),
        ("POST", "/claims", None),
        ("POST", "/claims", {"wait_ms": 1_000}),
    ],
)
def test_the_queues_of_others_are_not(
    admin: Api, mailer: Api, theirs: str, method: str, path: str, body: Any
) -> None:
    admin.send(theirs)
    before = admin.queue(theirs)

    assert_refused(mailer.call(method, f"/v1/queues/{theirs}{path}", body), 403, "forbidden")

    assert admin.queue(theirs) == before


def test_no_new_queue_is_made_under_a_foreign_name(mailer: Api) -> None:
    assert_refused(mailer.call("PUT", "/v1/queues/bank-new"), 403, "forbidden")


@pytest.mark.parametrize("name", ["Mail-1", "xmail", "bank%2Fmail", "%6Dbank", "shared2"])
def test_names_that_only_resemble_the_pattern_do_not_fit(mailer: Api, name: str) -> None:
    assert_refused(mailer.call("GET", f"/v1/queues/{name}"), 403, "forbidden")


def test_a_receipt_for_a_foreign_queue_opens_nothing(admin: Api, mailer: Api, theirs: str) -> None:
    admin.send(theirs)
    receipt = admin.claim_one(theirs)["receipt"]
    for verb in ("complete", "fail", "release", "extend", "bury", "cancel"):
        assert_refused(mailer.act(receipt, verb), 403, "forbidden")
    assert_refused(mailer.act(receipt, "snooze", delay_ms=1), 403, "forbidden")

    assert admin.counts(theirs) == {"leased": 1}
    assert ok(admin.act(receipt, "complete"))["state"] == "done"


def test_in_a_batch_each_receipt_has_its_own_result(
    admin: Api, mailer: Api, ours: str, theirs: str
) -> None:
    for queue in (ours, theirs):
        admin.send(queue)
    acts = [
        {"receipt": admin.claim_one(queue)["receipt"], "act": "complete"}
        for queue in (ours, theirs)
    ]

    mine, foreign = ok(mailer.call("POST", "/v1/leases/batch", {"acts": acts}))["results"]

    assert mine["state"] == "done"
    assert foreign["error"]["code"] == "forbidden"
    assert admin.counts(theirs) == {"leased": 1}


def test_a_foreign_message_is_out_of_reach_by_its_id(admin: Api, mailer: Api, theirs: str) -> None:
    message_id = admin.send(theirs)
    path = f"/v1/messages/{message_id}"
    for refused in (
        mailer.call("GET", path),
        mailer.call("PATCH", path, {"due_at": 0}),
        mailer.call("POST", f"{path}/cancel"),
        mailer.call("POST", f"{path}/bury"),
        mailer.call("POST", f"{path}/redrive"),
    ):
        assert_refused(refused, 403, "forbidden")

    assert admin.message(message_id)["state"] == "ready"


def test_an_ended_foreign_message_is_out_of_reach_too(admin: Api, mailer: Api, theirs: str) -> None:
    message_id = admin.finish(theirs)

    assert_refused(mailer.call("GET", f"/v1/messages/{message_id}"), 403, "forbidden")
    assert_refused(mailer.call("GET", f"/v1/history/{message_id}"), 403, "forbidden")


def test_the_attempts_of_a_living_foreign_message_are_not_shown(
    admin: Api, mailer: Api, theirs: str
) -> None:
    message_id = admin.send(theirs)
    assert_refused(mailer.call("GET", f"/v1/history/{message_id}"), 403, "forbidden")

    ok(admin.act(admin.claim_one(theirs)["receipt"], "fail", error="secret"))

    assert_refused(mailer.call("GET", f"/v1/history/{message_id}"), 403, "forbidden")


def test_the_attempts_of_a_message_in_a_removed_foreign_queue_are_not_shown(
    admin: Api, mailer: Api, theirs: str
) -> None:
    message_id = admin.send(theirs)
    ok(admin.act(admin.claim_one(theirs)["receipt"], "fail", error="secret", retry_in_ms=0))
    assert admin.call("DELETE", f"/v1/queues/{theirs}?force=true").status_code == 204

    assert_refused(mailer.call("GET", f"/v1/history/{message_id}"), 403, "forbidden")
    assert admin.get(f"/v1/history/{message_id}")["attempts"]


def test_history_must_be_asked_for_by_queue(mailer: Api, theirs: str) -> None:
    assert_refused(mailer.call("GET", "/v1/history"), 400, "invalid_request")
    assert_refused(mailer.call("GET", f"/v1/history?queue={theirs}"), 403, "forbidden")


def test_only_its_own_queues_are_listed_and_pages_are_full(
    admin: Api, mailer: Api, ours: str, theirs: str
) -> None:
    own = sorted([ours, *(admin.make_queue("mail") for _ in range(4))])
    for _ in range(3):
        admin.make_queue("a")  # before them, between the pages of a reader that skips them

    page = mailer.get("/v1/queues", limit=2)
    seen = [queue["name"] for queue in page["queues"]]
    assert len(seen) == 2
    while page["next"] is not None:
        page = mailer.get("/v1/queues", limit=2, cursor=page["next"])
        seen += [queue["name"] for queue in page["queues"]]

    assert set(own) <= set(seen)
    assert len(seen) == len(set(seen))
    assert all(name.startswith("mail") for name in seen)


def test_metrics_include_its_own_queues_only(mailer: Api, ours: str, theirs: str) -> None:
    text = mailer.call("GET", "/metrics").text

    assert f'"{ours}"' in text
    assert theirs not in text


def test_nothing_is_moved_into_a_foreign_queue(
    admin: Api, mailer: Api, ours: str, theirs: str
) -> None:
    mailer.die(ours)

    for verb in ("redrive", "moves"):
        refused = mailer.call("POST", f"/v1/queues/{ours}/{verb}", {"to": theirs})
        assert_refused(refused, 403, "forbidden")

    assert admin.counts(theirs) == {}


def test_a_move_out_of_a_foreign_queue_is_out_of_reach_by_its_id(
    admin: Api, mailer: Api, theirs: str
) -> None:
    move = ok(admin.call("POST", f"/v1/queues/{theirs}/moves"))
    path = f"/v1/moves/{move['id']}"

    assert_refused(mailer.call("GET", path), 403, "forbidden")
    assert_refused(mailer.call("POST", f"{path}/cancel"), 403, "forbidden")
    assert admin.get(path)["state"] not in ("cancelling", "cancelled")


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_no_foreign_queue_is_made_the_place_for_dead_letters(
    admin: Api, mailer: Api, ours: str, theirs: str, method: str
) -> None:
    path = f"/v1/queues/{ours}"
    ok(admin.call("PATCH", path, {"dead_letter_queue": "mail-dead"}))

    refused = mailer.call(method, path, {"dead_letter_queue": theirs})

    assert_refused(refused, 403, "forbidden")
    assert mailer.queue(ours)["settings"]["dead_letter_queue"] == "mail-dead"
    ok(mailer.call(method, path, {"dead_letter_queue": "shared"}))


def test_recurring_work_of_others_is_neither_seen_nor_changed(
    admin: Api, mailer: Api, ours: str, theirs: str
) -> None:
    for name, queue in (("bank-nightly", theirs), ("mail-nightly", ours)):
        body = {"queue": queue, "every_ms": 3_600_000}
        ok(admin.call("PUT", f"/v1/recurring/{name}", body))

    names = [one["name"] for one in mailer.get("/v1/recurring")["recurring"]]
    assert "mail-nightly" in names
    assert "bank-nightly" not in names
    for method, path in [
        ("GET", ""),
        ("GET", "/preview"),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("POST", "/run"),
    ]:
        refused = mailer.call(method, f"/v1/recurring/bank-nightly{path}")
        assert_refused(refused, 403, "forbidden")
    # Neither by sending theirs to us, nor by sending ours to them.
    for name, queue in (("bank-nightly", ours), ("mail-nightly", theirs), ("new", theirs)):
        body = {"queue": queue, "every_ms": 3_600_000}
        assert_refused(mailer.call("PUT", f"/v1/recurring/{name}", body), 403, "forbidden")
    assert admin.get("/v1/recurring/bank-nightly")["queue"] == theirs


def test_signals_and_steps_of_others_are_inaccessible(
    admin: Api, mailer: Api, ours: str, theirs: str
) -> None:
    """The queue patterns of a key apply to the names of signals, too."""
    message_id = admin.send(theirs)
    foreign = f"/v1/leases/{admin.claim_one(theirs)['receipt']}"
    mailer.send(ours)
    own = f"/v1/leases/{mailer.claim_one(ours)['receipt']}"
    step = {"name": "charge", "outcome": 1}

    for method, path, body in (
        ("POST", f"{foreign}/steps", step),
        ("GET", f"{foreign}/steps", None),
        ("POST", f"{foreign}/waits", {"signal": "mail.approved"}),
        ("GET", f"/v1/messages/{message_id}/steps", None),
        ("POST", f"{own}/waits", {"signal": "bank.approved"}),
        ("POST", "/v1/signals/bank.approved", {}),
        ("GET", "/v1/signals/bank.approved", None),
    ):
        assert_refused(mailer.call(method, path, body), 403, "forbidden")

    ok(mailer.call("POST", f"{own}/steps", step))
    ok(mailer.call("POST", f"{own}/waits", {"signal": "mail.approved"}))
    assert ok(mailer.call("POST", "/v1/signals/mail.approved", {}))["ended_waits"] == 1
