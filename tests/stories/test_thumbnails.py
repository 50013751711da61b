"""An elastic fleet through an orderly restart of its autoscaler, and through a crash.

Not over HTTP: an autoscaler opens the store itself.  On one store, because `tests/autoscaling`
does on both what differs between them.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest

from penstock.settings import load
from penstock.settings.load import Flag
from penstock.wiring.autoscaling import FOLDER
from penstock.wiring.broker import Broker, open_broker
from tests.autoscaling.test_command_line import pids
from tests.stories.conftest import OpenEnvironment
from tests.stories.environment import Program, StoryEnvironment

PICTURES = 120
MIN, MAX = 2, 3
SLOTS = 2
FLEETS = f"""
[profiles.default]
samples_needed = 1
backlog_goal_s = 1

[fleets.thumbnails]
queue = "pictures"
min = {MIN}
max = {MAX}
interval_ms = "1s"
steady_ms = "0s"

[fleets.thumbnails.replicas]
kind = "processes"
app = "tests.stories.thumbnails:app"
slots = {SLOTS}
arguments = ["--lease", "3s", "--beat", "500ms", "--prefetch", "0"]
"""


class Fleet:
    def __init__(self, environment: StoryEnvironment) -> None:
        self.environment = environment
        self.data = environment.folder / "data"
        self._file = environment.folder / "fleets.toml"
        self._file.write_text(FLEETS)

    def autoscale(self) -> Program:
        flags = (
            "--fleets",
            str(self._file),
            "--data",
            str(self.data),
            "--store",
            self.environment.store,
        )
        return self.environment.run("penstock", "autoscale", *flags)

    @property
    def workers(self) -> list[int]:
        return pids(self.data / FOLDER / "thumbnails.json")


@pytest.fixture
def environment(open_environment: OpenEnvironment) -> StoryEnvironment:
    return open_environment("sqlite")


@pytest.fixture
def fleet(environment: StoryEnvironment) -> Iterator[Fleet]:
    found = Fleet(environment)
    yield found
    for pid in found.workers:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


@pytest.fixture
def broker(environment: StoryEnvironment) -> Iterator[Broker]:
    """The store as an operator sees it."""
    flags = {"store.url": Flag("--store", environment.store)}
    opened = open_broker(load(config=None, env={}, flags=flags).settings)
    yield opened
    opened.close()


def test_every_picture_is_done_through_a_restart_and_a_crash_of_the_fleet(
    fleet: Fleet, broker: Broker
) -> None:
    environment = fleet.environment
    autoscaler = fleet.autoscale()
    environment.until(lambda: running(broker) == MIN)
    assert autoscaler.end() == 0
    assert fleet.workers == []
    autoscaler = fleet.autoscale()
    environment.until(lambda: len(fleet.workers) == MIN)

    assert environment.run("tests.stories.thumbnails", str(PICTURES)).wait() == 0
    environment.until(lambda: len(environment.lines()) >= PICTURES // 6)
    assert autoscaler.end() == 0
    before = environment.lines()
    assert len(before) == len(set(before)), "a drained worker has completed what it began"
    autoscaler = fleet.autoscale()
    environment.until(lambda: len(environment.lines()) >= len(before) + PICTURES // 6)

    autoscaler.kill()
    killed = environment.until(lambda: fleet.workers)[0]
    os.killpg(killed, signal.SIGKILL)
    give_up_lease(broker)
    autoscaler = fleet.autoscale()
    environment.until(lambda: done(broker) == PICTURES)
    assert autoscaler.end() == 0

    assert fleet.workers == []
    did = Counter(map(int, environment.lines()))
    assert set(did) == set(range(PICTURES))
    again = [picture for picture, times in did.items() if times > 1]
    assert max(did.values()) <= 2
    assert not set(map(str, again)) & set(before), "only what the killed worker had not completed"
    counts = broker.queues.get("pictures").result().counts
    assert (counts.ready, counts.waiting, counts.leased, counts.dead) == (0, 0, 0, 0)


def give_up_lease(broker: Broker) -> None:
    """As if half a minute had passed: the next autoscaler need not wait for the killed one."""
    [status] = broker.scaling.all().result()
    broker.scaling.leave(status.group, holder=status.seen_by)


def running(broker: Broker) -> int:
    """The workers that the autoscaler has counted."""
    found = next(iter(broker.scaling.all().result()), None)
    return found.replicas.running if found and found.replicas else 0


def done(broker: Broker) -> int:
    return broker.queues.get("pictures").result().counts.done_total
