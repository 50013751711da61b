"""Tests of the harness: the disk that loses unsynced writes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.directory import Directory, Names
from tests.faults.disk import FileOnDisk, Loss

DICE = random.Random(0)


class Written:
    """A file on the faulty disk, written as the VFS writes it."""

    def __init__(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        self.path = path
        self.disk = FileOnDisk(path, is_new=False)

    def write(self, data: bytes, at: int) -> None:
        self.disk.before_write(at, len(data))
        with self.path.open("r+b") as file:
            file.seek(at)
            file.write(data)


@pytest.fixture
def file(tmp_path: Path) -> Written:
    return Written(tmp_path / "file", b"old" * 1000)


def test_unsynced_data_is_gone_after_a_power_cut(file: Written) -> None:
    file.write(b"NEW", at=0)
    file.write(b"MORE" * 1000, at=2000)

    file.disk.lose(Loss.EVERYTHING, DICE)

    assert file.path.read_bytes() == b"old" * 1000


def test_synced_data_survives_a_power_cut(file: Written) -> None:
    file.write(b"NEW", at=0)
    file.disk.synced()
    file.write(b"LATER", at=100)

    file.disk.lose(Loss.EVERYTHING, DICE)

    assert file.path.read_bytes() == b"NEW" + b"old" * 999


def test_data_that_a_failed_sync_dropped_is_not_saved_by_the_next_one(file: Written) -> None:
    file.write(b"LOST", at=0)
    file.disk.sync_failed()
    file.write(b"KEPT", at=1024)
    file.disk.synced()

    file.disk.lose(Loss.EVERYTHING, DICE)

    content = file.path.read_bytes()
    assert (content[:4], content[1024:1028]) == (b"oldo", b"KEPT")


def test_a_truncation_that_was_not_synced_is_undone(file: Written) -> None:
    file.disk.before_truncate(100)
    with file.path.open("r+b") as raw:
        raw.truncate(100)

    file.disk.lose(Loss.EVERYTHING, DICE)

    assert file.path.read_bytes() == b"old" * 1000


def test_a_torn_write_leaves_some_sectors_old_and_some_new(tmp_path: Path) -> None:
    file = Written(tmp_path / "file", b"o" * 65536)
    file.write(b"n" * 65536, at=0)

    file.disk.lose(Loss.RANDOM_SECTORS, random.Random(1))

    content = file.path.read_bytes()
    sectors = {content[start : start + 512] for start in range(0, 65536, 512)}
    assert sectors == {b"o" * 512, b"n" * 512}


def test_a_prefix_of_the_writes_survives(tmp_path: Path) -> None:
    file = Written(tmp_path / "file", b"o" * 512 * 20)
    for number in range(20):
        file.write(b"n" * 512, at=number * 512)

    file.disk.lose(Loss.ALL_BUT_A_PREFIX, random.Random(2))

    content = file.path.read_bytes()
    assert content == b"n" * content.count(b"n") + b"o" * content.count(b"o")


@pytest.mark.parametrize(("names", "is_left"), [(Names.EXT4, True), (Names.POSIX, False)])
def test_a_synced_file_whose_name_was_not_synced(
    tmp_path: Path, names: Names, is_left: bool
) -> None:
    directory, path = Directory(tmp_path), tmp_path / "new"
    path.write_bytes(b"")
    directory.opened(path, is_new=True).synced()

    directory.lose_power(Loss.EVERYTHING, names, DICE)

    assert path.exists() == is_left


def test_a_deleted_file_comes_back_unless_the_deletion_was_synced(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    for name in ("back", "gone"):
        path = tmp_path / name
        path.write_bytes(b"content")
        directory.opened(path, is_new=False)
        path.unlink()
        directory.deleted(path)
        if name == "gone":
            directory.synced(tmp_path)
            path = tmp_path / "again"
            path.write_bytes(b"content")
            directory.opened(path, is_new=False)
            path.unlink()
            directory.deleted(path)

    directory.lose_power(Loss.EVERYTHING, Names.POSIX, DICE)

    assert [path.name for path in tmp_path.iterdir()] == ["again"]
    assert (tmp_path / "again").read_bytes() == b"content"
