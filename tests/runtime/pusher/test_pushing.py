"""Deliveries go out in order, one at a time per queue, and come to their ends."""

from __future__ import annotations

import base64

import pytest

from penstock.domain.limits import SECOND
from penstock.domain.message.history import AttemptOutcome
from penstock.domain.message.lifecycle import State
from tests.fakes import FakeSender
from tests.runtime.pusher.rig import LEASE_MS, RETRY_MS, Rig
from tests.store.desk import Desk
from tests.store.recount import check_books

SECRET = "whsec_" + base64.b64encode(b"s" * 24).decode()


def test_a_delivery_goes_where_its_route_leads(rig: Rig):
    rig.rule("/mail/(.*)", url="https://mail.example.org/v1/$1", timeout=7, headers={"x-key": "k"})
    rig.deliver(rig.queue(), "/mail/send?to=a", method="PUT", x_mine="1", host="old", x_queue="q")

    rig.step()

    [request] = rig.sender.sent
    assert (request.method, request.url) == ("PUT", "https://mail.example.org/v1/send?to=a")
    assert (request.payload, request.timeout_ms) == (b"{}", 7_000)
    assert request.headers == (("x-mine", "1"), ("x-key", "k"))


def test_its_sender_may_say_how_long_it_may_take(rig: Rig):
    rig.deliver(rig.queue(), "/a", x_timeout="1500")

    rig.step()

    assert rig.sender.sent[0].timeout_ms == 1_500


def test_a_success_completes_it_and_history_tells_what_was_answered(rig: Rig):
    rig.deliver(rig.queue(), "/a")
    rig.step()

    rig.answer(202, took_ms=12)

    [ending] = rig.desk.endings()
    assert (ending.outcome, ending.reason) == (State.DONE, "status 202 in 12 ms")
    assert (ending.attempts, ending.leased_by) == (1, "node-1")
    check_books(rig.desk)


def test_a_failure_is_tried_again_after_ten_seconds_and_history_tells_of_each(rig: Rig):
    message_id = rig.deliver(rig.queue(), "/a")
    rig.step()

    rig.answer(503, took_ms=5, excerpt="too busy")

    [attempt] = rig.desk.attempts(message_id)
    assert (attempt.outcome, attempt.error) == (
        AttemptOutcome.FAILED,
        "status 503 in 5 ms: too busy",
    )
    assert rig.message(message_id).due_at == rig.desk.now + RETRY_MS
    rig.clock.advance(ms=RETRY_MS - 1)
    rig.step()
    assert rig.sent() == ["/a"]
    rig.clock.advance(ms=1)
    rig.step()
    assert rig.sent() == ["/a", "/a"]


def test_no_answer_is_a_failure(rig: Rig):
    message_id = rig.deliver(rig.queue(), "/a")
    rig.step()

    rig.answer(None, error="connection refused")

    assert rig.message(message_id).last_error == "connection refused (0 ms)"


def test_a_sender_that_is_broken_is_a_failure_like_others(rig: Rig, caplog):
    class Broken(FakeSender):
        def send(self, request, then):
            raise RuntimeError("no threads left")

    message_id = rig.deliver(rig.queue(), "/a")
    pusher = rig.another(Broken())

    pusher.tick(rig.desk.now)
    pusher.tick(rig.desk.now)

    assert "no threads left" in str(rig.message(message_id).last_error)


def test_the_routes_own_intervals_come_first_and_the_last_one_stays(rig: Rig):
    rig.rule("/(.*)", url="http://backend/$1", retryIntervals=[1, 5])
    message_id = rig.deliver(rig.queue(), "/a")

    waits = []
    for _ in range(3):
        rig.step()
        rig.answer(500)
        waits.append(rig.message(message_id).due_at - rig.desk.now)
        rig.clock.advance(ms=waits[-1])

    assert waits == [1_000, 5_000, 5_000]


def test_never_is_anything_given_up_by_itself(rig: Rig):
    message_id = rig.deliver(rig.queue(), "/a")

    for _ in range(30):
        rig.step()
        rig.answer(500)
        rig.clock.advance(ms=RETRY_MS)

    assert rig.message(message_id).failures == 30


def test_one_at_a_time_and_strictly_in_order_also_while_the_first_backs_off(rig: Rig):
    queue = rig.queue()
    for number in range(3):
        rig.deliver(queue, f"/{number}")

    rig.step()
    rig.step()
    assert rig.open() == ["/0"]
    rig.answer(500)
    rig.clock.advance(seconds=9)
    rig.step()
    assert rig.open() == []
    rig.clock.advance(seconds=1)
    rig.step()
    for _ in range(3):
        rig.answer(200)

    assert rig.sent() == ["/0", "/0", "/1", "/2"]
    assert [ending.outcome for ending in rig.desk.endings()] == [State.DONE] * 3
    check_books(rig.desk)


def test_a_status_that_is_not_to_be_tried_again_ends_it(rig: Rig):
    queue = rig.queue()
    rig.deliver(queue, "/a", x_queue_retry_4xx="0")
    rig.deliver(queue, "/b")
    rig.step()

    rig.answer(404)

    assert rig.open() == ["/b"]


def test_a_status_counts_as_what_the_route_makes_of_it(rig: Rig):
    rig.rule("/(.*)", url="http://backend/$1", translateStatus={"4\\d\\d": 200})
    rig.deliver(rig.queue(), "/a")
    rig.step()

    rig.answer(404)

    assert rig.desk.endings()[0].outcome is State.DONE


def test_what_is_too_old_when_its_turn_comes_is_not_sent(rig: Rig):
    queue = rig.queue()
    rig.deliver(queue, "/old", x_queue_expire_after="5")
    rig.deliver(queue, "/new", x_queue_expire_after="-1", x_expire_after="1")
    rig.clock.advance(ms=5 * SECOND + 1)

    rig.step()
    rig.step()

    assert rig.sent() == ["/new"]
    [ending] = rig.desk.endings()
    assert (ending.outcome, ending.reason) == (State.CANCELLED, "expired")


def test_without_a_route_it_waits_for_one(rig: Rig):
    rig.rules({})
    message_id = rig.deliver(rig.queue(), "/a")

    rig.step()
    assert "/a" in str(rig.message(message_id).last_error)
    rig.rule("/a", url="http://late/")
    rig.clock.advance(ms=RETRY_MS)
    rig.step()

    assert [request.url for request in rig.sender.sent] == ["http://late/"]


def test_what_is_no_delivery_stays_where_it_is_and_says_why(rig: Rig):
    message_id = rig.desk.send(rig.queue(), body='"surprise"', group="push")

    rig.step()

    assert "no delivery" in str(rig.message(message_id).last_error)
    assert rig.sent() == []


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
def test_retry_after_lengthens_the_wait_if_so_set_and_never_shortens_it(
    desk: Desk, honours, asked, waited
):
    rig = Rig(desk, honours_retry_after=honours, max_retry_after_ms=60_000)
    message_id = rig.deliver(rig.queue(), "/a")
    rig.step()

    rig.sender.answer(503, retry_after=asked)
    rig.pusher.stop_claiming()
    rig.step()

    assert rig.message(message_id).due_at == desk.now + waited


@pytest.mark.parametrize("asked", ["0", "Thu, 14 Mar 2030 11:00:00 GMT"])
def test_an_endpoint_that_wants_no_wait_is_not_asked_in_a_loop(desk: Desk, asked):
    rig = Rig(desk, honours_retry_after=True, retry_ms=1)
    rig.deliver(rig.queue(), "/a")

    for _ in range(100):
        rig.step()
        if rig.open():
            rig.answer(503, retry_after=asked)
        rig.clock.advance(ms=10)

    assert len(rig.sent()) == 1


def test_signed_deliveries_have_the_same_id_at_every_attempt(rig: Rig):
    rig.rule("/(.*)", url="http://backend/$1", signingSecrets=[SECRET, SECRET])
    message_id = rig.deliver(rig.queue(), "/a", webhook_id="forged")
    rig.step()
    rig.answer(500)
    rig.clock.advance(ms=RETRY_MS)
    rig.step()

    first, second = (dict(request.headers) for request in rig.sender.sent)
    assert first["webhook-id"] == second["webhook-id"] == message_id
    assert int(second["webhook-timestamp"]) - int(first["webhook-timestamp"]) == RETRY_MS // 1000
    assert len(first["webhook-signature"].split(" ")) == 2
    assert first["webhook-signature"] != second["webhook-signature"]


def test_queues_without_the_label_are_nobodys_business(rig: Rig):
    ordinary = rig.desk.queue("mail")
    rig.desk.send(ordinary)

    rig.step()

    assert rig.desk.counts(ordinary).ready == 1


def test_a_paused_queue_waits_and_goes_on_when_it_is_resumed(rig: Rig):
    queue = rig.queue()
    rig.deliver(queue, "/a")
    rig.desk.pause(queue)

    rig.step()
    assert rig.sent() == []
    rig.desk.pause(queue, is_paused=False)
    rig.step()
    assert rig.sent() == ["/a"]


def test_a_queue_that_is_removed_meanwhile_is_forgotten(rig: Rig):
    queue = rig.queue()
    rig.deliver(queue, "/a")
    rig.step()
    rig.desk.write(lambda s: s.messages.purge(queue.queue_no, limit=10, now=rig.desk.now))
    rig.desk.write(lambda s: s.queues.remove(queue.queue_no, now=rig.desk.now))

    rig.answer(200)
    rig.step()

    assert rig.pusher.under_way == 0


def test_a_lease_is_extended_while_a_slow_backend_answers(rig: Rig):
    message_id = rig.deliver(rig.queue(), "/slow")
    rig.step()
    other = FakeSender()
    another = rig.another(other, "node-2")

    for _ in range(10):
        rig.clock.advance(ms=LEASE_MS // 3)
        rig.step()
        rig.reap()
        another.tick(rig.desk.now)
    rig.answer(200)

    assert other.sent == []
    [ending] = rig.desk.endings()
    assert (ending.id, ending.attempts) == (message_id, 1)


def test_what_a_killed_node_had_under_way_is_sent_again_with_the_same_id(rig: Rig):
    rig.rule("/(.*)", url="http://backend/$1", signingSecret=SECRET)
    queue = rig.queue()
    rig.deliver(queue, "/a")
    rig.deliver(queue, "/b")
    rig.step()
    survivor = FakeSender()
    another = rig.another(survivor, "node-2")

    rig.clock.advance(ms=LEASE_MS - 1)
    another.tick(rig.desk.now)
    assert survivor.sent == []
    rig.clock.advance(ms=1)
    rig.reap()
    another.tick(rig.desk.now)

    [before], [after] = rig.sender.sent, survivor.sent
    assert dict(before.headers)["webhook-id"] == dict(after.headers)["webhook-id"]
    survivor.answer(200)
    another.tick(rig.desk.now)
    assert [request.url for request in survivor.sent] == ["http://backend/a", "http://backend/b"]


def test_an_answer_that_comes_after_somebody_else_took_over_changes_nothing(rig: Rig):
    rig.deliver(rig.queue(), "/a")
    rig.step()
    other = FakeSender()
    another = rig.another(other, "node-2")
    rig.clock.advance(ms=LEASE_MS)
    rig.reap()
    another.tick(rig.desk.now)
    assert len(other.sent) == 1

    rig.answer(500)

    assert rig.desk.endings() == []
    other.answer(200)
    another.tick(rig.desk.now)
    [ending] = rig.desk.endings()
    assert (ending.outcome, ending.leased_by, ending.failures) == (State.DONE, "node-2", 0)


def test_a_late_success_counts_as_long_as_nobody_else_has_begun(rig: Rig):
    rig.deliver(rig.queue(), "/a")
    rig.step()
    rig.clock.advance(ms=2 * LEASE_MS)
    rig.reap()

    rig.answer(200)

    assert [ending.outcome for ending in rig.desk.endings()] == [State.DONE]
    assert rig.sent() == ["/a"]


def test_what_is_broken_off_at_a_stop_goes_back_at_once_and_its_attempt_does_not_count(rig: Rig):
    message_id = rig.deliver(rig.queue(), "/a")
    rig.step()

    rig.pusher.stop_claiming()
    rig.sender.close()
    rig.step()

    message = rig.message(message_id)
    assert (message.state, message.attempts, message.failures) == (State.READY, 0, 0)
    assert rig.pusher.under_way == 0


def test_who_stops_claims_nothing_more_but_settles_what_comes_back(rig: Rig):
    queue = rig.queue()
    rig.deliver(queue, "/a")
    rig.deliver(queue, "/b")
    rig.step()

    rig.pusher.stop_claiming()
    rig.answer(200)
    rig.step()

    assert rig.sent() == ["/a"]
    assert len(rig.desk.endings()) == 1
