"""The factory creates what the fleets file names."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.scaling.fleet_sources import (
    OwnSource,
    PrometheusSource,
    RabbitSource,
    RedisSource,
    SourceSpec,
    SqsSource,
)
from penstock.outbound.fleet_factory import FleetFactory
from penstock.outbound.prometheus_source import PrometheusLoad
from penstock.outbound.rabbitmq_source import RabbitLoad
from penstock.outbound.redis_source import RedisLoad
from penstock.outbound.sqs_source import SqsLoad
from tests.fakes import FakeLoad


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        (OwnSource(), FakeLoad),
        (RabbitSource(), RabbitLoad),
        (SqsSource(), SqsLoad),
        (RedisSource(), RedisLoad),
        (PrometheusSource(ready_query="up"), PrometheusLoad),
    ],
)
def test_each_kind_of_source_has_a_reader_of_its_own(
    tmp_path: Any, spec: SourceSpec, kind: type
) -> None:
    unused: Any = None
    outfit = FleetFactory(
        own=FakeLoad(),
        registry=unused,
        sender=unused,
        clock=unused,
        dice=unused,
        folder=tmp_path,
        store_url="",
        wanted_before=lambda fleet: 0,
    )

    made = outfit.source("name", spec)

    assert type(made) is kind
    made.close()
