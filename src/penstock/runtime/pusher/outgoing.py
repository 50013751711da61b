"""The HTTP request of a delivery, and the text about the response that history keeps."""

from __future__ import annotations

from penstock.domain.delivery.delivery import OF_THE_CONNECTION, Delivery
from penstock.domain.delivery.route import DeliveryRoute
from penstock.domain.delivery.signature import HEADERS as SIGNED
from penstock.domain.delivery.signature import sign
from penstock.domain.limits import DAY
from penstock.ports.sender import PushRequest, PushResponse

_TIMEOUT = "x-timeout"  # milliseconds, for this request alone
# Hop-by-hop headers, and those that every connection sets itself.
_NOT_PASSED_ON = OF_THE_CONNECTION | {"x-queue"}


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
