"""The pipeline's tables over HTTP: listed, read newest first, and reported if there are none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.domain.access.api_key import Role
from penstock.files.folder import open_folder
from tests.edge.api import Api, assert_refused
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer
from tests.edge.native.conftest import LetIn
from tests.edge.pipeline_tables import write_day


@pytest.fixture
def folder(server: LiveServer) -> Iterator[Path]:
    found = Path(server.broker.settings.insights_folder)
    yield found
    shutil.rmtree(found, ignore_errors=True)


def test_without_tables_it_says_where_they_are_looked_for(api: Api, folder: Path) -> None:
    assert api.get("/v1/insights") == {
        "readiness": "no_tables",
        "folder": str(folder),
        "tables": [],
    }
    assert_refused(api.call("GET", "/v1/insights/slo"), 404, "table_not_found")


def test_tables_are_listed_with_their_days(api: Api, folder: Path) -> None:
    write_day(folder, "slo", "2031-01-02", [{"queue": "mail", "bad": 1}])
    write_day(folder, "slo", "2031-01-01", [{"queue": "mail", "bad": 2}])
    (folder / "_runs").mkdir()

    answer = api.get("/v1/insights")

    assert answer["readiness"] == "ready"
    [table] = answer["tables"]
    assert (table["name"], table["days"]) == ("slo", 2)
    assert (table["first_day"], table["last_day"]) == ("2031-01-01", "2031-01-02")


def test_rows_come_newest_day_first_and_can_be_limited(api: Api, folder: Path) -> None:
    write_day(folder, "slo", "2031-01-01", [{"queue": "mail", "bad": 2}])
    write_day(folder, "slo", "2031-01-02", [{"queue": "a", "bad": 1}, {"queue": "b", "bad": 3}])
    write_day(folder, "slo", "2031-01-03", [{"queue": "c", "bad": 1, "later": 0.5}])

    assert api.get("/v1/insights/slo", from_day="2031-01-02", to_day="2031-01-02") == {
        "columns": ["dt", "queue", "bad"],
        "rows": [["2031-01-02", "a", 1], ["2031-01-02", "b", 3]],
        "is_cut": False,
    }
    everything = api.get("/v1/insights/slo")
    assert everything["columns"] == ["dt", "queue", "bad", "later"]
    assert everything["rows"][0] == ["2031-01-03", "c", 1, 0.5]
    assert everything["rows"][-1] == ["2031-01-01", "mail", 2, None]
    cut = api.get("/v1/insights/slo", limit=2)
    assert (len(cut["rows"]), cut["is_cut"]) == (2, True)
    assert api.get("/v1/insights/slo", limit=4)["is_cut"] is False


def test_files_that_are_still_written_are_not_read(api: Api, folder: Path) -> None:
    path = write_day(folder, "slo", "2031-01-01", [{"bad": 1}])
    (path.parent / "_temporary.parquet").write_bytes(b"not yet")

    assert api.get("/v1/insights/slo")["rows"] == [["2031-01-01", 1]]


@pytest.mark.parametrize("name", ["..", "%2e%2e%2fsecrets", "Slo", "slo%2f..", "_runs"])
def test_no_other_folder_is_read(api: Api, folder: Path, name: str) -> None:
    write_day(folder, "slo", "2031-01-01", [{"bad": 1}])
    write_day(folder.parent, "secrets", "2031-01-01", [{"bad": 1}])

    assert api.call("GET", f"/v1/insights/{name}").status_code in (400, 404)


def test_days_and_limits_are_checked(api: Api, folder: Path) -> None:
    write_day(folder, "slo", "2031-01-01", [{"bad": 1}])

    for query in ("from_day=yesterday", "to_day=2031-1-1", "limit=0", "limit=1001"):
        assert_refused(api.call("GET", f"/v1/insights/slo?{query}"), 400, "invalid_request")


def test_a_damaged_file_is_named(api: Api, folder: Path) -> None:
    write_day(folder, "slo", "2031-01-01", [{"bad": 1}]).write_bytes(b"PAR1 PAR1")

    refused = api.call("GET", "/v1/insights/slo")

    assert "part-00000.zstd.parquet" in assert_refused(refused, 503, "unreadable_file")


def test_without_pyarrow_it_says_so(
    api: Api, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_day(folder, "slo", "2031-01-01", [{"bad": 1}])
    monkeypatch.setattr("penstock.outbound.table_files.find_spec", lambda name: None)

    assert api.get("/v1/insights")["readiness"] == "no_reader"
    refused = api.call("GET", "/v1/insights/slo")
    assert "penstock-queue[archive]" in assert_refused(refused, 400, "invalid_request")


def test_a_key_for_some_queues_does_not_see_what_concerns_all(let_in: LetIn) -> None:
    some = let_in(Role.READ, queues=("mail*",))

    for path in ("/v1/insights", "/v1/insights/slo"):
        assert_refused(some.call("GET", path), 403, "forbidden")


def test_tables_in_an_object_store_are_served_like_any_other(s3_place: str, tmp_path: Path) -> None:
    there = open_folder(s3_place, lambda: "1")
    load = {"queue": "*", "stored_end": 1024}
    for path in (
        write_day(tmp_path, "slo", "2031-01-01", [{"queue": "mail", "bad": 2}]),
        write_day(tmp_path, "capacity", "2031-01-01", [load]),
        write_day(tmp_path, "capacity", "2031-01-02", [load | {"stored_end": 2048}]),
    ):
        there.write(str(path.relative_to(tmp_path)), path.read_bytes())
    insights = {"folder": s3_place}
    with LiveServer(some_settings(tmp_path / "data", insights=insights), has_duties=False) as own:
        api = Api(own.url)

        listed = api.get("/v1/insights")
        assert (listed["readiness"], listed["folder"]) == ("ready", s3_place)
        assert api.get("/v1/insights/slo")["rows"] == [["2031-01-01", "mail", 2]]
        said = "Live messages took 2 KiB at the end of 2031-01-02."
        assert said in api.get("/v1/answers/storage")["sentences"]
