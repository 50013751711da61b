"""gateleen's documents: which payloads are logged, and the configuration of the breaker.

    {"headers": ["x-rp-usr"], "payload": {"filters": [{"url": "/admin/.*", "method": "PUT"}]}}

A filter matches if all its patterns do: `url`, `method`, and headers by name; each pattern must
match the whole value.  The first matching filter decides; with `reject` nothing is logged.

The breaker configuration has exactly gateleen's keys; settings that gateleen does not have are
omitted and stay unchanged (see /v1/breaker).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, field
from msgspec.structs import replace

from penstock.domain.circuit.settings import MAX_INT, BreakerSettings, BreakerTask
from penstock.domain.delivery.pattern import InvalidPattern, Pattern, compile_pattern
from penstock.domain.errors import InvalidRequest
from penstock.edge.server.request import decode

MAX_FILTERS = 1_000
_Text = Annotated[str, Meta(max_length=1_000)]
_URL, _METHOD, _REJECT = "url", "method", "reject"


class Filter(msgspec.Struct, frozen=True):
    patterns: dict[str, Pattern]  # by url, method or header name
    is_reject: bool = False

    def matches(self, values: Mapping[str, str]) -> bool:
        return all(
            pattern.fullmatch(values.get(name, "")) is not None
            for name, pattern in self.patterns.items()
        )


class PayloadLogging(msgspec.Struct, frozen=True):
    headers: tuple[str, ...] = ()  # names of headers that are logged as well
    filters: tuple[Filter, ...] = ()

    def wants(self, *, url: str, method: str, headers: Mapping[str, str]) -> bool:
        values = {**headers, _URL: url, _METHOD: method}
        found = next((one for one in self.filters if one.matches(values)), None)
        return found is not None and not found.is_reject


class _PayloadIn(msgspec.Struct, forbid_unknown_fields=True):
    filters: Annotated[list[dict[str, Any]], Meta(max_length=MAX_FILTERS)] = []


class _LoggingIn(msgspec.Struct, forbid_unknown_fields=True):
    headers: list[_Text] = []
    payload: _PayloadIn = msgspec.field(default_factory=_PayloadIn)


_logging = msgspec.json.Decoder(_LoggingIn)


def read_logging(body: bytes) -> PayloadLogging:
    """Parse the document; raises InvalidRequest."""
    given = decode(_logging, body)
    filters = tuple(_filter(one) for one in given.payload.filters)
    return PayloadLogging(tuple(name.lower() for name in given.headers), filters)


def _filter(given: dict[str, Any]) -> Filter:
    patterns: dict[str, Pattern] = {}
    for name, text in given.items():
        if name == _REJECT:
            continue
        if not isinstance(text, str):
            raise InvalidRequest(f"{name[:40]!r} of a filter must be a string")
        patterns[name if name in (_URL, _METHOD) else name.lower()] = _pattern(name, text)
    if not patterns:
        raise InvalidRequest("a filter needs a url, a method or a header")
    return Filter(patterns, is_reject=_is_reject(given.get(_REJECT, False)))


def _is_reject(value: Any) -> bool:
    if value in (True, "true"):
        return True
    if value in (False, "false"):
        return False
    raise InvalidRequest("reject must be true or false")


def _pattern(name: str, text: str) -> Pattern:
    try:
        return compile_pattern(text)
    except InvalidPattern as error:
        raise InvalidRequest(f"{name[:40]!r} of a filter is not a valid pattern: {error}") from None


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


def read_breaker(body: bytes, before: BreakerSettings) -> BreakerSettings:
    """Parse the document; raises InvalidRequest with the position of the mistake."""
    given = decode(_document, body)
    values = {name: getattr(given, name) for name in given.__struct_fields__}
    for name, value in values.items():
        if isinstance(value, TaskDocument):
            values[name] = BreakerTask(value.enabled, value.interval)
    return replace(before, **values)


def render_breaker(settings: BreakerSettings) -> BreakerDocument:
    values = {name: getattr(settings, name) for name in BreakerDocument.__struct_fields__}
    for name, value in values.items():
        if isinstance(value, BreakerTask):
            values[name] = TaskDocument(value.enabled, value.interval_ms)
    return BreakerDocument(**values)
