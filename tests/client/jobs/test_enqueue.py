"""What enqueuing guarantees the caller, in every environment."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from penstock import Penstock
from penstock.domain.errors import InvalidRequest, QueueFull, TooLarge
from penstock.domain.message.lease import Verb
from tests.client.jobs.driver import JobDriver


@dataclass
class Invoice:
    number: int
    due: datetime


@pytest.fixture
def done() -> list[object]:
    return []


def test_a_job_is_enqueued_and_run_with_what_it_was_given(app, queue, driver, done):
    @app.job(queue=queue)
    def send_mail(to: str, subject: str = "hi") -> None:
        done.append((to, subject))

    enqueued = send_mail.enqueue("ada@example.org", subject="x")
    [work] = driver.claim()
    act = driver.act_of(work)

    assert (work.id, work.kind, work.queue) == (enqueued.id, "send_mail", queue)
    assert done == [("ada@example.org", "x")]
    assert act.verb is Verb.COMPLETE
    assert driver.act(act) == [None]
    assert not enqueued.is_duplicate


async def test_an_async_job_is_enqueued_and_run_too(app, queue, driver, done):
    @app.job(queue=queue)
    async def send_mail(to: str) -> None:
        await asyncio.sleep(0)
        done.append(to)

    await send_mail.enqueue_async("ada")
    driver.run_due()

    assert done == ["ada"]


def test_a_plain_call_is_a_plain_call(app, queue):
    @app.job(queue=queue)
    def double(n: int) -> int:
        """Twice as much."""
        return 2 * n

    assert double(4) == 8
    assert (double.__name__, double.__doc__) == ("double", "Twice as much.")


def test_records_and_instants_arrive_as_what_they_were(app, queue, driver, done):
    @app.job(queue=queue)
    def remind(invoice: Invoice) -> None:
        done.append(invoice)

    invoice = Invoice(17, datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC))
    remind.enqueue(invoice)
    driver.run_due()

    assert done == [invoice]


def test_a_job_that_is_enqueued_for_later_waits(app, queue, driver, clock, done):
    @app.job(queue=queue)
    def remind(who: str) -> None:
        done.append(who)

    now = datetime.fromtimestamp(clock.now() / 1000, UTC)
    remind.enqueue_in("5m", "ada")
    remind.enqueue_at(now + timedelta(minutes=10), "bob")
    remind.using(delay=timedelta(minutes=15)).enqueue("eve")

    for expected in ([], ["ada"], ["ada", "bob"], ["ada", "bob", "eve"]):
        driver.run_due()
        assert done == expected
        clock.advance(minutes=5)


async def test_the_twins_for_async_callers_do_the_same(app, queue, driver, clock, done):
    @app.job(queue=queue)
    def remind(who: str) -> None:
        done.append(who)

    now = datetime.fromtimestamp(clock.now() / 1000, UTC)
    await remind.enqueue_async("now")
    await remind.enqueue_many_async([remind.args("one"), {"who": "two"}])
    await remind.enqueue_in_async("5m", "in")
    await remind.enqueue_at_async(now + timedelta(minutes=5), "at")
    await app.enqueue_async("remind", {"who": "named"})
    remind.enqueue("blocking")
    driver.run_due()
    clock.advance(minutes=5)
    driver.run_due()

    assert done == ["now", "one", "two", "named", "blocking", "in", "at"]


def test_many_are_enqueued_at_once_in_their_order(app, queue, driver, done):
    @app.job(queue=queue)
    def count(n: int, *, by: int = 1) -> None:
        done.append((n, by))

    enqueued = count.enqueue_many([count.args(1), count.args(2, by=3), {"n": 3}])
    driver.run_due()

    assert len({one.id for one in enqueued}) == 3
    assert done == [(1, 1), (2, 3), (3, 1)]
    assert count.enqueue_many([]) == []


@pytest.mark.environments("volume")
def test_more_than_a_batch_takes_are_enqueued_in_several(app, queue, driver, done):
    @app.job(queue=queue)
    def count(n: int) -> None:
        done.append(n)

    assert len(count.enqueue_many(count.args(n) for n in range(1_500))) == 1_500

    while driver.run_due():
        pass
    assert done == list(range(1_500))


def test_enqueue_many_enqueues_nothing_if_the_arguments_of_one_job_are_invalid(app, queue, driver):
    @app.job(queue=queue)
    def count(n: int) -> None: ...

    with pytest.raises(InvalidRequest, match="argument 'n'"):
        count.enqueue_many([{"n": 1}, {"n": "two"}])

    assert driver.claim() == []


def test_a_refusal_among_many_is_raised_and_says_how_many_were_enqueued(app, queue):
    app.queue(queue, max_messages=2)

    @app.job(queue=queue)
    def count(n: int) -> None: ...

    with pytest.raises(QueueFull) as refused:
        count.enqueue_many([{"n": n} for n in range(5)])

    assert refused.value.__notes__ == ["2 of 5 jobs were enqueued"]


def test_an_error_of_the_store_is_raised_to_the_caller(app, queue):
    app.queue(queue, max_body_bytes=10)

    @app.job(queue=queue)
    def send_mail(to: str) -> None: ...

    with pytest.raises(TooLarge):
        send_mail.enqueue("much too long for that")


def test_options_are_given_separately_from_the_arguments(app, queue, driver):
    @app.job(queue=queue, priority=5, attempts=7)
    def send_mail(group: str) -> None: ...

    plain = send_mail.enqueue("argument")
    other = send_mail.using(
        priority=-1,
        group="ada",
        tags=("a", "b"),
        entity_id="user-1",
        attempts=2,
        attributes={"tone": "kind"},
    ).enqueue("argument")
    first, second = driver.claim()

    assert [first.id, second.id] == [other.id, plain.id]  # smaller goes first
    assert (first.group, first.tags, first.entity_id) == ("ada", ("a", "b"), "user-1")
    assert (first.max_attempts, second.max_attempts) == (2, 7)
    assert first.attributes == {"tone": "kind"}
    assert (second.priority, second.group) == (5, None)


def test_the_options_of_a_job_are_stored_with_its_message(app, queue, broker):
    @app.job(queue=queue, route="eu", timeout="30s", retries_timeouts=True, attempts=3)
    def send_mail() -> None: ...

    plain = broker.messages.find(send_mail.enqueue().id).result()
    other = broker.messages.find(send_mail.using(route="us").enqueue().id).result()

    assert (plain.route, other.route) == ("eu", "us")
    assert (plain.timeout_ms, plain.retries_timeouts, plain.max_attempts) == (30_000, True, 3)


def test_options_add_up_and_the_later_word_counts(app, queue, driver, clock):
    @app.job(queue=queue)
    def send_mail() -> None: ...

    later = send_mail.using(group="ada", delay="1h")
    later.using(delay="1m").enqueue()
    clock.advance(minutes=1)
    [work] = driver.claim()

    assert work.group == "ada"


def test_a_job_can_be_enqueued_by_its_kind_alone(app, queue, driver, done):
    app.enqueue("welcome", {"to": "ada"}, queue=queue)

    [work] = driver.claim()

    assert (work.kind, work.body) == ("welcome", '{"to":"ada"}')


def test_by_kind_what_is_known_of_the_job_counts(app, queue, driver, done):
    @app.job(queue=queue, kind="welcome", attempts=9)
    def send_welcome(to: str) -> None:
        done.append(to)

    with pytest.raises(InvalidRequest, match="job 'welcome': argument 'to'"):
        app.enqueue("welcome", {"to": 5})
    app.enqueue("welcome", {"to": "ada"})
    [work] = driver.claim()

    assert work.max_attempts == 9
    assert driver.act_of(work).verb is Verb.COMPLETE
    assert done == ["ada"]


def test_a_job_that_is_too_old_is_not_run(app, queue, driver, clock, done):
    @app.job(queue=queue, expires_in="1m")
    def send_mail() -> None:
        done.append("sent")

    send_mail.enqueue()
    clock.advance(minutes=1)
    driver.run_due()

    assert done == []


def test_threads_share_an_application(app, queue, driver, done):
    @app.job(queue=queue)
    def count(n: int) -> None:
        done.append(n)

    threads = [threading.Thread(target=count.enqueue, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    driver.run_due()

    assert sorted(done) == list(range(8))


@pytest.mark.no_store("declaring")
def test_arguments_are_looked_at_before_anything_is_opened(queue):
    app = Penstock("postgresql://unknown@127.0.0.1:1/nowhere")

    @app.job(queue=queue)
    def send_mail(to: str) -> None: ...

    with pytest.raises(InvalidRequest, match="job 'send_mail': argument 'to': Expected `str`"):
        send_mail.enqueue(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="job 'send_mail': missing a required argument: 'to'"):
        send_mail.enqueue()  # type: ignore[call-arg]
    with pytest.raises(InvalidRequest, match="time zone"):
        send_mail.enqueue_at(datetime(2030, 1, 1), "ada")  # noqa: DTZ001
    with pytest.raises(InvalidRequest, match="timedelta"):
        send_mail.enqueue_in(5, "ada")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="no option colour"):
        send_mail.using(colour="red")  # type: ignore[call-arg]


def test_a_worker_of_another_queue_claims_nothing(app, queue, clock):
    @app.job(queue=queue)
    def send_mail() -> None: ...

    send_mail.enqueue()

    assert JobDriver(app, clock, "another").claim() == []
