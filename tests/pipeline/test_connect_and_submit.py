"""The same jobs in a remote session: through Spark Connect, and under spark-submit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.domain.lake.layout import HISTORY
from penstock.edge.cli.pipeline import submit
from penstock.pipeline.progress import is_remote
from penstock.pipeline.session import open_session
from tests.edge.process import ROOT
from tests.pipeline.rows import DT, pairs
from tests.support.private_servers import free_port

PATIENCE_S = 280


def run(*words: object, **env: str) -> subprocess.CompletedProcess[str]:
    # The session of these tests has left its own traces in the environment.
    gone = ("SPARK_CONNECT_MODE_ENABLED", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")
    plain = {k: v for k, v in os.environ.items() if k not in gone}
    paths = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [str(word) for word in words],
        env={**plain, "PYTHONPATH": paths, **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.fixture
def connect_url(spark) -> str:
    """A Spark Connect server within the session of these tests: no second Java is started."""
    port = free_port()
    spark.conf.set("spark.connect.grpc.binding.port", str(port))
    service = spark.sparkContext._jvm.org.apache.spark.sql.connect.service.SparkConnectService
    spark.sparkContext._jsc.sc().conf().set("spark.connect.grpc.binding.port", str(port))
    service.start(spark.sparkContext._jsc.sc())
    return f"sc://127.0.0.1:{port}"


def test_jobs_run_through_spark_connect(bench, connect_url):
    bench.archive(HISTORY, {}, {})

    ran = run(
        sys.executable, "-m", "penstock", "pipeline", "run", "rollups",
        "--lake", bench.folder, "--master", connect_url, "--json",
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == 3
    assert pairs(bench.read("rollups").where("grain = 'day'"), "dt", "finished") == [(DT, 2)]


def test_jobs_run_under_spark_submit(bench):
    bench.archive(HISTORY, {}, {})
    program = Path(sys.executable).with_name("spark-submit")
    assert program.exists(), "pip has put spark-submit elsewhere"

    ran = run(
        program, "--master", "local[1]", "--driver-memory", "1g",
        "--conf", "spark.ui.enabled=false", submit.__file__,
        "pipeline", "run", "lifecycle", "--lake", bench.folder, "--json",
        PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert pairs(bench.read("lifecycle"), "dt") == [(DT,), (DT,)]


def test_a_local_session_is_not_remote_and_a_wrong_master_is_reported_plainly(spark):
    assert not is_remote(spark)
    assert open_session() is not None
