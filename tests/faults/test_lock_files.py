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
from penstock.store.sqlite.write_lock import Turns
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
def make_turns(tmp_path: Path) -> Iterator[Callable[[], Turns]]:
    made: list[Turns] = []

    def make() -> Turns:
        made.append(Turns(tmp_path / "penstock.db", patience_ms=1))
        return made[-1]

    yield make
    for turns in made:
        turns.close()


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
    make_turns: Callable[[], Turns], code: int
) -> None:
    ours, theirs = make_turns(), make_turns()
    ours.take()
    with failing_notes(code):
        ours.doubt()
        ours.give_back()

        assert not theirs.take(wait=False)
        assert ours.is_in_doubt

    ours.give_back()

    assert theirs.take(wait=False)
    assert theirs.is_in_doubt


def test_opening_reports_an_outage_while_the_notes_fail(make_turns: Callable[[], Turns]) -> None:
    turns = make_turns()
    turns.take()

    with failing_notes(errno.ENOSPC), pytest.raises(StoreUnavailable, match="No space left"):
        turns.come_in()


def test_notes_need_no_space_on_the_disk_once_the_store_was_opened(
    make_turns: Callable[[], Turns], tmp_path: Path
) -> None:
    turns = make_turns()
    sizes = {path: path.stat().st_size for path in tmp_path.iterdir()}
    turns.take()
    turns.come_in()
    turns.agree("1234567")
    turns.doubt()
    turns.trust()
    turns.doubt()

    assert {path: path.stat().st_size for path in tmp_path.iterdir()} == sizes
    assert min(sizes.values()) > 0


def test_a_doubt_that_an_earlier_version_left_is_still_seen(
    make_turns: Callable[[], Turns], tmp_path: Path
) -> None:
    (tmp_path / "penstock.db-turn").write_bytes(b"!")

    assert make_turns().is_in_doubt


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
