"""Redriving all dead messages of a queue."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.edge.api import Api, a_name, assert_refused, ok

pytestmark = pytest.mark.both_stores


def redrive(api: Api, queue: str, **wanted: Any) -> httpx.Response:
    return api.call("POST", f"/v1/queues/{queue}/redrive", wanted or None)


def test_all_dead_messages_of_a_queue_come_back(api: Api) -> None:
    queue = api.make_queue()
    ids = [api.die(queue, body=n) for n in range(3)]
    alive = api.send(queue)

    answer = ok(redrive(api, queue))

    assert answer == {"redriven": 3}
    assert [m["id"] for m in api.claim(queue, limit=10)] == [alive, *ids]


def test_no_more_come_back_than_asked_for(api: Api) -> None:
    queue = api.make_queue()
    ids = [api.die(queue, body=n) for n in range(3)]

    assert ok(redrive(api, queue, limit=2)) == {"redriven": 2}

    assert [m["id"] for m in api.claim(queue, limit=10)] == ids[:2]
    assert api.counts(queue) == {"leased": 2, "dead": 1}


def test_dead_messages_can_be_brought_to_another_queue(api: Api) -> None:
    queue, other = api.make_queue(), api.make_queue()
    message_id = api.die(queue)

    assert ok(redrive(api, queue, to=other)) == {"redriven": 1}

    assert api.claim_one(other)["id"] == message_id


def test_dead_letters_go_back_to_the_queues_they_died_in(api: Api) -> None:
    letters = api.make_queue("letters")
    first = api.make_queue(dead_letter_queue=letters)
    second = api.make_queue(dead_letter_queue=letters)
    ids = {api.die(first), api.die(second)}
    own = api.send(letters)

    assert ok(redrive(api, letters)) == {"redriven": 2}

    assert {api.claim_one(first)["id"], api.claim_one(second)["id"]} == ids
    assert [m["id"] for m in api.claim(letters, limit=10)] == [own]


def test_dead_letters_of_a_queue_that_is_gone_stay_where_they_are(api: Api) -> None:
    letters = api.make_queue("letters")
    queue = api.make_queue(dead_letter_queue=letters)
    message_id = api.die(queue)
    api.call("DELETE", f"/v1/queues/{queue}")

    assert ok(redrive(api, letters)) == {"redriven": 1}

    assert api.claim_one(letters)["id"] == message_id


def test_without_dead_messages_a_redrive_moves_nothing(api: Api) -> None:
    queue = api.make_queue()
    api.send(queue)

    assert ok(redrive(api, queue)) == {"redriven": 0}


def test_a_redrive_to_an_unknown_queue_is_refused(api: Api) -> None:
    queue = api.make_queue()
    api.die(queue)

    assert_refused(redrive(api, queue, to=a_name("none")), 404, "queue_not_found")
    assert api.counts(queue) == {"dead": 1}


@pytest.mark.parametrize("wanted", [{"limit": 0}, {"limit": -1}, {"to": "a b"}, {"from": "x"}])
def test_an_invalid_redrive_is_refused(api: Api, wanted: dict[str, Any]) -> None:
    queue = api.make_queue()
    api.die(queue)

    assert_refused(redrive(api, queue, **wanted), 400, "invalid_request")
    assert api.counts(queue) == {"dead": 1}
