"""`penstock pipeline tables` and `show`."""

from __future__ import annotations

import pytest

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
    assert "sms" in run("pipeline", "show", "slo", "--derived", lake / "derived").out


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
