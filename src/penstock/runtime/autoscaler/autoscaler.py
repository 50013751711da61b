"""The duty that scales all fleets.

A tick never waits for a load source or a replica manager: it calls them in the background, collects
the answers that have arrived, and drops those that arrive too late.  Of all autoscalers of a group
only the one that holds the lease in the store acts; a dry run does not act and needs no lease.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

import msgspec

from penstock.domain.limits import SECOND
from penstock.domain.scaling import fleet_run
from penstock.domain.scaling.fleet_run import (
    MAX_UNEXPLAINED_COUNTS,
    CircuitsState,
    Decision,
    FleetReading,
)
from penstock.domain.scaling.fleet_status import ALERT, DECISION, NewFact
from penstock.domain.scaling.governor import FleetNeed, fleet_to_shrink
from penstock.domain.scaling.pressure import Pressure, alerts_due, level_of, yields
from penstock.domain.scaling.recommendation import Replicas
from penstock.runtime.autoscaler.fleet_access import (
    ANSWERS,
    COUNT,
    PRESSURE,
    REPLICAS,
    SCALING,
    SOURCE,
    Background,
    Observation,
    PartFailure,
)
from penstock.runtime.autoscaler.fleet_list import FleetList
from penstock.runtime.autoscaler.fleet_watch import FleetWatch, PendingCall, answer_of, outcome_of
from penstock.services.scaling import ScalingService

LEASE_MS = 30 * SECOND
RENEW_MS = 10 * SECOND

_log = logging.getLogger("penstock.scaling")
CHECK_MS = 20  # how soon to check again while a call is pending
MAX_PENDING = 32  # fleets observed at a time; calls that are late do not count
_PARTS = (SOURCE, PRESSURE, REPLICAS, COUNT, ANSWERS)  # the parts that an observation covers


class Leadership:
    """Leader election: only the autoscaler that holds the group's lease in the store acts."""

    def __init__(self, scaling: ScalingService, *, holder: str, is_dry: bool) -> None:
        self._scaling = scaling
        self._holder = holder
        self._is_dry = is_dry
        self._group: str | None = None  # the group whose lease is or was held
        self._until = 0
        self._is_standby_logged = False
        self.next_at = 0

    def is_leading(self, group: str, watches: Iterable[FleetWatch], *, now: int) -> bool:
        """Renew the lease when due; a new leader continues from its predecessor's status."""
        if self._is_dry:
            self.next_at = now + RENEW_MS
            return True
        if group != self._group:
            self.leave()
        elif now < self.next_at:
            return now < self._until
        was_leading = now < self._until
        is_leading = self._scaling.lead(group, holder=self._holder, for_ms=LEASE_MS, now=now)
        self._group, self.next_at = group, now + RENEW_MS
        self._until = now + LEASE_MS if is_leading else 0
        if is_leading and not was_leading:
            self._take_over(group, watches, now)
        elif not is_leading:
            self._stand_by(group, watches, was_leading=was_leading)
        return is_leading

    def leave(self) -> None:
        """Give up the lease, so that another autoscaler need not wait for its end."""
        if self._group is not None and self._until:
            self._scaling.leave(self._group, holder=self._holder)
        self._group, self._until, self.next_at = None, 0, 0

    def _take_over(self, group: str, watches: Iterable[FleetWatch], now: int) -> None:
        _log.info("this autoscaler leads group %s", group)
        self._is_standby_logged = False
        left = self._scaling.of_group(group)
        for watch in watches:
            watch.forget()
            watch.adopt(left.get(watch.name), now=now)

    def _stand_by(self, group: str, watches: Iterable[FleetWatch], *, was_leading: bool) -> None:
        if was_leading:
            for watch in watches:
                watch.forget()
        if was_leading or not self._is_standby_logged:
            _log.info("another autoscaler leads group %s; this one stands by", group)
            self._is_standby_logged = True


class Autoscaler:
    name = "autoscaler"

    def __init__(
        self,
        fleet_list: FleetList,
        scaling: ScalingService,
        background: Background,
        *,
        circuits_of_routes: Callable[[Sequence[str]], CircuitsState],
        holder: str,
        is_dry: bool = False,
    ) -> None:
        self._fleet_list = fleet_list
        self._scaling = scaling
        self._background = background
        self._circuits_of_routes = circuits_of_routes
        self._is_dry = is_dry
        self._leadership = Leadership(scaling, holder=holder, is_dry=is_dry)
        self._holder = holder
        self.is_leading = False  # as of the last tick
        self._refresh_at = 0
        self._pressures: dict[str, Pressure] = {}  # by source, as last reported
        self._alerted: dict[str, dict[str, int]] = {}
        self._facts: list[NewFact] = []  # stored by the next tick that can
        self._gone: set[str] = set()
        self._short: dict[str, FleetNeed] = {}  # fleets that wait for room

    @property
    def runs(self) -> dict[str, int]:
        """The number of completed runs per fleet."""
        return {watch.name: watch.runs for watch in self._fleet_list}

    def tick(self, now: int) -> int:
        self._refresh(now)
        group = self._fleet_list.fleets.group
        self.is_leading = self._leadership.is_leading(group, self._fleet_list, now=now)
        if not self.is_leading:
            return min(self._leadership.next_at, self._refresh_at)
        for watch in self._fleet_list:
            self._begin(watch, now)
        # Twice: an answer that came at once may start a call that also completes at once.
        for _ in range(2):
            for watch in self._fleet_list:
                self._collect(watch, now)
        self._make_room(now)
        self._save(now)
        return self._next_at(now)

    def close(self) -> None:
        self._leadership.leave()
        self._fleet_list.close()

    # ---- calling in the background, and collecting answers

    def _refresh(self, now: int) -> None:
        if now < self._refresh_at:
            return
        self._refresh_at = now + self._fleet_list.fleets.refresh_ms
        self._gone |= self._fleet_list.refresh(self._scaling.overrides()) or set()

    def _begin(self, watch: FleetWatch, now: int) -> None:
        if watch.pending is not None or now < watch.next_at:
            return
        pending = sum(1 for each in self._fleet_list if each.pending and not each.pending.is_late)
        if pending < MAX_PENDING:
            watch.next_at = now + watch.fleet.interval_ms
            watch.observe(self._background, is_dry=self._is_dry, now=now)

    def _collect(self, watch: FleetWatch, now: int) -> None:
        pending = watch.pending
        if pending is None:
            return
        if not pending.future.done():
            if now - pending.since >= self._fleet_list.fleets.deadline_ms:
                self._is_late(watch, pending, now)
            return
        watch.pending = None
        if pending.is_late:
            watch.next_at = now  # its answer is out of date; observe again
        elif pending.decision is not None:
            self._handle_scaling(watch, pending.decision, outcome_of(pending), now)
        else:
            self._handle_observation(watch, answer_of(pending), now)

    def _is_late(self, watch: FleetWatch, pending: PendingCall, now: int) -> None:
        """Report it once.  The fleet is observed again after this answer was dropped."""
        if pending.is_late:
            return
        pending.is_late = True
        text = f"no answer within {self._fleet_list.fleets.deadline_ms} ms"
        part = ANSWERS if pending.decision is None else SCALING
        if pending.decision is not None:
            watch.update(state=fleet_run.record_attempt(watch.state, pending.decision))
            self._note_decision(watch, pending.decision, error="slow")
        else:
            watch.is_counted = False
        self._facts += watch.set_troubles((part,), [PartFailure(part, "slow", text)], now=now)
        watch.runs += 1

    # ---- deciding

    def _handle_observation(self, watch: FleetWatch, answer: Observation, now: int) -> None:
        self._take_pressure(watch, answer, now)
        watch.is_counted = answer.replicas is not None
        watch.update(seen_at=now, sample=answer.sample)
        if answer.replicas is None:
            self._facts += watch.set_troubles(_PARTS, answer.failures, now=now)
            watch.runs += 1
            return
        self._check_shortage(watch, answer, answer.replicas, now)
        decision = self._decide(watch, answer, answer.replicas, now)
        if not decision.change:
            self._facts += watch.set_troubles((SCALING,), (), now=now)
        if decision.change and not self._is_dry:
            watch.scale(self._background, decision, now=now)
            return
        watch.runs += 1
        if decision.change or decision.recommended:
            self._note_decision(watch, decision)
        if decision.change:
            watch.record_decision(decision, is_done=False, now=now)

    def _decide(
        self, watch: FleetWatch, answer: Observation, replicas: Replicas, now: int
    ) -> Decision:
        limits, fleet = self._fleet_list.fleets.pressure, watch.fleet.at(now)
        pressure = self._pressures.get(watch.fleet.source)
        level = level_of(pressure, limits)
        watch.is_yielding = yields(watch.fleet.yield_order, level, limits)
        reading = FleetReading(
            replicas=replicas,
            sample=answer.sample,
            trouble=answer.trouble_of(SOURCE),
            level=level,
            yields=watch.is_yielding,
            circuits=self._circuits_of_routes(watch.fleet.routes)
            if watch.fleet.routes
            else CircuitsState.FREE,
        )
        others = [each.need for each in self._fleet_list if each is not watch]
        state, decision = fleet_run.run(
            watch.state, reading, fleet, watch.plan.profile, others, now=now
        )
        watch.update(min=fleet.min, max=fleet.max)
        failures = [*answer.failures, *_flapping(state.odd_counts, replicas)]
        self._facts += watch.set_troubles(_PARTS, failures, now=now)
        watch.update(
            state=state, replicas=replicas, decision=decision, level=level, pressure=pressure
        )
        return decision

    def _handle_scaling(
        self, watch: FleetWatch, decision: Decision, failures: tuple[PartFailure, ...], now: int
    ) -> None:
        watch.runs += 1
        failed = [msgspec.structs.replace(one, part=SCALING) for one in failures]
        self._facts += watch.set_troubles((SCALING,), failed, now=now)
        if failed:
            watch.update(state=fleet_run.record_attempt(watch.state, decision))
        else:
            watch.update(
                state=fleet_run.record_scaling(watch.state, decision, watch.fleet, now=now)
            )
        watch.record_decision(decision, is_done=not failed, now=now)
        self._note_decision(watch, decision, error=failed[0].code if failed else None)

    def _check_shortage(
        self, watch: FleetWatch, answer: Observation, replicas: Replicas, now: int
    ) -> None:
        """If requested workers do not appear, another fleet may have to give one up."""
        if not fleet_run.is_short(watch.state, replicas, watch.fleet, now=now):
            return
        if not answer.trouble_of(REPLICAS):  # such as a crash loop, which more room does not end
            self._facts.append(watch.report_short())
            if not self._is_dry:
                self._short[watch.name] = watch.need  # with the count it desires now
        watch.update(state=fleet_run.record_shortage(watch.state))

    def _make_room(self, now: int) -> None:
        """Take a worker from another fleet, as soon as no call to that fleet is pending."""
        for name, asking in list(self._short.items()):
            found = fleet_to_shrink(asking, [watch.need for watch in self._fleet_list])
            giver = next((w for w in self._fleet_list if found and w.name == found.fleet), None)
            if giver is not None and giver.pending is not None:
                continue
            del self._short[name]
            if giver is not None:
                state, decision = fleet_run.give_up_worker(giver.state)
                giver.update(state=state, decision=decision)
                giver.scale(self._background, decision, now=now)
                self._collect(giver, now)

    def _take_pressure(self, watch: FleetWatch, answer: Observation, now: int) -> None:
        if answer.pressure is None:
            return
        source, fleets = watch.fleet.source, self._fleet_list.fleets
        self._pressures[source] = answer.pressure
        if not fleets.alerts.enabled:
            return
        if source not in self._alerted:
            self._alerted[source] = self._scaling.alerted(source)
        last, every_ms = self._alerted[source], fleets.alerts.every_ms
        for alert in alerts_due(
            source, answer.pressure, fleets.pressure, last=last, every_ms=every_ms, now=now
        ):
            last[alert.what] = now
            self._fleet_list.alerts.send(alert)
            self._facts.append(NewFact(ALERT, source, msgspec.to_builtins(alert)))

    # ---- recording

    def _note_decision(
        self, watch: FleetWatch, decision: Decision, error: str | None = None
    ) -> None:
        """Record every change as a fact; a decision without effect only if it is new."""
        is_acted = bool(decision.change) and error is None and not self._is_dry
        noted = (decision.change, decision.wanted, decision.reason, error)
        if not is_acted and noted == watch.noted:
            return
        watch.noted = noted
        _log.info("fleet %s: %s", watch.name, _decision_text(decision, error, is_dry=self._is_dry))
        data = {
            "acted": is_acted,
            "dry_run": self._is_dry,
            "by": self._holder,
            **msgspec.to_builtins(decision),
        }
        if error is not None:
            data["error"] = error
        self._facts.append(NewFact(DECISION, watch.name, data))

    def _save(self, now: int) -> None:
        changed = [watch for watch in self._fleet_list if watch.is_changed]
        if not changed and not self._facts and not self._gone:
            return
        # A dry run must not overwrite the status kept by an autoscaler that acts.
        is_shown = not self._is_dry or not self._scaling.is_led(
            self._fleet_list.fleets.group, now=now
        )
        statuses = [watch.status for watch in changed] if is_shown else []
        gone = self._gone if is_shown else ()
        self._scaling.save_tick(statuses, self._facts, gone=gone, now=now).result()
        for watch in changed:
            watch.is_changed = False
        self._facts, self._gone = [], set()

    def _next_at(self, now: int) -> int:
        due = [self._refresh_at, self._leadership.next_at]
        for watch in self._fleet_list:
            waiting = watch.pending
            if waiting is None:
                due.append(max(watch.next_at, now + 1))
            else:
                due.append(now + (SECOND if waiting.is_late else CHECK_MS))
        return max(min(due), now + 1)


def _flapping(odd_counts: int, replicas: Replicas) -> list[PartFailure]:
    if odd_counts < MAX_UNEXPLAINED_COUNTS:
        return []
    text = f"the number of replicas keeps changing without a request; now it is {replicas.total}"
    return [PartFailure(COUNT, "replicas_flapping", text)]


def _decision_text(decision: Decision, error: str | None, *, is_dry: bool) -> str:
    before = decision.wanted - decision.change
    what = f"{before} → {decision.wanted} workers" if decision.change else f"{before} workers stay"
    how = "would be " if is_dry else ""
    return f"{how}{what} ({decision.reason})" + (f", failed: {error}" if error else "")
