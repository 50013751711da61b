"""Requests in flight: their leases, when another node takes over, and when a node stops."""

from __future__ import annotations

import base64

from penstock.domain.bus.endpoint import Endpoint, route_of
from penstock.domain.delivery.delivery import KIND, Delivery, to_body
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Queue
from penstock.ports.sender import PushResponse
from tests.fakes import FakeSender
from tests.runtime.pusher.driver import LEASE_MS, PusherDriver

EVENTS = "/topics/news/audit"
SECRET = "whsec_" + base64.b64encode(b"s" * 24).decode()


def test_a_lease_is_extended_while_a_slow_backend_answers(driver: PusherDriver):
    message_id = driver.deliver(driver.queue(), "/slow")
    driver.step()
    other = FakeSender()
    another = driver.another(other, "node-2")

    for _ in range(10):
        driver.clock.advance(ms=LEASE_MS // 3)
        driver.step()
        driver.reap()
        another.tick(driver.store_driver.now)
    driver.answer(200)

    assert other.sent == []
    [ending] = driver.store_driver.endings()
    assert (ending.id, ending.attempts) == (message_id, 1)


def test_requests_in_flight_of_a_killed_node_are_sent_again_with_the_same_id(driver: PusherDriver):
    driver.rule("/(.*)", url="http://backend/$1", signingSecret=SECRET)
    queue = driver.queue()
    driver.deliver(queue, "/a")
    driver.deliver(queue, "/b")
    driver.step()
    survivor = FakeSender()
    another = driver.another(survivor, "node-2")

    driver.clock.advance(ms=LEASE_MS - 1)
    another.tick(driver.store_driver.now)
    assert survivor.sent == []
    driver.clock.advance(ms=1)
    driver.reap()
    another.tick(driver.store_driver.now)

    [before], [after] = driver.sender.sent, survivor.sent
    assert dict(before.headers)["webhook-id"] == dict(after.headers)["webhook-id"]
    survivor.answer(200)
    another.tick(driver.store_driver.now)
    assert [request.url for request in survivor.sent] == ["http://backend/a", "http://backend/b"]


def deliver_event(driver: PusherDriver, queue: Queue) -> None:
    """For an endpoint with events in any order."""
    delivery = Delivery(method="POST", uri=EVENTS, payload=b"{}", queued_at=driver.clock.now())
    driver.store_driver.send(queue, body=to_body(delivery), kind=KIND)


def test_two_lanes_that_send_the_same_message_both_become_free_again(driver: PusherDriver):
    """Another node took over when the lease had expired, and released the message again."""
    queue = driver.queue("events")
    endpoint = Endpoint(url="http://backend/hook", concurrency=2)
    driver.routes.endpoints = {queue.queue_no: route_of(endpoint, EVENTS)}
    deliver_event(driver, queue)
    driver.step()
    other = FakeSender()
    another = driver.another(other, "node-2")
    driver.clock.advance(ms=LEASE_MS)
    driver.reap()
    another.tick(driver.clock.now())
    driver.step()
    another.stop_claiming()
    other.close()
    another.tick(driver.clock.now())
    driver.step()
    assert len(driver.open()) == 2

    for _, then in driver.sender.open:
        then(PushResponse(status=200))
        driver.step()
    driver.sender.open.clear()
    for _ in range(3):
        deliver_event(driver, queue)
        driver.step()

    assert len(driver.open()) == 2, "as many as the endpoint allows"
    driver.answer(200)
    driver.answer(200)
    assert len(driver.store_driver.endings()) == 4
    assert driver.pusher.in_flight == 0


def test_an_answer_after_another_node_took_over_changes_nothing(driver: PusherDriver):
    driver.deliver(driver.queue(), "/a")
    driver.step()
    other = FakeSender()
    another = driver.another(other, "node-2")
    driver.clock.advance(ms=LEASE_MS)
    driver.reap()
    another.tick(driver.store_driver.now)
    assert len(other.sent) == 1

    driver.answer(500)

    assert driver.store_driver.endings() == []
    other.answer(200)
    another.tick(driver.store_driver.now)
    [ending] = driver.store_driver.endings()
    assert (ending.outcome, ending.leased_by, ending.failures) == (State.DONE, "node-2", 0)


def test_a_late_success_counts_as_long_as_no_other_node_has_claimed_it(driver: PusherDriver):
    driver.deliver(driver.queue(), "/a")
    driver.step()
    driver.clock.advance(ms=2 * LEASE_MS)
    driver.reap()

    driver.answer(200)

    assert [ending.outcome for ending in driver.store_driver.endings()] == [State.DONE]
    assert driver.sent() == ["/a"]


def test_a_request_aborted_at_a_stop_is_released_at_once_without_counting_an_attempt(
    driver: PusherDriver,
):
    message_id = driver.deliver(driver.queue(), "/a")
    driver.step()

    driver.pusher.stop_claiming()
    driver.sender.close()
    driver.step()

    message = driver.message(message_id)
    assert (message.state, message.attempts, message.failures) == (State.READY, 0, 0)
    assert driver.pusher.in_flight == 0


def test_a_stopping_pusher_claims_nothing_but_finishes_what_was_answered(driver: PusherDriver):
    queue = driver.queue()
    driver.deliver(queue, "/a")
    driver.deliver(queue, "/b")
    driver.step()

    driver.pusher.stop_claiming()
    driver.answer(200)
    driver.step()

    assert driver.sent() == ["/a"]
    assert len(driver.store_driver.endings()) == 1
