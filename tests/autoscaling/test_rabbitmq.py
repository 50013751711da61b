"""Programs that consume from a RabbitMQ come with its backlog and go when it is done."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.edge.api import a_name
from tests.support.rabbitmq_driver import RabbitDriver
from tests.support.waiting import eventually

PATIENCE_S = 120.0
CONSUMER = Path(__file__).with_name("consumer.py")
FLEETS = """
[profiles.default]
samples_needed = 2
backlog_goal_s = 1

[sources.bunny]
kind = "rabbitmq"
endpoint = "{endpoint}"
staging_indicator = "»"

[fleets.consumers]
queue = "{queue}"
source = "bunny"
max = 3
interval_ms = "1s"
steady_ms = "0s"
yield_order = 1

[fleets.consumers.replicas]
kind = "processes"
run = ["{python}", "{program}", "{port}", "{queue}", "{file}"]
drain_ms = "60s"
{more}
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    """What the autoscaler itself remembers is the same on any store."""
    return f"sqlite:///{tmp_path / 'shop.db'}"


def test_consumers_come_with_the_backlog_and_go_when_it_is_done(rabbit, autoscale, tmp_path):
    queue, seen = a_name("mail"), tmp_path / "seen"
    with RabbitDriver(rabbit) as driver:
        driver.declare(queue)
        driver.publish(queue, 200)

    autoscaler = autoscale(_fleets(rabbit, queue, seen))
    eventually(lambda: len(autoscaler.pids("consumers")) == 3, within_s=PATIENCE_S)
    eventually(lambda: seen.exists() and _lines(seen) == 200, within_s=PATIENCE_S)
    eventually(lambda: autoscaler.is_at_rest("consumers"), within_s=PATIENCE_S)

    first = autoscaler.decisions("consumers")[0]
    assert (first["reason"], first["wanted"]) == ("first_message", 1)


def test_a_message_in_a_staging_queue_starts_a_consumer(rabbit, autoscale, tmp_path):
    queue, seen = a_name("mail"), tmp_path / "seen"
    with RabbitDriver(rabbit) as driver:
        driver.declare(queue, f"{queue}»tenant")
        driver.publish(f"{queue}»tenant")

        autoscaler = autoscale(_fleets(rabbit, queue, seen))

        eventually(lambda: autoscaler.pids("consumers"), within_s=PATIENCE_S)


def test_under_pressure_consumers_are_stopped_whatever_the_backlog_and_an_alert_is_sent(
    rabbit, autoscale, tmp_path, caplog
):
    queue, seen = a_name("mail"), tmp_path / "seen"
    with RabbitDriver(rabbit) as driver:
        driver.declare(queue)
        driver.publish(queue, 50)
    calm = autoscale(_fleets(rabbit, queue, seen, more="keep = true"))
    eventually(lambda: calm.pids("consumers"), within_s=PATIENCE_S)
    calm.close()

    # Any broker uses more than that, and none more than all of it.
    limits = "[pressure]\nmemory_percent = [0.0001, 100.0, 100.0]"
    pressed = autoscale(_fleets(rabbit, queue, seen, more=f"keep = true\n{limits}"))
    eventually(lambda: pressed.is_at_rest("consumers"), within_s=PATIENCE_S)

    assert pressed.decisions("consumers")[-1]["reason"] == "pressure"
    assert "of the memory is used" in caplog.text


def _lines(file: Path) -> int:
    return len(file.read_text().split())


def _fleets(rabbit, queue: str, file: Path, more: str = "") -> str:
    return FLEETS.format(
        endpoint=rabbit.management_url,
        python=sys.executable,
        program=CONSUMER,
        port=rabbit.port,
        queue=queue,
        file=file,
        more=more,
    )
