from __future__ import annotations

from penstock.domain.lake import layout as lake
from penstock.domain.lake.layout import Range
from penstock.domain.limits import DAY


def test_a_row_is_in_the_partition_of_its_day_in_utc():
    assert lake.dt_of(0) == "1970-01-01"
    assert lake.dt_of(DAY - 1) == "1970-01-01"
    assert lake.dt_of(DAY) == lake.dt_of_day(1) == "1970-01-02"
    assert lake.dt_of(1_769_903_999_999) == "2026-01-31"


def test_the_name_of_a_file_says_which_rows_it_holds():
    rows = Range(1, 5_000)
    name = lake.file_name(lake.HISTORY, rows)
    assert name == "history-0000000000000000001-0000000000000005000.parquet"
    assert lake.range_of(lake.HISTORY, name) == rows
    assert lake.range_of(lake.ATTEMPTS, name) is None
    assert lake.range_of(lake.HISTORY, "history-1-2.parquet") is None
    assert lake.range_of(lake.HISTORY, "." + name) is None


def test_each_snapshot_has_a_folder():
    assert lake.folder(lake.HISTORY, "2026-01-31") == "history/dt=2026-01-31"
    inner = lake.folder(lake.SNAPSHOTS, "2026-01-31", snapshot_no=7)
    assert inner == "snapshots/dt=2026-01-31/snapshot_no=7"


def test_every_table_has_the_columns_it_goes_by():
    for table in lake.TABLES.values():
        names = [column.name for column in table.columns]
        assert len(set(names)) == len(names)
        assert table.number in names
        assert table.instant in names
        assert not set(names) & set(table.partitions)
