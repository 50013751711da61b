"""Logs of attempts: parts by day, kept once, read in order, dropped with their day."""

from __future__ import annotations

from penstock.domain.limits import DAY
from penstock.domain.message.attempt_log import LogPart

MOST = 1_000


def keep(driver, seq, lines="[]", *, lease_no=1, most=MOST, after_days=0):
    part = LogPart(message_no=7, lease_no=lease_no, seq=seq, lines=lines)
    now = driver.clock.now() + after_days * DAY
    return driver.write(lambda s: s.attempt_logs.add(part, now=now, most=most))


def found(driver, *, after=(0, 0), limit=100):
    parts = driver.write(lambda s: s.attempt_logs.of_message(7, after=after, limit=limit))
    return [(part.lease_no, part.seq) for part in parts]


def test_parts_are_read_in_order_from_a_place_on_and_across_days(driver):
    keep(driver, 1, lease_no=2, after_days=1)
    keep(driver, 2)
    keep(driver, 1)

    assert found(driver) == [(1, 1), (1, 2), (2, 1)]
    assert found(driver, after=(1, 1), limit=1) == [(1, 2)]
    assert found(driver, after=(2, 1)) == []


def test_a_repeated_part_is_kept_once_and_does_not_count_twice(driver):
    assert keep(driver, 1, "x" * MOST)
    assert keep(driver, 1, "x" * MOST)
    assert not keep(driver, 2, "x")
    assert keep(driver, 1, "x", lease_no=2)

    assert found(driver) == [(1, 1), (2, 1)]


def test_logs_are_dropped_with_their_day(driver):
    keep(driver, 1)
    keep(driver, 2, after_days=1)
    now = driver.clock.now()

    driver.write(lambda s: s.maintenance.drop_day(now // DAY, now=now + DAY))

    assert found(driver) == [(1, 2)]
