"""What a folder promises, on a disk and in an object store."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

import pytest

from penstock.domain.errors import InvalidRequest, LakeUnreachable
from penstock.files.folder import Folder, open_folder


@pytest.fixture(params=["disk", "s3"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    tokens = count()
    is_disk = request.param == "disk"
    place = str(tmp_path / "lake") if is_disk else request.getfixturevalue("s3_place")
    return open_folder(place, lambda: str(next(tokens)))


def paths(folder: Folder, under: str = "") -> list[str]:
    return [file.path for file in folder.files(under)]


def test_a_file_appears_when_it_is_kept_and_then_as_a_whole(folder):
    new = folder.new_file("history/dt=2030-01-31/a.parquet")
    new.out.write(b"12")
    new.out.flush()
    assert (paths(folder), folder.read("history/dt=2030-01-31/a.parquet")) == ([], None)
    new.out.write(b"345")

    entry = new.keep()

    assert folder.read("history/dt=2030-01-31/a.parquet") == b"12345"
    assert folder.files() == [entry]
    assert (entry.path, entry.name, entry.size) == (
        "history/dt=2030-01-31/a.parquet",
        "a.parquet",
        5,
    )
    assert entry.changed_at > 0


def test_a_large_file_arrives_whole(folder):
    content = os.urandom(1_000_000) * 12  # an object store gets it in several parts
    new = folder.new_file("large")
    new.out.write(content)

    new.keep()

    assert folder.read("large") == content


def test_a_discarded_file_leaves_nothing(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    new = folder.new_file("facts/a.parquet")
    new.out.write(b"12")

    new.discard()

    assert paths(folder) == []
    assert folder.names("facts") == []
    assert os.listdir(tmp_path / "temporary") == []


def test_a_file_can_be_replaced_and_removed(folder):
    folder.write("_penstock.json", b"old")
    folder.write("_penstock.json", b"new")
    assert folder.read("_penstock.json") == b"new"

    folder.remove("_penstock.json")
    folder.remove("_penstock.json")

    assert folder.read("_penstock.json") is None


def test_files_are_found_at_any_depth_but_hidden_ones_are_not(folder):
    for path in ("a/dt=1/x", "a/dt=1/n=7/y", "a/_log/z", "a/dt=1/.z", "b/x"):
        folder.write(path, b"1")

    assert paths(folder, "a") == ["a/dt=1/n=7/y", "a/dt=1/x"]
    assert paths(folder) == ["a/dt=1/n=7/y", "a/dt=1/x", "b/x"]
    assert folder.names() == ["a", "b"]
    assert folder.names("a") == ["_log", "dt=1"]
    assert (folder.names("none"), folder.files("none")) == ([], [])


def test_a_folder_is_removed_with_its_files(folder):
    for path in ("a/dt=1/x", "a/dt=1/y", "a/dt=10/x"):
        folder.write(path, b"1")

    folder.remove_folder("a/dt=1")
    folder.remove_folder("a/none")

    assert paths(folder) == ["a/dt=10/x"]


def test_files_of_a_staged_folder_appear_together(tmp_path):
    folder = open_folder(str(tmp_path), lambda: "1")
    staged = folder.stage_folder("a/dt=1")
    assert staged is not None
    for name in ("x", "y"):
        new = staged.new_file(name)
        new.out.write(b"1")
        new.keep()
    assert paths(folder) == []

    staged.keep()

    assert paths(folder) == ["a/dt=1/x", "a/dt=1/y"]


def test_an_object_store_that_rejects_the_request_is_named_in_one_line(s3_place):
    folder = open_folder("s3://no-such-bucket/lake", lambda: "1")

    with pytest.raises(LakeUnreachable, match=r"^s3://no-such-bucket/lake cannot be reached: .+$"):
        folder.write("_penstock.json", b"1")


def test_other_urls_are_rejected(tmp_path):
    with pytest.raises(InvalidRequest, match="ftp://"):
        open_folder("ftp://host/lake", lambda: "1")
