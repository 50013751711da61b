"""Members that are alike become one node of the graph."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.domain.flow.folding import FlowEdge, FlowFolding, FlowNode
from penstock.domain.flow.member import Member, MemberRole, MemberState, RunsOn


class Graph:
    """Members that are named by their numbers, parents first."""

    def __init__(self) -> None:
        self.members: list[Member] = []
        self.edges: list[FlowEdge] = []

    def add(
        self,
        *parents: int,
        kind: str = "fetch",
        on: RunsOn = RunsOn.DONE,
        state: MemberState = MemberState.BLOCKED,
        role: MemberRole = MemberRole.MEMBER,
    ) -> int:
        no = len(self.members) + 1
        member = Member(no, 1, str(no), None, kind, 1, role=role, state=state)
        self.members.append(member)
        self.edges += [FlowEdge(no, parent, on) for parent in parents]
        return no

    def folding(self, fold: int = 2, chunk: int = 3) -> FlowFolding:
        """In pieces, as a store returns them."""
        folding = FlowFolding(fold=fold)
        for start in range(0, len(self.members), chunk):
            some = self.members[start : start + chunk]
            nos = {member.message_no for member in some}
            folding.add(some, [edge for edge in self.edges if edge.child_no in nos])
        return folding

    def nodes(self, fold: int = 2) -> Mapping[str, FlowNode]:
        return {node.member.id: node for node in self.folding(fold).nodes()}


def test_a_few_members_are_nodes_of_their_own() -> None:
    graph = Graph()
    a, b = graph.add(), graph.add()
    c = graph.add(a, b, kind="merge", on=RunsOn.ENDED)

    nodes = graph.nodes()

    assert [(id, node.layer, node.count) for id, node in nodes.items()] == [
        ("1", 0, 1),
        ("2", 0, 1),
        ("3", 1, 1),
    ]
    assert nodes[str(c)].parents == (("1", RunsOn.ENDED), ("2", RunsOn.ENDED))


def test_many_members_that_are_alike_are_one_node_with_their_states() -> None:
    graph = Graph()
    root = graph.add(kind="list")
    states = [MemberState.DONE] * 4 + [MemberState.DEAD] + [MemberState.RELEASED] * 2
    many = [graph.add(root, state=state) for state in states]
    graph.add(*many, kind="merge")

    nodes = graph.nodes()

    assert list(nodes) == ["1", "2", "9"]
    group = nodes["2"]
    assert (group.count, group.layer) == (7, 1)
    assert group.states == {
        MemberState.DONE: 4,
        MemberState.DEAD: 1,
        MemberState.RELEASED: 2,
    }
    assert group.parents == (("1", RunsOn.DONE),)
    assert nodes["9"].parents == (("2", RunsOn.DONE),)


def test_chains_side_by_side_are_folded_step_by_step() -> None:
    graph = Graph()
    pairs = [(first, graph.add(first, kind="store")) for first in (graph.add() for _ in range(5))]

    nodes = graph.nodes()

    assert [(node.member.kind, node.count, node.layer) for node in nodes.values()] == [
        ("fetch", 5, 0),
        ("store", 5, 1),
    ]
    [store] = [node for node in nodes.values() if node.member.kind == "store"]
    assert store.parents == ((str(pairs[0][0]), RunsOn.DONE),)


def test_members_that_need_something_else_of_their_parents_are_not_alike() -> None:
    graph = Graph()
    root = graph.add()
    for _ in range(3):
        graph.add(root)
        graph.add(root, on=RunsOn.FAILED)

    counts = [(node.count, node.parents) for node in graph.nodes().values()]

    assert counts == [
        (1, ()),
        (3, (("1", RunsOn.DONE),)),
        (3, (("1", RunsOn.FAILED),)),
    ]


def test_a_chain_is_never_folded_however_long_it_is() -> None:
    graph = Graph()
    last = graph.add()
    for _ in range(20):
        last = graph.add(last)

    nodes = graph.nodes()

    assert [node.layer for node in nodes.values()] == list(range(21))
    assert all(node.count == 1 for node in nodes.values())


def test_a_folded_node_has_the_parents_of_all_its_members() -> None:
    graph = Graph()
    a, b = graph.add(), graph.add()
    for parent in (a, b, a, b):
        graph.add(parent, kind="store")

    store = graph.nodes()["3"]

    assert store.count == 4
    assert set(store.parents) == {("1", RunsOn.DONE), ("2", RunsOn.DONE)}


def test_callbacks_are_in_the_last_layer() -> None:
    graph = Graph()
    graph.add(role=MemberRole.ON_FINISH, kind="tell")
    first = graph.add()
    graph.add(first)

    nodes = graph.nodes()

    assert list(nodes) == ["2", "3", "1"]
    assert nodes["1"].layer == 2


def test_the_members_of_a_node_are_found_by_one_of_them() -> None:
    graph = Graph()
    root = graph.add(kind="list")
    first, second = graph.add(root), graph.add(root)
    merge = graph.add(first, second, kind="merge")
    third = graph.add(root)
    folding = graph.folding(fold=1)

    assert folding.alike(second) == [first, second, third]
    assert folding.alike(merge) == [merge]
    assert folding.alike(17) == []
