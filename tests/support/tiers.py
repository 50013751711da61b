"""What `make test-quick` (pytest --quick) runs: tests that need nothing outside this process.

A test belongs to the quick tier unless it

- runs on PostgreSQL or MariaDB, as its parameters show,
- requests a fixture of FIXTURES,
- is in one of PLACES, or marked `slow`.

Servers that are threads of this process, on SQLite, are quick enough.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FIXTURES = {
    "browser": "Chromium",
    "make_process": "a server process for each test",
    "make_server": "a server for each test",
    "mariadb_server": "MariaDB",
    "postgres_cluster": "PostgreSQL",
    "rabbit": "RabbitMQ",
    "s3_place": "an S3 server",
    "s3_server": "moto's S3 server",
    "spark": "a JVM",
}
PLACES = {
    "tests/autoscaling/": "fleets of worker processes",
    "tests/bench/": "measures",
    "tests/console/": "Chromium",
    "tests/deploy/": "helm, proxies, servers",
    "tests/django/test_example.py": "a worker and a Django project",
    "tests/docs/test_site.py": "builds a site",
    "tests/docs/test_bus.py": "runs the pages' programs",
    "tests/docs/test_external_workers.py": "runs the pages' programs",
    "tests/docs/test_jobs.py": "runs the pages' programs",
    "tests/docs/test_moving_from_celery.py": "a Celery worker",
    "tests/docs/test_readme.py": "runs the pages' programs",
    "tests/docs/test_observability.py": "runs the pages' programs",
    "tests/docs/test_recurring.py": "runs the pages' programs",
    "tests/docs/test_sqs.py": "runs the pages' programs",
    "tests/docs/test_testing.py": "runs the pages' programs",
    "tests/docs/test_tutorial.py": "runs the page's programs",
    "tests/docs/test_web_frameworks.py": "runs the pages' programs",
    "tests/domain/scaling/test_simulation.py": "simulates days",
    "tests/edge/cli/workers/": "worker processes",
    "tests/edge/native/hostile/test_by_schema.py": "thousands of requests, from a process",
    "tests/edge/native/test_embedded_workers.py": "worker processes",
    "tests/edge/node/": "servers of several processes",
    "tests/edge/sqs/celery/": "Celery workers",
    "tests/edge/sqs/test_other_clients.py": "the AWS command line",
    "tests/faults/": "server processes that are killed",
    "tests/outbound/replicas/test_processes.py": "fleets of processes",
    "tests/packages/": "builds packages and installs them",
    "tests/runtime/archiver/test_killed.py": "processes that are killed",
    "tests/runtime/pusher/test_killed.py": "processes that are killed",
    "tests/runtime/pusher/test_many_queues.py": "ten thousand queues",
    "tests/store/callers/test_kills.py": "processes that are killed",
    "tests/store/callers/test_shared_servers.py": "PostgreSQL",
    "tests/store/damage/": "every byte of a file, one after the other",
    "tests/stories/": "whole systems of processes",
    "tests/store/postgres/": "PostgreSQL",
    "tests/store/processes/": "processes that share a store",
    "tests/support/": "starts the servers of the other tests",
}

_SERVERS = re.compile(r"(?<![a-z])(postgres|mariadb)(?![a-z])")


def is_quick_place(path: Path, root: Path) -> bool:
    place = path.relative_to(root).as_posix() + ("/" if path.is_dir() else "")
    return not place.startswith(tuple(PLACES))


def is_quick(item: pytest.Item) -> bool:
    if item.get_closest_marker("slow"):
        return False
    if not FIXTURES.keys().isdisjoint(getattr(item, "fixturenames", ())):
        return False
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return not any(_SERVERS.search(str(value)) for value in parameters.values())
