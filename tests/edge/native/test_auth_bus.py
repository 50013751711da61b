"""Keys for some queues only, and with some roles only: notifications, topics and events."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.access.api_key import Role
from tests.edge.api import Api, assert_refused, ok
from tests.edge.native.conftest import LetIn


@pytest.fixture(scope="module")
def admin(let_in: LetIn) -> Api:
    return let_in()


@pytest.fixture(scope="module")
def mailer(let_in: LetIn) -> Api:
    """Has all roles, on queues and topics whose names begin with `mail`."""
    return let_in(queues=("mail*",))


@pytest.fixture(scope="module")
def bank(admin: Api) -> str:
    """A notification of another caller, in its own queue and topic."""
    queue = admin.make_queue("bank")
    admin.call("PUT", "/v1/topics/bank/subscriptions/audit", {})
    ok(admin.call("POST", "/v1/topics/bank/events", {"body": 1}))
    made = admin.call("POST", "/v1/notifications", {"queue": queue, "body": 1, "tags": ["a1"]})
    admin.bank_queue = queue  # type: ignore[attr-defined]
    return str(ok(made)["id"])


def test_its_own_are_open_to_it(admin: Api, mailer: Api) -> None:
    queue = admin.make_queue("mail")

    made = ok(mailer.call("POST", "/v1/notifications", {"queue": queue, "body": 1}))
    ok(mailer.call("GET", f"/v1/notifications/{made['id']}"))
    ok(mailer.call("GET", f"/v1/notifications?tag=x&queue={queue}"))
    assert mailer.call("DELETE", f"/v1/notifications/{made['id']}").is_success
    ok(mailer.call("PUT", "/v1/topics/mail/subscriptions/a", {}))
    assert ok(mailer.call("POST", "/v1/topics/mail/events", {"body": 1}))["messages"] == 1


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/notifications", {"queue": "bank-1", "body": 1}),
        ("GET", "/v1/notifications?tag=a1&queue=bank-1", None),
        ("DELETE", "/v1/notifications?tag=a1&queue=bank-1", None),
        ("GET", "/v1/notifications/history?tag=a1&queue=bank-1", None),
        ("GET", "/v1/messages?tag=a1&queue=bank-1", None),
        ("GET", "/v1/notifications/{id}", None),
        ("PATCH", "/v1/notifications/{id}", {"body": 2}),
        ("DELETE", "/v1/notifications/{id}", None),
        ("PUT", "/v1/topics/bank", None),
        ("GET", "/v1/topics/bank", None),
        ("DELETE", "/v1/topics/bank?force=true", None),
        ("POST", "/v1/topics/bank/events", {"body": 1}),
        ("POST", "/v1/topics/bank/events/batch", {"events": [{"body": 1}]}),
        ("PUT", "/v1/topics/bank/subscriptions/audit", {}),
        ("GET", "/v1/topics/bank/subscriptions/audit", None),
        ("DELETE", "/v1/topics/bank/subscriptions/audit", None),
    ],
)
def test_a_key_cannot_reach_topics_and_notifications_of_other_queues(
    mailer: Api, bank: str, method: str, path: str, body: Any
) -> None:
    answer = mailer.call(method, path.replace("{id}", bank), body)

    assert_refused(answer, 403, "forbidden")


@pytest.mark.parametrize(
    "path", ["/v1/notifications?tag=a1", "/v1/messages?tag=a1", "/v1/notifications/history?tag=a1"]
)
def test_a_search_over_all_queues_is_not_for_it(mailer: Api, path: str) -> None:
    assert_refused(mailer.call("GET", path), 400, "invalid_request")


def test_the_dead_letters_of_a_subscription_do_not_go_where_its_key_does_not_reach(
    mailer: Api, admin: Api, bank: str
) -> None:
    letters = {"settings": {"dead_letter_queue": admin.bank_queue}}  # type: ignore[attr-defined]

    answer = mailer.call("PUT", "/v1/topics/mail/subscriptions/letters", letters)

    assert_refused(answer, 403, "forbidden")


def test_topics_of_others_are_not_listed(mailer: Api, admin: Api, bank: str) -> None:
    admin.call("PUT", "/v1/topics/mail.two")

    names = {one["name"] for one in mailer.get("/v1/topics")["topics"]}

    assert "bank" not in names
    assert "mail.two" in names


def test_a_key_that_may_only_send_cannot_change_or_cancel(let_in: LetIn, bank: str) -> None:
    sender = let_in(Role.PRODUCE)

    assert_refused(sender.call("DELETE", f"/v1/notifications/{bank}"), 403, "forbidden")
    assert_refused(sender.call("PATCH", f"/v1/notifications/{bank}", {"body": 2}), 403, "forbidden")
    assert_refused(sender.call("PUT", "/v1/topics/other"), 403, "forbidden")
    assert ok(sender.call("POST", "/v1/topics/bank/events", {"body": 1}))["messages"] == 1


def test_a_cursor_names_no_topic_that_is_not_its_own(mailer: Api, bank: str) -> None:
    ok(mailer.call("PUT", "/v1/topics/mail.cursor"))

    listed = ok(mailer.call("GET", "/v1/topics?limit=1"))

    assert [one["name"].partition(".")[0] for one in listed["topics"]] == ["mail"]
    assert listed["next"].startswith("mail")
