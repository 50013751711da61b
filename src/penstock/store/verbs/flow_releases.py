"""Members of flows become messages in their queues, when they are created or when they may run.

Where several nodes write, the groups and queues that they enter should have been locked before the
messages that ended.  Which ones is known only now, so a lock that is missing is tried without
waiting; if that fails, the transaction starts over and takes it first (lock_order.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import astuple, replace

from penstock.domain.errors import InvalidRequest, QueueNotFound, TooLarge
from penstock.domain.flow.inputs import sources
from penstock.domain.flow.member import QUEUE_REMOVED, Member, MemberState
from penstock.domain.flow.release import StoredDraft, from_text, reason_of, release
from penstock.domain.limits import DAY
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lifecycle import Message, State
from penstock.store.database import Row, RowsChanged, stored_value
from penstock.store.limits.arrivals import Arrivals
from penstock.store.verbs.sends import Sends
from penstock.store.verbs.transaction_state import TransactionState, json_list

Planned = tuple[Member, StoredDraft]


class FlowReleases:
    def __init__(self, transaction: TransactionState, sends: Sends) -> None:
        self._transaction = transaction
        self._sends = sends
        self._arrivals = Arrivals(transaction)
        self._db = transaction.db

    def release(self, members: Sequence[Member], *, now: int) -> list[Member]:
        """Send blocked members; returns those that cannot be sent, as they have ended instead."""
        nos = json_list(sorted(m.message_no for m in members))
        drafts = {
            no: from_text(text) for no, text in self._db.rows("flows.drafts", {"message_nos": nos})
        }
        refused = self.send([(m, drafts[m.message_no]) for m in members], now=now)
        gone = {m.message_no for m in refused}
        sent = [m.message_no for m in members if m.message_no not in gone]
        if sent:
            self._db.post("flows.released", {"message_nos": json_list(sent)})
        return refused

    def send(self, planned: Sequence[Planned], *, now: int) -> list[Member]:
        """Insert them as messages, in this order; returns those that cannot be sent."""
        self._transaction.load_queues({member.queue_no for member, _ in planned})
        results = self._results(stored for _, stored in planned)
        new: dict[int, NewMessage] = {}
        refused: list[Member] = []
        for member, stored in planned:
            try:
                new[member.message_no] = self._new(member, stored, results, now)
            except QueueNotFound:
                ended = member.ended(MemberState.CANCELLED, now=now, reason=QUEUE_REMOVED)
                refused.append(ended)
            except (InvalidRequest, TooLarge) as error:
                ended = member.ended(MemberState.CANCELLED, now=now, reason=reason_of(error))
                refused.append(ended)
        if new:
            self._insert(new, now)
        return refused

    def _new(
        self, member: Member, stored: StoredDraft, results: dict[int, str | None], now: int
    ) -> NewMessage:
        return release(
            stored,
            self._transaction.queue(member.queue_no),
            now=now,
            message_id=member.id,
            flow_no=member.flow_no,
            results=results,
        )

    def _results(self, drafts: Iterable[StoredDraft]) -> dict[int, str | None]:
        wanted = {no for stored in drafts for no in sources(stored.inputs)}
        if not wanted:
            return {}
        params = {"message_nos": json_list(sorted(wanted))}
        return dict(self._db.rows("flows.results", params))

    def _insert(self, new: Mapping[int, NewMessage], now: int) -> None:
        self._lock(list(new.values()))
        transaction = self._transaction
        blocked = self._sends.find_blocked(list(new.values()), [None] * len(new))
        places = transaction.take_numbers(len(new))
        limited = transaction.limited_queues
        placed = self._arrivals.place(
            {no: n.message for no, n in new.items() if n.message.queue_no in limited}
        )
        rows: list[Row] = []
        bodies: list[Row] = []
        for (no, n), order_no, is_blocked in zip(new.items(), places, blocked, strict=True):
            m = placed.get(no, n.message)
            if is_blocked:
                m = replace(m, is_blocked=True)
            rows.append(_row(m, no, order_no))
            attributes = n.content.attributes
            text = msgspec.json.encode(attributes).decode() if attributes else None
            bodies.append((no, n.content.body, text, n.content.trace))
            count = transaction.count(m.queue_no)
            count.sent_total += 1
            transaction.count_state(m.queue_no, m.state, +1)
            transaction.wake(m.queue_no, 1 if m.state is State.READY else 0)
        self._db.insert("flows.add_messages", rows)
        day = transaction.partitions.ensure(now // DAY)
        self._db.insert("messages.add_bodies", bodies, day=day)

    def _lock(self, new: Sequence[NewMessage]) -> None:
        """Lock the groups and queues that they enter; raises RowsChanged to take them first."""
        transaction = self._transaction
        if not self._db.is_shared:
            return
        queue_nos = {n.message.queue_no for n in new}
        groups = self._sends.groups(new)
        if not transaction.can_start_over:  # the caller's own transaction
            transaction.lock_queues(queue_nos)
            transaction.lock_groups(groups)
            return
        queues = {no for no in queue_nos if not transaction.try_lock_queue(no)}
        missing = transaction.missing_groups(groups)
        missing -= transaction.try_lock_groups(missing)
        if queues or missing:
            transaction.take_first(queues, missing)
            raise RowsChanged("members enter a queue or a group that is locked")


def _row(message: Message, message_no: int, order_no: int) -> Row:
    stored = replace(message, message_no=message_no, order_no=order_no)
    return tuple(map(stored_value, astuple(stored)))
