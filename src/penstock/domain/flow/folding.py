"""The graph of a flow with few nodes: members that are alike become one.

Members are alike if they have the same role, queue and kind, and need the same of parents that are
alike.  So the 10,000 downloads of a batch are one node, and the 10,000 uploads that each follow one
of them are another.  Parents are added before their children: a member has a larger number than its
parents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from penstock.domain.flow.member import Member, MemberRole, MemberState, RunsOn


class FlowEdge(NamedTuple):
    child_no: int
    parent_no: int
    runs_on: RunsOn


class FlowNode(msgspec.Struct, frozen=True):
    """A member, or several that are alike: then `member` is the first of them."""

    member: Member
    layer: int  # the length of the longest path to it
    count: int
    states: dict[MemberState, int]
    parents: tuple[tuple[str, RunsOn], ...]  # the id of the first member of each parent's node


class _Parent(NamedTuple):
    group: int
    runs_on: RunsOn
    message_no: int | None  # None: the group is folded anyway


class _Group:
    __slots__ = ("count", "layer", "members", "parents", "states")

    def __init__(self, layer: int) -> None:
        self.layer = layer
        self.count = 0
        self.states: dict[MemberState, int] = {}
        self.members: list[Member] = []  # only the first, once it is folded
        self.parents: dict[int, dict[_Parent, None]] = {}  # by the number of the member


class FlowFolding:
    def __init__(self, *, fold: int) -> None:
        """More than `fold` members that are alike become one node."""
        self._fold = fold
        self._groups: list[_Group] = []
        self._by_key: dict[tuple[object, ...], int] = {}
        self._group_of: dict[int, int] = {}  # by the number of the member

    def add(self, members: Iterable[Member], edges: Iterable[FlowEdge]) -> None:
        """The next members by number, with the edges from their parents."""
        parents: dict[int, list[FlowEdge]] = {}
        for edge in edges:
            parents.setdefault(edge.child_no, []).append(edge)
        for member in members:
            self._add(member, parents.get(member.message_no, ()))

    def alike(self, message_no: int) -> list[int]:
        """The numbers of all members like this one, in order."""
        group = self._group_of.get(message_no)
        return [no for no, other in self._group_of.items() if other == group]

    def nodes(self) -> list[FlowNode]:
        """Parents first; callbacks last."""
        end = max((group.layer for group in self._groups), default=0) + 1
        found: list[FlowNode] = []
        for group in self._groups:
            layer = end if group.members[0].role is not MemberRole.MEMBER else group.layer
            for member in group.members:
                is_folded = group.count > self._fold
                states = group.states if is_folded else {member.state: 1}
                count = group.count if is_folded else 1
                parents = self._parents_of(group, member)
                found.append(FlowNode(member, layer, count, states, parents))
        return sorted(found, key=lambda node: (node.layer, node.member.message_no))

    def _add(self, member: Member, edges: Sequence[FlowEdge]) -> None:
        parents = {self._parent(edge): None for edge in edges if edge.parent_no in self._group_of}
        needs = frozenset((parent.group, parent.runs_on) for parent in parents)
        key = (member.role, member.queue_no, member.kind, needs)
        place = self._by_key.setdefault(key, len(self._groups))
        if place == len(self._groups):
            above = max((self._groups[parent.group].layer for parent in parents), default=-1)
            self._groups.append(_Group(above + 1))
        group = self._groups[place]
        self._group_of[member.message_no] = place
        group.count += 1
        group.states[member.state] = group.states.get(member.state, 0) + 1
        if group.count <= self._fold:
            group.members.append(member)
            group.parents[member.message_no] = parents
            return
        # Folded: one member stands for all, with the parents of all.
        for other in group.members[1:]:
            parents |= group.parents.pop(other.message_no)
        del group.members[1:]
        group.parents[group.members[0].message_no].update(parents)

    def _parent(self, edge: FlowEdge) -> _Parent:
        place = self._group_of[edge.parent_no]
        is_folded = self._groups[place].count > self._fold
        return _Parent(place, edge.runs_on, None if is_folded else edge.parent_no)

    def _parents_of(self, group: _Group, member: Member) -> tuple[tuple[str, RunsOn], ...]:
        found: dict[tuple[str, RunsOn], None] = {}
        for parent in group.parents[member.message_no]:
            above = self._groups[parent.group]
            by_no = {m.message_no: m for m in above.members}
            shown = by_no.get(parent.message_no or 0, above.members[0])
            found[shown.id, parent.runs_on] = None
        return tuple(found)
