"""A connection with the entities of the store port; runs batches of requests on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from penstock.domain.errors import PenstockError, StoreUnavailable
from penstock.domain.limits import DAY
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lease import LeaseAct
from penstock.domain.store.store_time import MAX_CARRY_MS
from penstock.ports.store import Claim, Claimed, Sent, Session
from penstock.store.commit.requests import RequestKind, StoreRequest
from penstock.store.database import Collision, Database, RowsChanged
from penstock.store.entities.access import SqlKeys, SqlLogins
from penstock.store.entities.archive import SqlArchive, SqlRestoring
from penstock.store.entities.attempt_logs import SqlAttemptLogs
from penstock.store.entities.circuits import SqlCircuits, SqlDeliveries
from penstock.store.entities.documents import SqlDocuments, SqlDuties, SqlFacts
from penstock.store.entities.flows import SqlFlows
from penstock.store.entities.history import SqlHistory, SqlMaintenance
from penstock.store.entities.moves import SqlMoves
from penstock.store.entities.overview import SqlMinuteCounters, SqlOverview
from penstock.store.entities.queues import SqlMessages, SqlQueues
from penstock.store.entities.results import SqlResults
from penstock.store.entities.schedules import SqlSchedules
from penstock.store.entities.steps import SqlSignals, SqlSteps
from penstock.store.entities.tags import SqlTagged
from penstock.store.entities.topics import SqlTopics
from penstock.store.entities.workers import SqlWorkers
from penstock.store.meta_names import CLOCK_MARK
from penstock.store.verbs.acts import LeaseActs
from penstock.store.verbs.claims import Claims
from penstock.store.verbs.counter_rows import CounterRows, FixedRow
from penstock.store.verbs.flow_endings import FlowEndings
from penstock.store.verbs.flow_releases import FlowReleases
from penstock.store.verbs.message_changes import MessageChanges
from penstock.store.verbs.sends import Sends
from penstock.store.verbs.transaction_state import TransactionState

SECRET = "receipt_secret"
MAX_COLLISIONS = 5
MAX_ROW_CHANGES = 1_000  # retries; each means that another transaction made progress
CLOCK_MARK_STEP_MS = 100  # a restart continues this much later, so that no instant occurs twice


class SqlSession(Session):
    def __init__(
        self,
        db: Database,
        *,
        counter_rows: CounterRows | None = None,
        keeps_time: bool = True,
    ) -> None:
        self.db = db
        self.transaction = TransactionState(db, counter_rows=counter_rows or FixedRow(0))
        self.transaction.can_start_over = keeps_time
        self._sends = Sends(self.transaction)
        releases = FlowReleases(self.transaction, self._sends)
        self._flow_endings = FlowEndings(self.transaction, releases)
        changes = MessageChanges(self.transaction, self._flow_endings)
        claims = Claims(self.transaction, changes, self._flow_endings)
        self._acts = LeaseActs(self.transaction, changes, self._flow_endings)
        self._claims = claims
        self._changes = changes
        self.queues = SqlQueues(self.transaction)
        self.flows = SqlFlows(self.transaction, changes, self._flow_endings, releases, self._sends)
        self.messages = SqlMessages(self.transaction, changes, claims, self.flows)
        self.history = SqlHistory(self.transaction)
        self.attempt_logs = SqlAttemptLogs(self.transaction)
        self.results = SqlResults(self.transaction)
        self.keys = SqlKeys(self.transaction)
        self.logins = SqlLogins(self.transaction)
        self.moves = SqlMoves(self.transaction, changes)
        self.workers = SqlWorkers(self.transaction)
        self.facts = SqlFacts(self.transaction)
        self.schedules = SqlSchedules(self.transaction)
        self.circuits = SqlCircuits(self.transaction)
        self.duties = SqlDuties(self.transaction)
        self.documents = SqlDocuments(self.transaction)
        self.deliveries = SqlDeliveries(self.transaction)
        self.archive = SqlArchive(self.transaction)
        self.restoring = SqlRestoring(self.transaction)
        self.maintenance = SqlMaintenance(self.transaction, claims)
        self.steps = SqlSteps(self.transaction)
        self.signals = SqlSignals(self.transaction, changes, claims)
        self.tagged = SqlTagged(self.transaction, changes, claims)
        self.topics = SqlTopics(self.transaction, changes, self._sends)
        self.minute_counters = SqlMinuteCounters(self.transaction)
        self.overview = SqlOverview(self.transaction, self.queues)
        self._clock_mark = 0
        self._keeps_time = keeps_time

    def run(self, requests: Sequence[StoreRequest], *, durable: bool) -> list[Any]:
        """Run all in one transaction; answers in the same order.  If it raises, nothing is kept.

        Retries after a collision with another transaction.
        """
        collisions = changes = 0
        while collisions < MAX_COLLISIONS and changes < MAX_ROW_CHANGES:
            if collisions:
                self.db.back_off(collisions)
            try:
                answers = self.prepare(requests, durable=durable)
                self.finish()
                return answers
            except RowsChanged as error:
                changes += 1
                collision: Collision = error
            except Collision as error:
                collisions += 1
                collision = error
        if len(requests) > 1:
            raise collision
        raise StoreUnavailable(
            f"too many collisions with other transactions: {collision}"
        ) from collision

    def prepare(self, requests: Sequence[StoreRequest], *, durable: bool) -> list[Any]:
        """Run everything but the commit: the answers are valid only after `finish`."""
        self.db.begin(durable=durable)
        try:
            self.transaction.open()
            if self._changes.has_unsaved:  # of a transaction that failed
                self._changes.reset()
            self._flow_endings.reset()
            answers = self._run_all(requests)
            if self._keeps_time:
                self._save_clock_mark(requests)
            self.transaction.close()
        except BaseException:
            self.transaction.partitions.forget()
            self.db.rollback()
            raise
        return answers

    def finish(self) -> None:
        try:
            self.db.commit()
        except BaseException:
            self.db.rollback()
            raise
        self.transaction.partitions.keep()
        self.transaction.committed()

    def send(
        self, new: Sequence[NewMessage], *, before: str | None = None
    ) -> list[Sent | PenstockError]:
        self._sends.lock(new, before=before)
        return self._sends.send(new)

    def read(self, what: Callable[[SqlSession], Any]) -> Any:
        """Run several queries on one consistent snapshot; nothing is written."""
        self.db.begin(durable=False)
        try:
            self.transaction.open()
            return what(self)
        finally:
            self.db.rollback()

    def _run_all(self, requests: Sequence[StoreRequest]) -> list[Any]:
        answers: list[Any] = [None] * len(requests)
        places: dict[RequestKind, list[int]] = {}
        for i, request in enumerate(requests):
            places.setdefault(request.kind, []).append(i)
        if self.transaction.first_groups or self.transaction.first_queues:
            self.transaction.lock_first()
        for i in places.get(RequestKind.WRITE, ()):
            answers[i] = requests[i].payload(self)
        given = self._lock_first(requests) if self.db.is_shared else None
        sends = [(i, requests[i].payload) for i in places.get(RequestKind.SEND, ())]
        for i, answer in _run_merged(sends, self._sends.send):
            answers[i] = answer
        claims = places.get(RequestKind.CLAIM, ())
        acts = [(i, requests[i].payload) for i in places.get(RequestKind.ACT, ())]
        acts += [(i, requests[i].payload.finishing) for i in claims if requests[i].acts]
        if given:
            self._acts.lock_messages([act for _, part in acts for act in part], given)
        for i, answer in _run_merged(acts, self._acts.act):
            answers[i] = answer
        if claims:
            found = self._claims.claim([requests[i].payload for i in claims])
            for i, claimed in zip(claims, found, strict=True):
                if answers[i] is not None and isinstance(claimed, Claimed):
                    claimed = msgspec.structs.replace(claimed, finished=answers[i])
                answers[i] = claimed
        return answers

    def _lock_first(self, requests: Sequence[StoreRequest]) -> set[tuple[int, int]]:
        """Take the locks of a batch in the order that prevents deadlocks.

        See store/verbs/lock_order.py.  Returns queue and number of each message that a repeated
        claim will return again.
        """
        acts = [act for request in requests for act in request.acts]
        if signals := self._acts.signals(acts):
            self.transaction.lock_signals(signals)
        latest = max(map(_instant_of, requests))
        if latest:
            self.transaction.partitions.ensure(latest // DAY)
        new = [
            n for request in requests if request.kind is RequestKind.SEND for n in request.payload
        ]
        claims = [request.payload for request in requests if request.kind is RequestKind.CLAIM]
        nos = {n.message.queue_no for n in new} | {claim.queue_no for claim in claims}
        if not self._keeps_time:
            # A session for one transaction has no queues cached and cannot start over.
            self.transaction.load_queues(nos | {act.lease.queue_no for act in acts})
        self.transaction.ask_queues(nos | self._acts.queues(acts))
        given = self._claims.lock_keys(claims)
        groups = self._sends.groups(new) | self._acts.groups(acts, given)
        if self.transaction.limited_queues:
            self.transaction.lock_queues(nos | self._acts.queues_to_lock(acts))
        self.transaction.lock_groups(groups)
        return given

    def _save_clock_mark(self, requests: Sequence[StoreRequest]) -> None:
        """Store the latest instant, so that time does not go backwards after a restart."""
        latest = max(map(_instant_of, requests))
        # Nodes that share a database use its clock and should rarely contend for this row.
        step_ms = 10 * CLOCK_MARK_STEP_MS if self.db.is_shared else CLOCK_MARK_STEP_MS
        is_set_back = 0 < latest < self._clock_mark - MAX_CARRY_MS
        if latest >= self._clock_mark + step_ms or is_set_back:
            self.db.post("meta.raise", {"name": CLOCK_MARK, "value": str(latest)})
            self._clock_mark = latest


def _run_merged(
    asked: Sequence[tuple[int, Sequence[Any]]], do: Callable[[list[Any]], list[Any]]
) -> list[tuple[int, list[Any]]]:
    """Run the parts of several requests as one; returns the answers by request."""
    everything = [part for _, parts in asked for part in parts]
    found = do(everything) if everything else []
    shares, start = [], 0
    for i, parts in asked:
        end = start + len(parts)
        shares.append((i, found[start:end]))
        start = end
    return shares


def _instant_of(request: StoreRequest) -> int:
    payload = request.payload
    match request.kind:
        case RequestKind.CLAIM:
            claim: Claim = payload
            return claim.now
        case RequestKind.SEND if payload:
            new: NewMessage = payload[-1]
            return new.message.sent_at
        case RequestKind.ACT if payload:
            act: LeaseAct = payload[-1]
            return act.now
        case _:
            return 0
