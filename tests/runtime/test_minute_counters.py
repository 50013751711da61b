"""The sampler stores counters at the end of each minute, and graphs are drawn from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.domain.lake import layout as lake
from penstock.domain.limits import DAY, HOUR, MINUTE
from penstock.domain.queue.minute_counters import ALL, MinuteCounters
from penstock.domain.queue.queue import Queue
from penstock.runtime.minute_counters import Sampler
from penstock.services.overview import Graph, Graphs
from tests.runtime.archiver.driver import ArchiverDriver
from tests.store.driver import StoreDriver


@pytest.fixture
def mail(driver: StoreDriver) -> Queue:
    return driver.queue("mail")


@pytest.fixture
def sampler(driver: StoreDriver) -> Sampler:
    driver.keeps_history = False
    return Sampler(driver.store, retention_days=90)


def minute(driver: StoreDriver, sampler: Sampler, minutes: int = 1) -> None:
    """So much later it is its turn."""
    driver.clock.advance(minutes=minutes)
    assert sampler.tick(driver.now) == driver.now - driver.now % MINUTE + MINUTE


def last(driver: StoreDriver, queue_no: int) -> MinuteCounters:
    found = driver.read(lambda s: s.minute_counters.before(queue_no, at=driver.now))
    assert found is not None
    return found


def graph(driver: StoreDriver, queue: str | None = "mail", **span: int) -> Graph:
    return Graphs(driver.store, driver.clock).draw(queue, **span).result()


def sent(graph: Graph) -> list[int]:
    return [point.happened["sent_total"] for point in graph.points]


def finish(driver: StoreDriver, queue: Queue, *, waits_ms: int, takes_ms: int) -> None:
    driver.send(queue)
    driver.clock.advance(ms=waits_ms)
    [claimed] = driver.claim(queue)
    driver.clock.advance(ms=takes_ms)
    driver.complete(claimed)


def test_a_minute_is_sampled_once_in_the_cluster(driver: StoreDriver, sampler: Sampler) -> None:
    other = Sampler(driver.store, retention_days=90)
    queue = driver.queue("mail")
    driver.send(queue)
    minute(driver, sampler)
    driver.send(queue)

    other.tick(driver.now)

    assert last(driver, queue.queue_no).ready == 1
    assert last(driver, ALL).ready == 1


def test_a_minute_whose_sampler_dies_is_sampled_by_another_node(
    driver: StoreDriver, mail: Queue, sampler: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(now: int) -> None:
        raise SystemExit

    other = Sampler(driver.store, retention_days=90)
    driver.send(mail)
    driver.clock.advance(minutes=1)
    monkeypatch.setattr(sampler, "sample", die)
    with pytest.raises(SystemExit):
        sampler.tick(driver.now)

    again_at = other.tick(driver.now)
    assert again_at < driver.now + MINUTE, "the first node may still be at work"
    driver.clock.advance(ms=again_at - driver.now)
    other.tick(driver.now)

    assert last(driver, mail.queue_no).ready == 1


def test_a_sample_has_the_values_of_the_counters(
    driver: StoreDriver, mail: Queue, sampler: Sampler
) -> None:
    driver.send(mail)
    driver.send(mail, delay_ms=HOUR)
    first_at = driver.now
    minute(driver, sampler)

    sample, counts = last(driver, mail.queue_no), driver.counts(mail)

    assert (sample.minute_at, sample.ready, sample.waiting) == (driver.now, 1, 1)
    assert sample.sent_total == counts.sent_total == 2
    assert sample.oldest_ready_at == first_at


def test_a_queue_in_which_nothing_changes_is_not_sampled(
    driver: StoreDriver, mail: Queue, sampler: Sampler
) -> None:
    driver.send(mail)
    minute(driver, sampler)
    sampled_at = driver.now

    minute(driver, sampler)

    assert last(driver, mail.queue_no).minute_at == sampled_at
    assert last(driver, ALL).minute_at == driver.now


def test_once_a_day_all_queues_are_sampled(
    driver: StoreDriver, mail: Queue, sampler: Sampler
) -> None:
    driver.send(mail)
    minute(driver, sampler)

    minute(driver, sampler, minutes=24 * 60)

    assert last(driver, mail.queue_no).minute_at == driver.now


def test_a_graph_shows_what_happened_minute_by_minute(
    driver: StoreDriver, mail: Queue, sampler: Sampler
) -> None:
    minute(driver, sampler)
    for count in (3, 0, 2):
        driver.send_many(mail, count)
        minute(driver, sampler)

    drawn = graph(driver)

    assert sent(drawn) == [3, 0, 2], "from the first that there were any"
    assert [point.ready for point in drawn.points] == [3, 3, 5]
    assert drawn.to_at == driver.now
    assert sent(graph(driver, None)) == [0, 3, 0, 2]


def test_the_current_minute_is_not_shown_yet(
    driver: StoreDriver, mail: Queue, sampler: Sampler
) -> None:
    minute(driver, sampler)
    driver.send(mail)
    minute(driver, sampler)
    before = graph(driver)

    driver.send(mail)
    driver.clock.advance(seconds=59)

    assert graph(driver).points == before.points


def test_longer_steps_add_up_what_happened_and_keep_the_highest(
    driver: StoreDriver, mail: Queue, sampler: Sampler
) -> None:
    minute(driver, sampler)
    start_at = driver.now
    for _ in range(10):
        driver.send(mail)
        minute(driver, sampler)
    driver.write(lambda s: s.messages.purge(mail.queue_no, limit=100, now=driver.now))
    minute(driver, sampler, minutes=5)

    drawn = graph(driver, from_at=start_at, to_at=start_at + 15 * MINUTE, step_ms=15 * MINUTE)

    assert sum(sent(drawn)) == 10
    assert drawn.points[0].most_ready == 10
    assert drawn.points[-1].ready == 0


def test_durations_of_messages_belong_to_their_minute(
    driver: StoreDriver, mail: Queue, sampler: Sampler
) -> None:
    minute(driver, sampler)
    finish(driver, mail, waits_ms=2_000, takes_ms=500)
    finish(driver, mail, waits_ms=4_000, takes_ms=700)
    driver.clock.advance(ms=MINUTE - 7_200)
    sampler.tick(driver.now)
    minute(driver, sampler)

    first, second = graph(driver).points[-2:]

    assert (first.latency.wait_p50_ms, first.latency.wait_p95_ms) == (2_000, 4_000)
    assert (first.latency.work_p50_ms, first.latency.work_p95_ms) == (500, 700)
    assert second.latency.wait_p50_ms is None, "nothing was done in it"
    assert last(driver, ALL).minute_at == driver.now
    assert graph(driver, None).points[-2].latency == first.latency


def test_messages_that_end_in_the_last_second_of_a_minute_or_of_a_day_are_counted(
    driver: StoreDriver, mail: Queue, sampler: Sampler
) -> None:
    driver.clock.advance(ms=-driver.now % DAY - 2 * MINUTE)
    sampler.tick(driver.now)
    driver.clock.advance(ms=2 * MINUTE - 800)
    finish(driver, mail, waits_ms=500, takes_ms=200)
    driver.clock.advance(ms=100)
    finish(driver, mail, waits_ms=0, takes_ms=50)
    sampler.tick(driver.now)

    sample = last(driver, mail.queue_no)

    assert sample.minute_at % DAY == 0
    assert (sample.wait_p95_ms, sample.work_p50_ms, sample.work_p95_ms) == (500, 50, 200)
    driver.clock.advance(minutes=1)
    sampler.tick(driver.now)
    assert last(driver, ALL).wait_p50_ms is None, "nothing is counted twice"


def test_after_some_days_one_sample_an_hour_is_left_and_the_sums_are_the_same(
    driver: StoreDriver, mail: Queue, sampler: Sampler
) -> None:
    driver.clock.advance(ms=-driver.now % HOUR)
    sampler.tick(driver.now)
    start_at = driver.now
    for _ in range(120):
        driver.send(mail)
        minute(driver, sampler)
    span: Any = {"from_at": start_at, "to_at": start_at + 2 * HOUR, "step_ms": HOUR}
    before = sent(graph(driver, **span))

    driver.clock.advance(days=3)
    sampler.tick(driver.now)

    fine = driver.read(
        lambda s: s.minute_counters.steps(
            mail.queue_no, from_at=start_at, to_at=start_at + 2 * HOUR, step_ms=MINUTE
        )
    )
    assert [step.last.minute_at for step in fine] == [start_at + HOUR, start_at + 2 * HOUR]
    assert sent(graph(driver, **span)) == before == [60, 60]


def test_samples_are_forgotten_by_age(driver: StoreDriver, mail: Queue, sampler: Sampler) -> None:
    driver.clock.advance(ms=-driver.now % HOUR)
    sampler.tick(driver.now)
    first_at = driver.now

    for _ in range(90):
        driver.clock.advance(days=1)
        sampler.tick(driver.now)
    assert driver.read(lambda s: s.minute_counters.before(ALL, at=first_at)) is not None
    driver.clock.advance(hours=1)
    sampler.tick(driver.now)

    assert driver.read(lambda s: s.minute_counters.before(ALL, at=first_at)) is None
    assert driver.read(lambda s: s.minute_counters.before(ALL, at=driver.now + DAY)) is not None


def test_a_server_that_was_down_continues_where_it_was(
    driver: StoreDriver, mail: Queue, sampler: Sampler
) -> None:
    minute(driver, sampler)
    driver.send(mail)
    minute(driver, sampler)
    driver.send_many(mail, 4)
    driver.clock.advance(minutes=9)
    another = Sampler(driver.store, retention_days=90)

    minute(driver, another)

    assert sent(graph(driver)) == [1, *(0 for _ in range(9)), 4]


def test_messages_sent_before_the_first_sample_are_not_shown_as_one_burst(
    driver: StoreDriver, mail: Queue, sampler: Sampler
) -> None:
    driver.send_many(mail, 50)
    minute(driver, sampler)
    driver.send(mail)
    minute(driver, sampler)

    assert sent(graph(driver)) == [0, 1]
    assert sent(graph(driver, step_ms=5 * MINUTE)) == [0]


def test_with_an_archive_samples_are_kept_until_they_are_in_the_lake(
    driver: StoreDriver, mail: Queue, sampler: Sampler, tmp_path: Path
) -> None:
    archive = ArchiverDriver(driver, tmp_path / "lake")
    driver.clock.advance(ms=-driver.now % HOUR - 5 * MINUTE)
    for _ in range(3):
        driver.send(mail)
        minute(driver, archive.sampler)
    first_at = driver.now - 2 * MINUTE
    driver.clock.advance(ms=90 * DAY - driver.now % HOUR + HOUR)

    archive.sampler.tick(driver.now)
    assert driver.read(lambda s: s.minute_counters.first_at(mail.queue_no)) == first_at

    archive.run()
    driver.clock.advance(hours=1)
    archive.sampler.tick(driver.now)
    assert driver.read(lambda s: s.minute_counters.first_at(mail.queue_no)) == driver.now - HOUR
    assert [row["ready"] for row in archive.rows(lake.BACKLOG)] == [1, 2, 3, 3]


def test_a_queue_that_is_not_empty_is_in_the_lake_even_if_another_node_has_sampled_the_minute(
    driver: StoreDriver, mail: Queue, sampler: Sampler, tmp_path: Path
) -> None:
    archive = ArchiverDriver(driver, tmp_path / "lake")
    driver.send(mail)
    for _ in range(2):
        minute(driver, sampler)
        archive.run()

    rows = archive.rows(lake.BACKLOG)

    assert [(row["queue"], row["at"]) for row in rows] == [
        ("mail", driver.now - MINUTE),
        ("mail", driver.now),
    ]
    assert (
        len(
            driver.read(
                lambda s: s.minute_counters.steps(
                    mail.queue_no, from_at=0, to_at=driver.now, step_ms=MINUTE
                )
            )
        )
        == 2
    )
