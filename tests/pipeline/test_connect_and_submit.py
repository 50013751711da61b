"""The same jobs in a remote session: through Spark Connect, and under spark-submit."""

from __future__ import annotations

import pytest

from penstock.domain.lake.layout import HISTORY
from penstock.pipeline.progress import is_remote
from penstock.pipeline.session import open_session
from tests.pipeline.process import penstock, run, spark_submit
from tests.pipeline.rows import DT, NEXT_DT, at, pairs
from tests.support.private_servers import free_port


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
        penstock(
            "pipeline", "run", "rollups",
            "--lake", bench.folder, "--master", connect_url, "--json",
        )
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == 3
    assert pairs(bench.read("rollups").where("grain = 'day'"), "dt", "finished") == [(DT, 2)]


def test_jobs_run_under_spark_submit_and_only_our_own_lines_are_shown(bench):
    bench.archive(HISTORY, {}, {"finished_at": at("12:00:00", NEXT_DT)})
    [damaged] = (bench.folder / "history" / f"dt={DT}").glob("*.parquet")
    damaged.write_bytes(b"PAR1" + b"?" * 500 + b"PAR1")

    ran = run(spark_submit("pipeline", "run", "lifecycle", "--lake", bench.folder, "--json"))

    # spark-submit writes what Python prints on both streams to its standard output.
    lines = [*ran.stdout.splitlines(), *ran.stderr.splitlines()]
    assert [line for line in lines if line.startswith("penstock: ")] == [
        "penstock: quality: 2 days",
        "penstock: lifecycle: 1 day",
        f"penstock: {DT}: cannot read history/dt={DT}/{damaged.name}: it is damaged; "
        "replace the file and run again (load_refused)",
    ]
    assert [line for line in lines if " INFO " in line or " ERROR " in line] == []
    assert pairs(bench.read("lifecycle"), "dt") == [(NEXT_DT,)]


def test_a_local_session_is_not_remote_and_a_wrong_master_is_reported_plainly(spark):
    assert not is_remote(spark)
    assert open_session() is not None
