"""What a file would change: created, changed, removed, and left alone."""

import pytest

from penstock.api.topics import Subscribe
from penstock.client.definitions.document import Definitions
from penstock.client.definitions.plan import Action, plan
from penstock.domain.queue.queue import QueueSettings

pytestmark = pytest.mark.no_store("codec")

PRESENT = Definitions(
    queues={"mail": QueueSettings(lease_ms=5), "old": QueueSettings()},
    topics={"orders": {"audit": Subscribe(settings=QueueSettings(max_attempts=9))}},
)


def changes(wanted, *, prune=False):
    planned = plan(PRESENT, wanted, prune=prune)
    return [(change.action, str(change.kind), change.name) for change in planned.changes]


def test_what_is_missing_is_created_in_the_order_of_dependence():
    wanted = Definitions(
        queues={"new": QueueSettings()}, topics={"jobs": {"all": Subscribe()}, "orders": {}}
    )

    assert changes(wanted) == [
        (Action.CREATE, "queue", "new"),
        (Action.CREATE, "topic", "jobs"),
        (Action.CREATE, "subscription", "jobs/all"),
    ]


def test_a_change_shows_the_fields_before_and_after_with_defaults():
    wanted = Definitions(queues={"mail": QueueSettings(delay_ms=7)})

    [change] = plan(PRESENT, wanted, prune=False).changes

    assert change.before == {"lease_ms": 5, "delay_ms": 0}
    assert change.after == {"lease_ms": 30_000, "delay_ms": 7}


def test_the_same_definitions_change_nothing():
    planned = plan(PRESENT, PRESENT, prune=True)

    assert (planned.changes, planned.extra, planned.unchanged) == ([], [], 4)


def test_a_subscription_without_settings_keeps_those_of_its_queue():
    assert changes(Definitions(topics={"orders": {"audit": Subscribe()}})) == []


def test_only_pruning_removes_and_the_dependent_goes_first():
    wanted = Definitions(queues={"mail": QueueSettings(lease_ms=5)}, topics={})

    assert changes(wanted) == []
    assert [one.name for one in plan(PRESENT, wanted, prune=False).extra] == [
        "old",
        "orders",
        "orders/audit",
    ]
    assert changes(wanted, prune=True) == [
        (Action.REMOVE, "subscription", "orders/audit"),
        (Action.REMOVE, "topic", "orders"),
        (Action.REMOVE, "queue", "old"),
    ]


def test_sections_that_the_file_does_not_have_are_not_touched():
    assert changes(Definitions(), prune=True) == []
