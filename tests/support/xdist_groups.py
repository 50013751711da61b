"""Which tests one pytest-xdist process runs one after another, and which come first.

Tests of one file share fixtures, so they stay together: those on PostgreSQL, and the others. Some
files share more, as GROUPS says. (Marks, `xdist_group`, get lost: xdist appends them to the ids of
tests, which current pytest does not allow.)

What takes long comes first: the groups, as they are listed, then tests that need servers or
processes, at last those of the quick tier.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

# By the beginning of a test's id; the first that matches.  Groups with the same reason are one.
GROUPS = {
    "tests/pipeline/test_r": "a second Spark session, because one process would be the last to end",
    "tests/pipeline/test_s": "a second Spark session, because one process would be the last to end",
    "tests/pipeline/": "one Spark session",
    "tests/console/": "one browser, and a server on each store",
    "tests/faults/": "they measure how fast a killed broker is back, on a small machine",
    "tests/packages/": "the packages are built once",
    "tests/autoscaling/": "one RabbitMQ",
    "tests/outbound/test_rabbitmq": "one RabbitMQ",
    "tests/edge/sqs/celery/": "servers and workers are started once",
    "tests/docs/test_moving_from_celery": "one worker of each system",
    "tests/architecture/": "each file of the package is parsed once",
}
_MARIADB = "one MariaDB"
_STORE = re.compile(r"\[.*(?<![a-z])(postgres|mariadb)(?![a-z])")


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # by number of tests; ours are in order

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid) or _file_and_store(nodeid)

    def _reschedule(self, node: Any) -> None:
        """Leave out a process that is still collecting.

        If two have crashed, xdist schedules for both successors when the first is ready, and ends
        the whole run with a KeyError of the second.
        """
        if node in self.registered_collections:
            super()._reschedule(node)


def group_of(nodeid: str) -> str | None:
    found = (why for place, why in GROUPS.items() if nodeid.startswith(place))
    return next(found, _MARIADB if _store(nodeid) == "mariadb" else None)


def sort(items: list[pytest.Item], is_quick: Callable[[pytest.Item], bool]) -> None:
    """In the order in which they are handed out."""
    groups = [*dict.fromkeys(GROUPS.values()), _MARIADB]

    def rank(item: pytest.Item) -> int:
        group = group_of(item.nodeid)
        return len(groups) + is_quick(item) if group is None else groups.index(group)

    items.sort(key=rank)


def _file_and_store(nodeid: str) -> str:
    return f"{nodeid.partition('::')[0]} {_store(nodeid)}"


def _store(nodeid: str) -> str:
    found = _STORE.search(nodeid)
    return found[1] if found else ""
