"""Results over HTTP: given with a completion, read at once or waited for.

The server hardly ever polls (wakeups.poll_ms is a minute): hints end the waits here.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from penstock.domain.access.api_key import Role
from penstock.edge.instants import to_text
from tests.clocks import ManualClock
from tests.edge.api import Api, assert_refused, ok
from tests.edge.conftest import InBackground, MakeServer
from tests.edge.live import LiveServer
from tests.edge.native.conftest import LetIn
from tests.edge.native.waiting import LONG_MS, SOON_S
from tests.support.waiting import eventually

pytestmark = pytest.mark.both_stores


@pytest.fixture
def queue(api: Api) -> str:
    return api.make_queue(lease_ms=30_000, max_attempts=1)


@pytest.fixture
def lease(api: Api, queue: str) -> dict[str, Any]:
    api.send(queue)
    return api.claim_one(queue)


def result(api: Api, message_id: str, wait_ms: int | None = None) -> dict[str, Any]:
    query = {} if wait_ms is None else {"wait_ms": wait_ms}
    return dict(api.get(f"/v1/messages/{message_id}/result", **query))


def start_waiting(
    server: LiveServer, api: Api, message_id: str, in_background: InBackground
) -> Future[dict[str, Any]]:
    waiting = server.broker.waiting_results
    before = waiting.waiting
    found = in_background(result, api, message_id, LONG_MS)
    eventually(lambda: waiting.waiting == before + 1)
    return found


@pytest.mark.parametrize("value", [{"total": 9.990, "lines": [1, None, "é"]}, 0, "", None, False])
def test_a_result_is_returned_as_it_was_given(
    api: Api, lease: dict[str, Any], clock: ManualClock, value: Any
) -> None:
    ok(api.call("POST", f"/v1/leases/{lease['receipt']}/complete", {"result": value}))

    expected = {"id": lease["id"], "state": "done", "is_ended": True, "result": value}
    assert result(api, lease["id"]) == {**expected, "finished_at": to_text(clock.now())}
    assert api.message(lease["id"]).get("result") == value


def test_a_result_keeps_its_digits(api: Api, lease: dict[str, Any]) -> None:
    raw = b'{"result": {"price": 9.990, "n": 123456789012345678901234567890}}'
    ok(api.call("POST", f"/v1/leases/{lease['receipt']}/complete", raw=raw))

    shown = api.call("GET", f"/v1/messages/{lease['id']}/result").text
    assert '{"price": 9.990, "n": 123456789012345678901234567890}' in shown


def test_acts_of_a_batch_have_their_own_results(api: Api, queue: str) -> None:
    api.send_many(queue, [1, 2])
    a, b = api.claim(queue, limit=2)
    acts = [
        {"receipt": a["receipt"], "act": "complete", "result": [1]},
        {"receipt": b["receipt"], "act": "complete"},
    ]

    ok(api.call("POST", "/v1/leases/batch", {"acts": acts}))

    assert [result(api, m["id"]).get("result") for m in (a, b)] == [[1], None]


def test_a_claim_completes_with_results(api: Api, queue: str) -> None:
    api.send_many(queue, [1, 2])
    a, b = api.claim(queue, limit=2)

    api.claim(queue, complete=[a["receipt"], b["receipt"]], results={b["receipt"]: {"n": 2}})

    assert [result(api, m["id"]).get("result") for m in (a, b)] == [None, {"n": 2}]


def test_a_result_of_a_receipt_that_is_not_completed_is_refused(
    api: Api, queue: str, lease: dict[str, Any]
) -> None:
    body = {"results": {lease["receipt"]: 1}}
    answer = api.call("POST", f"/v1/queues/{queue}/claims", body)

    assert "results has a receipt" in assert_refused(answer, 400, "invalid_request")


def test_only_a_completion_takes_a_result(api: Api, lease: dict[str, Any]) -> None:
    assert_refused(api.act(lease["receipt"], "bury", result=1), 400, "invalid_request")


def test_a_result_that_is_too_large_changes_nothing(
    make_server: MakeServer,
) -> None:
    api = Api(make_server(limits={"max_result_bytes": 10}).url)
    queue = api.make_queue()
    api.send_many(queue, [1, 2])
    large, small = api.claim(queue, limit=2)

    answer = api.act(large["receipt"], "complete", result="123456789")
    assert "11 bytes" in assert_refused(answer, 413, "too_large")
    batch = {"acts": [{"receipt": large["receipt"], "act": "complete", "result": "éééé1"}]}
    [refused] = ok(api.call("POST", "/v1/leases/batch", batch))["results"]
    assert refused["error"]["code"] == "too_large"

    assert api.message(large["id"])["state"] == "leased"
    ok(api.act(small["receipt"], "complete", result="12345678"))
    api.close()


def test_a_message_that_runs_has_no_result_yet(api: Api, lease: dict[str, Any]) -> None:
    expected = {"id": lease["id"], "state": "leased", "is_ended": False}

    assert result(api, lease["id"]) == expected
    assert result(api, lease["id"], 1) == expected


def test_a_completion_answers_who_waits_for_its_result(
    api: Api, server: LiveServer, lease: dict[str, Any], in_background: InBackground
) -> None:
    waiting = start_waiting(server, api, lease["id"], in_background)

    ok(api.act(lease["receipt"], "complete", result=17))

    assert waiting.result(SOON_S)["result"] == 17
    eventually(lambda: not server.broker.waiting_results.waiting)


def test_a_completion_without_a_result_answers_too(
    api: Api, server: LiveServer, lease: dict[str, Any], in_background: InBackground
) -> None:
    waiting = start_waiting(server, api, lease["id"], in_background)

    ok(api.act(lease["receipt"], "complete"))

    found = waiting.result(SOON_S)
    assert (found["state"], found["is_ended"], "result" in found) == ("done", True, False)


@pytest.mark.parametrize(
    ("verb", "state"), [("fail", "dead"), ("bury", "dead"), ("cancel", "cancelled")]
)
def test_any_other_end_answers_too(
    api: Api,
    server: LiveServer,
    lease: dict[str, Any],
    in_background: InBackground,
    verb: str,
    state: str,
) -> None:
    waiting = start_waiting(server, api, lease["id"], in_background)
    field = "error" if verb == "fail" else "reason"

    ok(api.act(lease["receipt"], verb, **{field: "so"}))

    found = waiting.result(SOON_S)
    assert (found["state"], found["is_ended"]) == (state, True)
    assert found[field] == "so"


def test_an_operator_who_cancels_a_message_answers_too(
    api: Api, server: LiveServer, queue: str, in_background: InBackground
) -> None:
    message_id = api.send(queue)
    waiting = start_waiting(server, api, message_id, in_background)

    ok(api.call("POST", f"/v1/messages/{message_id}/cancel", {"reason": "so"}))

    assert waiting.result(SOON_S)["state"] == "cancelled"


def test_a_wait_ends_when_the_server_stops(
    make_server: MakeServer, in_background: InBackground
) -> None:
    server = make_server()
    api = Api(server.url)
    message_id = api.send(api.make_queue())
    waiting = start_waiting(server, api, message_id, in_background)

    server.broker.waiting_results.close()

    assert waiting.result(SOON_S)["state"] == "ready"
    api.close()


def test_an_unknown_message_and_an_invalid_wait_are_refused(api: Api, queue: str) -> None:
    message_id = api.send(queue)
    path = f"/v1/messages/{message_id}/result"

    unknown = api.call("GET", f"/v1/messages/{message_id}0/result", params={"wait_ms": 1})
    assert_refused(unknown, 404, "message_not_found")
    for wait_ms in (-1, 20_001):
        answer = api.call("GET", path, params={"wait_ms": wait_ms})
        assert_refused(answer, 400, "invalid_request")


@pytest.mark.parametrize("message_id", ["%00", "%F0%9F%98%80", "'", "[1]", "x" * 300])
def test_any_text_may_be_asked_for_as_an_id(api: Api, message_id: str) -> None:
    path = f"/v1/messages/{message_id}/result"
    expected = api.call("GET", f"/v1/messages/{message_id}")

    for query in ({}, {"wait_ms": 1}):
        answer = api.call("GET", path, params=query)
        assert (answer.status_code, answer.json()) == (expected.status_code, expected.json())
        assert answer.status_code in (400, 404)


def test_a_result_needs_a_key_for_its_queue(let_in: LetIn) -> None:
    api = let_in()
    queue = api.make_queue("secret")
    message_id = api.send(queue)
    other = let_in(Role.READ, queues=("other*",))

    answer = other.call("GET", f"/v1/messages/{message_id}/result", params={"wait_ms": 1})

    assert_refused(answer, 403, "forbidden")
