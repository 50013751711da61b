"""Fleets: readings and decisions of their autoscalers, and the wanted number of workers.

A key for some queues sees only their fleets.  Keys do not cover queues of other brokers, so the
fleets of those are visible only to callers that may see everything.
"""

from __future__ import annotations

from typing import Any

from penstock.api import scaling
from penstock.api.operation import PageQuery
from penstock.api.scaling import Decided, Decisions, Fleet, FleetProfile, Fleets, Wanted
from penstock.domain.access.api_key import Caller, sees
from penstock.domain.errors import FleetNotFound
from penstock.domain.fact import FactFilter
from penstock.domain.scaling.fleet_sources import OWN
from penstock.domain.scaling.fleet_status import DECISION, FleetStatus
from penstock.operations.call import Call, Handlers
from penstock.operations.paging import from_cursor, next_cursor
from penstock.ports.clock import Clock
from penstock.ports.unit_of_work import Steps, Work
from penstock.services.history import FactService
from penstock.services.scaling import ScalingService


class ScalingOperations:
    def __init__(self, service: ScalingService, facts: FactService, clock: Clock) -> None:
        self._scaling = service
        self._facts = facts
        self._clock = clock

    def handlers(self) -> Handlers:
        return {
            scaling.LIST: self.list,
            scaling.GET: self.get,
            scaling.DECISIONS: self.decisions,
            scaling.WANTED: self.wanted,
            scaling.GET_PROFILE: self.profile,
            scaling.CHANGE_PROFILE: self.change_profile,
            scaling.RESET_PROFILE: self.reset_profile,
        }

    def list(self, call: Call[None, None]) -> Work[Fleets]:
        now = self._clock.now()
        return self._scaling.all().map(
            lambda found: Fleets(
                fleets=[
                    Fleet.of(status, call.instant, now=now)
                    for status in found
                    if _sees(call.caller, status)
                ]
            )
        )

    def get(self, call: Call[None, None]) -> Steps[Fleet]:
        status = yield from self._visible(call)
        return Fleet.of(status, call.instant, now=self._clock.now())

    def decisions(self, call: Call[None, PageQuery]) -> Steps[Decisions]:
        status = yield from self._visible(call)
        before: Any = from_cursor(call.query.cursor, 2)
        limit = call.query.limit
        wanted = FactFilter(kind=DECISION, subject=status.name, before=before, limit=limit)
        found = yield from self._facts.search(wanted)
        decided = [Decided.of(fact, call.instant) for fact in found]
        return Decisions(decisions=decided, next=next_cursor(found, limit, "at", "fact_no"))

    def wanted(self, call: Call[None, None]) -> Steps[Wanted]:
        status = yield from self._visible(call)
        return Wanted(value=(yield from self._scaling.wanted(status.name)))

    def profile(self, call: Call[None, None]) -> Steps[FleetProfile]:
        status = yield from self._visible(call)
        return FleetProfile.copy_of((yield from self._scaling.profile(status.name)))

    def change_profile(self, call: Call[dict[str, Any], None]) -> Steps[FleetProfile]:
        status = yield from self._visible(call)
        values = call.body
        changed = yield from self._scaling.change_profile(status.name, lambda before: values)
        return FleetProfile.copy_of(changed)

    def reset_profile(self, call: Call[None, None]) -> Steps[FleetProfile]:
        status = yield from self._visible(call)
        changed = yield from self._scaling.change_profile(status.name, lambda before: None)
        return FleetProfile.copy_of(changed)

    def _visible(self, call: Call[Any, Any]) -> Steps[FleetStatus]:
        """The fleet; raises FleetNotFound, also if the caller may not see it."""
        status = yield from self._scaling.get(call.path["fleet"])
        if not _sees(call.caller, status):
            raise FleetNotFound(status.name)
        return status


def _sees(caller: Caller, status: FleetStatus) -> bool:
    return "*" in caller.queues or (
        status.source == OWN and all(sees(caller, queue) for queue in status.all_queues)
    )
