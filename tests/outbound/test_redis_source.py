"""Load of lists and streams of a real Redis."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from kombu.connection import Connection
from kombu.entity import Exchange, Queue

from penstock.domain.errors import FleetsRefused, QueueUnknown, SourceUnavailable
from penstock.domain.scaling.fleet_sources import RedisSource
from penstock.domain.scaling.recommendation import Sample
from penstock.outbound.redis_source import RedisLoad
from tests.support.redis_server import RedisServer


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
def redis(server: RedisServer) -> Iterator[Any]:
    with server.client() as client:
        client.flushall()
        yield client


def source(server: RedisServer, **more: Any) -> RedisLoad:
    return RedisLoad("cache", RedisSource(**{"url": server.url, **more}))


def stream(server: RedisServer) -> RedisLoad:
    return source(server, type="stream", group="mailers")


def now_of(client: Any) -> int:
    seconds, micros = client.time()
    return int(seconds) * 1000 + int(micros) // 1000


# ---- lists


def test_the_length_of_a_list_is_the_number_of_ready_messages(server, redis):
    redis.rpush("mail", "a", "b", "c")

    assert source(server).read("mail", None, now=0) == Sample(ready=3)


def test_a_list_that_does_not_exist_is_empty(server, redis):
    assert source(server).read("mail", None, now=0) == Sample(ready=0)


def test_celery_tasks_of_all_priorities_count_and_so_do_those_that_workers_hold(server, redis):
    queue = Queue("mail", Exchange("mail"), routing_key="mail")
    with Connection(server.url) as connection, connection.Producer() as producer:
        for priority in (0, 0, 3, 7, 9):
            producer.publish({}, routing_key="mail", declare=[queue], priority=priority)
        load = source(server)
        assert load.read("mail", None, now=0) == Sample(ready=5)

        channel = connection.channel()
        channel.basic_qos(0, 10, False)
        held = [queue(channel).get() for _ in range(2)]

        assert all(held)
        assert load.read("mail", None, now=0) == Sample(ready=3, leased=2)
        assert source(server, leased_key="").read("mail", None, now=0) == Sample(ready=3)
        channel.close()


def test_priority_steps_are_those_of_the_file(server, redis):
    for step, count in ((None, 1), (3, 2), (5, 4)):
        name = "mail" if step is None else f"mail\x06\x16{step}"
        redis.rpush(name, *"abcd"[:count])

    assert source(server).read("mail", None, now=0).ready == 3
    assert source(server, priority_steps=(0, 5)).read("mail", None, now=0).ready == 5
    assert source(server, priority_steps=()).read("mail", None, now=0).ready == 1


# ---- streams


def test_undelivered_stream_entries_are_ready_and_unacknowledged_ones_are_leased(server, redis):
    redis.xgroup_create("mail", "mailers", mkstream=True)
    for number in range(5):
        redis.xadd("mail", {"n": number})
    [[_, taken]] = redis.xreadgroup("mailers", "one", {"mail": ">"}, count=3)
    redis.xack("mail", "mailers", taken[0][0])

    found = stream(server).read("mail", None, now=now_of(redis))

    assert (found.ready, found.leased) == (2, 2)


def test_the_oldest_ready_entry_of_a_stream_is_the_first_undelivered_one(server, redis):
    redis.xgroup_create("mail", "mailers", mkstream=True)
    redis.xadd("mail", {"n": 1}, id="1000-0")
    redis.xadd("mail", {"n": 2}, id="4000-0")
    load = stream(server)
    assert load.read("mail", None, now=10_000).oldest_ms == 9_000

    redis.xreadgroup("mailers", "one", {"mail": ">"}, count=1)
    assert load.read("mail", None, now=10_000).oldest_ms == 6_000

    redis.xreadgroup("mailers", "one", {"mail": ">"}, count=1)
    assert load.read("mail", None, now=10_000).oldest_ms is None


def test_rates_of_a_stream_count_entries_read_and_added_since_the_last_reading(server, redis):
    redis.xgroup_create("mail", "mailers", mkstream=True)
    redis.xadd("mail", {"n": 0})
    redis.xreadgroup("mailers", "one", {"mail": ">"})  # from here on Redis keeps count
    load = stream(server)
    load.read("mail", None, now=10_000)
    for number in range(8):
        redis.xadd("mail", {"n": number})
    redis.xreadgroup("mailers", "one", {"mail": ">"}, count=6)

    found = load.read("mail", None, now=12_000)

    assert (found.consume_rate, found.publish_rate) == (3.0, 4.0)


def test_ready_entries_are_counted_where_redis_does_not_know_the_lag(server, redis):
    """Entries that were deleted behind the group's place leave it without a lag."""
    redis.xgroup_create("mail", "mailers", mkstream=True)
    ids = [redis.xadd("mail", {"n": number}) for number in range(5)]
    redis.xreadgroup("mailers", "one", {"mail": ">"}, count=1)
    redis.xdel("mail", ids[2])
    [group] = redis.xinfo_groups("mail")
    assert group["lag"] is None

    assert stream(server).read("mail", None, now=now_of(redis)).ready == 3


def test_a_stream_or_a_group_that_does_not_exist_is_unknown(server, redis):
    with pytest.raises(QueueUnknown, match="has no stream 'mail'"):
        stream(server).read("mail", None, now=0)

    redis.xgroup_create("mail", "others", mkstream=True)
    with pytest.raises(QueueUnknown, match="stream 'mail' has no group 'mailers'"):
        stream(server).read("mail", None, now=0)


# ---- failures


def test_a_key_of_another_type_is_a_failure(server, redis):
    redis.set("mail", "text")

    for load in (source(server), stream(server)):
        with pytest.raises(SourceUnavailable, match=r"source cache, Redis at .*WRONGTYPE"):
            load.read("mail", None, now=0)


def test_an_unreachable_redis_is_a_failure():
    load = RedisLoad("cache", RedisSource(url="redis://127.0.0.1:1/0", timeout_ms=2_000))

    with pytest.raises(SourceUnavailable, match=r"source cache, Redis at .*:1: "):
        load.read("mail", None, now=0)


def test_the_password_is_read_each_time_and_not_shown_in_errors(tmp_path, monkeypatch):
    file = tmp_path / "password"
    file.write_text("wrong\n")
    monkeypatch.setenv("REDIS_PASSWORD", "s3cret")
    with RedisServer(password="s3cret") as guarded:
        by_file = source(guarded, password_file=str(file))
        with pytest.raises(SourceUnavailable) as refused:
            by_file.read("mail", None, now=0)
        assert "wrong" not in str(refused.value)

        file.write_text("s3cret\n")
        assert by_file.read("mail", None, now=0).ready == 0
        by_env = source(guarded, password_env="REDIS_PASSWORD")
        assert by_env.read("mail", None, now=0).ready == 0
        monkeypatch.delenv("REDIS_PASSWORD")
        with pytest.raises(SourceUnavailable, match="REDIS_PASSWORD is not set"):
            by_env.read("mail", None, now=0)


def test_without_the_library_the_file_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)

    wanted = r"sources.cache: .* pip install 'penstock-queue\[redis\]'"
    with pytest.raises(FleetsRefused, match=wanted):
        RedisLoad("cache", RedisSource())
