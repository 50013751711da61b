"""Flows as tests plan them: members by name, each with its parents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.domain.flow.flow import Flow
from penstock.domain.flow.member import Member, MemberRole, RunsOn
from penstock.domain.flow.plan import FlowKey, PlannedMember, check_plan
from penstock.domain.limits import DEFAULT_LIMITS
from penstock.domain.queue.queue import Queue
from penstock.ports.flows import NewMember
from tests.factories import a_draft, an_id
from tests.store.driver import EVERYTHING, StoreDriver

Parents = Mapping[str, RunsOn] | tuple[str, ...]


def a_member(queue: Queue, name: str, after: Parents = (), **fields: Any) -> NewMember:
    given = {key: fields.pop(key) for key in ("inputs", "role") if key in fields}
    edges = after if isinstance(after, Mapping) else dict.fromkeys(after, RunsOn.DONE)
    plan = PlannedMember(queue=queue.name, draft=a_draft(**fields), name=name, after=edges, **given)
    return NewMember(plan, an_id(), queue)


def a_callback(queue: Queue, role: MemberRole) -> NewMember:
    return a_member(queue, role.value, role=role)


def create(
    driver: StoreDriver,
    *new: NewMember,
    is_open: bool = False,
    name: str = "f",
    created_by: str | None = None,
    key: FlowKey | None = None,
) -> Flow:
    ordered = _ordered(new)
    return driver.write(
        lambda s: s.flows.create(
            an_id(),
            name,
            ordered,
            is_open=is_open,
            created_by=created_by,
            key=key,
            limits=DEFAULT_LIMITS,
            now=driver.now,
        )
    )


def add(driver: StoreDriver, flow: Flow, *new: NewMember) -> Flow:
    ordered = _ordered(new)
    return driver.write(
        lambda s: s.flows.add(flow.id, ordered, limits=DEFAULT_LIMITS, now=driver.now)
    )


def members(driver: StoreDriver, flow: Flow) -> dict[str, Member]:
    found = driver.read(
        lambda s: s.flows.members(flow.flow_no, state=None, after_no=0, limit=EVERYTHING)
    )
    return {m.name or m.id: m for m in found}


def states(driver: StoreDriver, flow: Flow) -> dict[str, str]:
    return {name: m.state.value for name, m in members(driver, flow).items()}


def now_so(driver: StoreDriver, flow: Flow) -> Flow:
    return driver.read(lambda s: s.flows.find(flow.id))


def _ordered(new: tuple[NewMember, ...]) -> list[NewMember]:
    by_plan = {id(n.plan): n for n in new}
    return [by_plan[id(plan)] for plan in check_plan([n.plan for n in new], DEFAULT_LIMITS)]
