"""Moving messages out of a queue in the background."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.clocks import ManualClock
from tests.edge.api import Api, a_name, assert_refused, ok
from tests.edge.duties import advance_moves
from tests.edge.live import LiveServer

pytestmark = pytest.mark.both_stores

NO_SUCH_ID = "01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11"


def start(api: Api, queue: str, **wanted: Any) -> httpx.Response:
    return api.call("POST", f"/v1/queues/{queue}/moves", wanted or None)


@pytest.fixture
def letters(api: Api) -> str:
    return api.make_queue("letters")


@pytest.fixture
def queue(api: Api, letters: str) -> str:
    return api.make_queue(dead_letter_queue=letters)


def test_dead_letters_go_back_to_where_they_died(
    api: Api, server: LiveServer, clock: ManualClock, letters: str, queue: str
) -> None:
    ids = [api.die(queue) for _ in range(3)]

    response = start(api, letters)
    advance_moves(server, clock)

    assert response.status_code == 201
    move = ok(response)
    assert {k: move[k] for k in ("queue", "state", "to_move", "moved")} == {
        "queue": letters,
        "state": "running",
        "to_move": 3,
        "moved": 0,
    }
    assert move.keys().isdisjoint({"to", "max_per_second", "ended_at", "reason"})
    ended = api.get(f"/v1/moves/{move['id']}")
    assert (ended["state"], ended["moved"], ended["started_at"]) == (
        "completed",
        3,
        move["started_at"],
    )
    assert ended["ended_at"] > ended["started_at"]
    assert [m["id"] for m in api.claim(queue, limit=10)] == ids


def test_messages_are_moved_to_another_queue_at_a_rate(
    api: Api, server: LiveServer, clock: ManualClock, letters: str, queue: str
) -> None:
    other = api.make_queue()
    ids = [api.die(queue), api.send(letters)]

    move = ok(start(api, letters, to=other, max_per_second=1))
    for _ in range(2):
        advance_moves(server, clock)

    assert (move["to"], move["max_per_second"]) == (other, 1)
    assert [m["id"] for m in api.claim(other, limit=10)] == ids
    assert api.get(f"/v1/moves/{move['id']}")["state"] == "completed"


def test_the_moves_of_a_queue_are_listed_newest_first(
    api: Api, server: LiveServer, clock: ManualClock, letters: str
) -> None:
    assert api.get(f"/v1/queues/{letters}/moves") == {"moves": []}
    first = ok(start(api, letters))
    advance_moves(server, clock)
    second = ok(start(api, letters))

    listed = api.get(f"/v1/queues/{letters}/moves")["moves"]

    assert [move["id"] for move in listed] == [second["id"], first["id"]]
    assert listed[1]["state"] == "completed"
    assert len(api.get(f"/v1/queues/{letters}/moves", limit=1)["moves"]) == 1


@pytest.mark.parametrize("limit", ["0", "1001", "1e1", "10.0", "-1", "many", ""])
def test_a_limit_that_is_not_a_number_in_range_is_refused(
    api: Api, letters: str, limit: str
) -> None:
    answer = api.call("GET", f"/v1/queues/{letters}/moves?limit={limit}")

    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "limit must be from 1 to 1000"


def test_a_second_move_out_of_a_queue_is_a_conflict(api: Api, letters: str, queue: str) -> None:
    for _ in range(3):
        api.die(queue)
    ok(start(api, letters, max_per_second=1))

    assert_refused(start(api, letters), 409, "move_running")


def test_a_move_is_cancelled_once(
    api: Api, server: LiveServer, clock: ManualClock, letters: str, queue: str
) -> None:
    for _ in range(5):
        api.die(queue)
    move = ok(start(api, letters, max_per_second=1))
    path = f"/v1/moves/{move['id']}"

    answer = ok(api.call("POST", f"{path}/cancel"))
    advance_moves(server, clock)

    assert answer["state"] == "cancelling"
    ended = api.get(path)
    assert (ended["state"], ended["moved"]) == ("cancelled", answer["moved"])
    assert_refused(api.call("POST", f"{path}/cancel"), 409, "move_not_running")
    assert api.counts(letters)["ready"] == 5 - ended["moved"]


def test_a_move_whose_target_was_removed_has_a_reason(
    api: Api, server: LiveServer, clock: ManualClock, letters: str, queue: str
) -> None:
    other = api.make_queue()
    for _ in range(3):
        api.die(queue)
    move = ok(start(api, letters, to=other, max_per_second=1))
    api.call("DELETE", f"/v1/queues/{other}", params={"force": "true"})

    advance_moves(server, clock)

    failed = api.get(f"/v1/moves/{move['id']}")
    assert (failed["state"], failed["reason"]) == ("failed", "queue_not_found")


def test_an_unknown_queue_target_or_move_is_not_found(api: Api, letters: str) -> None:
    assert_refused(start(api, a_name("none")), 404, "queue_not_found")
    assert_refused(start(api, letters, to=a_name("none")), 404, "target_not_found")
    assert_refused(api.call("GET", f"/v1/queues/{a_name('none')}/moves"), 404, "queue_not_found")
    assert_refused(api.call("GET", f"/v1/moves/{NO_SUCH_ID}"), 404, "move_not_found")
    assert_refused(api.call("POST", f"/v1/moves/{NO_SUCH_ID}/cancel"), 404, "move_not_found")


@pytest.mark.parametrize(
    "wanted",
    [
        {"max_per_second": 0},
        {"max_per_second": 10_001},
        {"max_per_second": "5"},
        {"to": "a b"},
        {"from": "x"},
    ],
)
def test_an_invalid_move_is_refused(api: Api, letters: str, wanted: dict[str, Any]) -> None:
    assert_refused(start(api, letters, **wanted), 400, "invalid_request")
    assert_refused(start(api, letters, to=letters), 400, "invalid_request")
    ordered = api.make_queue(ordering="group")
    assert_refused(start(api, letters, to=ordered), 400, "invalid_request")
    assert api.get(f"/v1/queues/{letters}/moves") == {"moves": []}


def test_queues_are_listed_by_their_dead_letter_queue(api: Api, letters: str) -> None:
    names = sorted(api.make_queue(dead_letter_queue=letters) for _ in range(3))
    api.make_queue()

    first = api.get("/v1/queues", dead_letter_queue=letters, limit=2)
    rest = api.get("/v1/queues", dead_letter_queue=letters, limit=2, cursor=first["next"])

    assert [q["name"] for q in first["queues"] + rest["queues"]] == names
    assert rest["next"] is None
    assert api.get("/v1/queues", dead_letter_queue=names[0])["queues"] == []
