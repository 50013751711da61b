"""The overview of all queues: changes and problems; and search by parts of names."""

from __future__ import annotations

import pytest
from msgspec import structs

from penstock.domain.delivery.delivery import queue_settings
from penstock.domain.limits import MINUTE
from penstock.domain.message.lease import Verb
from penstock.domain.queue.problem import HANGING_AFTER_MS, STUCK_AFTER_MS, HangingRoute, Problem
from penstock.domain.queue.queue import Queue
from penstock.services.overview import OverviewService, OverviewSnapshot
from tests.store.driver import StoreDriver

LATE = {"minutes": STUCK_AFTER_MS // MINUTE}


@pytest.fixture
def overview(driver: StoreDriver) -> OverviewService:
    return OverviewService(driver.store, driver.clock)


@pytest.fixture
def mail(driver: StoreDriver) -> Queue:
    return driver.queue("mail")


def problems(overview: OverviewService) -> dict[str, tuple[Problem, ...]]:
    found = overview.problems().result()
    return {wrong.snapshot.queue.name: wrong.problems for wrong in found}


def changed(overview: OverviewService, before: OverviewSnapshot) -> list[str]:
    return sorted(one.queue.name for one in overview.snapshot(before).result().changed)


def die(driver: StoreDriver, queue: Queue) -> None:
    driver.send(queue)
    [claimed] = driver.claim(queue)
    driver.act(Verb.BURY, claimed, text="broken")


def test_routes_with_unanswered_deliveries_are_reported(
    driver: StoreDriver, overview: OverviewService
) -> None:
    settings = structs.asdict(queue_settings())
    for number in range(3):
        queue = driver.queue(f"slow-{number}", **settings)
        driver.send(queue, group="push", route="/slow/(.*)")
        driver.claim(queue)
    began = driver.now
    driver.clock.advance(ms=HANGING_AFTER_MS - 1)
    late = driver.queue("late", **settings)
    driver.send(late, group="push", route="/late/(.*)")
    driver.send(driver.queue("jobs"), route="stripe")
    driver.claim(late)
    assert overview.hanging().result() == []

    driver.clock.advance(ms=1)

    assert overview.hanging().result() == [HangingRoute("/slow/(.*)", 3, began)]
    driver.clock.advance(ms=HANGING_AFTER_MS)
    assert [one.pattern for one in overview.hanging().result()] == ["/slow/(.*)", "/late/(.*)"]


def test_a_look_shows_which_queues_have_changed(
    driver: StoreDriver, mail: Queue, overview: OverviewService
) -> None:
    other = driver.queue("other")
    driver.send(mail)
    driver.send(other)
    first = overview.snapshot().result()
    assert first.changed == []

    driver.claim(mail)
    second = overview.snapshot(first).result()

    assert [one.queue.name for one in second.changed] == ["mail"]
    assert second.changed[0].counts == driver.counts(mail)
    assert changed(overview, second) == []


def test_every_arrival_and_departure_is_a_change(
    driver: StoreDriver, overview: OverviewService
) -> None:
    queue = driver.queue("mail", max_attempts=3)
    snapshot = overview.snapshot().result()

    def step() -> None:
        nonlocal snapshot
        assert changed(overview, snapshot) == ["mail"]
        snapshot = overview.snapshot(snapshot).result()

    driver.send(queue)
    step()
    [claimed] = driver.claim(queue)
    step()
    driver.act(Verb.RELEASE, claimed)
    step()
    [claimed] = driver.claim(queue)
    step()
    driver.act(Verb.FAIL, claimed)
    step()
    driver.clock.advance(minutes=10)
    [claimed] = driver.claim(queue)
    step()
    driver.act(Verb.BURY, claimed, text="x")
    step()


def test_a_change_is_reported_with_the_state_before(
    driver: StoreDriver, mail: Queue, overview: OverviewService
) -> None:
    snapshot = overview.snapshot().result()
    driver.send(mail)
    snapshot = overview.snapshot(snapshot).result()
    assert snapshot.changed[0].before is None
    driver.send_many(mail, 3)

    [one] = overview.snapshot(snapshot).result().changed

    assert one.before is not None
    assert (one.counts.sent_total, one.before.sent_total) == (4, 1)


def test_a_healthy_queue_is_not_a_problem(
    driver: StoreDriver, mail: Queue, overview: OverviewService
) -> None:
    driver.send(mail)
    driver.send(mail, delay_ms=MINUTE * 60)
    driver.claim(mail)
    driver.queue("empty")

    assert problems(overview) == {}


def test_a_queue_with_a_message_that_was_claimable_long_ago_is_stuck(
    driver: StoreDriver, mail: Queue, overview: OverviewService
) -> None:
    driver.send(mail)
    driver.clock.advance(**LATE, ms=-1)
    assert problems(overview) == {}

    driver.clock.advance(ms=1)

    assert problems(overview) == {"mail": (Problem.STUCK,)}


def test_a_paused_queue_is_not_stuck(
    driver: StoreDriver, mail: Queue, overview: OverviewService
) -> None:
    driver.pause(mail)
    assert problems(overview) == {}, "it is empty"
    driver.send(mail)
    driver.clock.advance(**LATE)

    assert problems(overview) == {"mail": (Problem.PAUSED,)}


def test_a_queue_held_by_a_circuit_is_reported_as_held(
    driver: StoreDriver, mail: Queue, overview: OverviewService
) -> None:
    driver.send(mail)
    driver.write(lambda s: s.queues.hold([mail.queue_no], by="c1"))
    driver.clock.advance(**LATE)

    assert problems(overview) == {"mail": (Problem.HELD,)}


def test_a_held_queue_is_reported_also_while_its_first_message_backs_off(
    driver: StoreDriver, mail: Queue, overview: OverviewService
) -> None:
    driver.send(mail, delay_ms=60_000)
    driver.write(lambda s: s.queues.hold([mail.queue_no], by="c1"))

    assert problems(overview) == {"mail": (Problem.HELD,)}
    driver.write(lambda s: s.queues.unhold([mail.queue_no]))
    assert problems(overview) == {}


def test_dead_messages_are_reported_where_they_are(
    driver: StoreDriver, overview: OverviewService
) -> None:
    driver.queue("letters")
    die(driver, driver.queue("a", dead_letter_queue="letters"))
    die(driver, driver.queue("b"))
    driver.clock.advance(**LATE)

    assert problems(overview) == {"b": (Problem.DEAD,), "letters": (Problem.DEAD_LETTERS,)}


def test_a_full_queue_is_reported(driver: StoreDriver, overview: OverviewService) -> None:
    queue = driver.queue("mail", max_messages=2)
    driver.send(queue)
    assert problems(overview) == {}
    driver.send(queue)

    assert problems(overview) == {"mail": (Problem.FULL,)}


def test_the_worst_comes_first_and_among_equals_the_larger(
    driver: StoreDriver, overview: OverviewService
) -> None:
    for name, count in (("few", 1), ("many", 3)):
        driver.send_many(driver.queue(name), count)
    driver.clock.advance(**LATE)
    die(driver, driver.queue("dead"))
    driver.send(driver.queue("full", max_messages=1))

    assert list(problems(overview)) == ["full", "many", "few", "dead"]


def test_a_removed_queue_is_not_a_problem(
    driver: StoreDriver, mail: Queue, overview: OverviewService
) -> None:
    snapshot = overview.snapshot().result()
    die(driver, mail)
    driver.write(lambda s: s.messages.purge(mail.queue_no, limit=10, now=driver.now))
    driver.write(lambda s: s.queues.remove(mail.queue_no, now=driver.now))

    assert problems(overview) == {}
    assert changed(overview, snapshot) == []


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("mail", ["Big.mail", "mail"]),
        ("MAIL", ["Big.mail", "mail"]),
        ("g.m", ["Big.mail"]),
        ("%", []),
        ("_", ["a_b"]),
        ("", ["Big.mail", "a_b", "mail"]),
    ],
)
def test_queues_are_found_by_a_part_of_their_names(
    driver: StoreDriver, part: str, names: list[str]
) -> None:
    for name in ("mail", "Big.mail", "a_b"):
        driver.queue(name)

    found = driver.read(lambda s: s.queues.page(prefix="", after="", limit=10, contains=part))

    assert [queue.name for queue in found] == names
