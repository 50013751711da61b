"""Counts of pushed deliveries, on both stores."""

from __future__ import annotations

import pytest

from penstock.runtime.pusher.tally import BUCKETS_MS, PushResult, PushTally, RouteTally


def only(tally: PushTally) -> RouteTally:
    [(pattern, of_route)] = tally.all()
    assert pattern == "/(.*)"
    return of_route


@pytest.mark.parametrize(
    ("status", "headers", "ended"),
    [
        (200, {}, PushResult.SUCCESS),
        (409, {}, PushResult.SUCCESS),
        (500, {}, PushResult.FAILURE),
        (None, {}, PushResult.FAILURE),
        (404, {"x_queue_retry_4xx": "0"}, PushResult.GIVEN_UP),
    ],
)
def test_an_attempt_is_counted_by_its_result(driver, status, headers, ended):
    driver.deliver(driver.queue(), "/a", **headers)
    driver.step()
    driver.answer(status, took_ms=30)

    found = only(driver.tally)
    assert found.counts == {**dict.fromkeys(PushResult, 0), ended: 1}
    assert (found.total, found.took_ms) == (1, 30)


def test_an_aborted_request_is_not_counted(driver):
    driver.deliver(driver.queue(), "/a")
    driver.step()
    driver.answer(None, is_broken_off=True)

    assert driver.tally.all() == []


def test_durations_are_counted_in_the_smallest_bucket_that_holds_them():
    tally = PushTally()
    for took_ms in (0, 5, 6, 120_000, 120_001):
        tally.note("/(.*)", PushResult.SUCCESS, took_ms=took_ms)

    buckets = only(tally).buckets
    assert buckets[:2] == [2, 1]
    assert buckets[-2:] == [1, 1]
    assert len(buckets) == len(BUCKETS_MS) + 1
