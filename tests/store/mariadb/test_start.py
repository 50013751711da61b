"""A store opens only on a MariaDB server with safe settings and the current schema."""

from contextlib import closing

import pytest

from penstock.domain.errors import InvalidRequest, StoreRefused, StoreUnavailable
from penstock.store.maintenance import migrate as migrations
from penstock.store.maintenance.migrate import Migration
from penstock.store.mariadb import store as mariadb_store
from penstock.store.mariadb.connection import refuse_old
from penstock.store.mariadb.store import migrate, open_mariadb, pending_sql
from penstock.store.mariadb.url import parse
from tests import conftest as root
from tests.clocks import ManualClock
from tests.store.driver import StoreDriver
from tests.store.postgres.helpers import at_once
from tests.support.mariadb import MariadbServer

mariadb_url = root.mariadb_url  # an empty database

SAFE = {"innodb_flush_log_at_trx_commit": "1", "innodb_doublewrite": "1", "read_only": "0"}


@pytest.mark.parametrize(
    ("fact", "value"),
    [("innodb_flush_log_at_trx_commit", "2"), ("innodb_doublewrite", "0"), ("read_only", "1")],
)
def test_a_server_with_unsafe_settings_is_refused(fact, value):
    with pytest.raises(StoreRefused, match=f"MariaDB's {fact} is {value}"):
        mariadb_store.refuse_unsafe(SAFE | {fact: value})


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("8.4.3", "the server is MySQL 8.4.3"),
        ("10.6.21-MariaDB-log", "MariaDB 10.6.21-MariaDB-log is too old"),
    ],
)
def test_other_and_old_servers_are_refused(version, reason):
    with pytest.raises(StoreRefused, match=reason):
        refuse_old(version)


def test_maintained_servers_are_accepted():
    refuse_old("10.11.18-MariaDB-0+deb12u1")
    refuse_old("11.4.2-MariaDB")


def test_a_database_without_our_schema_is_refused_with_the_remedy(mariadb_url):
    with pytest.raises(StoreRefused, match="run: penstock migrate --store URL"):
        open_mariadb(mariadb_url)

    assert "CREATE TABLE" in pending_sql(mariadb_url)


def test_one_of_two_processes_that_migrate_at_once_does_it(mariadb_url):
    applied = at_once(lambda: migrate(mariadb_url), lambda: migrate(mariadb_url))

    assert sorted(applied, key=len) == [[], migrations.shipped("mariadb")]
    assert migrate(mariadb_url) == []
    open_mariadb(mariadb_url).close()


@pytest.mark.parametrize("statements", [1, 7, 30])
def test_a_migration_that_was_interrupted_runs_again(mariadb_url, monkeypatch, statements):
    """Each statement is committed by itself, so a crash leaves the first ones."""
    whole, *others = migrations.shipped("mariadb")
    parts = whole.text.split(";\n")
    begun = Migration(whole.number, whole.name, ";\n".join([*parts[:statements], "NO STATEMENT"]))
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "shipped", lambda _: [begun])
        with pytest.raises(Exception, match="SQL syntax"):
            migrate(mariadb_url)

    assert migrate(mariadb_url) == [whole, *others]
    open_mariadb(mariadb_url).close()


def test_days_that_were_removed_in_part_are_dropped_at_the_next_start(
    mariadb_url, mariadb_server: MariadbServer
):
    migrate(mariadb_url)
    mariadb_store.make_day(parse(mariadb_url), 20_000)
    mariadb_store.make_day(parse(mariadb_url), 20_001)
    with mariadb_server.connect(mariadb_url) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM day WHERE day = 20000")

        open_mariadb(mariadb_url).close()

        cursor.execute("SHOW TABLES LIKE 'body_%'")
        assert [name for (name,) in cursor.fetchall()] == ["body_20001"]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mysql://root@db", "names a database"),
        ("mysql://root@db/shop?timeout_ms=5", "timeout_ms must be from"),
        ("mysql://root@db/shop?charset=latin1", "unknown option 'charset'"),
        ("mysql://root@db:x/shop", "not a MariaDB URL"),
    ],
)
def test_a_url_that_is_wrong_is_refused_with_the_reason(url, reason):
    with pytest.raises(InvalidRequest, match=reason):
        parse(url)


def test_a_url_names_user_password_and_database():
    url = parse("mariadb://me:p%40ss@db:3307/shop?timeout_ms=2000")

    assert url.timeout_ms == 2_000
    wanted = {"host": "db", "port": 3307, "user": "me", "password": "p@ss", "database": "shop"}
    assert wanted.items() <= url.options.items()


def test_a_server_that_is_not_there_is_reported():
    with pytest.raises(StoreUnavailable, match="cannot reach MariaDB"):
        open_mariadb("mysql://root@127.0.0.1:1/shop")


def test_a_user_needs_rights_on_its_database_only(mariadb_url, mariadb_server: MariadbServer):
    database = mariadb_url.rpartition("/")[2]
    with mariadb_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE OR REPLACE USER app@'%' IDENTIFIED BY 'p@ss'")
        cursor.execute(
            "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX"
            f" ON {database}.* TO app@'%'"
        )
    url = mariadb_url.replace("root@", "app:p%40ss@")

    migrate(url)
    with closing(open_mariadb(url)) as store:
        driver = StoreDriver(store, ManualClock())
        mail = driver.queue()
        driver.send(mail)
        [held] = driver.claim(mail)
        driver.complete(held)

        assert driver.counts(mail).done_total == 1
