"""Fixtures for every test. What only some tests need belongs in a conftest.py beside them."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import settings

from penstock.store.postgres.store import migrate
from tests.support import xdist_groups
from tests.support.mariadb import MariadbServer
from tests.support.memory import memory_folder
from tests.support.postgres import PostgresCluster
from tests.support.rabbitmq import RabbitNode
from tests.support.renewable_mariadb import RenewableMariadb
from tests.support.s3_server import S3Server
from tests.support.tiers import is_quick, is_quick_place
from tests.support.xdist_groups import GroupScheduling

# Without bytecode files, every process that a test starts compiles all modules: 0.5 s of CPU each.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# No deadline: examples are slow on a busy machine. In CI a run can be repeated exactly.
settings.register_profile("here", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=25)
settings.register_profile("ci", deadline=None, derandomize=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="run the quick tier only")


def pytest_configure(config: pytest.Config) -> None:
    is_quick_run = config.getoption("quick")
    gc.disable()  # while tests are collected: hardly anything is freed then
    settings.load_profile("ci" if os.environ.get("CI") else "quick" if is_quick_run else "here")
    if memory := memory_folder():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", memory)  # where tmp_path is


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Modules that the quick tier leaves out are not imported either: that takes seconds."""
    if config.getoption("quick") and not is_quick_place(collection_path, config.rootpath):
        return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("quick"):
        config.hook.pytest_deselected(items=[item for item in items if not is_quick(item)])
        items[:] = [item for item in items if is_quick(item)]
    elif hasattr(config, "workerinput"):  # one of several processes
        root = config.rootpath
        xdist_groups.sort(items, lambda item: is_quick_place(item.path, root) and is_quick(item))


def pytest_collection_finish() -> None:
    """Spare the garbage collector the objects that stay until the end: a million of them."""
    gc.enable()
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Modules are freed at exit again: some, such as DuckDB's, would report leaks."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling:
    return GroupScheduling(config, log)


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """A folder on a disk, for tests about syncing; that of `tmp_path` may be in memory."""
    with TemporaryDirectory(prefix="penstock-", dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


@pytest.fixture
def s3_place(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a folder in a new bucket, which this environment reaches."""
    from pyarrow.fs import S3FileSystem

    for name, text in s3_server.environment.items():
        monkeypatch.setenv(name, text)
    bucket = f"lake-{uuid4().hex[:12]}"
    host = s3_server.url.removeprefix("http://")
    S3FileSystem(scheme="http", endpoint_override=host, allow_bucket_creation=True).create_dir(
        bucket
    )
    return f"s3://{bucket}/penstock"


@pytest.fixture(scope="session")
def rabbit() -> Iterator[RabbitNode]:
    """A RabbitMQ with its management server, started when the first test asks for it."""
    with RabbitNode() as node:
        yield node


@pytest.fixture(scope="session")
def postgres_cluster(pytestconfig: pytest.Config) -> Iterator[PostgresCluster]:
    """One server per pytest-xdist worker, started when the first test asks for it.

    Its files are in memory where there is room: on a disk, dropping a database takes a second.
    """
    assert not pytestconfig.getoption("quick"), "the quick tier starts no servers"
    with PostgresCluster(in_memory=True) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def mariadb_server(pytestconfig: pytest.Config) -> Iterator[MariadbServer]:
    """One server per pytest-xdist worker, started when the first test asks for it."""
    assert not pytestconfig.getoption("quick"), "the quick tier starts no servers"
    with MariadbServer(in_memory=True) as server:
        yield server


@pytest.fixture(scope="session")
def renewable_mariadb(mariadb_server: MariadbServer) -> Iterator[RenewableMariadb]:
    with closing(RenewableMariadb(mariadb_server)) as database:
        yield database


@pytest.fixture
def mariadb_url(mariadb_server: MariadbServer) -> Iterator[str]:
    """The URL of a database of the test's own, empty."""
    mariadb_server.start()
    url = mariadb_server.new_database()

    yield url

    mariadb_server.start()
    mariadb_server.drop_database(url)


@pytest.fixture(scope="session")
def migrated_template(postgres_cluster: PostgresCluster) -> str:
    """The name of a database with our schema in it: a copy is made faster than a migration."""
    postgres_cluster.start()
    url = postgres_cluster.new_database()
    migrate(url)
    return url.rpartition("/")[2]


@pytest.fixture
def migrated_url(postgres_cluster: PostgresCluster, migrated_template: str) -> Iterator[str]:
    """The URL of a database of the test's own, with our schema in it."""
    postgres_cluster.start()
    url = postgres_cluster.new_database(template=migrated_template)

    yield url

    postgres_cluster.start()
    postgres_cluster.drop_database(url)


@pytest.fixture
def postgres_url(postgres_cluster: PostgresCluster) -> Iterator[str]:
    """The URL of a database of the test's own, empty."""
    postgres_cluster.start()
    url = postgres_cluster.new_database()

    yield url

    postgres_cluster.start()
    postgres_cluster.drop_database(url)
