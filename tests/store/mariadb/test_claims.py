"""A claim returns messages as it has locked them, not as they were when it began to look."""

from contextlib import closing

import pytest

from penstock.domain.message.lease import Verb
from penstock.store.mariadb.connection import MariadbDatabase
from penstock.store.mariadb.url import parse
from penstock.store.verbs.transaction_state import message_of


@pytest.mark.parametrize("query", ["messages.claim", "claims_by_kind.claim"])
def test_a_message_that_was_leased_meanwhile_has_its_next_lease_number(driver, mariadb_url, query):
    """A statement's view of committed rows is as old as its first read: here it is made older."""
    mail = driver.queue()
    driver.send(mail, kind="letter")
    with closing(MariadbDatabase(parse(mariadb_url), guarded=False)) as db:
        db._link.run(b"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        db._link.run(b"START TRANSACTION WITH CONSISTENT SNAPSHOT")
        driver.act(Verb.RELEASE, *driver.claim(mail), delay_ms=0)
        params = {
            "queue_no": mail.queue_no,
            "kinds": '["letter"]',
            "now": driver.now,
            "due_at": driver.now,
            "claimed_by": None,
            "limit": 1,
            "max_bytes": 1_000,
        }

        [claimed] = map(message_of, db.rows(query, params))

        assert claimed.lease_no == 2
