"""Load and pressure of RabbitMQ: a real server, and a fake one for its failures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from penstock.domain.errors import PenstockError, QueueUnknown, SourceUnavailable
from penstock.domain.scaling.fleet_sources import RabbitSource
from penstock.domain.scaling.pressure import Pressure
from penstock.domain.scaling.recommendation import Sample, Staged
from penstock.outbound.rabbitmq_source import PAGE, RabbitLoad
from tests.clocks import NOON
from tests.edge.api import a_name
from tests.support.http_backend import Answer, Hang, HangUp, HttpBackend
from tests.support.rabbitmq import RabbitNode
from tests.support.rabbitmq_driver import RabbitDriver, add_user, add_vhost
from tests.support.waiting import eventually

FIGURES_S = 60.0  # the broker gathers them twice a second
MB = 1024 * 1024


@pytest.fixture
def driver(rabbit: RabbitNode) -> Iterator[RabbitDriver]:
    with RabbitDriver(rabbit) as driver:
        yield driver


@pytest.fixture
def source(rabbit: RabbitNode) -> RabbitLoad:
    return _source(rabbit)


@pytest.fixture
def backend() -> Iterator[HttpBackend]:
    with HttpBackend() as backend:
        yield backend


# ---- a real broker


def test_ready_and_leased_messages_are_counted_separately(source, driver):
    queue = a_name("mail")
    driver.declare(queue)
    driver.publish(queue, 5)
    driver.take(queue, 2)

    sample = _soon(source, queue, lambda sample: (sample.ready, sample.leased) == (3, 2))

    assert sample.staged == ()


def test_rates_are_there_while_messages_flow_and_gone_when_they_do_not(source, driver):
    queue = a_name("mail")
    driver.declare(queue)

    with driver.traffic(queue):
        flowing = _soon(source, queue, lambda s: s.consume_rate and s.publish_rate)
    # These figures are not of one instant: the last count may be older than the last rate.
    _soon(source, queue, lambda s: not (s.consume_rate or s.publish_rate or s.ready))

    assert flowing.consume_rate > 0
    assert flowing.publish_rate > 0


def test_staging_queues_are_found_by_their_exact_prefix(source, driver):
    target = a_name("mail") + ".v1"
    staged = [f"{target}»tenant-{n}/a" for n in (1, 2)]
    alike = [target.replace(".", "x") + "»tenant", f"{target}»", f"other.{target}»tenant"]
    driver.declare(target, *staged, *alike)
    driver.publish(staged[0], 3)
    for other in alike:
        driver.publish(other)

    def look() -> Sample | None:
        sample = _known(source, target, "»")
        return sample if sample and sum(one.ready for one in sample.staged) == 3 else None

    sample = eventually(look, within_s=FIGURES_S)

    assert sample is not None
    assert {one.queue: one.ready for one in sample.staged} == {staged[0]: 3, staged[1]: 0}


def test_a_staging_queue_has_a_publish_rate(source, driver):
    target = a_name("mail")
    driver.declare(target, f"{target}»a")

    with driver.traffic(f"{target}»a"):
        eventually(
            lambda: [s for s in _staged(source, target) if s.publish_rate > 0],
            within_s=FIGURES_S,
        )


def test_staging_queues_beyond_the_first_page_count_too(source, driver):
    target = a_name("mail")
    driver.declare(target, *(f"{target}-{n:03}" for n in range(PAGE + 20)))

    found = eventually(lambda: _staged(source, target, "-"), within_s=FIGURES_S)

    assert [one.queue for one in found] == [f"{target}-{n:03}" for n in range(PAGE + 20)]


def test_a_queue_that_does_not_exist_is_reported_by_its_name(source):
    with pytest.raises(QueueUnknown, match="'unknown' in the virtual host '/'"):
        source.read("unknown", None, now=NOON)


def test_a_virtual_host_is_named_as_it_is_whatever_characters_it_has(rabbit):
    vhost = a_name("shop") + "/a b"
    add_vhost(rabbit, vhost)
    source = _source(rabbit, vhost=vhost)
    with RabbitDriver(rabbit, vhost=vhost) as driver:
        driver.declare("mail/1?x")
        driver.publish("mail/1?x", 2)

        _soon(source, "mail/1?x", lambda sample: sample.ready == 2)

    with pytest.raises(QueueUnknown):
        _source(rabbit, vhost="elsewhere").read("mail/1?x", None, now=NOON)


def test_a_password_comes_from_a_file_that_may_change_at_any_time(rabbit, tmp_path):
    user, file = a_name("user"), tmp_path / "password"
    add_user(rabbit, user, "pässword")
    source = _source(rabbit, user=user, password_file=str(file))

    with pytest.raises(SourceUnavailable, match="password file cannot be read"):
        source.pressure(now=NOON)
    file.write_text("wrong")
    with pytest.raises(SourceUnavailable, match=f"rejects user '{user}'") as refused:
        source.pressure(now=NOON + 10_000)
    file.write_text("pässword\n")

    assert source.pressure(now=NOON + 20_000) is not None
    assert "wrong" not in str(refused.value)


def test_a_password_comes_from_a_variable(rabbit, monkeypatch):
    source = _source(rabbit, password_env="RABBIT_PASSWORD", pressure_every_ms=0)

    with pytest.raises(SourceUnavailable, match="RABBIT_PASSWORD is not set"):
        source.pressure(now=NOON)
    monkeypatch.setenv("RABBIT_PASSWORD", "guest")

    assert source.pressure(now=NOON) is not None


def test_a_broker_reports_its_memory_and_disk(source):
    pressure = source.pressure(now=NOON)

    assert pressure is not None
    assert pressure.memory_percent is not None
    assert 0 < pressure.memory_percent < 100
    assert pressure.disk_free_mb is not None
    assert pressure.disk_free_mb > 0


# ---- brokers as one meets them in bad times


def test_the_fullest_node_counts_and_those_that_are_down_do_not(backend):
    node = {"running": True, "mem_limit": 1000, "disk_free": 500 * MB}
    _say(
        backend,
        [
            {**node, "mem_used": 200},
            {**node, "mem_used": 755, "disk_free": 301 * MB - 1},
            {"running": True},
            {"running": False, "mem_limit": 1000, "mem_used": 999, "disk_free": 1},
            {**node, "mem_used": 1, "mem_limit": 0, "disk_free": "disk_free_monitoring_disabled"},
        ],
    )

    pressure = _source_of(backend).pressure(now=NOON)

    assert pressure == Pressure(memory_percent=75.5, disk_free_mb=300)


@pytest.mark.parametrize("nodes", [[], [{"running": True, "name": "new"}], [{"running": False}]])
def test_the_pressure_of_a_broker_without_figures_is_unknown(backend, nodes):
    _say(backend, nodes)

    assert _source_of(backend).pressure(now=NOON) is None


def test_the_pressure_is_cached_whether_the_query_succeeded_or_not(backend):
    source = _source_of(backend, pressure_every_ms=10_000)
    _say(backend, [{"running": True, "mem_used": 1, "mem_limit": 2}])
    first = source.pressure(now=NOON)
    backend.answer(500)

    assert source.pressure(now=NOON + 9_999) == first
    for at in (10_000, 12_000):
        with pytest.raises(SourceUnavailable):
            source.pressure(now=NOON + at)
    _say(backend, [])

    assert source.pressure(now=NOON + 20_000) is None
    assert len(backend.seen) == 3


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (Answer(500), "it answered 500"),
        (Answer(302, {"Location": "/elsewhere"}), "it answered 302"),
        (Answer(200, body=b"<html>"), "not one of RabbitMQ"),
        (Answer(200, body=b'{"messages_ready": "many"}'), "not one of RabbitMQ"),
        (Answer(200, body=b"{}"), "no figures for queue 'mail' yet"),
        (Answer(200, body=b"{", claims_more=100), "no answer within 300 ms"),
        (Hang(), "no answer within 300 ms"),
        (HangUp(), "Server disconnected"),
    ],
)
def test_any_other_answer_makes_the_source_unavailable(backend, behaviour, expected):
    backend.behave = lambda seen: behaviour
    source = _source_of(backend, timeout_ms=300 if "no answer" in expected else 30_000)

    with pytest.raises(SourceUnavailable, match=expected) as error:
        source.read("mail", None, now=NOON)

    assert f"source bunny, RabbitMQ at 127.0.0.1:{backend.port}" in str(error.value)


def test_a_broker_that_is_down_is_unavailable_until_it_is_back(backend):
    source = _source_of(backend)
    _say(backend, {"messages_ready": 7, "message_stats": []})
    backend.stop()

    with pytest.raises(SourceUnavailable, match="onnect"):
        source.read("mail", None, now=NOON)
    with HttpBackend() as back:
        _say(back, {"messages_ready": 7, "message_stats": []})
        assert _source_of(back).read("mail", None, now=NOON) == Sample(ready=7)


def test_many_threads_may_query_concurrently(backend):
    source = _source_of(backend)
    _say(backend, {"messages_ready": 7})
    found: list[Sample] = []
    threads = [
        threading.Thread(target=lambda: found.append(source.read("mail", None, now=NOON)))
        for _ in range(8)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [Sample(ready=7)] * 8


def _source(node: RabbitNode, **more: Any) -> RabbitLoad:
    options: dict[str, Any] = {"endpoint": node.management_url, "timeout_ms": 30_000, **more}
    return RabbitLoad("bunny", RabbitSource(**options))


def _source_of(backend: HttpBackend, **more: Any) -> RabbitLoad:
    options: dict[str, Any] = {"endpoint": backend.url, "timeout_ms": 30_000, **more}
    return RabbitLoad("bunny", RabbitSource(**options))


def _say(backend: HttpBackend, what: object) -> None:
    said = msgspec.json.encode(what)
    backend.behave = lambda seen: Answer(200, body=said)


def _known(source: RabbitLoad, queue: str, indicator: str | None = None) -> Sample | None:
    """None until the broker has figures."""
    try:
        return source.read(queue, indicator, now=NOON)
    except PenstockError as error:
        if "no figures" not in str(error):
            raise
        return None


def _soon(source: RabbitLoad, queue: str, is_so: Callable[[Sample], object]) -> Sample:
    def look() -> Sample | None:
        sample = _known(source, queue)
        return sample if sample is not None and is_so(sample) else None

    found = eventually(look, within_s=FIGURES_S)
    assert found is not None
    return found


def _staged(source: RabbitLoad, queue: str, indicator: str = "»") -> list[Staged]:
    sample = _known(source, queue, indicator)
    return sorted(sample.staged, key=lambda one: one.queue) if sample else []
