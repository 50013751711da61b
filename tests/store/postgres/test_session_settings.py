"""The server's settings for our transactions: per connection, or behind a proxy per transaction."""

import pytest

from penstock.store.postgres.connection import PostgresDatabase
from penstock.store.postgres.url import parse

SHOWN = (
    b"SELECT current_setting('synchronous_commit'), current_setting('statement_timeout'),"
    b" current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'),"
    b" current_setting('plan_cache_mode'), current_setting('enable_seqscan'),"
    b" current_setting('jit')"
)
PLANS = ("force_generic_plan", "off", "off")


@pytest.fixture(params=["directly", "through a proxy"])
def how(request: pytest.FixtureRequest) -> str:
    return request.param


def settings(url: str, how: str, *, read_only: bool = False, durable: bool = True) -> tuple:
    """In the second of two transactions, because the first might leave its settings behind."""
    db = PostgresDatabase(parse(url), read_only=read_only)
    try:
        if how == "through a proxy":  # another server connection, with the server's own settings
            db._link.send(b"RESET ALL")
            db._session = None
        for is_synced in (not durable, durable):
            db.begin(durable=is_synced)
            [found] = db._link.send(SHOWN).rows()
            db.rollback() if read_only else db.commit()
        return found
    finally:
        db.close()


@pytest.mark.parametrize("durable", [True, False])
def test_a_write_waits_for_the_disk_only_if_it_is_durable(postgres_url, how, durable):
    found = settings(f"{postgres_url}?timeout_ms=5000", how, durable=durable)

    times = ("5s", "3s", "2s")
    assert found == ("on" if durable else "off", *times, *PLANS)


def test_a_read_may_compute_between_its_queries(postgres_url, how):
    found = settings(f"{postgres_url}?timeout_ms=5000", how, read_only=True)

    assert found == ("off", "5s", "3s", "5s", *PLANS)


def test_raised_time_limits_end_with_their_transaction(postgres_url, how):
    db = PostgresDatabase(parse(f"{postgres_url}?timeout_ms=5000"))
    if how == "through a proxy":
        db._session = None
    try:
        db.begin(durable=True)
        db.raise_time_limits()
        [during] = db._link.send(SHOWN).rows()
        db.commit()
        db.begin(durable=True)
        [after] = db._link.send(SHOWN).rows()
        db.commit()
    finally:
        db.close()

    assert (during[1], after[1]) == ("10min", "5s")
