"""Flows: create them, add members, look them up, cancel and redrive them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from penstock.domain.errors import InvalidRequest, QueueExists, WrongState
from penstock.domain.flow import plan
from penstock.domain.flow.flow import Flow
from penstock.domain.flow.member import NOT_SENT, MemberState
from penstock.domain.flow.plan import FlowKey, PlannedMember
from penstock.domain.limits import Limits
from penstock.domain.message.draft import ID_DIGITS, is_label, send, uuid7
from penstock.domain.queue.queue import Queue, QueueSettings, check_name
from penstock.domain.text import sanitize
from penstock.ports.clock import Clock, Dice
from penstock.ports.flows import FlowFilter, NewMember
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Steps, Work, read, write

CHUNK = 200  # messages per transaction when a flow is cancelled or redriven


class CreatedFlow(msgspec.Struct, frozen=True):
    flow: Flow
    ids: tuple[str, ...]  # of the members, in the order given
    is_duplicate: bool = False  # another flow has the key; `ids` is empty if its members differ


class FlowService:
    def __init__(
        self, store: Store, clock: Clock, dice: Dice, limits: Limits, *, auto_create: bool
    ) -> None:
        self._store = store
        self._clock = clock
        self._dice = dice
        self._limits = limits
        self._auto_create = auto_create

    def create(
        self,
        name: str,
        members: Sequence[PlannedMember],
        *,
        is_open: bool,
        key: FlowKey | None = None,
        created_by: str | None = None,
    ) -> Work[CreatedFlow]:
        """Raises InvalidRequest, TooLarge, QueueNotFound or QueueFull: then nothing is stored."""
        plan.check_name(name, self._limits)
        if created_by is not None and not is_label(created_by, self._limits):
            raise InvalidRequest("created_by is not the id of a message")
        if key is not None:
            plan.check_key(key, self._limits)
        now = self._clock.now()
        flow_id = self._new_id(now)

        def store(session: Session, new: Sequence[NewMember]) -> Flow:
            return session.flows.create(
                flow_id,
                name,
                new,
                is_open=is_open,
                key=key,
                created_by=created_by,
                limits=self._limits,
                now=now,
            )

        return self._store_members(flow_id, members, store, now)

    def add(self, flow_id: str, members: Sequence[PlannedMember]) -> Work[CreatedFlow]:
        """Raises FlowNotFound and WrongState as well."""
        now = self._clock.now()

        def store(session: Session, new: Sequence[NewMember]) -> Flow:
            return session.flows.add(flow_id, new, limits=self._limits, now=now)

        return self._store_members(flow_id, members, store, now)

    def get(self, flow_id: str) -> Work[Flow]:
        return read(self._store, lambda s: s.flows.find(flow_id))

    def page(self, wanted: FlowFilter) -> Work[list[Flow]]:
        return read(self._store, lambda s: s.flows.page(wanted))

    def close(self, flow_id: str) -> Work[Flow]:
        now = self._clock.now()
        return write(self._store, lambda s: s.flows.close(flow_id, now=now))

    def cancel(self, flow_id: str, *, reason: str | None) -> Steps[Flow]:
        """Raises WrongState if it has ended.  Members that run are taken from their workers."""
        kept = reason and sanitize(reason[: self._limits.max_error_chars])
        now = self._clock.now()
        flow = yield from write(
            self._store, lambda s: s.flows.cancel(flow_id, reason=kept, now=now)
        )
        # No member is released from now on.
        flow_no = flow.flow_no
        while (
            yield from write(
                self._store,
                lambda s: s.flows.cancel_some(flow_no, reason=kept, limit=CHUNK, now=now),
            )
        ):
            pass
        return (yield from self.get(flow_id))

    def redrive(self, flow_id: str, *, member: str | None) -> Steps[tuple[int, Flow]]:
        """All dead members, or one; and those that could not be sent.  Raises WrongState."""
        flow = yield from self.get(flow_id)
        if flow.is_cancelled:
            raise WrongState(
                f"flow {flow_id} was cancelled and cannot be redriven: create it again,"
                " or redrive single messages of it that are dead"
            )
        flow_no, redriven, after_no = flow.flow_no, 0, 0
        now = self._clock.now()
        nos: list[int] | None = None
        if member is not None:
            found = yield from read(self._store, lambda s: s.flows.member(flow, member))
            if found.state is not MemberState.DEAD and found.reason not in NOT_SENT:
                raise WrongState(f"member {member} is {found.state} and cannot be redriven")
            nos, after_no = [found.message_no], found.message_no - 1
        while True:
            last, count = yield from write(
                self._store, _redrive(flow_no, after_no, 1 if nos else CHUNK, now)
            )
            redriven += count
            if not last or nos:
                break
            after_no = last
        redriven += yield from write(
            self._store, lambda s: s.flows.retry(flow_no, message_nos=nos, now=now)
        )
        return redriven, (yield from self.get(flow_id))

    def _store_members(
        self,
        flow_id: str,
        members: Sequence[PlannedMember],
        store: Callable[[Session, Sequence[NewMember]], Flow],
        now: int,
    ) -> Work[CreatedFlow]:
        for name in {m.queue for m in members}:
            check_name(name)
        ordered = plan.check_plan(members, self._limits)
        ids = {id(m): self._new_id(now) for m in members}

        def do(session: Session) -> CreatedFlow:
            queues = {m.queue: self._queue(session, m.queue, now) for m in ordered}
            for m in ordered:
                # Checked as if it were sent now; its inputs are checked when they are there.
                send(m.draft, queues[m.queue], now=now, message_id=ids[id(m)], limits=self._limits)
            new = [NewMember(m, ids[id(m)], queues[m.queue]) for m in ordered]
            flow = store(session, new)
            if flow.id != flow_id:  # it has the key
                known = _ids_of(session, flow, ordered)
                return CreatedFlow(flow, tuple(known[id(m)] for m in members if known), True)
            return CreatedFlow(flow, tuple(ids[id(m)] for m in members))

        return write(self._store, do)

    def _queue(self, session: Session, name: str, now: int) -> Queue:
        found = session.queues.find(name)
        if found is not None:
            return found
        if not self._auto_create:
            return session.queues.named(name)  # raises
        try:
            return session.queues.add(name, QueueSettings(), now=now)
        except QueueExists:  # another caller created it just now
            return session.queues.named(name)

    def _new_id(self, now: int) -> str:
        return uuid7(now, self._dice.digits(ID_DIGITS))


def _ids_of(session: Session, flow: Flow, planned: Sequence[PlannedMember]) -> dict[int, str]:
    """The ids of the members of a flow by their plans, if it was created with such plans."""
    stored = session.flows.members(flow.flow_no, state=None, after_no=0, limit=len(planned))
    is_same = [(m.name, m.kind, m.role) for m in stored] == [
        (m.name, m.draft.kind, m.role) for m in planned
    ]
    return {id(m): one.id for m, one in zip(planned, stored, strict=True)} if is_same else {}


def _redrive(
    flow_no: int, after_no: int, limit: int, now: int
) -> Callable[[Session], tuple[int, int]]:
    return lambda s: s.flows.redrive_some(flow_no, after_no=after_no, limit=limit, now=now)
