"""The pipeline's tables in a folder: what is listed, and how their rows are streamed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.domain.errors import FilesChanged
from penstock.domain.insights.answer import SourceTable
from penstock.domain.lake.tables import TableReadiness
from penstock.files.delta_log import DeltaLog, DeltaSchema
from penstock.files.folder import FileEntry
from penstock.files.local_folder import LocalFolder
from penstock.outbound import table_stream
from penstock.outbound.table_files import TableFiles
from tests.edge.pipeline_tables import write_day

DAYS = [f"2031-01-{day:02}" for day in range(1, 11)]


@pytest.fixture
def reader(tmp_path: Path) -> TableFiles:
    return TableFiles(str(tmp_path), lambda: "1")


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders whose files were listed."""
    found: list[str] = []
    real = LocalFolder.files

    def files(self: LocalFolder, path: str = "") -> list[FileEntry]:
        found.append(path)
        return real(self, path)

    monkeypatch.setattr(LocalFolder, "files", files)
    return found


def stream(reader: TableFiles, from_day: str = DAYS[0], to_day: str = DAYS[-1]) -> SourceTable:
    found = reader.streams(["slo"], from_day=from_day, to_day=to_day)["slo"]
    assert found is not None
    return found


def rows(table: SourceTable, *columns: str, **only: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in table.rows(*columns, **only)]


def test_rows_are_streamed_newest_day_first_as_often_as_they_are_asked_for(
    tmp_path: Path, reader: TableFiles
) -> None:
    write_day(tmp_path, "slo", DAYS[0], [{"queue": "mail", "bad": 2}])
    write_day(tmp_path, "slo", DAYS[1], [{"queue": "a", "bad": 1, "burn": 0.5}])

    table = stream(reader)

    wanted = [
        {"dt": DAYS[1], "queue": "a", "burn": 0.5},
        {"dt": DAYS[0], "queue": "mail", "burn": None},
    ]
    assert rows(table, "queue", "burn") == wanted
    assert rows(table, "queue", "burn") == wanted


def test_only_rows_with_the_given_values_are_streamed(tmp_path: Path, reader: TableFiles) -> None:
    given = [{"kind": kind, "bad": n} for n, kind in enumerate(("a", None, "b"))]
    write_day(tmp_path, "slo", DAYS[0], given)
    write_day(tmp_path, "slo", DAYS[1], [{"bad": 7}])

    table = stream(reader)

    assert [row["bad"] for row in table.rows("bad", "kind", kind=["a", None])] == [7, 0, 1]
    assert [row["bad"] for row in table.rows("bad", "kind", kind=["b"])] == [2]
    assert [row["bad"] for row in table.rows("bad", dt=[DAYS[1]])] == [7]


@pytest.mark.parametrize("small", [0, table_stream.SMALL])
def test_files_that_were_replaced_meanwhile_are_not_mixed_with_new_ones(
    tmp_path: Path, reader: TableFiles, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(table_stream, "SMALL", small)
    path = write_day(tmp_path, "slo", DAYS[0], [{"bad": 1}])
    table = stream(reader)

    path.rename(path.with_name("part-00001.parquet"))

    with pytest.raises(FilesChanged):
        rows(table, "bad")


def test_a_table_without_rows_on_these_days_is_empty_and_one_never_computed_is_missing(
    tmp_path: Path, reader: TableFiles
) -> None:
    write_day(tmp_path, "slo", DAYS[0], [{"bad": 1}])

    found = reader.streams(["slo", "starvation"], from_day=DAYS[1], to_day=DAYS[2])

    assert found["slo"] is not None
    assert rows(found["slo"], "bad") == []
    assert found["starvation"] is None


def test_of_a_delta_table_only_the_files_of_its_log_are_read(
    tmp_path: Path, reader: TableFiles
) -> None:
    schema = pa.schema([pa.field("bad", pa.int64()), pa.field("dt", pa.string())])
    log = DeltaLog(str(tmp_path / "slo"))
    of = DeltaSchema("slo", "targets", schema, ("dt",))
    log.create(of, [])
    for day in DAYS[:2]:
        path = write_day(tmp_path, "slo", day, [{"bad": 1}])
        log.add(of, [FileEntry(f"dt={day}/{path.name}", path.stat().st_size, 0)])
    write_day(tmp_path, "slo", DAYS[2], [{"bad": 9}])  # not committed yet

    assert reader.newest_day() == DAYS[1]
    assert [row["dt"] for row in rows(stream(reader), "bad")] == [DAYS[1], DAYS[0]]
    older = reader.rows("slo", from_day=DAYS[0], to_day=DAYS[-1], limit=10, as_of=1)
    assert older is not None
    assert older.rows == [[DAYS[0], 1]]


def test_only_the_days_that_are_asked_for_are_listed(
    tmp_path: Path, reader: TableFiles, listed: list[str]
) -> None:
    for day in DAYS:
        write_day(tmp_path, "slo", day, [{"bad": 1}])

    newest = reader.rows("slo", from_day=DAYS[0], to_day=DAYS[-1], limit=1)
    assert newest is not None
    assert newest.is_cut
    assert listed == ["slo/dt=2031-01-10", "slo/dt=2031-01-09"]  # the second one: is there more?
    listed.clear()

    assert len(rows(stream(reader, DAYS[3], DAYS[4]), "bad")) == 2
    assert listed == ["slo/dt=2031-01-05", "slo/dt=2031-01-04"]


def test_many_days_are_listed_at_once_however_often_they_are_read(
    tmp_path: Path, reader: TableFiles, listed: list[str]
) -> None:
    for day in DAYS:
        write_day(tmp_path, "slo", day, [{"bad": 1}])

    table = stream(reader)
    assert [len(rows(table, "bad")) for _ in range(3)] == [10, 10, 10]

    assert listed == ["slo"]


def test_readiness_and_the_newest_day_need_no_list_of_files(
    tmp_path: Path, reader: TableFiles, listed: list[str]
) -> None:
    assert (reader.readiness(), reader.newest_day()) == (TableReadiness.NO_TABLES, None)
    write_day(tmp_path, "capacity", DAYS[1], [{"queue": "*"}])
    write_day(tmp_path, "slo", DAYS[0], [{"bad": 1}])

    assert (reader.readiness(), reader.newest_day()) == (TableReadiness.READY, DAYS[1])
    assert listed == []
