"""The private PostgreSQL server that other tests use."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support import postgres_binaries
from tests.support.postgres import PostgresCluster
from tests.support.processes import is_alive
from tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
OWNER = """
import sys
from tests.support.postgres import PostgresCluster
cluster = PostgresCluster(fsync=False)
cluster.start()
print(cluster.url(), cluster.folder, cluster.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[PostgresCluster]:
    """A server that the tests may crash and damage."""
    with PostgresCluster(settings={"application_name": "maltreated"}) as cluster:
        yield cluster


def test_a_database_is_empty_and_a_tests_own(postgres_url, postgres_cluster):
    other_url = postgres_cluster.new_database()

    ask(postgres_url, "CREATE TABLE message (id integer)")

    assert tables_of(postgres_url) == ["message"]
    assert tables_of(other_url) == []


def test_a_database_can_be_copied_from_a_template(postgres_url, postgres_cluster):
    ask(postgres_url, "CREATE TABLE message (id integer)")

    copy = postgres_cluster.new_database(template=postgres_url.rpartition("/")[2])

    assert tables_of(copy) == ["message"]


def test_a_dropped_database_cuts_off_its_sessions(cluster):
    url = cluster.new_database()
    session = psycopg.connect(url)

    cluster.drop_database(url)

    with pytest.raises(psycopg.OperationalError):
        session.execute("SELECT 1")


def test_the_server_answers_on_its_socket_and_on_the_loopback_address(cluster):
    for url in (cluster.url(), cluster.socket_url()):
        assert ask(url, "SHOW listen_addresses") == "127.0.0.1"


def test_the_server_syncs_to_disk_unless_asked_not_to(cluster):
    with PostgresCluster(fsync=False) as careless:
        assert ask(cluster.url(), "SHOW fsync") == "on"
        assert ask(careless.url(), "SHOW fsync") == "off"


def test_settings_of_the_caller_reach_the_server(cluster):
    assert ask(cluster.url(), "SHOW application_name") == "maltreated"


@pytest.mark.parametrize(
    ("maltreat", "recovers"),
    [
        (PostgresCluster.restart, False),
        (lambda cluster: cluster.restart(immediate=True), True),
        (lambda cluster: (cluster.kill(), cluster.start()), True),
    ],
    ids=["restart", "immediate restart", "kill and start"],
)
def test_committed_rows_are_there_again_at_the_same_address(cluster, maltreat, recovers):
    url = cluster.new_database()
    ask(url, "CREATE TABLE message (id integer)")
    earlier = cluster.log

    maltreat(cluster)

    assert tables_of(url) == ["message"]
    assert ("redo starts" in cluster.log.removeprefix(earlier)) == recovers


def test_a_killed_server_leaves_not_even_a_busy_process_behind(cluster):
    session = psycopg.connect(cluster.url())
    session.pgconn.send_query(b"DO $$ BEGIN LOOP END LOOP; END $$")

    cluster.kill()

    eventually(lambda: not is_alive(session.info.backend_pid))
    cluster.start()


def test_a_closed_server_takes_its_folder_with_it():
    cluster = PostgresCluster(fsync=False)
    cluster.start()

    cluster.close()
    cluster.close()

    assert not cluster.folder.exists()
    assert not is_answering(cluster.url())


def test_a_forked_child_does_not_close_its_parents_server(cluster):
    child = os.fork()
    if child == 0:
        cluster.close()
        os._exit(0)
    os.waitpid(child, 0)

    assert is_answering(cluster.url())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_server_does_not_outlive_an_owner_that_is_killed(how):
    with subprocess.Popen(
        [sys.executable, "-c", OWNER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        url, folder, server = owner.stdout.readline().split()
        assert is_answering(url)

        owner.send_signal(how)

    eventually(lambda: not Path(folder).exists() and not is_alive(int(server)))


def test_a_missing_server_is_a_failure_that_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv(postgres_binaries.CHOSEN_BY_HAND, str(tmp_path))

    with pytest.raises(postgres_binaries.PostgresMissingError, match="apt-get install postgresql"):
        PostgresCluster()


def ask(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        cursor = connection.execute(query.encode())
        row = cursor.fetchone() if cursor.description else None
    return row[0] if row else None


def tables_of(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return [name for (name,) in rows]


def is_answering(url: str) -> bool:
    try:
        return ask(url, "SELECT 1") == 1
    except psycopg.OperationalError:
        return False
