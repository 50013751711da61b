"""The statements of the page about SQL run."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from penstock.settings.catalogue import catalogue
from tests.docs.snippets import ROOT, read_blocks, run_script
from tests.edge.cli.conftest import Run, _no_settings_from_outside, run
from tests.edge.conftest import MakeProcess
from tests.edge.pipeline_tables import write_day, write_lake

__all__ = ["_no_settings_from_outside", "run"]

PAGE = "docs/sql.md"
DAY = "2030-01-31"


def fill(lake: Path) -> None:
    write_lake(lake, DAY, [{"queue": "mail", "outcome": "dead", "id": "m-1", "last_error": "x"}])
    write_day(lake / "derived", "rollups", DAY, [{"grain": "minute", "at": 0, "finished": 1}])


def test_the_commands_of_the_page_run(run: Run, tmp_path: Path) -> None:
    fill(tmp_path / "data" / "lake")
    shown = []

    for line in read_blocks(PAGE, "sql").splitlines():
        ran = run(*shlex.split(line)[1:])
        assert ran.code == 0, ran.err
        shown.append(ran.out)

    assert ["mail", "dead", "1"] in [line.split() for line in shown[0].splitlines()]
    assert "rollups" in shown[1]
    assert "finished" in shown[2]
    assert shown[3:] == [
        "minute,n\n1970-01-01T00:00:00,1\n",
        '{"id":"m-1","last_error":"x"}\n',
    ]


@pytest.mark.slow
def test_the_call_of_the_page_runs(make_process: MakeProcess) -> None:
    server = make_process()
    fill(server.data / "lake")

    assert '"rows":[["mail",1]]' in run_script(server, read_blocks(PAGE, "http"))


def test_every_setting_of_sql_is_mentioned() -> None:
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    keys = [setting.key for setting in catalogue().values() if setting.section == "sql"]

    assert keys
    assert [key for key in keys if key not in text] == []
