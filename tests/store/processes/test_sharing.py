"""What processes share, and what each of them caches for a while."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.domain.errors import QueueNotFound, StoreUnavailable
from penstock.domain.limits import DAY, MINUTE
from penstock.domain.message.lease import Verb
from penstock.outbound import clock as clocks
from penstock.outbound.clock import SystemClock
from penstock.ports.store import Acted, Sent
from penstock.runtime.duties import Expirer, Pruner, Reaper
from penstock.services.directory import FRESH_MS, Directory
from penstock.store.sqlite import connection as sqlite
from penstock.store.sqlite import shared_connection as sqlite_plain
from penstock.store.sqlite.write_lock import WriteLock
from penstock.store.store import SqlStore
from tests.clocks import ManualClock
from tests.factories import a_new_message
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver
from tests.store.processes.peer import Peer
from tests.store.storage_failures import TOO_BIG, no_room

Another = Callable[..., SqlStore]


@pytest.fixture
def drivers(open_another: Another) -> tuple[StoreDriver, StoreDriver]:
    """Two processes with the same clock."""
    clock = ManualClock()
    return StoreDriver(open_another(), clock), StoreDriver(open_another(), clock)


@pytest.fixture
def written_again(monkeypatch: pytest.MonkeyPatch, has_checksums: bool) -> list[Path]:
    """The logs that were written again when a store was opened."""
    found: list[Path] = []
    if has_checksums:
        monkeypatch.setattr(sqlite, "make_log_durable", found.append)
    else:
        monkeypatch.setattr(sqlite_plain, "_sync_again", found.append)
    return found


def test_the_log_is_left_alone_while_another_process_has_the_store_open(
    open_another: Another, written_again: list[Path]
) -> None:
    first = open_another()
    assert written_again
    written_again.clear()

    second = open_another()

    assert not written_again
    first.close()
    second.close()
    open_another()
    assert written_again


def test_opening_the_store_waits_for_the_write_lock(
    open_another: Another, written_again: list[Path], folder: Path
) -> None:
    other = WriteLock(folder / "penstock.db")
    other.acquire()

    with pytest.raises(StoreUnavailable):
        open_another(patience_ms=100)

    assert not written_again
    other.close()
    open_another()


def test_after_a_full_disk_the_store_is_reopened_beside_the_others(
    drivers: tuple[StoreDriver, StoreDriver], written_again: list[Path]
) -> None:
    here, there = drivers
    mail = here.queue()
    written_again.clear()
    here.write(no_room)
    with pytest.raises(StoreUnavailable):
        here.submit_send(mail, body=TOO_BIG).result()

    assert here.send(mail)
    assert there.send(mail)
    assert not written_again


@pytest.mark.parametrize("has_checksums", [False])
def test_after_a_failed_write_the_next_process_makes_the_log_durable(
    drivers: tuple[StoreDriver, StoreDriver], written_again: list[Path], folder: Path
) -> None:
    here, there = drivers
    mail = here.queue()
    written_again.clear()
    with no_large_files(folder), pytest.raises(StoreUnavailable):
        here.submit_send(mail, body=TOO_BIG).result()
    assert WriteLock(folder / "penstock.db").has_failed_sync

    sent = there.send(mail)

    assert len(written_again) == 1
    assert not WriteLock(folder / "penstock.db").has_failed_sync
    assert here.claim_ids(mail) == [sent]
    assert len(written_again) == 1


@contextmanager
def no_large_files(folder: Path) -> Iterator[None]:
    """The log cannot grow: the kernel reports a write error, not a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = folder / "penstock.db-wal"
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_day_that_another_process_has_dropped_is_created_again_when_needed(
    drivers: tuple[StoreDriver, StoreDriver],
) -> None:
    here, there = drivers
    mail = here.queue()
    here.send(mail)
    late = a_new_message(mail, now=here.now)  # created on this day, and sent much later
    day = here.now // DAY
    here.clock.advance(days=30)
    there.write(lambda s: s.maintenance.drop_day(day, now=there.now))

    [sent] = here.store.send([late]).result()

    assert isinstance(sent, Sent)
    assert len(there.claim(mail, limit=9)) == 2
    check_counters(there)


def test_a_day_can_be_dropped_by_all_of_them(drivers: tuple[StoreDriver, StoreDriver]) -> None:
    here, there = drivers
    mail = here.queue()
    kept = here.send(mail)
    day = here.now // DAY
    here.clock.advance(days=30)

    for driver in drivers:
        driver.write(lambda s: s.maintenance.drop_day(day, now=here.now))

    [held] = there.claim(mail)
    assert held.id == kept
    assert isinstance(here.act(Verb.COMPLETE, held), Acted)


def test_duties_may_run_in_all_of_them_at_once(drivers: tuple[StoreDriver, StoreDriver]) -> None:
    here, there = drivers
    mail = here.queue(lease_ms=MINUTE)
    here.send_many(mail, 3)
    here.claim(mail, limit=2)
    here.send(mail, delay_ms=5)
    here.clock.advance(days=20)

    for _ in range(2):
        for driver in drivers:
            for duty in (
                Reaper(driver.store, every_ms=1),
                Expirer(driver.store, every_ms=1),
                Pruner(driver.store, retention_days=7),
            ):
                duty.tick(here.now)

    assert here.counts(mail).ready == 4
    check_counters(there)


def test_numbers_are_unique_across_processes(drivers: tuple[StoreDriver, StoreDriver]) -> None:
    here, there = drivers
    mail = here.queue()

    sent = [driver.send(mail) for _ in range(5) for driver in drivers]

    assert there.claim_ids(mail, limit=99) == sent


def test_the_latest_instant_is_that_of_the_process_that_is_ahead(open_another: Another) -> None:
    ahead, behind = ManualClock(), ManualClock()
    ahead.advance(minutes=5)
    here, there = StoreDriver(open_another(), ahead), StoreDriver(open_another(), behind)
    mail = here.queue()
    here.send(mail)

    there.send(mail)

    assert open_another().clock_mark >= ahead.now()


def test_a_process_that_starts_later_uses_the_time_of_the_others(
    open_another: Another, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = SystemClock(agree=open_another().agree)
    wall_ms = clocks.wall_ms
    monkeypatch.setattr(clocks, "wall_ms", lambda: wall_ms() + 60 * MINUTE)

    second = SystemClock(agree=open_another().agree)

    assert abs(second.now() - first.now()) < MINUTE


def test_the_agreed_number_survives_an_error_and_ends_with_the_last_process(
    open_another: Another,
) -> None:
    first = open_another()
    assert first.agree(5) == 5
    driver = StoreDriver(first, ManualClock())
    mail = driver.queue()
    driver.write(no_room)
    with pytest.raises(StoreUnavailable):
        driver.submit_send(mail, body=TOO_BIG).result()
    driver.send(mail)  # reopened, and alone

    second = open_another()
    assert second.agree(7) == 5
    first.close()
    second.close()

    assert open_another().agree(9) == 9


def test_a_queue_that_another_process_has_removed_stays_cached_for_a_moment(
    drivers: tuple[StoreDriver, StoreDriver],
) -> None:
    here, there = drivers
    mail = here.queue()
    directory = Directory(there.store, there.clock)
    assert directory.load("mail").result() == mail
    here.write(lambda s: s.queues.remove(mail.queue_no, now=here.now))
    assert directory.cached("mail") == mail

    [refused] = there.submit_send(mail).result()
    there.clock.advance(ms=FRESH_MS + 1)

    assert isinstance(refused, QueueNotFound), "the transaction reads the queue itself"
    assert directory.cached("mail") is None
    with pytest.raises(QueueNotFound):
        directory.load("mail").result()


def test_a_running_process_is_not_disturbed_by_another_that_starts_and_exits(
    start: Callable[[], Peer], open_another: Another
) -> None:
    driver = StoreDriver(open_another(), ManualClock())
    mail = driver.queue("shared")
    ids = [driver.send(mail)]

    for _ in range(2):
        peer = start().ready()
        ids += peer.ask("send")
        ids.append(driver.send(mail))
        assert peer.close() == ""

    assert len(driver.read(lambda s: s.queues.counts([mail.queue_no]))) == 1
    assert driver.counts(mail).ready == len(ids)
