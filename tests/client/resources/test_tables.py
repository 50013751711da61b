"""The pipeline's tables through both channels of a client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.api import lake
from penstock.api.lake import Days
from penstock.client.channel import Channel
from penstock.client.local.channel import LocalChannel
from penstock.client.remote.transport import Transport
from penstock.domain.errors import InvalidRequest, TableNotFound
from penstock.domain.lake.tables import TableReadiness
from penstock.operations.lake import TableOperations
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer
from tests.edge.pipeline_tables import write_day

pytestmark = pytest.mark.no_store("server")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    with LiveServer(some_settings(tmp_path / "data"), has_duties=False) as started:
        yield started


@pytest.fixture(params=["over HTTP", "in process"])
def channel(request: pytest.FixtureRequest, server: LiveServer) -> Channel:
    if request.param == "over HTTP":
        return Transport(server.url)
    return LocalChannel(TableOperations(server.broker.tables).handlers())


def test_tables_are_listed_and_read(channel: Channel, server: LiveServer) -> None:
    folder = Path(server.broker.settings.insights_folder)
    assert channel.request(lake.LIST_TABLES).readiness is TableReadiness.NO_TABLES
    for day in ("2031-01-01", "2031-01-02"):
        write_day(folder, "slo", day, [{"queue": "mail", "bad": 1}])

    found = channel.request(lake.LIST_TABLES)

    assert (found.readiness, found.folder) == (TableReadiness.READY, str(folder))
    assert [(table.name, table.days) for table in found.tables] == [("slo", 2)]
    newest = channel.request(lake.GET_TABLE, query=Days(limit=1), table="slo")
    assert (newest.rows, newest.is_cut) == ([["2031-01-02", "mail", 1]], True)
    first = channel.request(lake.GET_TABLE, query=Days(to_day="2031-01-01"), table="slo")
    assert (first.rows, first.is_cut) == ([["2031-01-01", "mail", 1]], False)


def test_an_unknown_table_and_invalid_days_are_rejected(channel: Channel) -> None:
    with pytest.raises(TableNotFound):
        channel.request(lake.GET_TABLE, table="slo")
    for wrong in (Days(from_day="today"), Days(to_day=""), Days(limit=0)):
        with pytest.raises(InvalidRequest):
            channel.request(lake.GET_TABLE, query=wrong, table="slo")
