"""The breaker configuration in gateleen's form: exactly gateleen's keys.

Settings that gateleen does not have are omitted and stay unchanged (see /v1/breaker).
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, field
from msgspec.structs import replace

from penstock.domain.circuit.settings import MAX_INT, BreakerSettings, BreakerTask
from penstock.edge.native.wire import decode

_Percent = Annotated[int, Meta(ge=0, le=100)]
_Number = Annotated[int, Meta(ge=0, le=MAX_INT)]
_Interval = Annotated[int, Meta(ge=1, le=MAX_INT)]


class TaskDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    enabled: bool
    interval: _Interval


class BreakerDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    circuit_check_enabled: bool = field(name="circuitCheckEnabled")
    statistics_update_enabled: bool = field(name="statisticsUpdateEnabled")
    error_threshold_percentage: _Percent = field(name="errorThresholdPercentage")
    entries_max_age_ms: _Number = field(name="entriesMaxAgeMS")
    min_queue_sample_count: _Number = field(name="minQueueSampleCount")
    max_queue_sample_count: _Number = field(name="maxQueueSampleCount")
    open_to_half_open: TaskDocument = field(name="openToHalfOpen")
    unlock_queues: TaskDocument = field(name="unlockQueues")
    unlock_probes: TaskDocument = field(name="unlockSampleQueues")


_document = msgspec.json.Decoder(BreakerDocument)


def read(body: bytes, before: BreakerSettings) -> BreakerSettings:
    """Parse the document; raises InvalidRequest with the position of the mistake."""
    given = decode(_document, body)
    return replace(
        before,
        circuit_check_enabled=given.circuit_check_enabled,
        statistics_update_enabled=given.statistics_update_enabled,
        error_threshold_percentage=given.error_threshold_percentage,
        entries_max_age_ms=given.entries_max_age_ms,
        min_queue_sample_count=given.min_queue_sample_count,
        max_queue_sample_count=given.max_queue_sample_count,
        open_to_half_open=_task(given.open_to_half_open),
        unlock_queues=_task(given.unlock_queues),
        unlock_probes=_task(given.unlock_probes),
    )


def render(settings: BreakerSettings) -> BreakerDocument:
    return BreakerDocument(
        settings.circuit_check_enabled,
        settings.statistics_update_enabled,
        settings.error_threshold_percentage,
        settings.entries_max_age_ms,
        settings.min_queue_sample_count,
        settings.max_queue_sample_count,
        _render_task(settings.open_to_half_open),
        _render_task(settings.unlock_queues),
        _render_task(settings.unlock_probes),
    )


def _task(task: TaskDocument) -> BreakerTask:
    return BreakerTask(task.enabled, task.interval)


def _render_task(task: BreakerTask) -> TaskDocument:
    return TaskDocument(task.enabled, task.interval_ms)
