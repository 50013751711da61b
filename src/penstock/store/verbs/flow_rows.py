"""Rows of flows as records, and back."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.domain.flow.flow import Flow, FlowOutcome
from penstock.domain.flow.member import Member, MemberRole, MemberState
from penstock.store.database import Row

_ROLE_AT = Member.__struct_fields__.index("role")
_STATE_AT = Member.__struct_fields__.index("state")
_QUEUES_AT = Flow.__struct_fields__.index("queues")
_OPEN_AT = Flow.__struct_fields__.index("is_open")
_CANCELLED_AT = Flow.__struct_fields__.index("is_cancelled")
_OUTCOME_AT = Flow.__struct_fields__.index("outcome")
_queues = msgspec.json.Decoder(tuple[str, ...])


def flow_of(row: Row) -> Flow:
    values = list(row)
    values[_QUEUES_AT] = _queues.decode(values[_QUEUES_AT])
    values[_OPEN_AT] = values[_OPEN_AT] == 1
    values[_CANCELLED_AT] = values[_CANCELLED_AT] == 1
    outcome = values[_OUTCOME_AT]
    values[_OUTCOME_AT] = None if outcome is None else FlowOutcome(outcome)
    return Flow(*values)


def flow_params(flow: Flow) -> dict[str, Any]:
    return {
        "flow_no": flow.flow_no,
        "queues": msgspec.json.encode(flow.queues).decode(),
        "ended_at": flow.ended_at,
        "is_open": int(flow.is_open),
        "is_cancelled": int(flow.is_cancelled),
        "total": flow.total,
        "remaining": flow.remaining,
        "done": flow.done,
        "failed": flow.failed,
        "skipped": flow.skipped,
        "outcome": None if flow.outcome is None else flow.outcome.value,
    }


def member_of(row: Row) -> Member:
    values = list(row)
    values[_ROLE_AT] = MemberRole(values[_ROLE_AT])
    values[_STATE_AT] = MemberState(values[_STATE_AT])
    return Member(*values)


def member_params(member: Member) -> dict[str, Any]:
    return {
        "message_no": member.message_no,
        "state": member.state.value,
        "waits_for": member.waits_for,
        "handles": member.handles,
        "failures": member.failures,
        "reason": member.reason,
        "ended_at": member.ended_at,
    }
