"""Deliveries are pushed in order, one at a time per queue, until they end."""

from __future__ import annotations

import base64

import pytest

from penstock.domain.limits import SECOND
from penstock.domain.message.history import AttemptOutcome
from penstock.domain.message.lifecycle import State
from tests.fakes import FakeSender
from tests.runtime.pusher.driver import RETRY_MS, PusherDriver
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver

SECRET = "whsec_" + base64.b64encode(b"s" * 24).decode()


@pytest.fixture
def backend() -> str:
    """What a pusher does is not in the store; test_sharing and test_killed run on both."""
    return "sqlite"


def test_a_delivery_goes_where_its_route_leads(driver: PusherDriver):
    driver.rule(
        "/mail/(.*)", url="https://mail.example.org/v1/$1", timeout=7, headers={"x-key": "k"}
    )
    driver.deliver(
        driver.queue(), "/mail/send?to=a", method="PUT", x_mine="1", host="old", x_queue="q"
    )

    driver.step()

    [request] = driver.sender.sent
    assert (request.method, request.url) == ("PUT", "https://mail.example.org/v1/send?to=a")
    assert (request.payload, request.timeout_ms) == (b"{}", 7_000)
    assert request.headers == (("x-mine", "1"), ("x-key", "k"))


def test_its_sender_may_set_the_timeout(driver: PusherDriver):
    driver.deliver(driver.queue(), "/a", x_timeout="1500")

    driver.step()

    assert driver.sender.sent[0].timeout_ms == 1_500


def test_a_success_completes_it_and_history_has_the_answer(driver: PusherDriver):
    driver.deliver(driver.queue(), "/a")
    driver.step()

    driver.answer(202, took_ms=12)

    [ending] = driver.store_driver.endings()
    assert (ending.outcome, ending.reason) == (State.DONE, "status 202 in 12 ms")
    assert (ending.attempts, ending.leased_by) == (1, "node-1")
    check_counters(driver.store_driver)


def test_a_failure_is_retried_after_ten_seconds_and_history_has_each_attempt(driver: PusherDriver):
    message_id = driver.deliver(driver.queue(), "/a")
    driver.step()

    driver.answer(503, took_ms=5, excerpt="too busy")

    [attempt] = driver.store_driver.attempts(message_id)
    assert (attempt.outcome, attempt.error) == (
        AttemptOutcome.FAILED,
        "status 503 in 5 ms: too busy",
    )
    assert driver.message(message_id).due_at == driver.store_driver.now + RETRY_MS
    driver.clock.advance(ms=RETRY_MS - 1)
    driver.step()
    assert driver.sent() == ["/a"]
    driver.clock.advance(ms=1)
    driver.step()
    assert driver.sent() == ["/a", "/a"]


def test_no_answer_is_a_failure(driver: PusherDriver):
    message_id = driver.deliver(driver.queue(), "/a")
    driver.step()

    driver.answer(None, error="connection refused")

    assert driver.message(message_id).last_error == "connection refused (0 ms)"


def test_a_sender_that_is_broken_is_a_failure_like_others(driver: PusherDriver, caplog):
    class Broken(FakeSender):
        def send(self, request, then):
            raise RuntimeError("no threads left")

    message_id = driver.deliver(driver.queue(), "/a")
    pusher = driver.another(Broken())

    pusher.tick(driver.store_driver.now)
    pusher.tick(driver.store_driver.now)

    assert "no threads left" in str(driver.message(message_id).last_error)


def test_the_routes_own_intervals_come_first_and_the_last_one_repeats(driver: PusherDriver):
    driver.rule("/(.*)", url="http://backend/$1", retryIntervals=[1, 5])
    message_id = driver.deliver(driver.queue(), "/a")

    waits = []
    for _ in range(3):
        driver.step()
        driver.answer(500)
        waits.append(driver.message(message_id).due_at - driver.store_driver.now)
        driver.clock.advance(ms=waits[-1])

    assert waits == [1_000, 5_000, 5_000]


def test_no_delivery_is_given_up_by_itself(driver: PusherDriver):
    message_id = driver.deliver(driver.queue(), "/a")

    for _ in range(30):
        driver.step()
        driver.answer(500)
        driver.clock.advance(ms=RETRY_MS)

    assert driver.message(message_id).failures == 30


def test_one_at_a_time_and_strictly_in_order_also_while_the_first_backs_off(driver: PusherDriver):
    queue = driver.queue()
    for number in range(3):
        driver.deliver(queue, f"/{number}")

    driver.step()
    driver.step()
    assert driver.open() == ["/0"]
    driver.answer(500)
    driver.clock.advance(seconds=9)
    driver.step()
    assert driver.open() == []
    driver.clock.advance(seconds=1)
    driver.step()
    for _ in range(3):
        driver.answer(200)

    assert driver.sent() == ["/0", "/0", "/1", "/2"]
    assert [ending.outcome for ending in driver.store_driver.endings()] == [State.DONE] * 3
    check_counters(driver.store_driver)


def test_a_status_that_is_not_retried_ends_it(driver: PusherDriver):
    queue = driver.queue()
    driver.deliver(queue, "/a", x_queue_retry_4xx="0")
    driver.deliver(queue, "/b")
    driver.step()

    driver.answer(404)

    assert driver.open() == ["/b"]


def test_a_status_counts_as_the_route_maps_it(driver: PusherDriver):
    driver.rule("/(.*)", url="http://backend/$1", translateStatus={"4\\d\\d": 200})
    driver.deliver(driver.queue(), "/a")
    driver.step()

    driver.answer(404)

    assert driver.store_driver.endings()[0].outcome is State.DONE


def test_an_expired_delivery_is_not_sent(driver: PusherDriver):
    queue = driver.queue()
    driver.deliver(queue, "/old", x_queue_expire_after="5")
    driver.deliver(queue, "/new", x_queue_expire_after="-1", x_expire_after="1")
    driver.clock.advance(ms=5 * SECOND + 1)

    driver.step()
    driver.step()

    assert driver.sent() == ["/new"]
    [ending] = driver.store_driver.endings()
    assert (ending.outcome, ending.reason) == (State.CANCELLED, "expired")


def test_without_a_route_it_waits_for_one(driver: PusherDriver):
    driver.rules({})
    message_id = driver.deliver(driver.queue(), "/a")

    driver.step()
    assert "/a" in str(driver.message(message_id).last_error)
    driver.rule("/a", url="http://late/")
    driver.clock.advance(ms=RETRY_MS)
    driver.step()

    assert [request.url for request in driver.sender.sent] == ["http://late/"]


def test_a_message_that_is_not_a_delivery_stays_in_its_queue_with_the_error(driver: PusherDriver):
    message_id = driver.store_driver.send(driver.queue(), body='"surprise"', group="push")

    driver.step()

    assert "not a delivery" in str(driver.message(message_id).last_error)
    assert driver.sent() == []


@pytest.mark.parametrize(
    ("honours", "asked", "waited"),
    [
        (False, "30", RETRY_MS),
        (True, "30", 30_000),
        (True, "100000", 60_000),
        (True, "soon", RETRY_MS),
        (True, "Thu, 14 Mar 2030 12:00:20 GMT", 20_000),
        (True, "0", RETRY_MS),
        (True, "3", RETRY_MS),
        (True, "Thu, 14 Mar 2030 11:00:00 GMT", RETRY_MS),
    ],
)
def test_retry_after_lengthens_the_wait_if_enabled_and_never_shortens_it(
    store_driver: StoreDriver, honours, asked, waited
):
    driver = PusherDriver(store_driver, honours_retry_after=honours, max_retry_after_ms=60_000)
    message_id = driver.deliver(driver.queue(), "/a")
    driver.step()

    driver.sender.answer(503, retry_after=asked)
    driver.pusher.stop_claiming()
    driver.step()

    assert driver.message(message_id).due_at == store_driver.now + waited


@pytest.mark.parametrize("asked", ["0", "Thu, 14 Mar 2030 11:00:00 GMT"])
def test_a_short_retry_after_does_not_cause_a_loop(store_driver: StoreDriver, asked):
    driver = PusherDriver(store_driver, honours_retry_after=True, retry_ms=1)
    driver.deliver(driver.queue(), "/a")

    for _ in range(100):
        driver.step()
        if driver.open():
            driver.answer(503, retry_after=asked)
        driver.clock.advance(ms=10)

    assert len(driver.sent()) == 1


def test_signed_deliveries_have_the_same_id_at_every_attempt(driver: PusherDriver):
    driver.rule("/(.*)", url="http://backend/$1", signingSecrets=[SECRET, SECRET])
    message_id = driver.deliver(driver.queue(), "/a", webhook_id="forged")
    driver.step()
    driver.answer(500)
    driver.clock.advance(ms=RETRY_MS)
    driver.step()

    first, second = (dict(request.headers) for request in driver.sender.sent)
    assert first["webhook-id"] == second["webhook-id"] == message_id
    assert int(second["webhook-timestamp"]) - int(first["webhook-timestamp"]) == RETRY_MS // 1000
    assert len(first["webhook-signature"].split(" ")) == 2
    assert first["webhook-signature"] != second["webhook-signature"]


def test_queues_without_the_label_are_not_pushed(driver: PusherDriver):
    ordinary = driver.store_driver.queue("mail")
    driver.store_driver.send(ordinary)

    driver.step()

    assert driver.store_driver.counts(ordinary).ready == 1


def test_a_paused_queue_waits_until_it_is_resumed(driver: PusherDriver):
    queue = driver.queue()
    driver.deliver(queue, "/a")
    driver.store_driver.pause(queue)

    driver.step()
    assert driver.sent() == []
    driver.store_driver.pause(queue, is_paused=False)
    driver.step()
    assert driver.sent() == ["/a"]


def test_a_queue_that_is_removed_meanwhile_is_forgotten(driver: PusherDriver):
    queue = driver.queue()
    driver.deliver(queue, "/a")
    driver.step()
    driver.store_driver.write(
        lambda s: s.messages.purge(queue.queue_no, limit=10, now=driver.store_driver.now)
    )
    driver.store_driver.write(
        lambda s: s.queues.remove(queue.queue_no, now=driver.store_driver.now)
    )

    driver.answer(200)
    driver.step()

    assert driver.pusher.in_flight == 0
