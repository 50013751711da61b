"""The members of flows as operators see them: page by page, or as a graph of few nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from penstock.domain.errors import InvalidRequest
from penstock.domain.flow.flow import Flow
from penstock.domain.flow.folding import FlowEdge, FlowFolding, FlowNode
from penstock.domain.flow.member import Member, MemberRun, MemberState
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Steps, ThreadedStep, Work, read

CHUNK = 1_000  # members that are read at once; other reads run in between

Parents = tuple[tuple[str, str], ...]  # the id of each, and when the member may run


class MemberView(msgspec.Struct, frozen=True):
    member: Member
    queue: str
    parents: Parents
    run: MemberRun | None  # None: it was never in a queue, or history has forgotten it
    created: tuple[str, ...]  # the ids of flows that its handler created


class NodeView(msgspec.Struct, frozen=True):
    node: FlowNode
    view: MemberView  # of the member, or of the first of those that are alike


class GraphView(msgspec.Struct, frozen=True):
    flow: Flow
    nodes: list[NodeView]
    is_cut: bool


class FlowMemberService:
    def __init__(self, store: Store) -> None:
        self._store = store

    def page(
        self, flow_id: str, *, state: MemberState | None, after_no: int, limit: int
    ) -> Work[list[MemberView]]:
        """The work raises FlowNotFound."""

        def do(session: Session) -> list[MemberView]:
            flow = session.flows.find(flow_id)
            found = session.flows.members(flow.flow_no, state=state, after_no=after_no, limit=limit)
            return _views(session, found)

        return read(self._store, do)

    def alike(
        self, flow: Flow, like: str, *, state: MemberState | None, after_no: int, limit: int
    ) -> Steps[list[MemberView]]:
        """The members that are alike: those of one node of the graph.  Raises MessageNotFound."""
        wanted = yield from read(self._store, lambda s: s.flows.member(flow, like))
        folding = yield from self._folding(flow, fold=1)
        nos = [no for no in folding.alike(wanted.message_no) if no > after_no]
        found: list[MemberView] = []
        while nos and len(found) < limit:
            some, nos = nos[:CHUNK], nos[CHUNK:]
            found += yield from read(self._store, _some(some, state, limit - len(found)))
        return found

    def graph(self, flow: Flow, *, fold: int, limit: int) -> Steps[GraphView]:
        """At most `limit` nodes, parents first; more than `fold` members that are alike are one."""
        if fold < 1:
            raise InvalidRequest("fold must be at least 1")
        folding = yield from self._folding(flow, fold=fold)
        nodes = yield from ThreadedStep(folding.nodes)  # a long chain has many
        shown = [node.member for node in nodes[:limit]]
        views = yield from read(self._store, lambda s: _views(s, shown))
        return GraphView(
            flow,
            [
                NodeView(node, msgspec.structs.replace(view, parents=node.parents))
                for node, view in zip(nodes, views, strict=False)
            ],
            is_cut=len(nodes) > limit,
        )

    def _folding(self, flow: Flow, *, fold: int) -> Steps[FlowFolding]:
        folding = FlowFolding(fold=fold)
        after_no = 0
        while True:
            members, edges = yield from read(self._store, _chunk(flow.flow_no, after_no))
            folding.add(members, edges)
            if len(members) < CHUNK:
                return folding
            after_no = members[-1].message_no


def _chunk(flow_no: int, after_no: int) -> Callable[[Session], tuple[list[Member], list[FlowEdge]]]:
    def do(session: Session) -> tuple[list[Member], list[FlowEdge]]:
        found = session.flows.members(flow_no, state=None, after_no=after_no, limit=CHUNK)
        return found, session.flows.edges(found)

    return do


def _some(
    nos: Sequence[int], state: MemberState | None, limit: int
) -> Callable[[Session], list[MemberView]]:
    def do(session: Session) -> list[MemberView]:
        found = [m for m in session.flows.members_of(nos) if state in (None, m.state)]
        return _views(session, found[:limit])

    return do


def _views(session: Session, members: Sequence[Member]) -> list[MemberView]:
    if not members:
        return []
    names: Mapping[int, str] = {
        q.queue_no: q.name for q in session.queues.by_numbers(list({m.queue_no for m in members}))
    }
    parents: dict[int, list[tuple[str, str]]] = {}
    for edge in session.flows.parents(members):
        parents.setdefault(edge.child_no, []).append((edge.parent_id, edge.runs_on.value))
    runs, created = session.flows.runs(members), session.flows.created_by(members)
    return [
        MemberView(
            m,
            names.get(m.queue_no, ""),
            tuple(parents.get(m.message_no, ())),
            runs.get(m.message_no),
            tuple(created.get(m.id, ())),
        )
        for m in members
    ]
