"""Checks of the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.domain.store.finding import Grade
from penstock.outbound import machine


def findings(folder: Path, *, sync_ms: int = 1):
    """With a clock that says how long all the syncs took."""
    ticks = iter([0, sync_ms * machine.SYNCS])
    return {found.name: found for found in machine.examine(folder, clock=lambda: next(ticks))}


def test_a_usual_folder_is_fine_and_left_as_it_was(tmp_path):
    found = findings(tmp_path)

    assert found["data folder"].grade is Grade.OK
    assert found["disk sync"].text == "1.00 ms per sync"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("sync_ms", "grade"), [(0, Grade.WARN), (5, Grade.OK), (30, Grade.WARN)])
def test_a_disk_that_syncs_too_slowly_or_too_fast_is_a_warning(tmp_path, sync_ms, grade):
    assert findings(tmp_path, sync_ms=sync_ms)["disk sync"].grade is grade


@pytest.mark.parametrize(
    ("kind", "grade"), [("tmpfs", Grade.WARN), ("nfs4", Grade.WARN), ("ext4", Grade.OK)]
)
def test_a_folder_in_memory_or_on_a_network_is_a_warning(tmp_path, monkeypatch, kind, grade):
    monkeypatch.setattr(machine, "filesystem", lambda folder: kind)

    assert findings(tmp_path)["file system"].grade is grade


def test_the_file_system_of_a_folder_is_known_by_its_name(tmp_path):
    assert machine.filesystem(Path("/proc")) == "proc"


def test_a_folder_that_cannot_be_written_to_fails(tmp_path, monkeypatch):
    def refuse(*args: object, **options: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)

    assert findings(tmp_path)["data folder"].grade is Grade.FAIL


@pytest.mark.parametrize(
    ("free", "grade"), [(2**20, Grade.FAIL), (2**28, Grade.WARN), (2**31, Grade.OK)]
)
def test_little_disk_space_is_a_warning_and_too_little_fails(tmp_path, monkeypatch, free, grade):
    class Facts:
        f_frsize = 1
        f_bavail = free

    monkeypatch.setattr(os, "statvfs", lambda folder: Facts)

    assert findings(tmp_path)["disk space"].grade is grade


def test_a_folder_that_does_not_exist_is_not_created(tmp_path):
    found = findings(tmp_path / "nowhere")

    assert found["data folder"].grade is Grade.WARN
    assert not (tmp_path / "nowhere").exists()


def test_the_files_of_a_store_are_measured_with_their_log(tmp_path):
    database = tmp_path / "penstock.db"
    assert machine.disk_of(database) is None
    assert machine.disk_of(None) is None

    for name, size in (("penstock.db", 1000), ("penstock.db-wal", 200), ("penstock.db.copy", 7)):
        (tmp_path / name).write_bytes(b"x" * size)
    disk = machine.disk_of(database)

    assert disk is not None
    assert disk.used_bytes == 1200
    assert 0 < disk.free_bytes <= os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize
