"""Endpoints: subscriptions whose events are pushed to a URL, as deliveries.

An endpoint is a route of its own: it has the circuit, retries, timeout and signatures of any route.
Its deliveries are messages in the queue of its subscription.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from penstock.domain.delivery import delivery as deliveries
from penstock.domain.delivery.route import DeliveryRoute, HeaderRule, check_route
from penstock.domain.delivery.signature import key_of
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND, check_range
from penstock.domain.queue.queue import Ordering, QueueSettings

ENDPOINTS = "endpoints"  # a document whose version changes with any endpoint
ENDPOINT_PATH = "/topics/"  # how the paths of subscriptions begin
MAX_CONCURRENCY = 100
MAX_SECRETS = 5
MAX_HEADERS = 20
MAX_DELAYS = 100
MAX_ATTEMPTS = 10  # of a delivery, unless the settings of its queue say otherwise


class DeliveryOrder(StrEnum):
    NONE = "none"  # up to `concurrency` at a time, in any order
    GROUP = "group"  # one at a time of each group, in the order of publishing
    STRICT = "strict"  # one at a time


class Endpoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    url: str
    signing_secrets: tuple[str, ...] = ()
    order: DeliveryOrder = DeliveryOrder.NONE
    concurrency: int = 10  # requests of one node in progress
    timeout_ms: int = 30 * SECOND
    retry_intervals_ms: tuple[int, ...] = (
        5 * SECOND,
        30 * SECOND,
        5 * MINUTE,
        30 * MINUTE,
        2 * HOUR,
        5 * HOUR,
    )
    headers: dict[str, str] = {}


def checked_route(endpoint: Endpoint, path: str = "/topics") -> DeliveryRoute:
    """Return its route, or raise InvalidRequest; the caller checks where it leads."""
    check_range("concurrency", endpoint.concurrency, 1, MAX_CONCURRENCY)
    check_range("timeout_ms", endpoint.timeout_ms, 1, 10 * MINUTE)
    if not 1 <= len(endpoint.retry_intervals_ms) <= MAX_DELAYS:
        raise InvalidRequest(f"retry_intervals_ms has 1 to {MAX_DELAYS} delays")
    for delay in endpoint.retry_intervals_ms:
        check_range("retry_intervals_ms", delay, 0, 30 * DAY)
    if len(endpoint.signing_secrets) > MAX_SECRETS:
        raise InvalidRequest(f"an endpoint has at most {MAX_SECRETS} signing secrets")
    for secret in endpoint.signing_secrets:
        key_of(secret)
    deliveries.check_headers(endpoint.headers, most=MAX_HEADERS)
    if "$" in endpoint.url:
        raise InvalidRequest("url must not contain $: write it as %24")
    return route_of(endpoint, path)


def route_of(endpoint: Endpoint, path: str) -> DeliveryRoute:
    """`path`: of the subscription; the pattern and the name of its circuit."""
    is_strict = endpoint.order is DeliveryOrder.STRICT
    return check_route(
        DeliveryRoute(
            pattern=path,
            url=endpoint.url,
            headers=tuple(HeaderRule(name, value) for name, value in endpoint.headers.items()),
            timeout_ms=endpoint.timeout_ms,
            concurrency=1 if is_strict else endpoint.concurrency,
            retry_intervals_ms=endpoint.retry_intervals_ms,
            signing_secrets=endpoint.signing_secrets,
        )
    )


def queue_settings(given: QueueSettings | None) -> QueueSettings:
    """The settings of an endpoint's queue: ordered by group, and marked for deliveries.

    Messages without a group do not wait for each other, so this queue serves every order.
    """
    settings = given or QueueSettings(max_attempts=MAX_ATTEMPTS, max_crashes=None)
    labels = {**settings.labels, deliveries.LABEL: deliveries.OF_ENDPOINT}
    return msgspec.structs.replace(settings, ordering=Ordering.GROUP, labels=labels)


def group_of(endpoint: Endpoint, group: str | None) -> str | None:
    """The group of a delivery in its queue."""
    match endpoint.order:
        case DeliveryOrder.NONE:
            return None
        case DeliveryOrder.GROUP:
            return group
    return deliveries.GROUP
