"""A store that is closed and opened again continues where it was."""

import pytest

from penstock.domain.errors import ShuttingDown, StoreRefused
from penstock.domain.message.lease import Lease, Verb, read_receipt, receipt
from penstock.domain.message.lifecycle import State
from penstock.ports.store import Acted
from penstock.store.store import open_sqlite
from tests.clocks import ManualClock
from tests.factories import a_new_message
from tests.store.backends import every_backend
from tests.store.driver import StoreDriver

__all__ = ["every_backend"]  # a fixture


def test_everything_is_there_again(open_store):
    first = StoreDriver(open_store(), ManualClock())
    mail = first.queue()
    ready, waiting = first.send(mail, body='"b"'), first.send(mail, delay_ms=5)
    [held] = first.claim(mail)
    counts = first.counts(mail)
    first.store.close()

    second = StoreDriver(open_store(), first.clock)

    assert second.read(lambda s: s.queues.find("mail")) == mail
    assert second.get(ready) == held
    assert second.get(waiting).state is State.WAITING
    assert second.counts(mail) == counts
    assert isinstance(second.act(Verb.COMPLETE, held), Acted)
    second.store.close()


def test_new_messages_are_placed_behind_the_old_ones(open_store):
    first = StoreDriver(open_store(), ManualClock())
    mail = first.queue()
    old = first.send(mail)
    first.store.close()

    second = StoreDriver(open_store(), first.clock)
    new = second.send(mail)

    assert second.claim_ids(mail) == [old, new]
    second.store.close()


def test_receipts_stay_valid_over_a_restart(open_store):
    first = StoreDriver(open_store(), ManualClock())
    first.send(first.queue())
    [held] = first.claim(first.queues[0])
    lease = Lease.of(held)
    text = receipt(lease, secret=first.store.secret)
    first.store.close()

    second = open_store()

    assert read_receipt(text, secret=second.secret) == lease
    second.close()


def test_the_latest_instant_seen_is_kept(open_store):
    first = StoreDriver(open_store(), ManualClock())
    mail = first.queue()
    first.send(mail)
    first.clock.advance(minutes=5)
    first.claim(mail)
    first.store.close()

    second = open_store()

    assert first.now <= second.clock_mark <= first.now + 1_000
    second.close()


def test_a_closed_store_refuses_new_work(open_store, clock):
    driver = StoreDriver(open_store(), clock)
    mail = driver.queue()
    driver.store.close()

    for submit in (
        lambda: driver.store.send([a_new_message(mail, now=driver.now)]),
        lambda: driver.submit_claim(mail),
        lambda: driver.store.act([]),
        lambda: driver.store.write(lambda s: None),
        lambda: driver.store.read(lambda s: None),
    ):
        with pytest.raises(ShuttingDown):
            submit()


def test_closing_twice_does_no_harm(open_store):
    store = open_store()

    store.close()
    store.close()


@pytest.mark.parametrize("checksums", [True, False])
def test_a_file_that_is_not_a_database_is_refused(tmp_path, checksums):
    file = tmp_path / "notes.txt"
    file.write_text("These are notes. " * 1_000)

    with pytest.raises(StoreRefused, match=r"notes\.txt is not a SQLite database"):
        open_sqlite(file, checksums=checksums)

    assert file.read_text() == "These are notes. " * 1_000
