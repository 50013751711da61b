"""A store is readable by its owner only, not by other users of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.outbound import machine
from penstock.store.store import open_sqlite
from tests.clocks import ManualClock


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())}


@pytest.mark.parametrize("checksums", [True, False])
def test_the_folder_and_every_file_of_a_new_store_are_for_the_owner(
    tmp_path: Path, checksums: bool
) -> None:
    folder = tmp_path / "data"
    store = open_sqlite(folder / "penstock.db", checksums=checksums)
    try:
        found = modes(folder)
    finally:
        store.close()

    assert found.pop("data") == 0o700
    assert set(found.values()) == {0o600}
    assert {"penstock.db", "penstock.db-wal", "penstock.db-shm", "penstock.db-turn"} <= found.keys()


def test_a_store_that_was_opened_to_a_group_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "penstock.db"
    open_sqlite(path).close()
    for file in tmp_path.iterdir():
        file.chmod(0o660)

    store = open_sqlite(path)
    try:
        assert {mode for name, mode in modes(tmp_path).items() if name != tmp_path.name} == {0o660}
    finally:
        store.close()


def test_the_doctor_warns_of_files_that_other_users_can_read(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "penstock.db").write_bytes(b"")

    found = {f.name: f for f in machine.examine(tmp_path, clock=ManualClock().now)}

    assert "penstock.db: chmod 700" in found["permissions"].text
    tmp_path.chmod(0o700)
    assert "permissions" not in {f.name for f in machine.examine(tmp_path, clock=ManualClock().now)}
