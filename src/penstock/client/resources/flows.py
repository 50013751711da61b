"""Flows, as a program that does not declare their jobs sees them."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.api.flows import operations as flows
from penstock.api.flows.records import (
    CancelFlow,
    CreatedFlow,
    Flow,
    FlowGraph,
    FlowMember,
    FlowPage,
    FlowState,
    ListFlows,
    ListMembers,
    NewFlow,
    NewMember,
    NewMembers,
    RedriveFlow,
    RedrivenFlow,
    ShowGraph,
    WaitForFlow,
)
from penstock.client.resources.resource import ResourceClient, items_of
from penstock.domain.flow.member import MemberState

Members = Iterator[FlowMember]


class FlowClient(ResourceClient):
    """Methods that need an existing flow raise FlowNotFound."""

    def create(self, wanted: NewFlow) -> CreatedFlow:
        return self._request(flows.CREATE, wanted)

    def add(self, flow_id: str, members: list[NewMember]) -> CreatedFlow:
        return self._request(flows.ADD, NewMembers(members), flow=flow_id)

    def get(self, flow_id: str, *, wait_ms: int = 0) -> Flow:
        """Return the flow; waits up to `wait_ms` for its end."""
        return self._request(flows.GET, query=WaitForFlow(wait_ms=wait_ms), flow=flow_id)

    def page(
        self,
        *,
        name: str | None = None,
        state: FlowState | None = None,
        is_failing: bool = False,
        created_by: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> FlowPage:
        """Return a page of flows, newest first."""
        query = ListFlows(
            name=name,
            state=state,
            is_failing=is_failing,
            created_by=created_by,
            limit=limit,
            cursor=cursor,
        )
        return self._request(flows.LIST, query=query)

    def members(
        self, flow_id: str, *, state: MemberState | None = None, like: str | None = None
    ) -> Members:
        """Its members and callbacks, page by page; with `like` those that are alike."""
        return items_of(
            lambda cursor: self._request(
                flows.MEMBERS,
                query=ListMembers(state=state, like=like, limit=1_000, cursor=cursor),
                flow=flow_id,
            ),
            lambda page: page.members,
        )

    def graph(self, flow_id: str, *, fold: int = 10, limit: int = 1_000) -> FlowGraph:
        """The flow as a graph; more than `fold` members that are alike are one node."""
        return self._request(flows.GRAPH, query=ShowGraph(fold=fold, limit=limit), flow=flow_id)

    def close(self, flow_id: str) -> Flow:
        return self._request(flows.CLOSE, flow=flow_id)

    def cancel(self, flow_id: str, *, reason: str | None = None) -> Flow:
        return self._request(flows.CANCEL, CancelFlow(reason=reason), flow=flow_id)

    def redrive(self, flow_id: str, *, member: str | None = None) -> RedrivenFlow:
        return self._request(flows.REDRIVE, RedriveFlow(member=member), flow=flow_id)
