"""Metrics in Prometheus' text form."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from tests.edge.api import Api
from tests.edge.conftest import InBackground
from tests.edge.live import LiveServer
from tests.edge.native.waiting import Waiting

pytestmark = pytest.mark.both_stores

_SAMPLE = re.compile(r"([a-z_:][a-z0-9_:]*)(?:\{(.*)\})? (-?\d+(?:\.\d+)?)", re.ASCII)
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)', re.ASCII)


class Sample(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float


class Metrics(NamedTuple):
    types: dict[str, str]
    helps: dict[str, str]
    samples: list[Sample]

    def value(self, name: str, **labels: str) -> float:
        alike = (s for s in self.samples if s.name == name)
        [found] = [s.value for s in alike if labels.items() <= s.labels.items()]
        return found


def parse(text: str) -> Metrics:
    """Parse strictly: every line must be one of the three kinds."""
    found = Metrics({}, {}, [])
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.removeprefix("# TYPE ").split(" ")
            assert name not in found.types, f"{name} is declared twice"
            found.types[name] = kind
        elif line.startswith("# HELP "):
            name, _, words = line.removeprefix("# HELP ").partition(" ")
            found.helps[name] = words
        else:
            match = _SAMPLE.fullmatch(line)
            assert match is not None, line
            labels = dict(_LABEL.findall(match[2] or ""))
            assert ",".join(f'{k}="{v}"' for k, v in labels.items()) == (match[2] or "")
            found.samples.append(Sample(match[1], labels, float(match[3])))
    return found


def scrape(api: Api) -> Metrics:
    answer = api.call("GET", "/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return parse(answer.text)


def _family(name: str, metrics: Metrics) -> str:
    """The metric of a sample; a histogram has three kinds of samples."""
    whole = re.sub("_(bucket|sum|count)$", "", name)
    return whole if metrics.types.get(whole) == "histogram" else name


def test_every_metric_is_declared_and_explained(api: Api) -> None:
    api.make_queue()

    metrics = scrape(api)

    names = {_family(sample.name, metrics) for sample in metrics.samples}
    assert names <= metrics.types.keys() == metrics.helps.keys()
    assert set(metrics.types.values()) <= {"gauge", "counter", "histogram"}
    assert all(name.endswith("_total") for name, t in metrics.types.items() if t == "counter")


def test_no_sample_is_given_twice(api: Api) -> None:
    samples = scrape(api).samples

    keys = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples]
    assert len(keys) == len(set(keys))


def test_metrics_and_the_queue_show_the_same_counts(api: Api) -> None:
    queue = api.make_queue()
    api.finish(queue)
    api.die(queue)
    api.send(queue, delay_ms=60_000)
    api.send(queue)

    metrics = scrape(api)

    shown = api.queue(queue)
    for state, count in shown["counts"].items():
        labels = {"messaging_destination_name": queue, "state": state}
        assert metrics.value("penstock_queue_messages", **labels) == count
    for name, total in {
        "messaging_client_sent_messages_total": "sent",
        "messaging_client_consumed_messages_total": "claimed",
        "penstock_messages_done_total": "done",
        "penstock_messages_dead_total": "dead",
        "penstock_messages_cancelled_total": "cancelled",
        "penstock_attempts_failed_total": "failed",
        "penstock_leases_expired_total": "expired_leases",
    }.items():
        assert metrics.value(name, messaging_destination_name=queue) == shown["totals"][total]


def test_metrics_show_the_store_and_how_many_claims_wait(
    api: Api, server: LiveServer, in_background: InBackground
) -> None:
    queue = api.make_queue()
    claims = Waiting(api, queue, in_background).start(2)

    metrics = scrape(api)

    assert metrics.value("penstock_claims_waiting") == 2
    assert metrics.value("penstock_info", backend=server.backend) == 1
    for _ in claims:
        api.send(queue)


def test_a_removed_queue_has_no_metrics(api: Api) -> None:
    queue = api.make_queue()
    api.call("DELETE", f"/v1/queues/{queue}")

    assert queue not in api.call("GET", "/metrics").text
