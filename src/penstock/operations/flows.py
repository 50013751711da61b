"""Flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.api.flows import operations as flows
from penstock.api.flows import records
from penstock.api.flows.records import (
    CancelFlow,
    CreatedFlow,
    FlowGraph,
    FlowMember,
    FlowNode,
    FlowState,
    ListFlows,
    ListMembers,
    NewFlow,
    NewMembers,
    RedriveFlow,
    RedrivenFlow,
    ShowGraph,
    WaitForFlow,
)
from penstock.domain.access.api_key import Caller, Role, allow, sees
from penstock.domain.errors import InvalidRequest
from penstock.domain.flow.flow import Flow, FlowOutcome
from penstock.domain.flow.member import MemberRole, RunsOn
from penstock.domain.flow.plan import MAX_ADDED, FlowKey, PlannedMember, check_window
from penstock.domain.limits import Limits
from penstock.domain.queue.queue import check_name
from penstock.operations.call import Call, Handlers
from penstock.operations.drafts import draft_of
from penstock.operations.paging import from_cursor, to_cursor
from penstock.ports.flows import FlowFilter
from penstock.ports.unit_of_work import Steps, Work
from penstock.ports.waiting import EndWaiter
from penstock.services.flows.flows import FlowService
from penstock.services.flows.members import FlowMemberService, MemberView, NodeView


class FlowOperations:
    def __init__(
        self,
        service: FlowService,
        members: FlowMemberService,
        waiting: EndWaiter,
        limits: Limits,
    ) -> None:
        self._flows = service
        self._members = members
        self._waiting = waiting
        self._limits = limits

    def handlers(self) -> Handlers:
        return {
            flows.CREATE: self.create,
            flows.LIST: self.page,
            flows.GET: self.get,
            flows.MEMBERS: self.members,
            flows.GRAPH: self.graph,
            flows.ADD: self.add,
            flows.CLOSE: self.close,
            flows.CANCEL: self.cancel,
            flows.REDRIVE: self.redrive,
        }

    def create(self, call: Call[NewFlow, None]) -> Work[CreatedFlow]:
        given = call.body
        planned = _planned(call, given.members)
        callbacks = {
            MemberRole.ON_SUCCESS: given.on_success,
            MemberRole.ON_FAILURE: given.on_failure,
            MemberRole.ON_FINISH: given.on_finish,
        }
        for role, callback in callbacks.items():
            if callback is not None:
                planned += _planned(call, [callback], role)
        count = len(given.members)
        created = self._flows.create(
            given.name,
            planned,
            is_open=given.is_open,
            key=_key(given),
            created_by=given.created_by,
        )
        return created.map(
            lambda made: CreatedFlow(
                flow=records.Flow.of(made.flow, call.instant),
                members=list(made.ids[:count]),
                is_duplicate=made.is_duplicate,
            )
        )

    def add(self, call: Call[NewMembers, None]) -> Steps[CreatedFlow]:
        planned = _planned(call, call.body.members)
        yield from self._allowed(call, Role.PRODUCE)
        made = yield from self._flows.add(call.path["flow"], planned)
        return CreatedFlow(flow=records.Flow.of(made.flow, call.instant), members=list(made.ids))

    def page(self, call: Call[None, ListFlows]) -> Steps[records.FlowPage]:
        query = call.query
        found: list[Flow] = []
        before: Any = from_cursor(query.cursor, 2)
        outcome = None
        if query.state is not None and query.state is not FlowState.RUNNING:
            outcome = FlowOutcome(query.state.value)
        # Flows that the caller may not see do not count towards the page.
        while len(found) < query.limit:
            wanted = FlowFilter(
                name=query.name,
                outcome=outcome,
                is_running=query.state is FlowState.RUNNING,
                is_failing=query.is_failing,
                created_by=query.created_by,
                before=before,
                limit=query.limit,
            )
            page = yield from self._flows.page(wanted)
            found += [flow for flow in page if _sees(call.caller, flow)]
            if len(page) < query.limit:
                break
            before = (page[-1].created_at, page[-1].flow_no)
        found = found[: query.limit]
        is_full = len(found) == query.limit
        return records.FlowPage(
            flows=[records.Flow.of(flow, call.instant) for flow in found],
            next=to_cursor(found[-1].created_at, found[-1].flow_no) if is_full else None,
        )

    def get(self, call: Call[None, WaitForFlow]) -> Steps[records.Flow]:
        wait_ms = call.query.wait_ms
        if not 0 <= wait_ms <= self._limits.max_wait_ms:
            raise InvalidRequest(f"wait_ms must be from 0 to {self._limits.max_wait_ms}")
        if not wait_ms:
            flow = yield from self._allowed(call, Role.READ)
            return records.Flow.of(flow, call.instant)
        with self._waiting.register(call.path["flow"]) as waiter:
            flow = yield from self._allowed(call, Role.READ)
            if not flow.has_ended:
                yield waiter.wait(wait_ms)
                flow = yield from self._flows.get(flow.id)
        return records.Flow.of(flow, call.instant)

    def members(self, call: Call[None, ListMembers]) -> Steps[records.FlowMembers]:
        flow = yield from self._allowed(call, Role.READ)
        query = call.query
        [after_no] = from_cursor(query.cursor, 1) or (0,)
        if query.like is None:
            views = yield from self._members.page(
                flow.id, state=query.state, after_no=after_no, limit=query.limit
            )
        else:
            views = yield from self._members.alike(
                flow, query.like, state=query.state, after_no=after_no, limit=query.limit
            )
        is_full = len(views) == query.limit
        return records.FlowMembers(
            members=[_member(view, call) for view in views],
            next=to_cursor(views[-1].member.message_no) if is_full else None,
        )

    def graph(self, call: Call[None, ShowGraph]) -> Steps[FlowGraph]:
        flow = yield from self._allowed(call, Role.READ)
        query = call.query
        found = yield from self._members.graph(flow, fold=query.fold, limit=query.limit)
        return FlowGraph(
            flow=records.Flow.of(found.flow, call.instant),
            nodes=[_node(one, call) for one in found.nodes],
            is_cut=found.is_cut,
        )

    def close(self, call: Call[None, None]) -> Steps[records.Flow]:
        yield from self._allowed(call, Role.PRODUCE)
        closed = yield from self._flows.close(call.path["flow"])
        return records.Flow.of(closed, call.instant)

    def cancel(self, call: Call[CancelFlow, None]) -> Steps[records.Flow]:
        yield from self._allowed(call, Role.OPERATE)
        cancelled = yield from self._flows.cancel(call.path["flow"], reason=call.body.reason)
        return records.Flow.of(cancelled, call.instant)

    def redrive(self, call: Call[RedriveFlow, None]) -> Steps[RedrivenFlow]:
        yield from self._allowed(call, Role.OPERATE)
        count, flow = yield from self._flows.redrive(call.path["flow"], member=call.body.member)
        return RedrivenFlow(redriven=count, flow=records.Flow.of(flow, call.instant))

    def _allowed(self, call: Call[Any, Any], role: Role) -> Steps[Flow]:
        """The flow; raises Forbidden unless the caller has the role for all of its queues."""
        flow = yield from self._flows.get(call.path["flow"])
        allow(call.caller, role)
        for queue in flow.queues:
            allow(call.caller, role, queue)
        return flow


def _sees(caller: Caller, flow: Flow) -> bool:
    return all(sees(caller, queue) for queue in flow.queues)


def _planned(
    call: Call[Any, Any],
    members: Sequence[records.NewMember],
    role: MemberRole = MemberRole.MEMBER,
) -> list[PlannedMember]:
    if len(members) > MAX_ADDED:
        raise InvalidRequest(f"a request takes at most {MAX_ADDED} members; add the others later")
    for name in {member.queue for member in members}:
        allow(call.caller, Role.PRODUCE, check_name(name))
    return [
        PlannedMember(
            queue=member.queue,
            draft=draft_of(member),
            name=member.name,
            after=_after(member.after),
            inputs=member.inputs,
            role=role,
        )
        for member in members
    ]


def _key(given: NewFlow) -> FlowKey | None:
    check_window(given.dedup_window_ms)
    if given.dedup_key is not None:
        return FlowKey(given.dedup_key, given.dedup_window_ms)
    return None


def _after(given: Sequence[str | records.After]) -> Mapping[str, RunsOn]:
    found: dict[str, RunsOn] = {}
    for edge in given:
        name, on = (edge, RunsOn.DONE) if isinstance(edge, str) else (edge.member, edge.on)
        if found.setdefault(name, on) is not on:
            raise InvalidRequest(f"after names {name!r} twice, with {found[name]} and {on}")
    return found


def _member(view: MemberView, call: Call[Any, Any]) -> FlowMember:
    run, instant = view.run, call.instant
    ran: dict[str, Any] = {}
    if run is not None:
        times = (run.sent_at, run.due_at, run.first_leased_at, run.leased_at)
        names = ("sent_at", "due_at", "first_leased_at", "leased_at")
        ran = {name: instant(at) for name, at in zip(names, times, strict=True) if at is not None}
        ran |= {"message_state": run.message_state, "attempts": run.attempts}
    return FlowMember.copy_of(
        view.member,
        instant,
        queue=view.queue,
        after=tuple(records.After(parent, RunsOn(on)) for parent, on in view.parents),
        created=view.created,
        **ran,
    )


def _node(one: NodeView, call: Call[Any, Any]) -> FlowNode:
    node = one.node
    states = node.states if node.count > 1 else {}
    return FlowNode(
        member=_member(one.view, call), layer=node.layer, count=node.count, states=states
    )
