"""`penstock pipeline tables` and `show`."""

from __future__ import annotations

import re
import sys

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock.files.folder import open_folder
from tests.edge.pipeline_tables import write_day


@pytest.fixture
def lake(tmp_path):
    folder = tmp_path / "lake" / "derived"
    for day, bad in (("2031-01-01", 1), ("2031-01-02", 2)):
        write_day(folder, "slo", day, [{"queue": "mail", "bad": bad}, {"queue": "sms", "bad": 0}])
    return tmp_path / "lake"


def test_tables_are_listed_and_their_rows_are_shown(run, lake):
    [table] = run("pipeline", "tables", "--lake", lake, "--json").records
    assert (table["name"], table["days"], table["last_day"]) == ("slo", 2, "2031-01-02")

    shown = run("pipeline", "show", "slo", "--lake", lake, "--to", "2031-01-01", "--json")

    assert shown.records == [
        {"dt": "2031-01-01", "queue": "mail", "bad": 1},
        {"dt": "2031-01-01", "queue": "sms", "bad": 0},
    ]
    assert "sms" in run("pipeline", "show", "slo", "--tables", lake / "derived").out


def test_more_rows_than_the_limit_are_mentioned(run, lake):
    cut = run("pipeline", "show", "slo", "--lake", lake, "--limit", 3)

    assert (cut.code, "first 3 rows" in cut.err) == (0, True)


def test_missing_tables_are_one_line_with_a_code(run, lake, tmp_path):
    unknown = run("pipeline", "show", "rollups", "--lake", lake)
    nothing = run("pipeline", "tables", "--lake", tmp_path / "none")

    assert (unknown.code, unknown.err.endswith("(table_not_found)\n")) == (1, True)
    assert (nothing.code, "penstock pipeline run" in nothing.err) == (1, True)


def test_tables_in_an_object_store_are_shown_as_well(run, lake, s3_place):
    there = open_folder(s3_place, lambda: "1")
    for path in lake.glob("**/*.parquet"):
        there.write(str(path.relative_to(lake)), path.read_bytes())

    assert run("pipeline", "tables", "--lake", s3_place, "--json").record["days"] == 2
    [row] = run("pipeline", "show", "slo", "--lake", s3_place, "--limit", 1, "--json").records
    assert row == {"dt": "2031-01-02", "queue": "mail", "bad": 2}


def test_an_earlier_version_of_a_delta_table_is_shown(run, tmp_path):
    table = tmp_path / "lake" / "derived" / "slo"
    for bad in (1, 2):
        rows = pa.table({"queue": ["mail"], "bad": [bad], "dt": ["2031-01-01"]})
        write_deltalake(table, rows, partition_by=["dt"], mode="overwrite")
    where = ["--lake", tmp_path / "lake", "--json"]

    assert [row["bad"] for row in run("pipeline", "show", "slo", *where).records] == [2]
    versions = run("pipeline", "versions", "slo", *where).records
    assert [one["version"] for one in versions] == [1, 0]
    first = versions[-1]["committed_at"]
    for as_of in (0, first):
        [row] = run("pipeline", "show", "slo", "--as-of", as_of, *where).records
        assert row == {"dt": "2031-01-01", "queue": "mail", "bad": 1}
    missing = run("pipeline", "show", "slo", "--as-of", 7, *where)
    assert (missing.code, "has no version 7" in missing.err) == (1, True)
    assert run("pipeline", "tables", *where).record["days"] == 1


def test_a_damaged_file_is_named(run, lake):
    file = lake / "derived" / "slo" / "dt=2031-01-02" / "part-00000.zstd.parquet"
    file.write_bytes(file.read_bytes()[:-7])

    shown = run("pipeline", "show", "slo", "--lake", lake)

    name = r"slo/dt=2031-01-02/part-00000\.zstd\.parquet"
    assert shown.code == 1
    assert re.fullmatch(rf"penstock: {name} cannot be read: .+ \(unreadable_file\)\n", shown.err)


def test_a_file_that_is_replaced_while_it_is_read_is_named(run, tmp_path):
    """Its table still lists it, as another process had found it there."""
    table = tmp_path / "lake" / "derived" / "slo"
    write_deltalake(table, pa.table({"bad": [1], "dt": ["2031-01-01"]}), partition_by=["dt"])
    [file] = table.glob("dt=*/*.parquet")
    file.unlink()

    shown = run("pipeline", "show", "slo", "--lake", tmp_path / "lake")

    text = f"slo/dt=2031-01-01/{file.name} was replaced while it was read; try again"
    assert (shown.code, shown.err) == (1, f"penstock: {text} (files_changed)\n")


def test_a_plain_table_has_no_versions(run, lake):
    assert run("pipeline", "versions", "slo", "--lake", lake, "--json").records == []
    shown = run("pipeline", "show", "slo", "--lake", lake, "--as-of", 1)

    assert (shown.code, shown.err.endswith("(invalid_request)\n")) == (1, True)


def test_without_deltalake_the_error_names_what_to_install(run, tmp_path, monkeypatch):
    rows = pa.table({"bad": [1], "dt": ["2031-01-01"]})
    write_deltalake(tmp_path / "lake" / "derived" / "slo", rows, partition_by=["dt"])
    monkeypatch.setitem(sys.modules, "deltalake", None)

    ran = run("pipeline", "show", "slo", "--lake", tmp_path / "lake")

    assert (ran.code, "penstock-queue[delta]" in ran.err) == (1, True)


def test_a_damaged_file_is_named_in_one_line(run, lake):
    [damaged] = (lake / "derived" / "slo" / "dt=2031-01-02").glob("*.parquet")
    damaged.write_bytes(b"junk")

    shown = run("pipeline", "show", "slo", "--lake", lake)

    assert (shown.code, shown.err.count("\n")) == (1, 1)
    assert shown.err.startswith(f"penstock: slo/dt=2031-01-02/{damaged.name} cannot be read: ")
    assert shown.err.endswith("(unreadable_file)\n")
