"""The client against a real server: every method, and rejections as the original errors."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

from penstock.api.leases import BatchAct
from penstock.api.messages import Acted, Draft, Sent
from penstock.client.errors import Unreachable
from penstock.client.remote.server import Remote
from penstock.domain import errors
from penstock.domain.access.api_key import Role
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.message.move_task import MoveState
from penstock.domain.queue.queue import DedupUntil, QueueSettings
from tests.edge import conftest as edge
from tests.edge.api import a_name
from tests.edge.duties import advance_moves

pytestmark = pytest.mark.no_store("server")
clock = edge.clock


@pytest.fixture
def queue(remote: Remote) -> str:
    return remote.queues.put(a_name()).name


def claim_one(remote: Remote, queue: str, **wanted):
    [message] = remote.claim(queue, **wanted)
    return message


def test_a_message_is_sent_claimed_and_completed(remote, queue):
    sent = remote.send(queue, {"to": "ada"}, kind="mail", tags=("a",), attributes={"x": "y"})
    message = claim_one(remote, queue, claimed_by="me")
    acted = remote.complete(message.receipt)

    assert message.id == sent.id == acted.id
    assert message.body == {"to": "ada"}
    assert (message.kind, message.tags, message.attributes) == ("mail", ("a",), {"x": "y"})
    assert (message.state, acted.state) == (State.LEASED, State.DONE)
    assert message.leased_until - message.sent_at == timedelta(seconds=30)
    assert remote.messages.get(sent.id).state is State.DONE


def test_a_result_is_given_and_read(remote, queue):
    for n in range(3):
        remote.send(queue, n)
    first, second, third = remote.claim(queue, limit=3)
    assert not remote.messages.result(first.id).is_ended

    remote.complete(first.receipt, result={"n": 1})
    remote.complete(third.receipt)
    remote.complete_and_claim(queue, [second.receipt], results={second.receipt: [2]})

    found = [remote.messages.result(m.id, wait_ms=1_000) for m in (first, second, third)]
    assert [(one.state, one.result) for one in found] == [
        (State.DONE, {"n": 1}),
        (State.DONE, [2]),
        (State.DONE, None),
    ]


def test_instants_go_in_and_come_out_as_datetimes(remote, queue):
    due = datetime(2031, 5, 1, 12, 0, 0, 123_000, tzinfo=UTC)

    sent = remote.send(queue, 1, due_at=due, expires_at=due + timedelta(days=1))

    message = remote.messages.get(sent.id)
    assert (message.due_at, message.expires_at) == (due, due + timedelta(days=1))


def test_a_batch_answers_for_each_part_whether_it_was_accepted(remote):
    queue = remote.queues.put(a_name(), QueueSettings(max_body_bytes=5)).name

    first, second, third = remote.send_batch(queue, [Draft(1), Draft("much too long"), Draft(None)])

    assert isinstance(first, Sent)
    assert isinstance(second, errors.TooLarge)
    assert isinstance(third, Sent)


def test_acts_in_a_batch_are_distinguished(remote, queue):
    remote.send_batch(queue, [Draft(1), Draft(2)])
    one, two = remote.claim(queue, limit=2)

    results = remote.act_batch(
        [
            BatchAct(one.receipt, Verb.COMPLETE),
            BatchAct(two.receipt, Verb.FAIL, error="boom", retry_in_ms=60_000),
            BatchAct(one.receipt, Verb.COMPLETE),
        ]
    )

    assert [r.state for r in results if isinstance(r, Acted)] == [State.DONE, State.WAITING]
    assert isinstance(results[2], errors.LeaseLost)


@pytest.mark.parametrize(
    ("act", "state"),
    [
        (lambda r, receipt: r.fail(receipt, error="e", retry_in_ms=1000), State.WAITING),
        (lambda r, receipt: r.release(receipt), State.READY),
        (lambda r, receipt: r.extend(receipt, lease_ms=1000), State.LEASED),
        (lambda r, receipt: r.extend(receipt), State.LEASED),
        (lambda r, receipt: r.snooze(receipt, delay_ms=1000), State.WAITING),
        (lambda r, receipt: r.bury(receipt, reason="r"), State.DEAD),
        (lambda r, receipt: r.cancel(receipt, reason="r"), State.CANCELLED),
    ],
)
def test_every_act_on_a_lease(remote, queue, act, state):
    remote.send(queue, 1)

    acted = act(remote, claim_one(remote, queue).receipt)

    assert acted.state is state


def test_queues_are_made_changed_paused_and_removed(remote):
    name = a_name()
    made = remote.queues.put(name, {"lease_ms": 5_000})
    changed = remote.queues.patch(name, {"max_attempts": None})

    assert made.settings == QueueSettings(lease_ms=5_000)
    assert changed.settings == QueueSettings(lease_ms=5_000, max_attempts=None)
    assert remote.queues.pause(name).is_paused
    assert not remote.queues.resume(name).is_paused
    assert [queue.name for queue in remote.queues.list(prefix=name)] == [name]
    remote.queues.delete(name)
    with pytest.raises(errors.QueueNotFound, match=name):
        remote.queues.get(name)


def test_messages_are_moved_in_the_background(remote, server, clock, queue):
    source = remote.queues.put(a_name(), {"dead_letter_queue": queue}).name
    for _ in range(3):
        remote.send(source, 1)
        remote.bury(claim_one(remote, source).receipt)

    started = remote.moves.start(queue, max_per_second=1)
    advance_moves(server, clock)
    cancelled = remote.moves.cancel(started.id)

    assert (started.state, started.to_move, started.to) == (MoveState.RUNNING, 3, None)
    assert cancelled.state is MoveState.CANCELLING
    assert cancelled.moved == 1
    assert [move.id for move in remote.moves.list(queue)] == [started.id]
    assert remote.moves.get(started.id).started_at == started.started_at
    assert [q.name for q in remote.queues.list(dead_letter_queue=queue)] == [source]
    with pytest.raises(errors.MoveNotRunning):
        remote.moves.cancel(started.id)
    with pytest.raises(errors.TargetNotFound):
        remote.moves.start(source, to=a_name("none"))


def test_a_queue_is_emptied_and_redriven(remote, queue):
    remote.send_batch(queue, [Draft(n) for n in range(3)])
    remote.bury(claim_one(remote, queue).receipt)

    assert remote.queues.redrive(queue) == 1
    assert remote.queues.purge(queue) == 3
    assert remote.queues.get(queue).totals.cancelled == 3


def test_single_messages_are_looked_at_and_changed(remote, queue):
    one, two = (result.id for result in remote.send_batch(queue, [Draft(1), Draft(2)]))

    assert [m.id for m in remote.messages.browse(queue, limit=1).messages] == [one]
    due = datetime(2031, 1, 1, tzinfo=UTC)
    assert remote.messages.reschedule(one, due).due_at == due
    assert remote.messages.cancel(one, reason="r").state is State.CANCELLED
    assert remote.messages.bury(two).state is State.DEAD
    assert remote.messages.redrive(two).state is State.READY
    with pytest.raises(errors.MessageNotFound):
        remote.messages.get("unknown")
    with pytest.raises(errors.WrongState):
        remote.messages.redrive(two)


def test_history_is_read_page_by_page(remote, queue):
    remote.send_batch(queue, [Draft(n) for n in range(7)])
    remote.queues.purge(queue)

    endings = list(remote.history.search(queue=queue, page_size=3, outcome=State.CANCELLED))

    assert len({ending.id for ending in endings}) == 7
    past = remote.history.of(endings[0].id)
    assert [ending.id for ending in past.endings] == [endings[0].id]
    assert past.attempts == []


def test_stats_and_readiness(remote, server):
    assert remote.stats().backend == server.backend
    assert remote.is_ready()


def test_names_are_quoted_on_their_way(remote):
    with pytest.raises(errors.InvalidRequest):
        remote.queues.put("a/b?c")
    with pytest.raises(errors.MessageNotFound, match=r"a/\.\./b"):
        remote.messages.get("a/../b")


def test_a_client_is_shared_by_threads(remote, queue):
    def send() -> None:
        for number in range(20):
            remote.send(queue, number)

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert remote.queues.get(queue).counts.ready == 160


def test_a_key_is_accepted(make_server):
    server = make_server()
    secret = server.broker.keys.create("me", roles=(Role.READ,)).result().secret
    server.broker.refresh_keys()

    with pytest.raises(errors.Unauthenticated):
        Remote(server.url).stats()
    with pytest.raises(errors.Forbidden):
        Remote(server.url, key=secret).send("any", 1)
    assert Remote(server.url, key=secret).stats().queues == 0


def test_a_server_that_comes_back_is_found_again(make_server, tmp_path):
    server = make_server(data=tmp_path / "kept")
    remote = Remote(server.url)
    remote.queues.put("mail")
    server.stop()

    with pytest.raises(Unreachable) as lost:
        remote.queues.get("mail")
    make_server(data=tmp_path / "kept", server={"port": server.port})

    assert not lost.value.was_sent
    assert remote.queues.get("mail").name == "mail"


def test_a_claim_first_completes_the_messages_of_its_receipts(remote, queue):
    remote.send_batch(queue, [Draft("one"), Draft("two")])
    one = claim_one(remote, queue)

    [done], [two] = remote.complete_and_claim(queue, [one.receipt])
    [lost], nothing = remote.complete_and_claim(queue, [one.receipt])

    assert isinstance(done, Acted)
    assert (done.id, two.body) == (one.id, "two")
    assert isinstance(lost, errors.LeaseLost)
    assert nothing == []


def test_the_options_of_a_job_pass_through_the_client(remote, queue):
    remote.send(queue, 0, kind="other")
    sent = remote.send(
        queue,
        1,
        kind="a",
        timeout_ms=60_000,
        retries_timeouts=True,
        dedup_key="k",
        dedup_until=DedupUntil.ENDED,
        route="eu",
    )
    message = claim_one(remote, queue, kinds=["a"])
    remote.extend(message.receipt, is_start=True, progress={"done": 1})
    shown = remote.messages.get(sent.id)

    assert message.id == sent.id
    assert (message.timeout_ms, message.retries_timeouts, message.route) == (60_000, True, "eu")
    assert message.dedup_until is DedupUntil.ENDED
    assert message.deadline_at - message.sent_at >= timedelta(minutes=1)
    assert shown.progress == {"done": 1}
    assert shown.started_at is not None


def test_timeouts_and_crashes_are_acts_like_others(remote, queue):
    for _ in range(2):
        remote.send(queue, 1)
    first, second = remote.claim(queue, limit=2)

    timed_out = remote.time_out(first.receipt, error="slow")
    [crashed] = remote.act_batch([BatchAct(second.receipt, Verb.CRASH, error="signal 9")])

    assert (timed_out.state, crashed.state) == (State.DEAD, State.READY)
    [ending] = remote.history.of(first.id).endings
    assert ending.reason == "timed_out"
    assert remote.messages.get(second.id).crashes == 1


def test_a_claim_of_some_kinds_first_completes_the_messages_of_its_receipts(remote, queue):
    remote.send(queue, 1, kind="a")
    remote.send(queue, 2, kind="b")
    remote.send(queue, 3, kind="a")
    first = claim_one(remote, queue, kinds=("a",))

    [done], [following] = remote.complete_and_claim(queue, [first.receipt], kinds=("a",))

    assert (done.state, following.body) == (State.DONE, 3)
