"""Recurring work is sent once per instant, whatever restarts, pauses or several nodes do."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from penstock.domain.errors import InvalidRequest, QueueNotFound, ScheduleNotFound
from penstock.domain.limits import DEFAULT_LIMITS, HOUR, SECOND
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.queue.queue import Queue
from penstock.domain.schedule import cron
from penstock.domain.schedule.schedule import (
    CatchUp,
    Cron,
    FixedInterval,
    Overlap,
    Schedule,
    Template,
)
from penstock.outbound.dice import SystemDice
from penstock.runtime.duties import ScheduleDuty
from penstock.services.recurring import RecurringService
from penstock.store.postgres.connection import PostgresDatabase
from tests.store.backends import Open
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver

HOURLY = FixedInterval(HOUR)
TO_MAIL = Template(queue="mail", kind="report", body='{"a":1}')


@pytest.fixture
def mail(driver: StoreDriver) -> Queue:
    return driver.queue("mail")


@pytest.fixture
def recurring(driver: StoreDriver, mail: Queue) -> RecurringService:
    return RecurringService(driver.store, driver.clock, SystemDice(), DEFAULT_LIMITS)


@pytest.fixture
def recurrer(recurring: RecurringService) -> ScheduleDuty:
    return ScheduleDuty(recurring)


def declare(recurring: RecurringService, name: str = "hourly", **options: object) -> Schedule:
    return recurring.declare(name, HOURLY, TO_MAIL, **options).result()  # type: ignore[arg-type]


def waiting(driver: StoreDriver, mail: Queue) -> list[str]:
    return [message.id for message in driver.browse(mail, State.READY)]


def test_work_is_sent_when_its_time_has_come_and_not_before(
    driver: StoreDriver, mail: Queue, recurring: RecurringService, recurrer: ScheduleDuty
) -> None:
    declare(recurring)

    driver.clock.advance(minutes=59)
    recurrer.tick(driver.now)
    assert waiting(driver, mail) == []

    driver.clock.advance(minutes=1)
    recurrer.tick(driver.now)
    recurrer.tick(driver.now)
    [message] = driver.browse(mail, State.READY)
    assert (message.kind, message.due_at) == ("report", driver.now)
    found = recurring.get("hourly").result()
    assert (found.last_id, found.fired_total) == (message.id, 1)
    assert found.next_at == driver.now + HOUR


def test_the_duty_asks_to_be_called_at_the_next_firing(
    driver: StoreDriver, recurring: RecurringService, recurrer: ScheduleDuty
) -> None:
    declare(recurring)

    assert recurrer.tick(driver.now) == driver.now + SECOND
    driver.clock.advance(minutes=59, seconds=59, ms=500)
    assert recurrer.tick(driver.now) == driver.now + 500


def test_one_of_several_nodes_fires_each_schedule(
    driver: StoreDriver, mail: Queue, open_store: Open
) -> None:
    nodes = [
        RecurringService(open_store(), driver.clock, SystemDice(), DEFAULT_LIMITS) for _ in range(3)
    ]
    for i in range(10):
        declare(nodes[0], f"hourly{i}")
    driver.clock.advance(hours=1)

    threads = [
        threading.Thread(target=ScheduleDuty(node).tick, args=(driver.now,)) for node in nodes
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(waiting(driver, mail)) == 10
    check_counters(driver)


def test_a_schedule_declared_again_at_a_restart_catches_up_what_fell_due_meanwhile(
    driver: StoreDriver, mail: Queue, recurring: RecurringService, recurrer: ScheduleDuty
) -> None:
    declare(recurring, catch_up=CatchUp.ALL)
    driver.clock.advance(hours=3)

    declare(recurring, catch_up=CatchUp.ALL)
    recurrer.tick(driver.now)

    assert len(waiting(driver, mail)) == 3


def test_a_firing_is_skipped_while_the_last_one_is_leased(
    driver: StoreDriver, mail: Queue, recurring: RecurringService, recurrer: ScheduleDuty
) -> None:
    declare(recurring, overlap=Overlap.SKIP)
    driver.clock.advance(hours=1)
    recurrer.tick(driver.now)
    [held] = driver.claim(mail, lease_ms=2 * HOUR)

    driver.clock.advance(hours=1)
    recurrer.tick(driver.now)
    assert waiting(driver, mail) == []

    driver.complete(held)
    driver.clock.advance(hours=1)
    recurrer.tick(driver.now)
    assert len(waiting(driver, mail)) == 1
    assert recurring.get("hourly").result().skipped_total == 1


def test_a_firing_that_waits_comes_as_soon_as_the_last_one_has_ended(
    driver: StoreDriver, mail: Queue, recurring: RecurringService, recurrer: ScheduleDuty
) -> None:
    declare(recurring, overlap=Overlap.WAIT)
    driver.clock.advance(hours=1)
    recurrer.tick(driver.now)
    [held] = driver.claim(mail, lease_ms=2 * HOUR)
    driver.clock.advance(hours=1)
    recurrer.tick(driver.now)
    assert waiting(driver, mail) == []

    driver.clock.advance(minutes=5)
    driver.complete(held)
    recurrer.tick(driver.now)

    assert len(waiting(driver, mail)) == 1


def test_many_waiting_schedules_do_not_block_others(
    driver: StoreDriver,
    mail: Queue,
    recurring: RecurringService,
    recurrer: ScheduleDuty,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.runtime.duties._AT_ONCE", 2)
    for i in range(3):
        declare(recurring, f"a{i}", overlap=Overlap.WAIT)
    driver.clock.advance(hours=1)
    recurrer.tick(driver.now)
    declare(recurring, "z")

    driver.clock.advance(hours=1)
    recurrer.tick(driver.now)

    assert recurring.get("z").result().fired_total == 1


def test_a_firing_replaces_one_that_is_ready_but_not_one_that_is_leased(
    driver: StoreDriver, mail: Queue, recurring: RecurringService, recurrer: ScheduleDuty
) -> None:
    declare(recurring, overlap=Overlap.REPLACE)
    driver.clock.advance(hours=1)
    recurrer.tick(driver.now)
    [first] = waiting(driver, mail)

    driver.clock.advance(hours=1)
    recurrer.tick(driver.now)
    [second] = waiting(driver, mail)
    assert driver.find(first) is None

    [held] = driver.claim(mail, lease_ms=2 * HOUR)
    driver.clock.advance(hours=1)
    recurrer.tick(driver.now)
    assert held.id == second
    assert driver.get(second).state is State.LEASED
    assert len(waiting(driver, mail)) == 1
    check_counters(driver)


@pytest.mark.parametrize("error", [InvalidRequest("no such zone here"), ArithmeticError("a bug")])
def test_a_schedule_that_cannot_be_computed_here_does_not_block_others(
    recurring: RecurringService,
    recurrer: ScheduleDuty,
    driver: StoreDriver,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    recurring.declare("a", Cron("0 * * * *", "Europe/Berlin"), TO_MAIL).result()
    declare(recurring, "z")
    zone = cron._zone

    def other_zones(name: str) -> Any:
        if name == "Europe/Berlin":  # this machine's database of time zones is an old one
            raise error
        return zone(name)

    monkeypatch.setattr(cron, "_zone", other_zones)

    recurrer.tick(driver.clock.advance(hours=1))

    assert recurring.get("z").result().fired_total == 1
    if isinstance(error, InvalidRequest):
        assert recurring.get("a").result().last_error == "no such zone here"


def test_a_firing_that_replaces_waits_for_all_row_locks_at_once(
    driver: StoreDriver,
    recurring: RecurringService,
    recurrer: ScheduleDuty,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One after the other, it and a move of dead letters would deadlock."""
    driver.queue("letters", max_leased=1)
    driver.queue("limited", max_leased=1, dead_letter_queue="letters")
    template = Template(queue="limited")
    recurring.declare("hourly", HOURLY, template, overlap=Overlap.REPLACE).result()
    recurrer.tick(driver.clock.advance(hours=1))
    waited_for: list[str] = []
    post = PostgresDatabase.post

    def noting(db: PostgresDatabase, name: str, *args: Any, **fill: Any) -> None:
        if name == "queues.lock_queues":
            waited_for.append(args[0]["queue_nos"])
        post(db, name, *args, **fill)

    monkeypatch.setattr(PostgresDatabase, "post", noting)

    recurrer.tick(driver.clock.advance(hours=1))

    assert len(waited_for) == (1 if driver.read(lambda s: cast(Any, s).db.is_shared) else 0)


def test_a_firing_that_is_a_duplicate_does_not_cancel_the_message_it_duplicates(
    driver: StoreDriver, recurring: RecurringService, recurrer: ScheduleDuty
) -> None:
    once = driver.queue("once", dedup_by_content=True, dedup_window_ms=3 * HOUR)
    template = Template(queue="once", body="1")
    recurring.declare("hourly", HOURLY, template, overlap=Overlap.REPLACE).result()
    driver.clock.advance(hours=1)
    recurrer.tick(driver.now)
    first = waiting(driver, once)

    driver.clock.advance(hours=1)
    recurrer.tick(driver.now)

    assert len(first) == 1
    assert waiting(driver, once) == first


def test_a_dead_letter_counts_as_ended(driver: StoreDriver) -> None:
    driver.queue("letters")
    mail = driver.queue("mail", dead_letter_queue="letters")
    recurring = RecurringService(driver.store, driver.clock, SystemDice(), DEFAULT_LIMITS)
    declare(recurring, overlap=Overlap.SKIP)
    driver.clock.advance(hours=1)
    ScheduleDuty(recurring).tick(driver.now)
    [held] = driver.claim(mail)
    driver.act(Verb.BURY, held)

    driver.clock.advance(hours=1)
    ScheduleDuty(recurring).tick(driver.now)

    assert len(waiting(driver, mail)) == 1


def test_a_paused_schedule_does_not_fire_but_can_be_run_now(
    driver: StoreDriver, mail: Queue, recurring: RecurringService, recurrer: ScheduleDuty
) -> None:
    declare(recurring)
    recurring.pause("hourly").result()
    driver.clock.advance(hours=2)
    recurrer.tick(driver.now)
    assert waiting(driver, mail) == []

    sent = recurring.run_now("hourly").result()
    assert waiting(driver, mail) == [sent]

    recurring.resume("hourly").result()
    recurrer.tick(driver.now)
    assert waiting(driver, mail) == [sent]
    assert recurring.get("hourly").result().next_at == driver.now + HOUR


def test_a_firing_rejected_by_a_full_queue_is_sent_when_there_is_room(
    driver: StoreDriver, open_store: Open
) -> None:
    mail = driver.queue("mail", max_messages=2)
    recurring = RecurringService(driver.store, driver.clock, SystemDice(), DEFAULT_LIMITS)
    declare(recurring, catch_up=CatchUp.ALL)
    driver.clock.advance(hours=3)

    ScheduleDuty(recurring).tick(driver.now)
    assert len(waiting(driver, mail)) == 2
    ScheduleDuty(recurring).tick(driver.now)
    assert "limit of 2" in (recurring.get("hourly").result().last_error or "")

    for message in driver.claim(mail, 2):
        driver.complete(message)
    ScheduleDuty(recurring).tick(driver.now)
    assert len(waiting(driver, mail)) == 1
    assert recurring.get("hourly").result().last_error is None


def test_work_for_a_queue_that_is_gone_waits_for_it(
    driver: StoreDriver, recurring: RecurringService, recurrer: ScheduleDuty, mail: Queue
) -> None:
    declare(recurring)
    driver.write(lambda s: s.queues.remove(mail.queue_no, now=driver.now))
    driver.queues.clear()
    driver.clock.advance(hours=1)

    recurrer.tick(driver.now)

    found = recurring.get("hourly").result()
    assert found.last_error is not None
    assert found.next_at == driver.now


def test_bad_schedules_are_refused_at_once(recurring: RecurringService) -> None:
    with pytest.raises(InvalidRequest):
        recurring.declare("x", Cron("nonsense"), TO_MAIL)
    with pytest.raises(QueueNotFound):
        recurring.declare("x", HOURLY, Template(queue="nowhere")).result()
    with pytest.raises(InvalidRequest):
        recurring.declare("x", HOURLY, Template(queue="mail", priority=10**9)).result()
    with pytest.raises(InvalidRequest):
        recurring.preview(HOURLY, count=0)


def test_a_schedule_that_does_not_exist_is_not_found(recurring: RecurringService) -> None:
    for ask in (recurring.get, recurring.remove, recurring.pause, recurring.run_now):
        with pytest.raises(ScheduleNotFound):
            ask("nothing").result()


def test_schedules_are_listed_by_name_page_by_page(recurring: RecurringService) -> None:
    for name in ("b", "a", "c"):
        declare(recurring, name)

    first = recurring.page(limit=2).result()
    rest = recurring.page(limit=2, after=first[-1].name).result()

    assert [s.name for s in (*first, *rest)] == ["a", "b", "c"]
    recurring.remove("b").result()
    assert [s.name for s in recurring.page().result()] == ["a", "c"]


def test_a_firing_goes_into_an_ordered_queue_in_its_group(driver: StoreDriver) -> None:
    letters = driver.queue("letters", ordering="group")
    recurring = RecurringService(driver.store, driver.clock, SystemDice(), DEFAULT_LIMITS)
    template = Template(queue="letters", group="g")
    recurring.declare("x", HOURLY, template, catch_up=CatchUp.ALL).result()
    driver.clock.advance(hours=2)

    ScheduleDuty(recurring).tick(driver.now)

    assert len(driver.claim(letters, 10)) == 1
    check_counters(driver)


def test_a_firing_respects_the_limits_of_its_queue(driver: StoreDriver) -> None:
    limited = driver.queue("limited", max_leased_per_group=1, is_fair=True)
    recurring = RecurringService(driver.store, driver.clock, SystemDice(), DEFAULT_LIMITS)
    template = Template(queue="limited", group="g")
    recurring.declare("x", HOURLY, template, catch_up=CatchUp.ALL).result()
    driver.clock.advance(hours=2)

    ScheduleDuty(recurring).tick(driver.now)

    assert recurring.get("x").result().fired_total == 2
    assert len(driver.claim(limited, 10)) == 1
    check_counters(driver)
