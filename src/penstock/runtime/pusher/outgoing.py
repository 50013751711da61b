"""A push: its HTTP request, its state, acts on its lease, the delay after a failure."""

from __future__ import annotations

from collections.abc import Sequence
from email.utils import parsedate_to_datetime

import msgspec

from penstock.domain.circuit.circuit import OutcomeReport, PermitAnswer, RequestOutcome
from penstock.domain.delivery.delivery import OF_THE_CONNECTION, Delivery
from penstock.domain.delivery.route import DeliveryRoute
from penstock.domain.delivery.signature import HEADERS as SIGNED
from penstock.domain.delivery.signature import sign
from penstock.domain.limits import DAY, HOUR, NUL, SECOND
from penstock.domain.message.lease import Lease, LeaseAct, Verb
from penstock.domain.message.lifecycle import Message
from penstock.ports.sender import PushRequest, PushResponse

_TIMEOUT = "x-timeout"  # milliseconds, for this request alone
# Hop-by-hop headers, and those that every connection sets itself.
_NOT_PASSED_ON = OF_THE_CONNECTION | {"x-queue"}
_MAX_CHARS = 4_000  # kept of an endpoint's answer
SHORTEST_MS = SECOND  # between two attempts if the endpoint sends Retry-After


def request_of(
    delivery: Delivery, route: DeliveryRoute, *, message_id: str, now: int
) -> PushRequest:
    """Raises InvalidRequest if the route has no valid target or its secrets are not valid."""
    passed_on = (pair for pair in delivery.headers if pair[0].lower() not in _NOT_PASSED_ON)
    headers = route.headers_for(passed_on)
    if route.signing_secrets:
        payload = delivery.payload or b""
        headers = [pair for pair in headers if pair[0].lower() not in SIGNED]
        headers += sign(route.signing_secrets, message_id=message_id, now=now, payload=payload)
    return PushRequest(
        method=delivery.method,
        url=route.target(delivery.uri),
        headers=tuple(headers),
        payload=delivery.payload,
        timeout_ms=_timeout_ms(delivery) or route.timeout_ms,
    )


def response_text(response: PushResponse) -> str:
    """The response in one line, for history."""
    if response.status is None:
        return f"{response.error} ({response.took_ms} ms)"
    excerpt = f": {response.excerpt}" if response.excerpt else ""
    return f"status {response.status} in {response.took_ms} ms{excerpt}"


def _timeout_ms(delivery: Delivery) -> int | None:
    text = delivery.header(_TIMEOUT) or ""
    is_number = text.isascii() and text.isdigit() and len(text) <= 10
    return min(int(text), DAY) if is_number else None


class InFlight(msgspec.Struct):
    """A push request in flight."""

    message: Message
    delivery: Delivery
    route: DeliveryRoute
    request: PushRequest
    is_expired: bool = False
    permit_answer: PermitAnswer | None = None
    extend_at: int = 0
    lane: int = 0  # the queue's number, or one of its further lanes

    @property
    def queue_no(self) -> int:
        return self.message.queue_no

    def report(self, outcome: RequestOutcome | None) -> OutcomeReport:
        assert self.permit_answer is not None, "a request is sent only with a permit"
        return OutcomeReport(self.permit_answer, self.delivery.counted_as(self.message.id), outcome)


def act_on(
    message: Message, verb: Verb, *, now: int, delay_ms: int | None = None, text: str | None = None
) -> LeaseAct:
    return LeaseAct(
        lease=Lease.of(message),
        verb=verb,
        now=now,
        delay_ms=delay_ms,
        text=text and text[:_MAX_CHARS].replace(NUL, "\ufffd"),
        # A late act is fine: if another node has claimed the message, the store rejects it.
        is_late_ok=verb in (Verb.COMPLETE, Verb.EXTEND),
    )


class BackoffSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How long a failed delivery waits, and with it the rest of its queue."""

    retry_ms: int = 10 * SECOND  # for routes without intervals
    honours_retry_after: bool = False
    max_retry_after_ms: int = HOUR


def delay_ms(
    backoff: BackoffSettings,
    intervals_ms: Sequence[int],
    *,
    failures: int,
    retry_after: str | None = None,
    now: int,
) -> int:
    """`failures`: in a row, including this one.  The last interval applies to all later failures.

    `retry_after` can only lengthen the delay: an endpoint that returns 0 must not cause a hot loop.
    """
    own = intervals_ms[min(failures, len(intervals_ms)) - 1] if intervals_ms else backoff.retry_ms
    asked = None
    if backoff.honours_retry_after and retry_after is not None:
        asked = retry_after_ms(retry_after, now=now)
    if asked is None:
        return own
    return max(own, SHORTEST_MS, min(asked, backoff.max_retry_after_ms))


def retry_after_ms(text: str, *, now: int) -> int | None:
    """Parse seconds or an HTTP date; None if it is neither."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return int(text[:12]) * SECOND
    try:
        instant = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0, int(instant.timestamp() * 1000) - now)
