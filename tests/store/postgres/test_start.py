"""A store opens only on a server with safe settings and the current schema."""

import pytest

from penstock.domain.errors import InvalidRequest, StoreRefused, StoreUnavailable
from penstock.store.maintenance import migrate as migrations
from penstock.store.postgres import store as postgres_store
from penstock.store.postgres.store import migrate, open_postgres, pending_sql
from tests import conftest as root
from tests.store.postgres.helpers import at_once, by_hand

postgres_url = root.postgres_url  # an empty database

DURABLE = {"server_version_num": "130000", "fsync": "on", "full_page_writes": "on"}


@pytest.mark.parametrize(
    ("fact", "value", "reason"),
    [
        ("server_version_num", "120022", "PostgreSQL 12 is too old"),
        ("fsync", "off", "fsync is off"),
        ("full_page_writes", "off", "full_page_writes is off"),
        ("data_sync_retry", "on", "data_sync_retry is on"),
        ("server_encoding", "SQL_ASCII", "server_encoding is SQL_ASCII"),
    ],
)
def test_a_server_with_unsafe_settings_is_refused(fact, value, reason):
    with pytest.raises(StoreRefused, match=reason):
        postgres_store.refuse_unsafe(DURABLE | {fact: value})


def test_the_oldest_server_that_is_durable_is_accepted():
    postgres_store.refuse_unsafe(DURABLE)


def test_a_database_without_our_schema_is_refused_with_the_remedy(postgres_url):
    with pytest.raises(StoreRefused, match="run: penstock migrate --store URL"):
        open_postgres(postgres_url)


def test_a_migrated_database_is_not_migrated_again(postgres_url):
    first = migrate(postgres_url)

    again = migrate(postgres_url)

    assert first == migrations.shipped("postgres")
    assert again == []


def test_one_of_two_processes_that_migrate_at_once_does_it(postgres_url):
    applied = at_once(lambda: migrate(postgres_url), lambda: migrate(postgres_url))

    assert sorted(applied, key=len) == [[], migrations.shipped("postgres")]
    open_postgres(postgres_url).close()


def test_a_migration_that_was_changed_afterwards_is_refused(postgres_url):
    migrate(postgres_url)
    by_hand(postgres_url, "UPDATE migration SET checksum = 'another'")

    with pytest.raises(StoreRefused, match="another text"):
        open_postgres(postgres_url)


def test_the_script_of_what_is_pending_does_what_migrate_does(postgres_url):
    script = pending_sql(postgres_url)
    by_hand(postgres_url, script)

    assert pending_sql(postgres_url) == ""
    open_postgres(postgres_url).close()


def test_without_a_server_the_script_holds_every_migration():
    assert "CREATE TABLE message" in pending_sql(None)


@pytest.mark.parametrize("options", ["?prepare=maybe", "?timeout_ms=soon", "?timeout_ms=1"])
def test_invalid_options_of_the_url_are_refused(postgres_url, options):
    with pytest.raises(InvalidRequest):
        open_postgres(postgres_url + options)


def test_a_server_that_cannot_be_reached_is_unavailable():
    with pytest.raises(StoreUnavailable, match="cannot reach PostgreSQL"):
        open_postgres("postgresql://unknown@127.0.0.1:1/nothing")
