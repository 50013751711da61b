"""One connection with the nouns of the port, and the batches that run on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import msgspec

from penstock.domain.errors import PenstockError
from penstock.domain.limits import DAY
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lease import FORGETTABLE, LeaseAct
from penstock.domain.store.store_time import MAX_CARRY_MS
from penstock.ports.store import Claim, Claimed, Sent
from penstock.store.commit.ticket import StoreTicket
from penstock.store.database import Database
from penstock.store.meta_names import HIGH_WATER
from penstock.store.nouns.archive import SqlArchive
from penstock.store.nouns.circuits import SqlCircuits
from penstock.store.nouns.deliveries import SqlDeliveries
from penstock.store.nouns.documents import SqlDocuments, SqlDuties
from penstock.store.nouns.facts import SqlFacts
from penstock.store.nouns.history import SqlHistory, SqlTidying
from penstock.store.nouns.logins import SqlLogins
from penstock.store.nouns.minute_counters import SqlSamples
from penstock.store.nouns.moves import SqlMoves
from penstock.store.nouns.overview import SqlWatching
from penstock.store.nouns.queues import SqlKeys, SqlMessages, SqlQueues
from penstock.store.nouns.restore import SqlRestoring
from penstock.store.nouns.schedules import SqlSchedules
from penstock.store.nouns.tags import SqlTagged
from penstock.store.nouns.topics import SqlTopics
from penstock.store.nouns.workers import SqlWorkers
from penstock.store.verbs.acts import Acts
from penstock.store.verbs.claims import Claims
from penstock.store.verbs.message_changes import Changes
from penstock.store.verbs.sends import Sends
from penstock.store.verbs.transaction_state import Books

SECRET = "receipt_secret"
HIGH_WATER_STEP_MS = 100  # a restart begins this much later, so that nothing is repeated


class Kind(IntEnum):
    """Also the order inside a batch: claims come last, so that they find what was just sent."""

    WRITE = 0
    SEND = 1
    ACT = 2
    CLAIM = 3


class Request:
    """Something to be done inside a transaction, and whom to tell."""

    __slots__ = ("asked_at", "kind", "payload", "ticket")

    def __init__(self, kind: Kind, payload: Any) -> None:
        self.kind = kind
        self.payload = payload
        self.asked_at: int | None = None  # when it was first seen waiting (store/commit/pending.py)
        self.ticket: StoreTicket[Any] = StoreTicket()

    @property
    def weight(self) -> int:
        """How many messages it is about, roughly."""
        match self.kind:
            case Kind.SEND | Kind.ACT:
                return len(self.payload)
            case Kind.CLAIM:
                claim: Claim = self.payload
                return claim.limit + len(claim.finishing)
            case Kind.WRITE:
                return 100

    @property
    def is_short(self) -> bool:
        """Done in well under a millisecond, apart from the disk."""
        return self.kind is not Kind.WRITE and self.weight <= 100

    @property
    def is_durable(self) -> bool:
        """Claims and extensions need not wait for the disk: losing one costs a redelivery."""
        if self.kind is Kind.CLAIM or self.kind is Kind.ACT:
            return any(act.verb not in FORGETTABLE for act in self.acts)
        return True

    @property
    def acts(self) -> Sequence[LeaseAct]:
        """The acts it asks for, alone or before a claim."""
        match self.kind:
            case Kind.ACT:
                acts: Sequence[LeaseAct] = self.payload
                return acts
            case Kind.CLAIM:
                claim: Claim = self.payload
                return claim.finishing
            case _:
                return ()


class SqlSession:
    def __init__(self, db: Database, *, stripe: int = 0, keeps_time: bool = True) -> None:
        self.db = db
        self.books = Books(db, stripe=stripe)
        changes = Changes(self.books)
        claims = Claims(self.books, changes)
        self._sends = Sends(self.books)
        self._acts = Acts(self.books, changes)
        self._claims = claims
        self._changes = changes
        self.queues = SqlQueues(self.books)
        self.messages = SqlMessages(self.books, changes, claims)
        self.history = SqlHistory(self.books)
        self.keys = SqlKeys(self.books)
        self.logins = SqlLogins(self.books)
        self.moves = SqlMoves(self.books, changes)
        self.workers = SqlWorkers(self.books)
        self.facts = SqlFacts(self.books)
        self.schedules = SqlSchedules(self.books)
        self.circuits = SqlCircuits(self.books)
        self.duties = SqlDuties(self.books)
        self.documents = SqlDocuments(self.books)
        self.deliveries = SqlDeliveries(self.books)
        self.archive = SqlArchive(self.books)
        self.restoring = SqlRestoring(self.books)
        self.tidying = SqlTidying(self.books, claims)
        self.tagged = SqlTagged(self.books, changes, claims)
        self.topics = SqlTopics(self.books, changes, self._sends)
        self.minute_counters = SqlSamples(self.books)
        self.watching = SqlWatching(self.books, self.queues)
        self._high_water = 0
        self._keeps_time = keeps_time

    def run(self, requests: Sequence[Request], *, durable: bool) -> list[Any]:
        """One transaction for all, answers in the same order; if it raises, nothing is kept."""
        answers = self.prepare(requests, durable=durable)
        self.finish()
        return answers

    def prepare(self, requests: Sequence[Request], *, durable: bool) -> list[Any]:
        """Everything but the commit: the answers are good only after `finish`."""
        self.db.begin(durable=durable)
        try:
            self.books.open()
            self._changes.open()
            answers = self._run_all(requests)
            if self._keeps_time:
                self._keep_high_water(requests)
            self.books.close()
        except BaseException:
            self.books.partitions.forget()
            self.db.rollback()
            raise
        return answers

    def finish(self) -> None:
        try:
            self.db.commit()
        except BaseException:
            self.db.rollback()
            raise
        self.books.partitions.keep()

    def send(
        self, new: Sequence[NewMessage], *, before: str | None = None
    ) -> list[Sent | PenstockError]:
        self._sends.lock(new, before=before)
        return self._sends.send(new)

    def read(self, what: Callable[[SqlSession], Any]) -> Any:
        """A consistent view over several queries, nothing written."""
        self.db.begin(durable=False)
        try:
            self.books.open()
            return what(self)
        finally:
            self.db.rollback()

    def _run_all(self, requests: Sequence[Request]) -> list[Any]:
        answers: list[Any] = [None] * len(requests)
        places: dict[Kind, list[int]] = {}
        for i, request in enumerate(requests):
            places.setdefault(request.kind, []).append(i)
        for i in places.get(Kind.WRITE, ()):
            answers[i] = requests[i].payload(self)
        given = self._lock_first(requests) if self.db.is_shared else None
        sends = [(i, requests[i].payload) for i in places.get(Kind.SEND, ())]
        for i, answer in _merged(sends, self._sends.send):
            answers[i] = answer
        claims = places.get(Kind.CLAIM, ())
        acts = [(i, requests[i].payload) for i in places.get(Kind.ACT, ())]
        acts += [(i, requests[i].payload.finishing) for i in claims if requests[i].acts]
        if given:
            self._acts.lock_messages([act for _, part in acts for act in part], given)
        for i, answer in _merged(acts, self._acts.act):
            answers[i] = answer
        if claims:
            found = self._claims.claim([requests[i].payload for i in claims])
            for i, claimed in zip(claims, found, strict=True):
                if answers[i] is not None and isinstance(claimed, Claimed):
                    claimed = msgspec.structs.replace(claimed, finished=answers[i])
                answers[i] = claimed
        return answers

    def _lock_first(self, requests: Sequence[Request]) -> set[tuple[int, int]]:
        """What everybody locks in one order, and all at once, nobody can wait for crosswise.

        The order is told in store/verbs/lock_order.py.  Returns which messages are given again.
        """
        latest = max(map(_instant, requests))
        if latest:
            self.books.partitions.ensure(latest // DAY)
        new = [n for request in requests if request.kind is Kind.SEND for n in request.payload]
        acts = [act for request in requests for act in request.acts]
        claims = [request.payload for request in requests if request.kind is Kind.CLAIM]
        nos = {n.message.queue_no for n in new} | {claim.queue_no for claim in claims}
        if not self._keeps_time:
            # A session for one transaction knows nothing of the queues, and cannot begin again.
            self.books.load_queues(nos | {act.lease.queue_no for act in acts})
        self.books.ask_queues(nos | self._acts.queues(acts))
        given = self._claims.lock_keys(claims)
        groups = self._sends.groups(new) | self._acts.groups(acts, given)
        if self.books.steered:
            self.books.lock_lines(nos | self._acts.lines(acts))
        self.books.lock_groups(groups)
        return given

    def _keep_high_water(self, requests: Sequence[Request]) -> None:
        """The latest instant seen, so that a restart with a clock set back does not go back."""
        latest = max(map(_instant, requests))
        # Nodes that share a database go by its clock; they need not queue up for this one row.
        step_ms = 10 * HIGH_WATER_STEP_MS if self.db.is_shared else HIGH_WATER_STEP_MS
        is_set_back = 0 < latest < self._high_water - MAX_CARRY_MS
        if latest >= self._high_water + step_ms or is_set_back:
            self.db.post("meta.raise", {"name": HIGH_WATER, "value": str(latest)})
            self._high_water = latest


def _merged(
    asked: Sequence[tuple[int, Sequence[Any]]], do: Callable[[list[Any]], list[Any]]
) -> list[tuple[int, list[Any]]]:
    """Do what several requests ask for as one, and give each its part of the answers."""
    everything = [part for _, parts in asked for part in parts]
    found = do(everything) if everything else []
    shares, start = [], 0
    for i, parts in asked:
        end = start + len(parts)
        shares.append((i, found[start:end]))
        start = end
    return shares


def _instant(request: Request) -> int:
    payload = request.payload
    match request.kind:
        case Kind.CLAIM:
            claim: Claim = payload
            return claim.now
        case Kind.SEND if payload:
            new: NewMessage = payload[-1]
            return new.message.sent_at
        case Kind.ACT if payload:
            act: LeaseAct = payload[-1]
            return act.now
        case _:
            return 0
