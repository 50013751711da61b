"""Look-ups of flows and their members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.domain.errors import FlowNotFound
from penstock.domain.flow.flow import Flow
from penstock.domain.flow.folding import FlowEdge
from penstock.domain.flow.member import Member, MemberRun, MemberState, RunsOn
from penstock.domain.limits import DAY
from penstock.domain.message.lifecycle import State
from penstock.ports.flows import FlowFilter, ParentEdge
from penstock.store.database import Row
from penstock.store.entities.entity import SqlEntity
from penstock.store.verbs.flow_rows import flow_of, member_of
from penstock.store.verbs.transaction_state import json_list

LAST = 2**62


class FlowLookups(SqlEntity):
    def find(self, flow_id: str) -> Flow:
        rows = self._db.rows("flows.by_id", {"id": flow_id})
        if not rows:
            raise FlowNotFound(flow_id)
        return flow_of(rows[0])

    def id_of_message(self, message_id: str) -> str | None:
        rows = self._db.rows("flows.id_of_message", {"id": message_id})
        return rows[0][0] if rows else None

    def page(self, wanted: FlowFilter) -> list[Flow]:
        before_at, before_no = wanted.before or (LAST, LAST)
        params: dict[str, Any] = {
            "before_at": before_at,
            "before_no": before_no,
            "limit": wanted.limit,
        }
        conditions = []
        if wanted.name is not None:
            conditions.append("where_name")
            params["name"] = wanted.name
        if wanted.is_running:
            conditions.append("where_running")
        if wanted.is_failing:
            conditions.append("where_failing")
        if wanted.created_by is not None:
            conditions.append("where_created_by")
            params["created_by"] = wanted.created_by
        if wanted.outcome is not None:
            conditions.append("where_outcome")
            params["outcome"] = wanted.outcome.value
        text = "\n   ".join(self._db.text(f"flows.{name}") for name in conditions)
        return list(map(flow_of, self._db.rows("flows.page", params, conditions=text)))

    def members(
        self, flow_no: int, *, state: MemberState | None, after_no: int, limit: int
    ) -> list[Member]:
        params: dict[str, Any] = {"flow_no": flow_no, "after_no": after_no, "limit": limit}
        name = "flows.page_of_members"
        if state is not None:
            name = "flows.page_in_state"
            params["state"] = state.value
        return list(map(member_of, self._db.rows(name, params)))

    def members_of(self, message_nos: Sequence[int]) -> list[Member]:
        params = {"message_nos": json_list(list(message_nos))}
        found = map(member_of, self._db.rows("flows.members", params))
        return sorted(found, key=lambda member: member.message_no)

    def parents(self, members: Sequence[Member]) -> list[ParentEdge]:
        params = {"child_nos": json_list([m.message_no for m in members])}
        rows = self._db.rows("flows.parents_of", params)
        return [ParentEdge(child, parent, RunsOn(on)) for child, parent, on in rows]

    def edges(self, members: Sequence[Member]) -> list[FlowEdge]:
        params = {"child_nos": json_list([m.message_no for m in members])}
        rows = self._db.rows("flows.edges_to", params)
        return [FlowEdge(child, parent, RunsOn(on)) for child, parent, on in rows]

    def runs(self, members: Sequence[Member]) -> dict[int, MemberRun]:
        """History has what ended, the last ending of a message last; queues have the rest."""
        sent = [m.message_no for m in members if m.state not in _NEVER_IN_A_QUEUE]
        params = {"message_nos": json_list(sent)}
        rows = self._db.rows("flows.live_runs", params) if sent else []
        by_day: dict[int, list[str]] = {}
        for member in members:
            if member.ended_at is not None:
                by_day.setdefault(member.ended_at // DAY, []).append(member.id)
        days = set(self._transaction.partitions.days()) if by_day else set()
        for day in days & by_day.keys():
            ids = {"ids": json_list(by_day[day])}
            rows += self._db.rows("flows.ended_runs", ids, day=day)
        return {row[0]: _run_of(row) for row in rows}

    def created_by(self, members: Sequence[Member]) -> dict[str, list[str]]:
        params = {"ids": json_list([m.id for m in members])}
        found: dict[str, list[str]] = {}
        for message_id, flow_id in self._db.rows("flows.of_creators", params):
            found.setdefault(message_id, []).append(flow_id)
        return found


_NEVER_IN_A_QUEUE = frozenset({MemberState.BLOCKED, MemberState.SKIPPED})


def _run_of(row: Row) -> MemberRun:
    no, state, *rest = row
    return MemberRun(no, None if state is None else State(state), *rest)
