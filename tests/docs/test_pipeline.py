"""The page about the pipeline agrees with the code."""

from __future__ import annotations

from penstock.domain.lake.slo_targets import read_targets
from penstock.pipeline.reference import with_tables
from penstock.settings.catalogue import catalogue
from tests.edge.process import ROOT

PAGE = (ROOT / "docs/pipeline.md").read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_jobs():
    hint = "python -m penstock.pipeline.reference docs/pipeline.md"

    assert with_tables(PAGE) == PAGE, hint
    assert "**`rollups`**" in PAGE


def test_the_example_of_targets_is_valid():
    [line] = [line for line in PAGE.splitlines() if line.startswith("targets = ")]

    assert len(read_targets(line.partition('"')[2].rstrip('"'))) == 4


def test_every_setting_of_the_pipeline_is_mentioned():
    keys = [setting.name for setting in catalogue().values() if setting.section == "pipeline"]

    assert keys
    assert [name for name in keys if name not in PAGE] == []
