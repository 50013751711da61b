"""Admits claimed messages that have a route, room on it, and a permit from its circuit.

The others go back: a delivery that is malformed or matches no route fails and is retried later
(rules may be added), one without room waits for it, one without a permit stays in its queue, which
the circuit holds, and one that has expired is cancelled, but only once it would be permitted, as in
gateleen.  Only failures count as attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from penstock.domain.bus.endpoint import ENDPOINT_PATH
from penstock.domain.bus.envelope import TYPE_HEADER
from penstock.domain.circuit.circuit import Permit, PermitAnswer
from penstock.domain.delivery import delivery as deliveries
from penstock.domain.delivery.delivery import Delivery
from penstock.domain.delivery.route import DeliveryRoute
from penstock.domain.errors import PenstockError
from penstock.domain.message.lease import LeaseAct, Verb
from penstock.domain.message.lifecycle import EXPIRED, Content, Message
from penstock.runtime.pusher.outgoing import BackoffSettings, InFlight, act_on, delay_ms, request_of
from penstock.runtime.pusher.round_robin import RoundRobin
from penstock.services.circuits.circuits import CircuitService
from penstock.services.circuits.permits import PermitRequest
from penstock.services.routes import RouteService

# A lane and what it has claimed.  The message does not determine the lane: if its lease expires,
# another lane may claim it while the first still sends it.
Head = tuple[int, Message, Content]


class Admission(msgspec.Struct):
    admitted: list[InFlight] = []
    returned: list[tuple[int, LeaseAct]] = []  # each with its lane
    dropped: list[InFlight] = []  # of those in `returned`: permitted, but expired


class PushGate:
    def __init__(
        self,
        routes: RouteService,
        circuits: CircuitService,
        round_robin: RoundRobin,
        backoff: BackoffSettings,
        complete: Callable[[str], str],
    ) -> None:
        """`complete`: signs envelopes of SNS."""
        self._routes = routes
        self._circuits = circuits
        self._round_robin = round_robin
        self._backoff = backoff
        self._complete = complete

    def admit(self, heads: Sequence[Head], *, now: int) -> Admission:
        """Raises PenstockError if the store does not answer."""
        found = Admission()
        for lane, message, content in heads:
            ready = self._ready(lane, message, content, now=now)
            if isinstance(ready, LeaseAct):
                found.returned.append((lane, ready))
            elif self._round_robin.enter(
                lane, ready.route.pattern, timeout_ms=ready.request.timeout_ms
            ):
                found.admitted.append(ready)
            else:
                found.returned.append((lane, act_on(message, Verb.RELEASE, now=now)))
        self._ask(found, now=now)
        return found

    def _ready(
        self, lane: int, message: Message, content: Content, *, now: int
    ) -> InFlight | LeaseAct:
        try:
            delivery = deliveries.from_body(content.body)
            is_expired = delivery.is_expired(now=now)
            if is_expired and not self._circuits.is_checking:
                return _cancel(message, now=now)
            route = self._route(message.queue_no, delivery.uri)
            if route.pattern.startswith(ENDPOINT_PATH) and delivery.header(TYPE_HEADER):
                delivery = self._signed(delivery)
            request = request_of(delivery, route, message_id=message.id, now=now)
        except PenstockError as error:
            wait_ms = delay_ms(self._backoff, (), failures=message.failures + 1, now=now)
            return act_on(message, Verb.FAIL, now=now, delay_ms=wait_ms, text=str(error))
        return InFlight(message, delivery, route, request, is_expired=is_expired, lane=lane)

    def _route(self, queue_no: int, uri: str) -> DeliveryRoute:
        if queue_no not in self._routes.endpoints and uri.startswith(ENDPOINT_PATH):
            self._routes.load_endpoints().result()  # another node may have just created it
        return self._routes.match_in(queue_no, uri)

    def _signed(self, delivery: Delivery) -> Delivery:
        payload = self._complete((delivery.payload or b"").decode()).encode()
        return msgspec.structs.replace(delivery, payload=payload)

    def _ask(self, found: Admission, *, now: int) -> None:
        """Ask for permits.  The queue of a delivery without one is held when this returns."""
        permits = self._permits(found.admitted)
        admitted, found.admitted = found.admitted, []
        for one, answer in zip(admitted, permits, strict=True):
            one.permit_answer = answer
            if answer.permit is Permit.HOLD:
                found.returned.append((one.lane, act_on(one.message, Verb.RELEASE, now=now)))
            elif one.is_expired:
                found.returned.append((one.lane, _cancel(one.message, now=now)))
                found.dropped.append(one)
            else:
                found.admitted.append(one)

    def _permits(self, wanted: Sequence[InFlight]) -> Sequence[PermitAnswer]:
        circuits = self._circuits
        if not wanted or not circuits.is_checking:
            return [circuits.unchecked(one.route.pattern, one.queue_no) for one in wanted]
        asked = [PermitRequest(one.route.pattern, one.queue_no) for one in wanted]
        permits = circuits.permits(asked).result()
        return permits if circuits.is_final(permits) else circuits.secure(permits).result()


def _cancel(message: Message, *, now: int) -> LeaseAct:
    return act_on(message, Verb.CANCEL, now=now, text=EXPIRED)
