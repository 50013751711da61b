"""One step of pushing: finish answered requests, extend leases, send what is next.

    find ─▶ round robin ─▶ claim ─▶ gate ─▶ send ─▶ … ─▶ finish ─▶ round robin

Each step handles everything that has come up since the last one, in a few transactions, however
many queues there are.  A step does not wait for requests and does not know about threads.  A node
that is killed in between loses nothing: the lease expires, and the request is sent again with the
same id.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import msgspec

from penstock.domain.circuit.circuit import OutcomeReport, is_success, outcome_of
from penstock.domain.delivery.lanes import idle_lane, queue_of
from penstock.domain.delivery.route import DeliveryRoute, RouteTable
from penstock.domain.errors import NotFound, PenstockError, QueueNotFound
from penstock.domain.message.lease import LeaseAct, Verb
from penstock.domain.message.lifecycle import State
from penstock.ports.sender import PushResponse, Sender
from penstock.ports.store import Acted, Claim, Claimed, Store
from penstock.runtime.pusher.finder import QueueFinder
from penstock.runtime.pusher.gate import Admission, Head, PushGate
from penstock.runtime.pusher.outgoing import (
    BackoffSettings,
    InFlight,
    act_on,
    delay_ms,
    response_text,
)
from penstock.runtime.pusher.round_robin import RoundRobin
from penstock.runtime.pusher.tally import PushResult, PushTally
from penstock.services.circuits.circuits import CircuitService
from penstock.services.routes import RouteService

_log = logging.getLogger("penstock.push")
_AFTER_ERROR_MS = 1_000
GONE = 410  # an endpoint that wants no more deliveries


class PusherSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Concurrency, lease, scan interval and back-off of a pusher."""

    concurrency: int
    lease_ms: int
    scan_ms: int
    backoff: BackoffSettings = BackoffSettings()

    @property
    def extend_ms(self) -> int:
        """The interval of extensions; short enough that one may fail."""
        return self.lease_ms // 3


class Pusher:
    def __init__(
        self,
        store: Store,
        sender: Sender,
        routes: RouteService,
        circuits: CircuitService,
        *,
        settings: PusherSettings,
        holder: str,
        wake: Callable[[], None] = lambda: None,
        tally: PushTally | None = None,
        complete: Callable[[str], str] = lambda text: text,
    ) -> None:
        """`wake` is called, from any thread, when a step has something to do.

        `complete`: completes and signs an envelope of SNS.
        """
        self._store = store
        self._sender = sender
        self._routes = routes
        self._circuits = circuits
        self._settings = settings
        self._holder = holder
        self._wake = wake
        self._tally = tally or PushTally()
        self._finder = QueueFinder(store, scan_ms=settings.scan_ms, wake=wake)
        self._round_robin = RoundRobin(
            most=settings.concurrency,
            limit_of=self._limit_of,
            is_shared=lambda: len(routes.table.routes) + len(routes.endpoints) > 1,
        )
        self._gate = PushGate(
            routes,
            circuits,
            self._round_robin,
            settings.backoff,
            complete=complete,
        )
        self._in_flight: dict[int, InFlight] = {}  # by lane: one at a time
        self._inbox: deque[tuple[InFlight, PushResponse]] = deque()
        self._answered: deque[tuple[InFlight, PushResponse]] = deque()
        self._reports: list[OutcomeReport] = []
        self._is_stopping = False
        self._table: RouteTable | None = None
        self._endpoints: Mapping[int, DeliveryRoute] | None = None
        self._limits: dict[str, int | None] = {}
        self.on_wakeup = self._finder.on_wakeup  # for the store to call after commits

    @property
    def in_flight(self) -> int:
        """The number of requests that were sent and are not finished yet."""
        return len(self._in_flight)

    def stop_claiming(self) -> None:
        self._is_stopping = True

    def tick(self, now: int) -> int:
        """Returns when the next step is due, unless `wake` is called before.

        Raises PenstockError if the store fails; then the next step finishes what was answered.
        """
        self._round_robin.begin_step(now=now)
        self._finish(now)
        self._report()
        self._extend(now)
        if not self._is_stopping:
            self._find(now)
            self._push(now)
        return self._next_at(now)

    def _finish(self, now: int) -> None:
        while self._inbox:
            self._answered.append(self._inbox.popleft())
        if not self._answered:
            return
        verdicts = [self._verdict(one, response, now) for one, response in self._answered]
        answers = self._act([act for act, _ in verdicts])
        self._reports += [reported for _, reported in verdicts]
        gone: dict[int, DeliveryRoute] = {}
        for (act, _), answer in zip(verdicts, answers, strict=True):
            one, response = self._answered.popleft()
            del self._in_flight[one.lane]
            self._note(one, response, act.verb)
            self._return_lane(one.lane, answer)
            if response.status == GONE and one.queue_no in self._routes.endpoints:
                gone[one.queue_no] = one.route
        for queue_no, route in gone.items():
            with suppress(NotFound):  # the subscription was removed meanwhile
                self._routes.disable(queue_no, route).result()

    def _verdict(
        self, one: InFlight, response: PushResponse, now: int
    ) -> tuple[LeaseAct, OutcomeReport]:
        if response.is_broken_off:
            return act_on(one.message, Verb.RELEASE, now=now), one.report(None)
        status = None if response.status is None else one.route.status_of(response.status)
        outcome, is_done = outcome_of(
            status,
            one.delivery.retries,
            took_ms=response.took_ms,
            settings=self._circuits.settings_of(one.route.hash),
        )
        if is_done:
            act = act_on(one.message, Verb.COMPLETE, now=now, text=response_text(response))
        else:
            act = self._failure(one, response, now)
        return act, one.report(outcome)

    def _failure(self, one: InFlight, response: PushResponse, now: int) -> LeaseAct:
        wait_ms = delay_ms(
            self._settings.backoff,
            one.route.retry_intervals_ms,
            failures=one.message.failures + 1,
            retry_after=response.retry_after,
            now=now,
        )
        return act_on(
            one.message, Verb.FAIL, now=now, delay_ms=wait_ms, text=response_text(response)
        )

    def _note(self, one: InFlight, response: PushResponse, verb: Verb) -> None:
        if verb is Verb.RELEASE:
            return
        ended = PushResult.FAILURE
        if verb is Verb.COMPLETE:
            status = one.route.status_of(response.status or 0)
            ended = PushResult.SUCCESS if is_success(status) else PushResult.GIVEN_UP
        self._tally.note(one.route.pattern, ended, took_ms=response.took_ms)

    def _report(self) -> None:
        if self._reports:
            if self._circuits.is_watching:
                self._circuits.report(self._reports).result()
            self._reports = []

    def _extend(self, now: int) -> None:
        """Extend leases of requests in flight: an endpoint may take longer than one lease."""
        due = [one for one in self._in_flight.values() if one.extend_at <= now]
        if due:
            lease_ms = self._settings.lease_ms
            self._act([act_on(one.message, Verb.EXTEND, now=now, delay_ms=lease_ms) for one in due])
            for one in due:
                one.extend_at = now + self._settings.extend_ms

    def _find(self, now: int) -> None:
        self._round_robin.wake_parked(now=now)
        found = self._finder.find(now=now)
        for queue_no in found.woken:
            self._wake_queue(queue_no)
        endpoints = self._routes.endpoints
        for queue_no in found.scanned:
            if queue_no in endpoints:
                self._open_lane(queue_no)
        self._round_robin.add_scanned(no for no in found.scanned if no not in endpoints)

    def _wake_queue(self, queue_no: int) -> None:
        if not self._open_lane(queue_no):
            self._round_robin.wake(queue_no)

    def _open_lane(self, queue_no: int) -> bool:
        """Let one more lane of an endpoint's queue look for a message, if one is idle."""
        route = self._routes.endpoints.get(queue_no)
        if route is None:
            return False
        lane = idle_lane(queue_no, route.concurrency or 1, self._round_robin.is_busy)
        if lane is None:
            return False
        self._round_robin.wake(lane)
        return True

    def _push(self, now: int) -> None:
        heads = self._claim(self._round_robin.take(), now)
        if not heads:
            return
        try:
            admission = self._gate.admit(heads, now=now)
            for one in admission.admitted:
                self._begin(one, now)
            self._release(admission)
            self._reports += [one.report(None) for one in admission.dropped]
        except PenstockError:
            self._abandon(heads)
            raise

    def _abandon(self, heads: Sequence[Head]) -> None:
        """The store does not answer: the leases of messages that were not sent expire."""
        for lane, message, _ in heads:
            if lane not in self._in_flight and not self._round_robin.is_waiting(lane):
                self._round_robin.park(lane, message.due_at)

    def _claim(self, lanes: Sequence[int], now: int) -> list[Head]:
        """Claim the first message of each queue; the store batches the claims."""
        lease_ms, holder = self._settings.lease_ms, self._holder
        asked = self._store.claim_all(
            [
                Claim(queue_no=queue_of(lane), now=now, lease_ms=lease_ms, claimed_by=holder)
                for lane in lanes
            ]
        )
        heads: list[Head] = []
        for lane, ticket in zip(lanes, asked, strict=True):
            queue_no = queue_of(lane)
            try:
                claimed = ticket.result()
            except QueueNotFound:
                self._finder.forget(queue_no)
                self._round_robin.forget(lane)
            except PenstockError as error:
                _log.warning("queue %s could not be claimed from: %s", queue_no, error)
                self._round_robin.park(lane, now + _AFTER_ERROR_MS)
            else:
                for message, content in claimed.messages:
                    heads.append((lane, message, content))
                    self._open_lane(queue_no)
                self._drop_if_empty(lane, claimed, now)
        return heads

    def _drop_if_empty(self, lane: int, claimed: Claimed, now: int) -> None:
        if claimed.messages:
            return
        if claimed.next_due_at is None:
            self._round_robin.drop_idle(lane)
        else:
            self._round_robin.park(lane, max(claimed.next_due_at, now + 1))

    def _begin(self, one: InFlight, now: int) -> None:
        one.extend_at = now + self._settings.extend_ms
        self._in_flight[one.lane] = one

        def then(response: PushResponse) -> None:
            self._inbox.append((one, response))
            self._wake()

        try:
            self._sender.send(one.request, then)
        except Exception as error:  # without a response its queue would wait forever
            _log.exception("a request could not be sent")
            then(PushResponse(error=str(error)))

    def _release(self, admission: Admission) -> None:
        answers = self._act([act for _, act in admission.returned])
        for (lane, act), answer in zip(admission.returned, answers, strict=True):
            if act.verb is not Verb.RELEASE:
                self._return_lane(lane, answer)
            elif not self._round_robin.is_waiting(lane):
                self._round_robin.drop_idle(lane)  # it is held; its release wakes it

    def _return_lane(self, lane: int, answer: Acted | PenstockError) -> None:
        is_parallel = queue_of(lane) in self._routes.endpoints  # others do not wait for this one
        if isinstance(answer, Acted) and answer.state is State.WAITING and not is_parallel:
            self._round_robin.park(lane, answer.due_at)
        else:
            self._round_robin.put_behind(lane)

    def _act(self, acts: Sequence[LeaseAct]) -> list[Acted | PenstockError]:
        if not acts:
            return []
        answers = self._store.act(acts).result()
        for act, answer in zip(acts, answers, strict=True):
            if isinstance(answer, PenstockError):
                _log.warning("a delivery's %s was rejected: %s", act.verb, answer)
        return answers

    def _limit_of(self, pattern: str) -> int | None:
        table, endpoints = self._routes.table, self._routes.endpoints
        if table is not self._table or endpoints is not self._endpoints:
            routes = (*endpoints.values(), *table.routes)
            self._limits = {route.pattern: route.concurrency for route in routes}
            self._table, self._endpoints = table, endpoints
        return self._limits.get(pattern)

    def _next_at(self, now: int) -> int:
        instants = [one.extend_at for one in self._in_flight.values()]
        if self._is_stopping:
            return min(instants, default=now)
        if not self._round_robin.is_empty and self._round_robin.room:
            return now
        instants.append(self._finder.scan_at)
        parked = self._round_robin.next_instant()
        return min(instants) if parked is None else min(parked, *instants)
