"""New members of a flow: those whose parents allow are sent at once, the others are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from penstock.domain.errors import InvalidRequest, PenstockError
from penstock.domain.flow import flow as flows
from penstock.domain.flow import release
from penstock.domain.flow.flow import Flow
from penstock.domain.flow.inputs import Inputs, sources
from penstock.domain.flow.member import (
    OUTCOMES,
    Member,
    MemberDecision,
    MemberRole,
    MemberState,
    ParentOutcome,
    Parents,
    RunsOn,
    decide,
    parents_of,
    refused,
)
from penstock.domain.flow.plan import MAX_MEMBERS
from penstock.domain.flow.release import StoredDraft
from penstock.domain.limits import DAY, Limits
from penstock.domain.message.draft import NewMessage
from penstock.ports.flows import NewMember
from penstock.store.database import Row
from penstock.store.verbs.flow_releases import FlowReleases
from penstock.store.verbs.flow_step import FlowStep
from penstock.store.verbs.sends import Sends
from penstock.store.verbs.transaction_state import TransactionState, json_list

Edge = tuple[int, RunsOn, ParentOutcome | None]  # the parent, and what became of it


class FlowCreation:
    def __init__(self, transaction: TransactionState, releases: FlowReleases, sends: Sends) -> None:
        self._transaction = transaction
        self._releases = releases
        self._sends = sends
        self._db = transaction.db

    def lock(self, new: Sequence[NewMember], *, now: int) -> None:
        """Take the locks of members that may be sent at once, before the lock of the flow."""
        if not self._db.is_shared:
            return
        transaction = self._transaction
        transaction.partitions.ensure(now // DAY)
        queues = {n.queue.queue_no for n in new}
        transaction.load_queues(queues)
        ordered = transaction.ordered_of(queues)
        transaction.lock_queues(queues)
        transaction.lock_groups(
            (n.queue.queue_no, n.plan.draft.group)
            for n in new
            if n.plan.draft.group is not None and n.queue.queue_no in ordered
        )

    def add(
        self,
        flow: Flow,
        new: Sequence[NewMember],
        *,
        limits: Limits,
        now: int,
        is_new: bool = False,
    ) -> Flow:
        """`new`: parents first.  Raises InvalidRequest, TooLarge, QueueFull or WrongState."""
        count = sum(n.plan.role is MemberRole.MEMBER for n in new)
        if flow.total + count > MAX_MEMBERS:
            raise InvalidRequest(f"a flow has at most {MAX_MEMBERS} members")
        grown = flows.added(flow, count) if count else flow
        grown = flows.with_queues(grown, {n.queue.name for n in new})
        step = FlowStep(
            self._transaction, self._releases, {} if is_new else {flow.flow_no: flow}, now=now
        )
        step.flows[flow.flow_no] = grown
        if not is_new:
            self._refuse_known(flow, (n.plan.name for n in new if n.plan.name is not None))
        to_send = self._store(grown, new, step, limits=limits, now=now)
        self._check_room([m for m, _ in to_send], [s for _, s in to_send], now=now)
        for member in self._releases.send(to_send, now=now):
            raise InvalidRequest(f"member {member.name or member.id} cannot be sent")
        step.finish()
        return step.flows[flow.flow_no]

    def numbers_of(self, flow: Flow, names: Iterable[str]) -> dict[str, int]:
        """The numbers of members that exist, by name or id."""
        wanted = json_list(sorted(set(names)))
        params = {"flow_no": flow.flow_no, "names": wanted}
        found: dict[str, int] = dict(self._db.rows("flows.with_ids", params))
        return found | dict(self._db.rows("flows.named", params))

    def _store(
        self,
        flow: Flow,
        new: Sequence[NewMember],
        step: FlowStep,
        *,
        limits: Limits,
        now: int,
    ) -> list[tuple[Member, StoredDraft]]:
        """Store them; returns those to be sent at once."""
        taken = self._transaction.take_numbers(len(new))
        numbers = {n.id: no for n, no in zip(new, taken, strict=True)}
        known = {n.plan.name: numbers[n.id] for n in new if n.plan.name is not None}
        older = self._older(flow, new, known)
        existing = step.members(older.values())
        states = {no: member.state for no, member in existing.items()}
        refs = known | older
        wanted = {no for n in new for no in sources(_inputs_of(n, refs))}
        members: list[Row] = []
        edges: list[Row] = []
        to_send: list[tuple[Member, StoredDraft]] = []
        for n in new:
            no = numbers[n.id]
            mine = _edges(n, refs, states, existing)
            edges += [(parent, no, on.value, outcome) for parent, on, outcome in mine]
            parents = parents_of((on, outcome) for _, on, outcome in mine)
            member = _member(n, no, flow, parents)
            stored = StoredDraft(n.plan.draft, limits.max_body_bytes, _inputs_of(n, refs))
            member = self._decide(member, parents, step, now)
            states[no] = member.state
            is_sent = member.state is MemberState.RELEASED
            if is_sent:
                to_send.append((member, stored))
            members.append(_row(member, stored, no in wanted, is_sent=is_sent))
        self._db.insert("flows.add_members", members)
        if edges:
            self._db.insert("flows.add_edges", edges)
        self._keep_older_results(wanted & existing.keys(), existing)
        return to_send

    def _decide(self, member: Member, parents: Parents, step: FlowStep, now: int) -> Member:
        if member.is_callback:
            return member
        match decide(parents):
            case MemberDecision.WAIT:
                return member
            case MemberDecision.RUN:
                return member.reopened(MemberState.RELEASED)
            case decision:
                ended = refused(member, decision, now=now)
                flow = step.flows[member.flow_no]
                step.flows[member.flow_no] = flows.moved(flow, MemberState.BLOCKED, ended.state)
                self._transaction.ended.append(member.id)
                return ended

    def _refuse_known(self, flow: Flow, known: Iterable[str]) -> None:
        names = set(known)
        taken = sorted(names & self.numbers_of(flow, names).keys()) if names else ()
        if taken:
            raise InvalidRequest(f"the flow has a member {taken[0]!r} already")

    def _older(
        self, flow: Flow, new: Sequence[NewMember], known: Mapping[str, int]
    ) -> dict[str, int]:
        """Parents that the flow has already; raises InvalidRequest."""
        unknown = {name for n in new for name in n.plan.parents if name not in known}
        if not unknown:
            return {}
        found = self.numbers_of(flow, unknown)
        missing = sorted(unknown - found.keys())
        if missing:
            raise InvalidRequest(f"the flow has no member {missing[0]!r}")
        return found

    def _check_room(
        self, members: Sequence[Member], drafts: Sequence[StoredDraft], *, now: int
    ) -> None:
        """Raises QueueFull; members that are released later need no room."""
        new: list[NewMessage] = []
        for member, stored in zip(members, drafts, strict=True):
            queue = self._transaction.queue(member.queue_no)
            if queue.settings.max_messages is not None:
                new.append(
                    release.release(
                        stored, queue, now=now, message_id=member.id, flow_no=0, results={}
                    )
                )
        if new:
            answers: list[PenstockError | None] = [None] * len(new)
            self._sends.refuse_overfull(new, answers, {})  # type: ignore[arg-type]
            for answer in answers:
                if answer is not None:
                    raise answer

    def _keep_older_results(self, nos: set[int], existing: Mapping[int, Member]) -> None:
        """Members that exist already are inputs from now on."""
        if not nos:
            return
        self._db.post("flows.want_results", {"message_nos": json_list(sorted(nos))})
        ended: dict[int, list[str]] = {}
        for no in nos:
            member = existing[no]
            if member.state is MemberState.DONE and member.ended_at is not None:
                ended.setdefault(member.ended_at // DAY, []).append(member.id)
        days = set(self._transaction.partitions.days()) if ended else set()
        for day, ids in ended.items():
            if day in days:
                rows = self._db.rows("flows.ended_results", {"ids": json_list(ids)}, day=day)
                self._db.update(
                    "flows.keep_result", [{"message_no": no, "result": r} for no, r in rows]
                )


def _edges(
    n: NewMember,
    refs: Mapping[str, int],
    states: Mapping[int, MemberState],
    existing: Mapping[int, Member],
) -> list[Edge]:
    edges: dict[int, Edge] = {}
    for name, on in n.plan.parents.items():
        no = refs[name]
        if no in existing and existing[no].is_callback:
            raise InvalidRequest(f"{name!r} is a callback, which no member can wait for")
        edges[no] = (no, on, OUTCOMES.get(states[no]))
    return list(edges.values())


def _inputs_of(n: NewMember, refs: Mapping[str, int]) -> Inputs:
    return {
        field: refs[source] if isinstance(source, str) else tuple(refs[one] for one in source)
        for field, source in n.plan.inputs.items()
    }


def _member(n: NewMember, no: int, flow: Flow, parents: Parents) -> Member:
    return Member(
        message_no=no,
        flow_no=flow.flow_no,
        id=n.id,
        name=n.plan.name,
        kind=n.plan.draft.kind,
        queue_no=n.queue.queue_no,
        role=n.plan.role,
        waits_for=parents.waits_for,
        handles=parents.handles,
        failures=parents.failures,
    )


def _row(member: Member, stored: StoredDraft, is_wanted: bool, *, is_sent: bool) -> Row:
    m = member
    return (
        m.message_no, m.flow_no, m.id, m.name, m.kind, m.queue_no, m.role.value, m.state.value,
        m.waits_for, m.handles, m.failures, m.reason, m.ended_at, int(is_wanted),
        None if is_sent else release.to_text(stored),
    )  # fmt: skip
