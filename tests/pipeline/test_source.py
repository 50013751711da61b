"""`format("penstock")`: a live store as a source of Spark, and as a sink."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from penstock.client.spark import register
from penstock.client.spark.options import TABLES, read, readable, streamable, writable
from penstock.client.spark.streaming import StreamReader
from penstock.client.spark.writing import refuse_unfit
from penstock.domain.errors import InvalidRequest
from penstock.domain.lake import layout as lake
from penstock.domain.limits import DAY
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.pipeline.schemas import schema_of
from penstock.runtime.minute_counters import Sampler
from penstock.settings import Settings
from penstock.settings.values import ServerSettings, StoreSettings
from penstock.wiring.broker import Broker, migrate, open_broker
from tests.edge.live import LiveServer
from tests.factories import an_act
from tests.store.driver import StoreDriver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/penstock.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def broker(url: str) -> Iterator[Broker]:
    settings = Settings(store=StoreSettings(url=url))
    migrate(settings)
    with closing(open_broker(settings)) as broker:
        yield broker


@pytest.fixture
def driver(broker: Broker) -> StoreDriver:
    return StoreDriver(broker.store, broker.clock)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def registered(spark: SparkSession) -> None:
    register(spark)


def load(spark: SparkSession, url: str, table: str, **options: Any) -> DataFrame:
    reader = spark.read.format("penstock").option("url", url).option("table", table)
    return reader.options(**options).load()


def finish(driver: StoreDriver, count: int) -> list[str]:
    queue = driver.queues[0]
    ids = driver.send_many(queue, count, body='"b"')
    for held in driver.claim(queue, count):
        driver.complete(held)
    return ids


def test_every_table_is_read_as_the_lake_has_it(spark, url, driver):
    mail = driver.queue("mail")
    done = finish(driver, 2)
    live = driver.send(mail, body='{"to": "ü"}', attributes={"a": "b"})
    [held] = driver.claim(mail)
    driver.act(Verb.RELEASE, held)
    now = driver.now
    driver.write(lambda s: s.facts.add("tick", "x", at=now, data={"n": 1}))
    Sampler(driver.store, retention_days=90, is_archived=True).sample(now)

    frames = {table: load(spark, url, table) for table in TABLES}
    found = {table: frame.collect() for table, frame in frames.items()}

    for name, table in TABLES.items():
        assert frames[name].schema == schema_of(table)
    assert sorted(row.id for row in found["history"]) == sorted(done)
    assert {row.dt for row in found["history"]} == {lake.dt_of(now)}
    assert {row.body for row in found["bodies"]} == {'"b"'}
    [attempt] = found["attempts"]
    assert (attempt.id, attempt.outcome) == (live, "released")
    [message] = found["messages"]
    assert (message.id, message.body, message.state) == (live, '{"to": "ü"}', "ready")
    assert (message.attributes, message.snapshot_no) == ('{"a":"b"}', 0)
    assert [(row.kind, row.data) for row in found["facts"]] == [("tick", '{"n":1}')]
    assert [(row.queue, row.ready) for row in found["backlog"]] == [("mail", 1)]


def test_partitions_are_ranges_of_numbers_and_pages_are_short(spark, url, driver):
    driver.queue("mail")
    ids = finish(driver, 25)
    rows = load(spark, url, "history", partitionRows=10, pageRows=3)

    assert rows.rdd.getNumPartitions() == 3
    assert sorted(row.id for row in rows.select("id").collect()) == sorted(ids)
    assert rows.where("message_no > 20").count() > 0


def test_a_stream_returns_every_row_once_across_restarts(spark, url, driver, tmp_path):
    driver.queue("mail")
    target, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")

    def proceed() -> None:
        stream = spark.readStream.format("penstock").option("url", url)
        stream = stream.option("table", "history").option("maxRows", 7).load()
        query = (
            stream.writeStream.format("parquet")
            .option("path", target)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    ids = finish(driver, 12)
    proceed()
    ids += finish(driver, 5)
    proceed()
    proceed()

    assert sorted(row.id for row in spark.read.parquet(target).collect()) == sorted(ids)


def test_a_stream_that_starts_at_the_latest_skips_earlier_rows(spark, url, driver):
    driver.queue("mail")
    finish(driver, 3)
    stream = spark.readStream.format("penstock").options(url=url, starting="latest").load()
    query = stream.writeStream.format("memory").queryName("latest").start()
    try:
        query.processAllAvailable()
        new = finish(driver, 2)
        query.processAllAvailable()
        assert sorted(row.id for row in spark.table("latest").collect()) == sorted(new)
    finally:
        query.stop()


def rows_to_send(spark: SparkSession, count: int, **columns: str) -> DataFrame:
    frame = spark.range(count).selectExpr(
        "concat('row-', id) AS key", "concat('{\"n\": ', id, '}') AS body", "'letter' AS kind",
        "CAST(id AS INT) AS priority", "map('a', 'b') AS attributes", "'t' AS tag1",
    )  # fmt: skip
    for name, expression in columns.items():
        frame = frame.selectExpr("*", f"{expression} AS {name}")
    return frame


def write(frame: DataFrame, url: str, **options: Any) -> None:
    frame.write.format("penstock").mode("append").options(url=url, **options).save()


def test_a_frame_is_sent_once_however_often_it_is_written(spark, url, driver):
    mail = driver.queue("mail")
    frame = rows_to_send(spark, 30).repartition(3)

    write(frame, url, queue="mail")
    write(frame, url, queue="mail")
    write(rows_to_send(spark, 32), url, queue="mail", batchRows=5)

    assert driver.counts(mail).ready == 32
    [first, *_] = driver.browse(mail, State.READY)
    content = driver.read(lambda s: s.messages.content(first))
    assert (first.kind, first.priority, first.tag1, first.dedup_key) == ("letter", 0, "t", "row-0")
    assert content is not None
    assert (content.body, content.attributes) == ('{"n": 0}', {"a": "b"})


def test_keys_are_remembered_longer_than_a_queue_would(spark, url, driver):
    mail = driver.queue("mail", dedup_window_ms=0)
    write(rows_to_send(spark, 3), url, queue="mail")
    for held in driver.claim(mail, 10):
        driver.complete(held)
    write(rows_to_send(spark, 3), url, queue="mail")
    assert driver.counts(mail).ready == 0


def test_rows_may_name_their_queue_and_queues_are_created(spark, url, driver):
    frame = rows_to_send(spark, 6, queue="concat('q', priority % 2)").withColumnRenamed(
        "key", "my_key"
    )
    write(frame, url, key="my_key")
    queues = [driver.read(lambda s, n=n: s.queues.find(n)) for n in ("q0", "q1")]
    assert [driver.counts(q).ready for q in queues if q is not None] == [3, 3]


FITS = "key string, body string, priority int, attributes map<string, string>"


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        (FITS, {}, "no queue is named"),
        (f"{FITS}, color string", {"queue": "mail"}, "color"),
        (FITS, {"queue": "mail", "key": "id"}, "unknown column 'key'"),
        ("key string, queue string", {}, "body is missing"),
        ("body string, queue string", {}, "'key', which identifies each message, is missing"),
        (f"{FITS}, due_at string", {"queue": "mail"}, "due_at"),
        (f"{FITS}, kind int", {"queue": "mail"}, "kind"),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_anything_is_sent(spark, columns, options, text):
    schema = spark.createDataFrame([], columns).schema
    with pytest.raises(InvalidRequest, match=text):
        refuse_unfit(read({"url": "sqlite:///x", **options}), schema)


def test_a_body_that_is_not_json_is_refused(spark, url, driver):
    driver.queue("mail")
    frame = spark.createDataFrame([("k", "no json")], "key string, body string")
    with pytest.raises(PySparkException, match="not JSON"):
        write(frame, url, queue="mail")


def test_options_are_checked():
    assert read({"url": "sqlite:///x", "partitionrows": "5"}).partition_rows == 5
    assert read({"url": "sqlite:///x", "window": "7d"}).window_ms == 7 * 24 * 3_600_000
    for options, text in (
        ({}, "url is missing"),
        ({"url": "sqlite:///x", "pageRows": "0"}, "pageRows"),
        ({"url": "sqlite:///x", "path": "y"}, "no path"),
        ({"url": "sqlite:///x", "bachRows": "5"}, "batch_rows"),
        ({"url": "sqlite:///x", "window": "soon"}, "window"),
    ):
        with pytest.raises(InvalidRequest, match=text):
            read(options)


@pytest.mark.parametrize(
    ("check", "options", "text"),
    [
        (readable, {"url": "http://localhost"}, "only a store"),
        (readable, {"url": "sqlite:///x", "table": "letters"}, "table is one of"),
        (readable, {"url": "sqlite:///x", "starting": "now"}, "starting is"),
        (streamable, {"url": "sqlite:///x", "table": "messages"}, "cannot be read as a stream"),
        (writable, {"url": "redis://x"}, "url is"),
    ],
)
def test_unsupported_reads_and_writes_are_errors(check, options, text):
    with pytest.raises(InvalidRequest, match=text):
        check(read(options))


def test_a_reader_does_not_create_a_store(spark, tmp_path):
    url = f"sqlite:///{tmp_path}/none.db"
    with pytest.raises(PySparkException, match="there is no store"):
        spark.read.format("penstock").options(url=url).load().collect()
    assert not (tmp_path / "none.db").exists()


def test_over_http_too_a_row_is_sent_once(spark, tmp_path):
    with LiveServer(Settings(data=str(tmp_path), server=ServerSettings(port=0))) as server:
        driver = StoreDriver(server.broker.store, server.clock)  # type: ignore[arg-type]
        mail = driver.queue("mail", dedup_window_ms=0)
        for _ in range(2):
            write(rows_to_send(spark, 5), server.url, queue="mail")
        assert driver.counts(mail).ready == 5


def test_an_offset_is_returned_only_when_no_row_can_appear_below_it(postgres_url):
    """A completion in a transaction of the application's own, committed late."""
    settings = Settings(store=StoreSettings(url=postgres_url))
    migrate(settings)
    reader = StreamReader(read({"url": postgres_url}))
    limit = ReadAllAvailable()
    with closing(open_broker(settings)) as broker, psycopg.connect(postgres_url) as application:
        driver = StoreDriver(broker.store, broker.clock)  # type: ignore[arg-type]
        mail = driver.queue("mail")
        driver.send_many(mail, 2)
        late, early = driver.claim(mail, 2)
        driver.store.act_in(application, [an_act(Verb.COMPLETE, late, now=driver.now)])
        driver.complete(early)

        assert reader.latestOffset({}, limit) == {}
        application.commit()
        [last_no] = reader.latestOffset({}, limit).values()
        assert last_no == 2
        assert reader.latestOffset({"0": 7}, ReadMaxRows(1)) == {"0": 7, str(driver.now // DAY): 1}
    reader.stop()
