"""Flows: creation, look-ups, and what operators do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.domain.errors import FlowNotFound, MessageNotFound, WrongState
from penstock.domain.flow import flow as flows
from penstock.domain.flow import release
from penstock.domain.flow.flow import Flow
from penstock.domain.flow.member import (
    FLOW_CANCELLED,
    NOT_SENT,
    Member,
    MemberState,
)
from penstock.domain.flow.plan import FlowKey
from penstock.domain.limits import DAY, Limits
from penstock.domain.message import lifecycle
from penstock.domain.message.lifecycle import QUEUED, Content, Message, State
from penstock.domain.queue.queue import Queue
from penstock.ports.flows import BlockedMessage, NewMember
from penstock.store.database import Row
from penstock.store.entities.flow_lookups import LAST, FlowLookups
from penstock.store.verbs.flow_creation import FlowCreation
from penstock.store.verbs.flow_endings import FlowEndings
from penstock.store.verbs.flow_releases import FlowReleases
from penstock.store.verbs.flow_rows import flow_of, member_of
from penstock.store.verbs.flow_step import FlowEvent, FlowStep
from penstock.store.verbs.lock_order import LockOrder
from penstock.store.verbs.message_changes import MessageChanges
from penstock.store.verbs.sends import Sends
from penstock.store.verbs.transaction_state import TransactionState, json_list, message_of
from penstock.store.verbs.transfers import Transfers

_STATES = {MemberState.BLOCKED: State.WAITING, MemberState.DONE: State.DONE}


class SqlFlows(FlowLookups):
    def __init__(
        self,
        transaction: TransactionState,
        changes: MessageChanges,
        endings: FlowEndings,
        releases: FlowReleases,
        sends: Sends,
    ) -> None:
        super().__init__(transaction)
        self._changes = changes
        self._endings = endings
        self._releases = releases
        self._creation = FlowCreation(transaction, releases, sends)
        self._lock_order = LockOrder(transaction)
        self._transfers = Transfers(transaction, changes)

    # --- create and add ---

    def create(
        self,
        flow_id: str,
        name: str,
        new: Sequence[NewMember],
        *,
        is_open: bool,
        key: FlowKey | None = None,
        created_by: str | None = None,
        limits: Limits,
        now: int,
    ) -> Flow:
        self._creation.lock(new, now=now)
        first = None if key is None else self._flow_with(name, key, now=now)
        if first is not None:
            return first
        params: dict[str, Any] = {"id": flow_id, "name": name, "queues": "[]", "now": now}
        params |= {"is_open": int(is_open), "created_by": created_by}
        flow = flow_of(self._db.rows("flows.add", params)[0])
        if key is not None:
            taken = {"name": name, "dedup_key": key.dedup_key, "flow_no": flow.flow_no}
            self._db.run("flows.take_key", taken | {"taken_until": now + key.window_ms})
        return self._creation.add(flow, new, limits=limits, now=now, is_new=True)

    def add(self, flow_id: str, new: Sequence[NewMember], *, limits: Limits, now: int) -> Flow:
        self._creation.lock(new, now=now)
        return self._creation.add(self._locked(flow_id), new, limits=limits, now=now)

    # --- look up ---

    def member(self, flow: Flow, name_or_id: str) -> Member:
        [no] = self._creation.numbers_of(flow, [name_or_id]).values() or [None]
        if no is None:
            raise MessageNotFound(name_or_id)
        [row] = self._db.rows("flows.members", {"message_nos": json_list([no])})
        return member_of(row)

    def unsent(self, message_id: str) -> BlockedMessage | None:
        rows = self._db.rows("flows.member_of_id", {"id": message_id})
        if not rows:
            return None
        member = member_of(rows[0])
        params = {"message_nos": json_list([member.message_no])}
        drafts = self._db.rows("flows.drafts", params)
        if not drafts:
            return None
        draft = release.from_text(drafts[0][1]).draft
        content = Content(draft.body, draft.attributes, draft.trace)
        return BlockedMessage(member, as_message(member), content)

    # --- operators ---

    def close(self, flow_id: str, *, now: int) -> Flow:
        return self._change(self._locked(flow_id), lambda f: flows.closed(f, now=now), now=now)

    def cancel(self, flow_id: str, *, reason: str | None, now: int) -> Flow:
        if self._db.is_shared:
            self._transaction.partitions.ensure(now // DAY)  # callbacks may be sent
        flow = self._locked(flow_id)
        cancelled = flows.cancelled(flow, now=now)  # raises if it has ended
        params = {"flow_no": flow.flow_no, "reason": reason or FLOW_CANCELLED, "now": now}
        count = len(self._db.rows("flows.cancel_blocked", params))
        moved = flows.moved(cancelled, MemberState.BLOCKED, MemberState.CANCELLED, count)
        return self._change(flow, lambda _: flows.settled(moved, now=now), now=now)

    def cancel_some(self, flow_no: int, *, reason: str | None, limit: int, now: int) -> int:
        kept = reason or FLOW_CANCELLED
        found = self.members(flow_no, state=MemberState.RELEASED, after_no=0, limit=limit)
        members = [m for m in found if not m.is_callback]  # `on_finish` runs when they have ended
        for before in self._lock_messages(members, now=now):
            if before.state in lifecycle.LIVE:
                after = lifecycle.cancel(before, reason=kept, is_running_ok=True)
                self._changes.note(before, after, now=now)
        self._changes.save()
        self._end_lost(flow_no, members, reason=kept, now=now)
        return len(members)

    def redrive_some(self, flow_no: int, *, after_no: int, limit: int, now: int) -> tuple[int, int]:
        members = self.members(flow_no, state=MemberState.DEAD, after_no=after_no, limit=limit)
        found = [m for m in self._lock_messages(members, now=now) if _can_be_redriven(m)]
        self._transfers.bring(found, to=None, now=now)
        return (members[-1].message_no if members else 0), len(found)

    def retry(self, flow_no: int, *, message_nos: Sequence[int] | None, now: int) -> int:
        if self._db.is_shared:
            self._transaction.partitions.ensure(now // DAY)
        [flow] = self._endings.lock([flow_no]).values()
        step = FlowStep(self._transaction, self._releases, {flow_no: flow}, now=now)
        members = self.members(flow_no, state=MemberState.CANCELLED, after_no=0, limit=LAST)
        again = [m for m in members if m.reason in NOT_SENT and not m.is_callback]
        if message_nos is not None:
            again = [m for m in again if m.message_no in message_nos]
        step.retry(again)
        step.finish()
        tried = step.members(m.message_no for m in again).values()
        return sum(m.state is not MemberState.CANCELLED for m in tried)

    def change_blocked(
        self, message_id: str, change: Callable[[Message, Queue], Message], *, now: int
    ) -> Message:
        """An operator's change of a member that is not in its queue; raises MessageNotFound."""
        rows = self._db.rows("flows.member_of_id", {"id": message_id})
        if not rows:
            raise MessageNotFound(message_id)
        member = member_of(rows[0])
        if self._db.is_shared:
            self._transaction.partitions.ensure(now // DAY)
        self._transaction.load_queues({member.queue_no})
        locked = self._endings.lock([member.flow_no])
        step = FlowStep(self._transaction, self._releases, locked, now=now)
        member = step.members([member.message_no]).get(member.message_no, member)
        if member.state is not MemberState.BLOCKED:
            raise MessageNotFound(message_id)
        before = as_message(member)
        after = change(before, self._transaction.queue(member.queue_no))
        if after.state is State.CANCELLED:
            step.end_blocked(member, MemberState.CANCELLED, reason=after.reason)
        elif after.state is State.DONE:
            step.end_blocked(member, MemberState.DONE, reason=after.reason)
        else:
            raise WrongState(f"message {message_id} waits for its parents in a flow")
        step.finish()
        return after

    def forget(self, *, before_at: int, limit: int) -> int:
        rows = self._db.rows("flows.old", {"before_at": before_at, "limit": 1})
        if not rows:
            return 0
        [(flow_no,)] = rows
        found = self._db.rows("flows.old_members", {"flow_no": flow_no, "limit": limit})
        nos = json_list([no for (no,) in found])
        self._db.run("flows.forget_edges", {"message_nos": nos})
        self._db.run("flows.forget_members", {"message_nos": nos})
        if len(found) < limit:
            self._db.run("flows.forget_key", {"flow_no": flow_no})
            self._db.run("flows.forget", {"flow_no": flow_no})
        return max(1, len(found))

    # --- parts ---

    def _flow_with(self, name: str, key: FlowKey, *, now: int) -> Flow | None:
        """The flow that has the key, unless the key is free again."""
        params = {"name": name, "dedup_key": key.dedup_key}
        [(flow_no, taken_until)] = self._db.rows("flows.lock_key", params)
        rows = self._db.rows("flows.by_no", {"flow_no": flow_no}) if flow_no else []
        found = next(map(flow_of, rows), None)
        is_taken = found is not None and (not found.has_ended or now < taken_until)
        return found if is_taken else None

    def _locked(self, flow_id: str) -> Flow:
        rows = self._db.rows("flows.no_of", {"id": flow_id})
        locked = self._endings.lock([no for (no,) in rows])
        if not locked:
            raise FlowNotFound(flow_id)
        return next(iter(locked.values()))

    def _change(self, flow: Flow, how: Callable[[Flow], Flow], *, now: int) -> Flow:
        step = FlowStep(self._transaction, self._releases, {flow.flow_no: flow}, now=now)
        step.flows[flow.flow_no] = how(flow)
        step.finish()
        return step.flows[flow.flow_no]

    def _end_lost(self, flow_no: int, members: Sequence[Member], *, reason: str, now: int) -> None:
        """Members whose message is gone without a trace, as after damage to the store."""
        lost = self._without_message(members)
        if not lost:
            return
        step = FlowStep(self._transaction, self._releases, self._endings.lock([flow_no]), now=now)
        # Another transaction may have ended them until the flow was locked.
        still = [m for m in step.members(lost).values() if m.state is MemberState.RELEASED]
        nos = self._without_message(still)
        step.apply([FlowEvent(no, flow_no, MemberState.CANCELLED, reason) for no in nos])
        step.finish()

    def _without_message(self, members: Sequence[Member]) -> list[int]:
        nos = {m.message_no for m in members}
        params = {"message_nos": json_list(sorted(nos))}
        rows = self._db.rows("messages.by_numbers", params) if nos else []
        return sorted(nos - {message_of(row).message_no for row in rows})

    def _lock_messages(self, members: Sequence[Member], *, now: int) -> list[Message]:
        """The messages of members, locked before their flow is."""
        params = {"message_nos": json_list(sorted(m.message_no for m in members))}
        rows: list[Row] = self._db.rows("messages.by_numbers", params) if members else []
        return self._lock_order.lock_these(list(map(message_of, rows)), now=now)


def as_message(member: Member) -> Message:
    """A member that was never sent, as operators see it: waiting, without a due date."""
    return Message(
        id=member.id,
        queue_no=member.queue_no,
        due_at=0,
        sent_at=int(
            member.id[:8] + member.id[9:13], 16
        ),  # the instant in the id: when it was planned
        message_no=member.message_no,
        state=_STATES.get(member.state, State.CANCELLED),
        reason=member.reason,
        kind=member.kind,
        flow_no=member.flow_no,
    )


def _can_be_redriven(message: Message) -> bool:
    is_dead_letter = message.state in QUEUED and message.dead_from is not None
    return message.state is State.DEAD or is_dead_letter
