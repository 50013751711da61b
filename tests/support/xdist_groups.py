"""Groups of tests that one pytest-xdist process runs one after another.

Grouped by folder, because marks (`xdist_group`) get lost: xdist appends them to the ids of tests,
which current pytest does not allow.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

# By the beginning of a test's id; the first that matches.  Groups with the same reason are one.
GROUPS = {
    "tests/architecture/": "each file of the package is parsed once",
    "tests/console/": "one browser, and a server on each store",
    "tests/edge/sqs/celery/": "servers and workers are started once",
    "tests/docs/test_moving_from_celery": "one worker of each system",
    "tests/faults/": "they measure how fast a killed broker is back, on a small machine",
    "tests/pipeline/test_r": "a second Spark session, because one process would be the last to end",
    "tests/pipeline/test_s": "a second Spark session, because one process would be the last to end",
    "tests/pipeline/": "one Spark session",
    "tests/autoscaling/": "one RabbitMQ",
    "tests/outbound/test_rabbitmq": "one RabbitMQ",
}


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        return next((why for place, why in GROUPS.items() if nodeid.startswith(place)), nodeid)

    def _reschedule(self, node: Any) -> None:
        """Leave out a process that is still collecting.

        If two have crashed, xdist schedules for both successors when the first is ready, and ends
        the whole run with a KeyError of the second.
        """
        if node in self.registered_collections:
            super()._reschedule(node)
