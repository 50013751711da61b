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
from collections.abc import Callable, Sequence

import msgspec

from penstock.domain.circuit.circuit import OutcomeReport, is_success, outcome_of
from penstock.domain.delivery.route import RouteTable
from penstock.domain.errors import PenstockError, QueueNotFound
from penstock.domain.message.lease import LeaseAct, Verb
from penstock.domain.message.lifecycle import Content, Message, State
from penstock.ports.sender import PushResponse, Sender
from penstock.ports.store import Acted, Claim, Claimed, Store
from penstock.runtime.pusher.finder import QueueFinder
from penstock.runtime.pusher.gate import Admission, PushGate
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
    ) -> None:
        """`wake` is called, from any thread, when a step has something to do."""
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
            is_shared=lambda: len(routes.table.routes) > 1,
        )
        self._gate = PushGate(routes, circuits, self._round_robin, settings.backoff)
        self._in_flight: dict[int, InFlight] = {}  # by queue: one at a time
        self._inbox: deque[tuple[InFlight, PushResponse]] = deque()
        self._answered: list[tuple[InFlight, PushResponse]] = []
        self._reports: list[OutcomeReport] = []
        self._is_stopping = False
        self._table: RouteTable | None = None
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
        for (one, response), (act, _), answer in zip(
            self._answered, verdicts, answers, strict=True
        ):
            del self._in_flight[one.queue_no]
            self._note(one, response, act.verb)
            self._return_queue(one.queue_no, answer)
        self._answered = []

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
            self._round_robin.wake(queue_no)
        self._round_robin.add_scanned(found.scanned)

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
            self._abandon([message for message, _ in heads])
            raise

    def _abandon(self, messages: Sequence[Message]) -> None:
        """The store does not answer: the leases of messages that were not sent expire."""
        for message in messages:
            queue_no = message.queue_no
            if queue_no not in self._in_flight and not self._round_robin.is_waiting(queue_no):
                self._round_robin.park(queue_no, message.due_at)

    def _claim(self, queue_nos: Sequence[int], now: int) -> list[tuple[Message, Content]]:
        """Claim the first message of each queue; the store batches the claims."""
        lease_ms, holder = self._settings.lease_ms, self._holder
        asked = self._store.claim_all(
            [
                Claim(queue_no=queue_no, now=now, lease_ms=lease_ms, claimed_by=holder)
                for queue_no in queue_nos
            ]
        )
        heads: list[tuple[Message, Content]] = []
        for queue_no, ticket in zip(queue_nos, asked, strict=True):
            try:
                claimed = ticket.result()
            except QueueNotFound:
                self._finder.forget(queue_no)
                self._round_robin.forget(queue_no)
            except PenstockError as error:
                _log.warning("queue %s could not be claimed from: %s", queue_no, error)
                self._round_robin.park(queue_no, now + _AFTER_ERROR_MS)
            else:
                heads += claimed.messages
                self._drop_if_empty(queue_no, claimed, now)
        return heads

    def _drop_if_empty(self, queue_no: int, claimed: Claimed, now: int) -> None:
        if claimed.messages:
            return
        if claimed.next_due_at is None:
            self._round_robin.drop_idle(queue_no)
        else:
            self._round_robin.park(queue_no, max(claimed.next_due_at, now + 1))

    def _begin(self, one: InFlight, now: int) -> None:
        one.extend_at = now + self._settings.extend_ms
        self._in_flight[one.queue_no] = one

        def then(response: PushResponse) -> None:
            self._inbox.append((one, response))
            self._wake()

        try:
            self._sender.send(one.request, then)
        except Exception as error:  # without a response its queue would wait forever
            _log.exception("a request could not be sent")
            then(PushResponse(error=str(error)))

    def _release(self, admission: Admission) -> None:
        for act, answer in zip(admission.returned, self._act(admission.returned), strict=True):
            queue_no = act.lease.queue_no
            if act.verb is not Verb.RELEASE:
                self._return_queue(queue_no, answer)
            elif not self._round_robin.is_waiting(queue_no):
                self._round_robin.drop_idle(queue_no)  # it is held; its release wakes it

    def _return_queue(self, queue_no: int, answer: Acted | PenstockError) -> None:
        if isinstance(answer, Acted) and answer.state is State.WAITING:
            self._round_robin.park(queue_no, answer.due_at)
        else:
            self._round_robin.put_behind(queue_no)

    def _act(self, acts: Sequence[LeaseAct]) -> list[Acted | PenstockError]:
        if not acts:
            return []
        answers = self._store.act(acts).result()
        for act, answer in zip(acts, answers, strict=True):
            if isinstance(answer, PenstockError):
                _log.warning("a delivery's %s was rejected: %s", act.verb, answer)
        return answers

    def _limit_of(self, pattern: str) -> int | None:
        table = self._routes.table
        if table is not self._table:
            self._limits = {route.pattern: route.concurrency for route in table.routes}
            self._table = table
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
