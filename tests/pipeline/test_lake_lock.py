"""One run at a time on the tables of a lake: who holds the lock, until when, and what then."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.domain.errors import InvalidRequest, LakeUnreachable
from penstock.domain.lake.run_lock import EXPIRES_AFTER_MS, RunLock, new_lock
from penstock.pipeline.files.lake_lock import LakeLock, acquired
from penstock.pipeline.files.lock_files import (
    NAME,
    HadoopLockFile,
    LocalLockFile,
    LockFile,
    ObjectLockFile,
    lock_file,
)
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.spark.stopped import PipelineStopped
from tests.clocks import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "derived" / NAME


def a_lock(where: Path | LockFile, clock: ManualClock, *, pid: int = 1) -> LakeLock:
    file = LocalLockFile(where) if isinstance(where, Path) else where
    return LakeLock(file, a_run(clock, pid=pid), clock.now)


def a_run(clock: ManualClock, *, pid: int = 1) -> RunLock:
    return new_lock(owner="jane", host="h1", pid=pid, now=clock.now())


def no_wait(holder: RunLock) -> None:
    raise AssertionError(f"waits for {holder}")


def test_a_second_run_names_the_running_one(path, clock):
    first, second = a_lock(path, clock), a_lock(path, clock, pid=2)
    with (
        acquired(first, waits=False, on_wait=no_wait),
        pytest.raises(PipelineStopped, match=r"jane on h1 \(process 1\), since 2030") as stopped,
        acquired(second, waits=False, on_wait=no_wait),
    ):
        pass

    assert stopped.value.code == "lake_busy"
    assert not path.exists()


def test_a_second_run_can_wait_for_the_first(path, clock):
    first = a_lock(path, clock)
    assert first.acquire() is None
    waited: list[object] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            first.release()

    second = a_lock(path, clock, pid=2)
    with acquired(second, waits=True, on_wait=waited.append, pause=pause):
        second.check()

    assert [type(one) for one in waited] == [RunLock, float, float]


def test_a_run_waits_for_a_brief_holder_even_if_it_does_not_wait_for_others(path, clock):
    brief = LakeLock(
        LocalLockFile(path),
        new_lock(owner="jane", host="h1", pid=1, now=clock.now(), is_brief=True),
        clock.now,
    )
    assert brief.acquire() is None

    with acquired(
        a_lock(path, clock, pid=2), waits=False, on_wait=no_wait, pause=lambda s: brief.release()
    ) as second:
        second.check()


def test_the_lock_of_a_killed_run_expires_and_is_taken_over(path, clock):
    killed = a_lock(path, clock)
    assert killed.acquire() is None
    clock.advance(ms=EXPIRES_AFTER_MS - 1)
    second = a_lock(path, clock, pid=2)
    assert second.acquire() is not None

    clock.advance(ms=1)

    assert second.acquire() is None
    second.check()
    with pytest.raises(PipelineStopped, match="another run may be in progress"):
        killed.check()
    killed.release()
    assert path.exists(), "a run that lost its lock must not remove that of another"


def test_a_run_that_renews_its_lock_keeps_it(path, clock):
    first = a_lock(path, clock)
    assert first.acquire() is None
    for _ in range(3):
        clock.advance(ms=EXPIRES_AFTER_MS - 1)
        first.renew()

    assert a_lock(path, clock, pid=2).acquire() is not None
    first.check()


def test_a_run_whose_lock_was_taken_over_notices_when_it_renews(path, clock):
    first = a_lock(path, clock)
    assert first.acquire() is None
    path.unlink()
    assert a_lock(path, clock, pid=2).acquire() is None

    first.renew()

    with pytest.raises(PipelineStopped) as stopped:
        first.check()
    assert stopped.value.code == "lock_lost"


def test_of_many_runs_that_take_over_an_expired_lock_one_gets_it(path, clock):
    assert a_lock(path, clock).acquire() is None
    clock.advance(ms=EXPIRES_AFTER_MS)
    others = [a_lock(path, clock, pid=pid) for pid in range(2, 18)]

    with ThreadPoolExecutor(len(others)) as pool:
        holders = list(pool.map(LakeLock.acquire, others))

    assert sum(holder is None for holder in holders) == 1


def test_a_lock_that_cannot_be_read_is_reported_with_its_name(path, clock):
    path.parent.mkdir()
    path.write_text("?")

    with pytest.raises(InvalidRequest, match=r"_running\.json is not a lock"):
        a_lock(path, clock).acquire()


def test_the_lock_lies_beside_the_tables_wherever_they_are(spark, tmp_path):
    plain = lock_file(SparkLake(spark, str(tmp_path)))
    as_url = lock_file(SparkLake(spark, f"file://{tmp_path}", tables_folder=f"file://{tmp_path}/t"))

    assert isinstance(plain, LocalLockFile)
    assert plain.place == f"{tmp_path}/derived/{NAME}"
    assert isinstance(as_url, LocalLockFile)
    assert as_url.place == f"{tmp_path}/t/{NAME}"
    in_s3 = lock_file(SparkLake(spark, "s3://bucket/lake"))
    assert isinstance(in_s3, ObjectLockFile)
    assert in_s3.place == f"s3a://bucket/lake/derived/{NAME}"


def test_a_lock_on_a_file_system_of_hadoop_is_as_exclusive(spark, tmp_path, clock):
    def there(pid: int) -> LakeLock:
        file = HadoopLockFile(spark.sparkContext, f"{tmp_path}/derived/{NAME}", wait_s=0)
        return a_lock(file, clock, pid=pid)

    assert_exclusive(there, clock)


def test_a_lock_in_an_object_store_is_as_exclusive(s3_place, clock):
    def there(pid: int) -> LakeLock:
        return a_lock(
            ObjectLockFile(f"{s3_place}/derived", wait_for_others=lambda: None), clock, pid=pid
        )

    assert_exclusive(there, clock)


class LostConfirmation(ObjectLockFile):
    """The object store does not answer after a write."""

    def swap(self, old: str | None, new: str | None) -> bool:
        super().swap(old, new)
        raise LakeUnreachable("the network is down")


def test_a_renewal_that_was_written_but_not_confirmed_is_the_lock(s3_place, clock):
    sound = ObjectLockFile(s3_place, wait_for_others=lambda: None)
    lock = a_lock(sound, clock)
    assert lock.acquire() is None

    def fail_to_confirm() -> None:
        clock.advance(ms=1_000)
        lock._file = LostConfirmation(s3_place, wait_for_others=lambda: None)
        with pytest.raises(LakeUnreachable):
            lock.renew()
        lock._file = sound

    fail_to_confirm()
    clock.advance(ms=1_000)
    lock.renew()
    lock.check()
    assert a_lock(sound, clock, pid=2).holder() == lock._lock

    fail_to_confirm()
    lock.release()
    assert sound.read() is None


def test_a_run_whose_lock_was_overwritten_at_once_does_not_get_it(s3_place):
    second = ObjectLockFile(s3_place, wait_for_others=lambda: None)
    first = ObjectLockFile(s3_place, wait_for_others=lambda: second.swap("first", "second"))

    assert not first.swap(None, "first")

    assert first.read() == "second"


def assert_exclusive(there: Callable[[int], LakeLock], clock: ManualClock) -> None:
    first, second = there(1), there(2)
    assert first.acquire() is None
    first.renew()
    assert second.acquire() == a_run(clock)

    clock.advance(ms=EXPIRES_AFTER_MS)

    assert second.acquire() is None
    first.renew()
    with pytest.raises(PipelineStopped):
        first.check()
    second.release()
    assert there(3).acquire() is None
