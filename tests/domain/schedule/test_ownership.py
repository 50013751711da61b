"""When recurring work that an application no longer declares is retired."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from penstock.domain import worker as workers
from penstock.domain.limits import HOUR
from penstock.domain.schedule import schedule as schedules
from penstock.domain.schedule.schedule import (
    REGISTRATION_GRACE_MS,
    FixedInterval,
    Schedule,
    Template,
)
from penstock.domain.worker import NewWorker, Worker, WorkerState
from tests.clocks import NOON

OWNER = "shop.jobs"
OLD = NOON - HOUR


def a_schedule(name: str, *, owner: str | None = OWNER, created_at: int = OLD) -> Schedule:
    return Schedule(
        name=name,
        rhythm=FixedInterval(HOUR),
        template=Template(queue="mail"),
        created_at=created_at,
        changed_at=created_at,
        owner=owner,
    )


def a_worker(*declared: str, owner: str = OWNER, state: WorkerState = WorkerState.ACTIVE) -> Worker:
    about = NewWorker(labels=schedules.owner_labels(owner, declared))
    return replace(workers.register(about, worker_id="w", now=NOON, valid_ms=HOUR), state=state)


@pytest.mark.parametrize(
    ("schedule", "is_dropped"),
    [
        (a_schedule("b"), True),
        (a_schedule("a"), False),
        (a_schedule("b", owner="other.app"), False),
        (a_schedule("b", owner=None), False),
        (a_schedule("b", created_at=NOON - REGISTRATION_GRACE_MS), True),
        (a_schedule("b", created_at=NOON - REGISTRATION_GRACE_MS + 1), False),
    ],
    ids=["not declared", "declared", "another's", "made by hand", "old enough", "too young"],
)
def test_a_schedule_that_its_application_no_longer_declares_is_dropped(
    schedule: Schedule, is_dropped: bool
) -> None:
    assert schedules.is_dropped(schedule, owner=OWNER, declared={"a"}, now=NOON) is is_dropped


@pytest.mark.parametrize(
    ("other", "is_contested"),
    [
        (a_worker("a", "b"), True),
        (a_worker("a", "b", state=WorkerState.DRAINING), True),
        (a_worker("a", "b", state=WorkerState.LEFT), False),
        (a_worker("a", "b", state=WorkerState.LOST), False),
        (a_worker("a"), False),
        (a_worker("a", "b", owner="other.app"), False),
    ],
    ids=["alive", "draining", "left", "lost", "the same version", "of another application"],
)
def test_while_another_version_is_at_work_nothing_is_decided(
    other: Worker, is_contested: bool
) -> None:
    mine = a_worker("a")

    found = schedules.is_contested([mine, other], owner=OWNER, declared=["a"], now=NOON)

    assert found is is_contested


def test_a_worker_that_was_not_heard_of_in_time_does_not_count() -> None:
    silent = replace(a_worker("a", "b"), alive_until=NOON)

    assert not schedules.is_contested([silent], owner=OWNER, declared=["a"], now=NOON)


@pytest.mark.parametrize(
    ("before", "declares", "after"),
    [("one", "two", "two"), (None, "two", "two"), ("one", None, "one"), (None, None, None)],
)
def test_recurring_work_belongs_to_its_last_declarer_and_a_manual_change_keeps_that(
    before: str | None, declares: str | None, after: str | None
) -> None:
    wanted = a_schedule("b", owner=declares)

    declared = schedules.declare(a_schedule("b", owner=before), wanted, now=NOON)

    assert declared.owner == after
