"""The same jobs elsewhere: Spark Connect, spark-submit, a standalone cluster, a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.domain.lake.layout import HISTORY
from penstock.pipeline.session import open_session
from penstock.pipeline.spark.progress import is_remote
from tests.pipeline.lake_driver import LakeDriver
from tests.pipeline.process import SMALL, environ_of_process, penstock, run, spark_submit
from tests.pipeline.rows import DT, NEXT_DT, at, pairs
from tests.pipeline.standalone import a_cluster
from tests.support.private_servers import free_port
from tests.support.spark_cache import java_options
from tests.support.terminal import run_on_terminal, screen


@pytest.fixture
def connect_url(spark) -> str:
    """A Spark Connect server within the session of these tests: no second Java is started."""
    port = free_port()
    spark.conf.set("spark.connect.grpc.binding.port", str(port))
    service = spark.sparkContext._jvm.org.apache.spark.sql.connect.service.SparkConnectService
    spark.sparkContext._jsc.sc().conf().set("spark.connect.grpc.binding.port", str(port))
    service.start(spark.sparkContext._jsc.sc())
    return f"sc://127.0.0.1:{port}"


def test_jobs_run_through_spark_connect(driver, connect_url):
    driver.archive(HISTORY, {}, {})

    ran = run(
        penstock(
            "pipeline", "run", "rollups",
            "--lake", driver.folder, "--master", connect_url, "--json",
        )
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == 3
    assert pairs(driver.read("rollups").where("grain = 'day'"), "dt", "finished") == [(DT, 2)]


def test_jobs_run_under_spark_submit_and_only_our_own_lines_are_shown(driver):
    driver.archive(HISTORY, {}, {"finished_at": at("12:00:00", NEXT_DT)})
    [damaged] = (driver.folder / "history" / f"dt={DT}").glob("*.parquet")
    damaged.write_bytes(b"PAR1" + b"?" * 500 + b"PAR1")

    ran = run(spark_submit("pipeline", "run", "lifecycle", "--lake", driver.folder, "--json"))

    # spark-submit writes what Python prints on both streams to its standard output.
    lines = [*ran.stdout.splitlines(), *ran.stderr.splitlines()]
    assert [line for line in lines if line.startswith("penstock: ")] == [
        "penstock: quality: 2 days",
        "penstock: lifecycle: 1 day",
        f"penstock: {DT}: cannot read history/dt={DT}/{damaged.name}: it is damaged; "
        "replace the file and run again (load_refused)",
    ]
    levels = (" INFO ", " WARN ", " ERROR ", "WARNING")
    assert [line for line in lines if any(level in line for level in levels)] == []
    assert ran.returncode == 1
    assert pairs(driver.read("lifecycle"), "dt") == [(NEXT_DT,)]


@pytest.mark.slow
def test_jobs_run_on_a_standalone_cluster_and_only_our_own_lines_are_shown(
    driver: LakeDriver, tmp_path: Path
):
    driver.archive(HISTORY, {}, {})

    with a_cluster(tmp_path) as url:
        ran = run(
            penstock(
                "pipeline", "run", "quality", "--lake", driver.folder, "--master", url, "--json",
                "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.executor.memory=512m",
                "--conf", "spark.driver.memory=512m", "--conf", "spark.sql.shuffle.partitions=2",
                "--conf", f"spark.driver.extraJavaOptions={java_options()}",
                "--conf", f"spark.executor.extraJavaOptions={java_options()}",
            )
        )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.splitlines() == ["penstock: quality: 1 day"]
    [record] = map(json.loads, ran.stdout.splitlines())
    assert (record["dt"], record["status"], record["rows_in"]["history"]) == (DT, "done", 2)


@pytest.mark.slow
def test_on_a_terminal_the_bar_disappears_and_does_not_mix_with_other_lines(driver: LakeDriver):
    driver.archive(HISTORY, {}, {})

    code, written = run_on_terminal(
        penstock("pipeline", "run", "rollups", "--lake", driver.folder, "--json", *SMALL),
        env=environ_of_process(),
    )

    assert code == 0, written
    assert "Starting Spark" in written
    assert "Computing" in written
    notes, records = screen(written)[:3], screen(written)[3:]
    assert notes == [f"penstock: {job}: 1 day" for job in ("quality", "lifecycle", "rollups")]
    assert [json.loads(line)["job"] for line in records] == ["quality", "lifecycle", "rollups"]


def test_a_local_session_is_not_remote_and_a_wrong_master_is_reported_plainly(spark):
    assert not is_remote(spark)
    assert open_session() is not None
