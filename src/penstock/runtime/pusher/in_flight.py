"""A push request in flight, and the acts on its lease."""

from __future__ import annotations

import msgspec

from penstock.domain.circuit.circuit import Permitted, RequestOutcome
from penstock.domain.delivery.delivery import Delivery
from penstock.domain.delivery.route import DeliveryRoute
from penstock.domain.limits import NUL
from penstock.domain.message.lease import Lease, LeaseAct, Verb
from penstock.domain.message.lifecycle import Message
from penstock.ports.sender import PushRequest
from penstock.services.circuits.circuits import Reported

_MAX_CHARS = 4_000  # kept of an endpoint's answer


class InFlight(msgspec.Struct):
    message: Message
    delivery: Delivery
    route: DeliveryRoute
    request: PushRequest
    is_expired: bool = False
    permitted: Permitted | None = None
    extend_at: int = 0

    @property
    def queue_no(self) -> int:
        return self.message.queue_no

    def reported(self, outcome: RequestOutcome | None) -> Reported:
        assert self.permitted is not None, "a request is sent only with a permit"
        return Reported(self.permitted, self.delivery.counted_as(self.message.id), outcome)


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
