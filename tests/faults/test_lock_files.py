"""The files beside the database live on the same disk: they may fail together with it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from penstock.domain.errors import StoreUnavailable
from penstock.store.sqlite.write_lock import WriteLock
from tests.factories import a_new_message
from tests.faults.driver import rigged

FAILURES = [errno.ENOSPC, errno.EIO, errno.EROFS]


@contextmanager
def failing_notes(code: int) -> Iterator[None]:
    def fail(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    with mock.patch("penstock.store.sqlite.write_lock.os.pwrite", fail):
        yield


@pytest.fixture
def make_lock(tmp_path: Path) -> Iterator[Callable[[], WriteLock]]:
    made: list[WriteLock] = []

    def make() -> WriteLock:
        made.append(WriteLock(tmp_path / "penstock.db", patience_ms=1))
        return made[-1]

    yield make
    for lock in made:
        lock.close()


@pytest.mark.parametrize("code", FAILURES)
def test_the_store_is_unavailable_while_syncs_and_notes_fail_and_heals_with_the_disk(
    tmp_path: Path, code: int
) -> None:
    with rigged(tmp_path, seed=1) as driver:
        assert driver.send(5, 100)
        driver.trouble.syncs_fail = 1.0
        with failing_notes(code):
            for _ in range(3):
                with pytest.raises(StoreUnavailable):
                    driver.store.send([a_new_message(driver.queue)]).result()
        driver.trouble.syncs_fail = 0.0

        assert driver.send(5, 100)

        driver.assert_kept()


@pytest.mark.parametrize("code", FAILURES)
def test_nobody_writes_until_a_doubt_can_be_written_down(
    make_lock: Callable[[], WriteLock], code: int
) -> None:
    ours, theirs = make_lock(), make_lock()
    ours.acquire()
    with failing_notes(code):
        ours.mark_failed_sync()
        ours.release()

        assert not theirs.acquire(wait=False)
        assert ours.has_failed_sync

    ours.release()

    assert theirs.acquire(wait=False)
    assert theirs.has_failed_sync


def test_opening_reports_an_outage_while_the_notes_fail(
    make_lock: Callable[[], WriteLock],
) -> None:
    lock = make_lock()
    lock.acquire()

    with failing_notes(errno.ENOSPC), pytest.raises(StoreUnavailable, match="No space left"):
        lock.enter()


def test_notes_need_no_space_on_the_disk_once_the_store_was_opened(
    make_lock: Callable[[], WriteLock], tmp_path: Path
) -> None:
    lock = make_lock()
    sizes = {path: path.stat().st_size for path in tmp_path.iterdir()}
    lock.acquire()
    lock.enter()
    lock.agree("1234567")
    lock.mark_failed_sync()
    lock.clear_failed_sync()
    lock.mark_failed_sync()

    assert {path: path.stat().st_size for path in tmp_path.iterdir()} == sizes
    assert min(sizes.values()) > 0


def test_a_doubt_that_an_earlier_version_left_is_still_seen(
    make_lock: Callable[[], WriteLock], tmp_path: Path
) -> None:
    (tmp_path / "penstock.db-turn").write_bytes(b"!")

    assert make_lock().has_failed_sync


def test_a_store_is_not_opened_while_the_disk_is_full(tmp_path: Path) -> None:
    """Opening maps a file into memory, and touching that on a full disk ends the process."""
    with rigged(tmp_path, seed=1) as driver:
        assert driver.send(5, 100)
        driver.crash()
        full = SimpleNamespace(f_bavail=3, f_frsize=1024)
        with (
            mock.patch("penstock.store.sqlite.full_disk.os.statvfs", return_value=full),
            pytest.raises(StoreUnavailable, match="the disk is full: 3072 bytes are free"),
        ):
            driver.kill()

        driver.kill()

        driver.assert_kept()
