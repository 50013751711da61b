"""Which tests one process of pytest-xdist runs all of, one after the other.

By where they stand, because marks (`xdist_group`) get lost: xdist hangs them onto the ids of tests,
and current pytest does not let it.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

TOGETHER = {
    "tests/console/": "one browser, and a server on each store",
    "tests/edge/sqs/celery/": "servers and workers are started once",
    "tests/faults/": "they measure how fast a killed broker is back, on a small machine",
    "tests/pipeline/": "one Spark session",
    "tests/autoscaling/": "one RabbitMQ",
}


class Shares(LoadScopeScheduling):  # type: ignore[misc]
    def _split_scope(self, nodeid: str) -> str:
        return next((place for place in TOGETHER if nodeid.startswith(place)), nodeid)

    def _reschedule(self, node: Any) -> None:
        """Leave out a process that is still collecting.

        Where two have crashed, xdist schedules for both successors when the first of them is ready,
        and ends the whole run with a KeyError of the second.
        """
        if node in self.registered_collections:
            super()._reschedule(node)
