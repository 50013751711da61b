"""The jobs themselves, without the records of runs: as much work as the others do."""

from __future__ import annotations

from pathlib import Path

from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.pipeline.jobs.lifecycle import LIFECYCLE, lifecycle
from penstock.pipeline.jobs.rollups import ROLLUPS, rollups
from penstock.pipeline.lake import SparkLake
from penstock.pipeline.session import open_session


class SparkEngine:
    def __init__(self) -> None:
        self._spark = open_session()
        self._settings = PipelineSettings()

    def run(self, lake: Path, out: Path) -> None:
        source = SparkLake(self._spark, str(lake), tables_folder=str(out))
        days = list(source.files("history"))
        history = {"history": source.read("history", days)}
        source.replace(LIFECYCLE, lifecycle(history, self._settings), days)
        tables = {name: source.read(name, days) for name in ("lifecycle", "backlog")}
        source.replace(ROLLUPS, rollups(tables, self._settings), days)
