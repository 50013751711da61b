"""Fleets of programs that are not workers of Penstock."""

from __future__ import annotations

import pytest

from penstock.domain.queue.queue import QueueSettings
from tests.support.redis_server import RedisServer
from tests.support.waiting import eventually

# Which store it is does not matter here.
pytestmark = pytest.mark.parametrize("url", ["sqlite"], indirect=True)

PATIENCE_S = 60.0
FLEETS = """
[profiles.default]
samples_needed = 1
messages_per_worker = 2

[sources.celery]
kind = "redis"
url = "{url}"

[fleets.consumers]
{fleet}
max = 5
interval_ms = "1s"
steady_ms = 0
replicas = {{kind = "processes", run = {run}, drain_ms = "5s"}}
"""
SLEEP = '["sleep", "600"]'


def test_after_an_orderly_restart_the_programs_run_again(broker, autoscale):
    broker.queues.put("mail", QueueSettings()).result()
    text = FLEETS.format(url="redis://unused", fleet='queue = "mail"\nmin = 2', run=SLEEP)
    first = autoscale(text)
    eventually(lambda: _running(first) == 2, within_s=PATIENCE_S)

    first.close()
    eventually(lambda: not first.pids("consumers"), within_s=PATIENCE_S)
    second = autoscale(text)

    eventually(lambda: len(second.pids("consumers")) == 2, within_s=PATIENCE_S)


def test_a_crash_loop_is_shown_as_trouble(broker, autoscale):
    broker.queues.put("mail", QueueSettings()).result()
    run = '["sh", "-c", "exit 3"]'
    driven = autoscale(
        FLEETS.format(url="redis://unused", fleet='queue = "mail"\nmin = 2', run=run)
    )

    def troubles() -> list[tuple[str, str]]:
        status = driven.status("consumers")
        return [(one.code, one.text) for one in status.troubles] if status else []

    found = eventually(troubles, within_s=PATIENCE_S)

    assert {code for code, _ in found} == {"replicas_unavailable"}
    assert "2 times in a row (exit code 3)" in found[0][1]


def test_consumers_of_redis_come_with_what_waits_in_several_lists(autoscale):
    with RedisServer() as redis, redis.client() as client:
        client.rpush("mail", *"abcd")
        client.rpush("post\x06\x163", *"ab")
        driven = autoscale(
            FLEETS.format(
                url=redis.url, fleet='queues = ["mail", "post"]\nsource = "celery"', run=SLEEP
            )
        )

        eventually(lambda: _running(driven) == 3, within_s=PATIENCE_S)
        status = driven.status("consumers")
        assert status is not None
        assert status.sample is not None
        assert [(one.queue, one.ready) for one in status.sample.queues] == [
            ("mail", 4),
            ("post", 2),
        ]

        client.flushall()
        eventually(lambda: driven.is_at_rest("consumers"), within_s=PATIENCE_S)


def _running(driven) -> int:
    status = driven.status("consumers")
    return status.replicas.running if status and status.replicas else 0
