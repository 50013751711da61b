"""Recurring work that was removed from an application, on all three backends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock import Penstock
from penstock.client import application_name as naming
from penstock.domain.errors import ScheduleNotFound
from penstock.domain.fact import FactFilter
from penstock.domain.queue.queue import QueueSettings
from penstock.domain.schedule.schedule import (
    REGISTRATION_GRACE_MS,
    RETIRED,
    FixedInterval,
    Template,
)
from penstock.domain.worker import NewWorker
from penstock.wiring.broker import Broker
from penstock.worker.application import WorkerRegistry
from tests.client.calls import run
from tests.clocks import ManualClock
from tests.edge.api import a_name

pytestmark = pytest.mark.environments("worker")

Version = Callable[..., Penstock]


@pytest.fixture
def owner() -> str:
    return a_name("shop")


@pytest.fixture
def version(url: str, clock: ManualClock, queue: str, owner: str) -> Iterator[Version]:
    """One version of an application, which declares these."""
    made: list[Penstock] = []

    def version(*names: str, name: str | None = None) -> Penstock:
        app = Penstock(url, clock=clock, name=name or owner)
        made.append(app)
        for one in names:
            app.recurring(every="1h", name=one)(app.job(queue=queue, kind=one)(lambda: None))
        app.queue(queue)
        return app

    yield version
    for app in made:
        app.close()


def start(app: Penstock) -> tuple[WorkerRegistry, str]:
    """Do what a worker does at its start: declare, then register."""
    app.job_source()
    registry = app.registry(NewWorker())
    return registry, registry.register()


def names_of(app: Penstock, *, owner: str | None) -> set[str]:
    return {one.name for one in app.recurring.list() if one.owner == owner}


@pytest.fixture
def a() -> str:
    return a_name("a")


@pytest.fixture
def b() -> str:
    return a_name("b")


def test_a_schedule_that_the_next_version_does_not_declare_is_retired_when_its_worker_starts(
    version: Version, broker: Broker, clock: ManualClock, owner: str, a: str, b: str, caplog: Any
) -> None:
    registry, worker = start(version(a, b))
    registry.leave(worker)
    clock.advance(ms=REGISTRATION_GRACE_MS)
    new = version(a)

    start(new)

    assert names_of(new, owner=owner) == {a}
    [fact] = broker.store.read(
        lambda s: s.facts.search(FactFilter(kind=RETIRED, subject=b))
    ).result()
    assert owner in fact.data
    assert f"removed recurring work '{b}': {owner}" in caplog.text


def test_an_application_that_declares_nothing_any_more_retires_all_of_its_own(
    version: Version, clock: ManualClock, owner: str, a: str
) -> None:
    registry, worker = start(version(a))
    registry.leave(worker)
    clock.advance(ms=REGISTRATION_GRACE_MS)
    new = version()

    start(new)

    assert names_of(new, owner=owner) == set()


def test_versions_side_by_side_keep_what_either_declares_until_one_of_them_is_gone(
    version: Version, clock: ManualClock, owner: str, a: str, b: str
) -> None:
    c = a_name("c")
    old_roll, old_worker = start(version(a, b))
    clock.advance(ms=REGISTRATION_GRACE_MS)
    new = version(a, c)
    new_roll, new_worker = start(new)
    for _ in range(3):
        clock.advance(seconds=20)
        old_roll.beat(old_worker)
        new_roll.beat(new_worker)
        assert names_of(new, owner=owner) == {a, b, c}
    old_roll.leave(old_worker)

    new_roll.beat(new_worker)

    assert names_of(new, owner=owner) == {a, c}


def test_a_killed_worker_delays_retirement_until_it_is_declared_lost(
    version: Version, clock: ManualClock, owner: str, a: str, b: str
) -> None:
    start(version(a, b))  # and sends no more beats
    clock.advance(ms=REGISTRATION_GRACE_MS)
    new = version(a)
    registry, worker = start(new)
    assert names_of(new, owner=owner) == {a, b}

    for _ in range(12):
        clock.advance(seconds=15)
        registry.beat(worker)

    assert names_of(new, owner=owner) == {a}


def test_schedules_of_other_applications_and_of_operators_are_not_retired(
    version: Version, broker: Broker, clock: ManualClock, queue: str, owner: str, a: str, b: str
) -> None:
    by_hand, other = a_name("by-hand"), a_name("other")
    start(version(a, name=other))
    broker.recurring.declare(by_hand, FixedInterval(3_600_000), Template(queue=queue)).result()
    clock.advance(ms=REGISTRATION_GRACE_MS)
    app = version(b)

    start(app)

    assert names_of(app, owner=other) == {a}
    assert by_hand in names_of(app, owner=None)


def test_a_schedule_without_an_owner_gets_the_app_that_declares_it_again(
    version: Version, broker: Broker, clock: ManualClock, queue: str, owner: str, a: str
) -> None:
    broker.queues.put(queue, QueueSettings()).result()
    broker.recurring.declare(a, FixedInterval(3_600_000), Template(queue=queue)).result()
    registry, worker = start(version(a))
    registry.leave(worker)
    clock.advance(ms=REGISTRATION_GRACE_MS)
    new = version()

    start(new)

    assert a not in {one.name for one in new.recurring.list()}


def test_a_worker_of_another_version_that_is_just_starting_loses_nothing(
    version: Version, clock: ManualClock, owner: str, a: str, b: str
) -> None:
    registry, worker = start(version(a))
    clock.advance(ms=REGISTRATION_GRACE_MS)
    starting = version(a, b)
    starting.job_source()  # it has declared, but is not registered yet

    registry.beat(worker)

    assert names_of(starting, owner=owner) == {a, b}


def test_recurring_work_is_looked_at_paused_and_removed_from_python(
    version: Version, owner: str, a: str, queue: str
) -> None:
    app = version(a)
    app.job_source()

    shown = app.recurring.get(a)
    assert (shown.owner, shown.queue, shown.every_ms, shown.kind) == (owner, queue, 3_600_000, a)
    assert app.recurring.pause(a).is_paused
    assert not app.recurring.resume(a).is_paused
    assert app.jobs.get(app.recurring.run(a)).kind == a
    assert app.recurring.get(a).owner == owner
    run(app.recurring.remove_async(a))
    with pytest.raises(ScheduleNotFound):
        app.recurring.get(a)


def test_an_application_is_named_after_its_module_unless_there_are_several(url: str) -> None:
    make = "from penstock import Penstock\nfirst = Penstock(url)\n"
    alone: dict[str, Any] = {"__name__": a_name("alone"), "url": url}
    exec(make, alone)
    assert alone["first"].name == alone["__name__"]
    exec("second = Penstock(url)\nthird = Penstock(url, name='third')\n", alone)
    assert (alone["first"].name, alone["second"].name) == (None, None)
    assert alone["third"].name == "third"


@pytest.mark.no_store("declaring")
@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"__name__": "shop.jobs"}, "shop.jobs"),
        ({"__name__": "__main__", "__spec__": None, "__file__": "/srv/jobs.py"}, "jobs"),
        ({"__name__": "__main__", "__spec__": None}, "__main__"),
    ],
)
def test_a_program_that_is_run_is_named_as_it_is_imported(
    variables: dict[str, Any], name: str
) -> None:
    assert naming.module_of(variables) == name
