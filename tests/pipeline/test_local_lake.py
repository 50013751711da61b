"""The lake read without Spark: places that it cannot read are left to Spark."""

from __future__ import annotations

import pytest

from penstock.pipeline.files.local_lake import UNREACHABLE, LocalLake
from penstock.pipeline.spark.stopped import PipelineStopped


@pytest.mark.parametrize("folder", ["hdfs://host/lake", "viewfs://lake", "ftp://host/lake"])
def test_a_url_that_only_spark_may_reach_is_not_an_empty_lake(folder):
    with pytest.raises(PipelineStopped) as stopped:
        LocalLake(folder)

    assert stopped.value.code == UNREACHABLE


def test_a_folder_that_does_not_exist_is_an_empty_lake(tmp_path):
    assert LocalLake(str(tmp_path / "nothing")).is_empty()
