"""On PostgreSQL a row may appear behind one with a greater number: the archive waits for it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from penstock.domain.errors import StoreUnavailable
from penstock.domain.lake import layout as lake
from penstock.domain.message.lease import Verb
from penstock.ports.store import Store
from penstock.store.postgres.store import open_postgres
from tests.factories import an_act
from tests.runtime.archiver.rig import Rig
from tests.store.backends import PostgresHome
from tests.store.desk import Desk


@pytest.fixture
def store(postgres_home: PostgresHome) -> Iterator[Store]:
    store = open_postgres(postgres_home.renew(), lanes=2)
    yield store
    store.close()


@pytest.fixture
def application(postgres_home: PostgresHome, store: Store) -> Iterator[psycopg.Connection]:
    """The application's own connection, in whose transactions messages are completed."""
    with psycopg.connect(postgres_home.url) as connection:
        yield connection


def complete_in(desk: Desk, tx: psycopg.Connection, held: object) -> None:
    [answer] = desk.store.act_in(tx, [an_act(Verb.COMPLETE, held, now=desk.now)])  # type: ignore[arg-type]
    assert answer.state == "done", answer  # type: ignore[union-attr]


def test_an_ending_that_is_committed_late_is_not_missed(rig: Rig, application) -> None:
    desk = rig.desk
    mail = desk.queue("mail")
    late, early = desk.send_many(mail, 2)
    held = {message.id: message for message in desk.claim(mail, 2)}
    complete_in(desk, application, held[late])
    desk.complete(held[early])

    archived = rig.run()
    assert not archived.is_settled
    assert rig.rows(lake.HISTORY) == [], "the number of the late one is the smaller"

    application.commit()
    assert rig.run().is_settled
    assert sorted(rig.ids(lake.HISTORY)) == sorted([late, early])


def test_one_that_is_rolled_back_leaves_a_gap_and_nothing_waits_for_it(rig: Rig, application):
    desk = rig.desk
    mail = desk.queue("mail")
    back, early = desk.send_many(mail, 2)
    held = {message.id: message for message in desk.claim(mail, 2)}
    complete_in(desk, application, held[back])
    desk.complete(held[early])
    application.rollback()

    rig.run()

    assert rig.ids(lake.HISTORY) == [early]


def test_one_that_began_later_does_not_hold_back_what_was_there_before(rig: Rig, application):
    desk = rig.desk
    mail = desk.queue("mail")
    first, second, third = desk.send_many(mail, 3)
    held = {message.id: message for message in desk.claim(mail, 3)}
    complete_in(desk, application, held[first])
    desk.complete(held[second])
    assert not rig.run().is_settled

    with psycopg.connect(str(application.info.dsn)) as other:
        complete_in(desk, other, held[third])
        application.commit()
        rig.run()
        assert sorted(rig.ids(lake.HISTORY)) == sorted([first, second])
        other.commit()
    rig.run()
    assert sorted(rig.ids(lake.HISTORY)) == sorted([first, second, third])


def test_snapshots_wait_and_then_say_why_they_cannot_be_taken(rig: Rig, application):
    desk = rig.desk
    mail = desk.queue("mail")
    desk.send(mail)
    [held] = desk.claim(mail)
    complete_in(desk, application, held)
    with pytest.raises(StoreUnavailable, match="transaction"):
        rig.snapshots.take()
    application.rollback()
    assert rig.snapshots.take().rows == 1


def test_an_ending_under_way_while_a_snapshot_is_taken_is_in_it(rig: Rig, application):
    """It ends in a transaction that began after the snapshot did, and ends before it is read."""
    desk = rig.desk
    mail = desk.queue("mail")
    [message_id] = desk.send_many(mail, 1)
    [held] = desk.claim(mail)
    taken = rig.snapshots._settled()
    desk.clock.advance(ms=5)
    complete_in(desk, application, held)
    application.commit()
    rows = rig.snapshots._ended(taken, [], desk.now - 5)
    assert [row[1] for row in rows] == [message_id]
