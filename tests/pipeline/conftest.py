"""One Spark session for all of these tests, on one worker: it takes seconds to start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.domain.lake.layout import HISTORY
from tests.pipeline.lake_driver import LakeDriver
from tests.pipeline.rows import NEXT_DT, at
from tests.support.spark_cache import java_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
# Compiling the code of a query takes longer than to interpret it over a few rows.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
SETTINGS = {
    **INTERPRETED,
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": java_options(),
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from penstock.pipeline.session import open_session

    # On the wheel's Java, whatever this machine has besides.
    environ = {name: text for name, text in os.environ.items() if name != "JAVA_HOME"}
    session = open_session("local[2]", more=SETTINGS, environ=environ)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def planned_once(spark: SparkSession) -> Iterator[None]:
    """Spark plans a query once, for modules with many small queries.

    Otherwise it plans the rest again after each stage, which takes longer than to run it.
    """
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    yield
    spark.conf.set("spark.sql.adaptive.enabled", "true")


@pytest.fixture(scope="session")
def computed_once(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> LakeDriver:
    driver = LakeDriver(spark, tmp_path_factory.mktemp("computed") / "lake")
    driver.archive(HISTORY, {}, {"finished_at": at("09:00:00", NEXT_DT)})
    driver.run("lifecycle")
    return driver


@pytest.fixture
def computed_lake(computed_once: LakeDriver, tmp_path: Path) -> LakeDriver:
    """A lake with a message on DT and one on NEXT_DT, for which `lifecycle` has run: a copy."""
    return computed_once.copy_to(tmp_path / "computed")


@pytest.fixture
def driver(spark: SparkSession, tmp_path: Path) -> LakeDriver:
    return LakeDriver(spark, tmp_path / "lake")
