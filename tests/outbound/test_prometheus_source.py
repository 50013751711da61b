"""Load from Prometheus: a server that answers as its API documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from penstock.domain.errors import QueueUnknown, SourceUnavailable
from penstock.domain.scaling.fleet_sources import PrometheusSource
from penstock.domain.scaling.recommendation import Sample
from penstock.outbound.prometheus_source import PrometheusLoad
from tests.clocks import NOON
from tests.support.http_backend import Answer, Behaviour, Hang, HangUp, HttpBackend, Seen


@pytest.fixture
def backend() -> Iterator[HttpBackend]:
    with HttpBackend() as backend:
        yield backend


def vector(*values: str) -> dict[str, Any]:
    series = [{"metric": {"n": str(n)}, "value": [1.5, one]} for n, one in enumerate(values)]
    return {"resultType": "vector", "result": series}


def answering(backend: HttpBackend, **by_query: dict[str, Any]) -> None:
    def behave(seen: Seen) -> Behaviour:
        [query] = parse_qs(urlsplit(seen.target).query)["query"]
        data = by_query.get(query, vector())
        return Answer(body=json.dumps({"status": "success", "data": data}).encode())

    backend.behave = behave


def source(backend: HttpBackend, **more: Any) -> PrometheusLoad:
    options = {"endpoint": backend.url, "ready_query": "ready", "timeout_ms": 5_000, **more}
    return PrometheusLoad("metrics", PrometheusSource(**options))


def test_each_query_returns_one_number(backend):
    answering(
        backend,
        ready=vector("12"),
        leased={"resultType": "scalar", "result": [1.5, "3"]},
        consumed=vector("1.5"),
        published=vector("2e0"),
        oldest=vector("4.25"),
    )

    found = source(
        backend,
        leased_query="leased",
        consume_query="consumed",
        publish_query="published",
        oldest_query="oldest",
    ).read("mail", None, now=NOON)

    assert found == Sample(ready=12, leased=3, consume_rate=1.5, publish_rate=2.0, oldest_ms=4_250)


def test_a_fraction_of_a_message_counts_as_one(backend):
    answering(backend, ready=vector("0.2"))

    assert source(backend).read("mail", None, now=NOON).ready == 1


def test_the_name_of_the_queue_is_filled_in_as_promql_wants_it(backend):
    answering(backend)
    query = 'sum(messages_ready{queue="{queue}"})'
    with pytest.raises(QueueUnknown):
        source(backend, ready_query=query).read('a"b\\c', None, now=NOON)

    [seen] = backend.seen
    assert urlsplit(seen.target).path == "/api/v1/query"
    assert parse_qs(urlsplit(seen.target).query)["query"] == [
        'sum(messages_ready{queue="a\\"b\\\\c"})'
    ]


def test_an_empty_result_is_not_taken_for_zero(backend):
    answering(backend)

    with pytest.raises(QueueUnknown, match="ready_query returns nothing for queue 'mail'"):
        source(backend).read("mail", None, now=NOON)


def test_empty_results_of_other_queries_are_left_out(backend):
    answering(backend, ready=vector("1"))

    found = source(
        backend, leased_query="leased", consume_query="consumed", oldest_query="oldest"
    ).read("mail", None, now=NOON)

    assert found == Sample(ready=1)


@pytest.mark.parametrize(
    ("user", "header"), [(None, "Bearer s3cret"), ("me", "Basic bWU6czNjcmV0")]
)
def test_a_token_is_sent_and_not_shown_in_errors(backend, monkeypatch, user, header):
    monkeypatch.setenv("TOKEN", "s3cret")
    backend.behave = lambda seen: Answer(401)

    with pytest.raises(SourceUnavailable, match=r"it rejects the token \(401\)") as error:
        source(backend, token_env="TOKEN", user=user).read("mail", None, now=NOON)

    assert backend.seen[0].header("authorization") == header
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (vector("1", "2"), r"'ready' returns 2 series; add them up with sum"),
        (vector("NaN"), "returns NaN, which is not a count"),
        (vector("+Inf"), "which is not a count"),
        (vector("many"), "could not convert"),
        ({"resultType": "matrix", "result": []}, "returns a matrix, not one number"),
        ({"resultType": "vector", "result": [1]}, "not one of Prometheus"),
        ({"resultType": "scalar", "result": [1]}, "not one of Prometheus"),
    ],
)
def test_a_result_that_is_not_one_number_is_a_failure(backend, data, why):
    answering(backend, ready=data)

    with pytest.raises(SourceUnavailable, match=why):
        source(backend).read("mail", None, now=NOON)


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        (Answer(400, body=b'{"status": "error", "error": "parse error"}'), "'ready': parse error"),
        (Answer(503), "it answered 503"),
        (Answer(200, body=b"<html>"), "not one of Prometheus"),
        (Answer(302, {"Location": "http://127.0.0.1:1/"}), "it answered 302"),
        (Hang(), "no answer within 500 ms"),
        (HangUp(), "source metrics, Prometheus at 127.0.0.1"),
    ],
)
def test_any_error_makes_the_source_unavailable(backend, behaviour, why):
    backend.behave = lambda seen: behaviour

    with pytest.raises(SourceUnavailable, match=why):
        source(backend, timeout_ms=500).read("mail", None, now=NOON)
