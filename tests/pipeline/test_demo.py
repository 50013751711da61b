"""The demo history: valid, reproducible, and with rows for every table."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from penstock.domain.errors import InvalidRequest
from penstock.domain.lake import layout as lake
from penstock.outbound.lake_files import schema_of
from penstock.pipeline.demo.make import make
from penstock.pipeline.demo.scenario import MAX_ATTEMPTS, QUEUES, messages_of_days
from penstock.pipeline.registry import computed_tables
from tests.pipeline.lake_driver import FEW_CANDIDATES, LakeDriver
from tests.pipeline.rows import midnight
from tests.runtime.archiver.driver import rows_of

FIRST = midnight("2030-01-01")


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "lake"
    make(folder, messages=6_000, days=3, first_midnight=FIRST)
    return folder


def test_the_files_have_the_layout_and_format_of_the_archivers(past):
    for table in (lake.HISTORY, lake.ATTEMPTS, lake.FACTS, lake.BACKLOG):
        files = sorted((past / table.name).glob("dt=*/*"))
        assert files
        for file in files:
            rows = lake.range_of(table, file.name)
            found = pq.ParquetFile(file)
            assert found.schema_arrow.equals(schema_of(table), check_metadata=True)
            assert rows is not None
            assert rows.to_no - rows.from_no + 1 == found.metadata.num_rows


def test_there_are_as_many_endings_as_messages_except_for_live_ones_at_the_end(past):
    history = rows_of(past, lake.HISTORY)
    [*_, last] = rows_of(past, lake.BACKLOG)[-len(QUEUES) :]

    assert 5_900 < len(history) <= 6_000
    assert len({row["message_no"] for row in history}) == len(history)
    assert all(
        re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab].*", r["id"]) for r in history
    )
    assert len({row["id"] for row in history}) == len(history)
    assert last["sent_total"] > 0


def test_it_shows_an_outage_a_rush_and_poison(past):
    history = rows_of(past, lake.HISTORY)
    stock = [r for r in history if r["queue"] == "stock" and r["first_leased_at"]]
    waits = np.array([r["first_leased_at"] - r["sent_at"] for r in stock])
    hours = np.array([r["sent_at"] // 3_600_000 % 24 for r in history])
    refunds = [r for r in history if r["kind"] == "refund"]

    assert (waits > 30 * 60_000).sum() > 5
    assert (hours == 10).sum() > 3 * (hours == 3).sum()
    assert sum(r["outcome"] == "dead" for r in refunds) > len(refunds) / 2
    assert max(r["attempts"] for r in history) == MAX_ATTEMPTS
    assert "circuit_opened" in {row["kind"] for row in rows_of(past, lake.FACTS)}


def test_the_same_arguments_produce_the_same_lake(past, tmp_path):
    make(tmp_path / "again", messages=6_000, days=3, first_midnight=FIRST)

    assert rows_of(tmp_path / "again", lake.HISTORY) == rows_of(past, lake.HISTORY)


def test_days_grow_and_add_up():
    counts = messages_of_days(1_000, 7)

    assert sum(counts) == 1_000
    assert counts == sorted(counts)


def test_an_existing_lake_is_not_changed(past):
    with pytest.raises(InvalidRequest, match="already contains a lake"):
        make(past, messages=10, days=1, first_midnight=FIRST)


def test_it_passes_all_checks_and_every_table_has_something_in_it(past, spark):
    driver = LakeDriver(spark, past)

    runs = driver.run(settings=FEW_CANDIDATES)

    assert {run.status for run in runs} == {"done"}, [run.note for run in runs]
    assert all(row["is_passed"] for row in driver.rows("quality"))
    with_rows = {table for run in runs for table, rows in run.rows_out.items() if rows}
    assert set(computed_tables()) - with_rows == {"quarantine"}
