"""The sampler writes counters down at the end of each minute, and graphs are made of that."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.limits import DAY, HOUR, MINUTE
from penstock.domain.queue.minute_counters import ALL, Sample
from penstock.domain.queue.queue import Queue
from penstock.runtime.minute_counters import Sampler
from penstock.services.graphs import Graph, Graphs
from tests.store.desk import Desk


@pytest.fixture
def mail(desk: Desk) -> Queue:
    return desk.queue("mail")


@pytest.fixture
def sampler(desk: Desk) -> Sampler:
    desk.keeps_history = False
    return Sampler(desk.store, retention_days=90)


def minute(desk: Desk, sampler: Sampler, minutes: int = 1) -> None:
    """So much later it is its turn."""
    desk.clock.advance(minutes=minutes)
    assert sampler.tick(desk.now) == desk.now - desk.now % MINUTE + MINUTE


def last(desk: Desk, queue_no: int) -> Sample:
    found = desk.read(lambda s: s.samples.before(queue_no, at=desk.now))
    assert found is not None
    return found


def graph(desk: Desk, queue: str | None = "mail", **span: int) -> Graph:
    return Graphs(desk.store, desk.clock).draw(queue, **span).result()


def sent(graph: Graph) -> list[int]:
    return [point.happened["sent_total"] for point in graph.points]


def finish(desk: Desk, queue: Queue, *, waits_ms: int, takes_ms: int) -> None:
    desk.send(queue)
    desk.clock.advance(ms=waits_ms)
    [claimed] = desk.claim(queue)
    desk.clock.advance(ms=takes_ms)
    desk.complete(claimed)


def test_a_minute_is_written_down_once_whoever_comes(desk: Desk, sampler: Sampler) -> None:
    other = Sampler(desk.store, retention_days=90)
    queue = desk.queue("mail")
    desk.send(queue)
    minute(desk, sampler)
    desk.send(queue)

    other.tick(desk.now)

    assert last(desk, queue.queue_no).ready == 1
    assert last(desk, ALL).ready == 1


def test_a_sample_is_what_the_counters_say(desk: Desk, mail: Queue, sampler: Sampler) -> None:
    desk.send(mail)
    desk.send(mail, delay_ms=HOUR)
    first_at = desk.now
    minute(desk, sampler)

    sample, counts = last(desk, mail.queue_no), desk.counts(mail)

    assert (sample.minute_at, sample.ready, sample.waiting) == (desk.now, 1, 1)
    assert sample.sent_total == counts.sent_total == 2
    assert sample.oldest_ready_at == first_at


def test_a_queue_in_which_nothing_changes_is_not_sampled(
    desk: Desk, mail: Queue, sampler: Sampler
) -> None:
    desk.send(mail)
    minute(desk, sampler)
    sampled_at = desk.now

    minute(desk, sampler)

    assert last(desk, mail.queue_no).minute_at == sampled_at
    assert last(desk, ALL).minute_at == desk.now


def test_once_a_day_all_queues_are_sampled(desk: Desk, mail: Queue, sampler: Sampler) -> None:
    desk.send(mail)
    minute(desk, sampler)

    minute(desk, sampler, minutes=24 * 60)

    assert last(desk, mail.queue_no).minute_at == desk.now


def test_a_graph_tells_what_happened_minute_by_minute(
    desk: Desk, mail: Queue, sampler: Sampler
) -> None:
    minute(desk, sampler)
    for count in (3, 0, 2):
        desk.send_many(mail, count)
        minute(desk, sampler)

    drawn = graph(desk)

    assert sent(drawn) == [3, 0, 2], "from the first that there were any"
    assert [point.ready for point in drawn.points] == [3, 3, 5]
    assert drawn.to_at == desk.now
    assert sent(graph(desk, None)) == [0, 3, 0, 2]


def test_what_goes_on_in_this_minute_is_not_told_yet(
    desk: Desk, mail: Queue, sampler: Sampler
) -> None:
    minute(desk, sampler)
    desk.send(mail)
    minute(desk, sampler)
    told = graph(desk)

    desk.send(mail)
    desk.clock.advance(seconds=59)

    assert graph(desk).points == told.points


def test_longer_steps_add_up_what_happened_and_keep_the_highest(
    desk: Desk, mail: Queue, sampler: Sampler
) -> None:
    minute(desk, sampler)
    start_at = desk.now
    for _ in range(10):
        desk.send(mail)
        minute(desk, sampler)
    desk.write(lambda s: s.messages.purge(mail.queue_no, limit=100, now=desk.now))
    minute(desk, sampler, minutes=5)

    drawn = graph(desk, from_at=start_at, to_at=start_at + 15 * MINUTE, step_ms=15 * MINUTE)

    assert sum(sent(drawn)) == 10
    assert drawn.points[0].most_ready == 10
    assert drawn.points[-1].ready == 0


def test_how_long_messages_took_stands_with_their_minute(
    desk: Desk, mail: Queue, sampler: Sampler
) -> None:
    minute(desk, sampler)
    finish(desk, mail, waits_ms=2_000, takes_ms=500)
    finish(desk, mail, waits_ms=4_000, takes_ms=700)
    desk.clock.advance(ms=MINUTE - 7_200)
    sampler.tick(desk.now)
    minute(desk, sampler)

    first, second = graph(desk).points[-2:]

    assert (first.latency.wait_p50_ms, first.latency.wait_p95_ms) == (2_000, 4_000)
    assert (first.latency.work_p50_ms, first.latency.work_p95_ms) == (500, 700)
    assert second.latency.wait_p50_ms is None, "nothing was done in it"
    assert last(desk, ALL).minute_at == desk.now
    assert graph(desk, None).points[-2].latency == first.latency


def test_what_was_done_at_the_very_end_of_a_minute_or_of_a_day_is_not_missed(
    desk: Desk, mail: Queue, sampler: Sampler
) -> None:
    desk.clock.advance(ms=-desk.now % DAY - 2 * MINUTE)
    sampler.tick(desk.now)
    desk.clock.advance(ms=2 * MINUTE - 800)
    finish(desk, mail, waits_ms=500, takes_ms=200)
    desk.clock.advance(ms=100)
    finish(desk, mail, waits_ms=0, takes_ms=50)
    sampler.tick(desk.now)

    sample = last(desk, mail.queue_no)

    assert sample.minute_at % DAY == 0
    assert (sample.wait_p95_ms, sample.work_p50_ms, sample.work_p95_ms) == (500, 50, 200)
    desk.clock.advance(minutes=1)
    sampler.tick(desk.now)
    assert last(desk, ALL).wait_p50_ms is None, "nothing is told twice"


def test_after_some_days_one_sample_an_hour_is_left_and_the_sums_are_the_same(
    desk: Desk, mail: Queue, sampler: Sampler
) -> None:
    desk.clock.advance(ms=-desk.now % HOUR)
    sampler.tick(desk.now)
    start_at = desk.now
    for _ in range(120):
        desk.send(mail)
        minute(desk, sampler)
    span: Any = {"from_at": start_at, "to_at": start_at + 2 * HOUR, "step_ms": HOUR}
    before = sent(graph(desk, **span))

    desk.clock.advance(days=3)
    sampler.tick(desk.now)

    fine = desk.read(
        lambda s: s.samples.steps(
            mail.queue_no, from_at=start_at, to_at=start_at + 2 * HOUR, step_ms=MINUTE
        )
    )
    assert [step.last.minute_at for step in fine] == [start_at + HOUR, start_at + 2 * HOUR]
    assert sent(graph(desk, **span)) == before == [60, 60]


def test_samples_are_forgotten_by_age(desk: Desk, mail: Queue, sampler: Sampler) -> None:
    desk.clock.advance(ms=-desk.now % HOUR)
    sampler.tick(desk.now)
    first_at = desk.now

    for _ in range(90):
        desk.clock.advance(days=1)
        sampler.tick(desk.now)
    assert desk.read(lambda s: s.samples.before(ALL, at=first_at)) is not None
    desk.clock.advance(hours=1)
    sampler.tick(desk.now)

    assert desk.read(lambda s: s.samples.before(ALL, at=first_at)) is None
    assert desk.read(lambda s: s.samples.before(ALL, at=desk.now + DAY)) is not None


def test_a_server_that_was_away_goes_on_where_it_was(
    desk: Desk, mail: Queue, sampler: Sampler
) -> None:
    minute(desk, sampler)
    desk.send(mail)
    minute(desk, sampler)
    desk.send_many(mail, 4)
    desk.clock.advance(minutes=9)
    another = Sampler(desk.store, retention_days=90)

    minute(desk, another)

    assert sent(graph(desk)) == [1, *(0 for _ in range(9)), 4]


def test_what_was_sent_before_anybody_wrote_down_is_not_told_as_sent_at_once(
    desk: Desk, mail: Queue, sampler: Sampler
) -> None:
    desk.send_many(mail, 50)
    minute(desk, sampler)
    desk.send(mail)
    minute(desk, sampler)

    assert sent(graph(desk)) == [0, 1]
    assert sent(graph(desk, step_ms=5 * MINUTE)) == [0]
