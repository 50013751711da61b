"""The duty that looks after all fleets.

A tick never waits for a source or a manager: it asks aside, takes the answers that have come, and
drops those that come too late.  Of all autoscalers of a group one acts, the one that holds the
lease in the store; in a dry run nobody acts, and no lease is needed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import msgspec

from penstock.domain.limits import SECOND
from penstock.domain.scaling import fleet_run
from penstock.domain.scaling.fleet_run import FLAPPING, CircuitsState, Decision, FleetReading
from penstock.domain.scaling.fleet_status import ALERT, DECISION, Note
from penstock.domain.scaling.governor import FleetStanding, who_makes_room
from penstock.domain.scaling.pressure import Pressure, alerts_due, level_of, yields
from penstock.domain.scaling.recommendation import Replicas
from penstock.runtime.autoscaler.background import Aside
from penstock.runtime.autoscaler.fleet_list import Roster
from penstock.runtime.autoscaler.fleet_watch import UnderWay, Watch, answer_of, outcome_of
from penstock.runtime.autoscaler.leadership import Leading
from penstock.runtime.autoscaler.questions import (
    ANSWERS,
    COUNT,
    PRESSURE,
    REPLICAS,
    SCALING,
    SOURCE,
    Answer,
    Wrong,
)
from penstock.services.scaling import ScalingService

LOOK_MS = 20  # how soon to look again while something is asked
MOST_ASKED = 32  # fleets at one time; those that hang do not count

_PARTS = (SOURCE, PRESSURE, REPLICAS, COUNT, ANSWERS)  # what a look tells about
_log = logging.getLogger("penstock.scaling")


class Autoscaler:
    name = "autoscaler"

    def __init__(
        self,
        roster: Roster,
        scaling: ScalingService,
        aside: Aside,
        *,
        ways: Callable[[Sequence[str]], CircuitsState],
        holder: str,
        is_dry: bool = False,
    ) -> None:
        self._roster = roster
        self._scaling = scaling
        self._aside = aside
        self._ways = ways
        self._is_dry = is_dry
        self._leading = Leading(scaling, holder=holder, is_dry=is_dry)
        self._holder = holder
        self.is_leading = False  # as of the last tick
        self._refresh_at = 0
        self._pressures: dict[str, Pressure] = {}  # by source, as they were told last
        self._alerted: dict[str, dict[str, int]] = {}
        self._notes: list[Note] = []  # to be kept with the next tick that can
        self._gone: set[str] = set()
        self._short: dict[str, FleetStanding] = {}  # those that wait for room

    @property
    def runs(self) -> dict[str, int]:
        """How often each fleet has been looked after."""
        return {watch.name: watch.runs for watch in self._roster}

    def tick(self, now: int) -> int:
        self._refresh(now)
        group = self._roster.fleets.group
        self.is_leading = self._leading.is_leading(group, self._roster, now=now)
        if not self.is_leading:
            return min(self._leading.next_at, self._refresh_at)
        for watch in self._roster:
            self._begin(watch, now)
        # Twice: an answer that came at once may have something done that is done at once.
        for _ in range(2):
            for watch in self._roster:
                self._collect(watch, now)
        self._make_room(now)
        self._keep(now)
        return self._next_at(now)

    def close(self) -> None:
        self._leading.leave()
        self._roster.close()

    # ---- asking, and taking answers

    def _refresh(self, now: int) -> None:
        if now < self._refresh_at:
            return
        self._refresh_at = now + self._roster.fleets.refresh_ms
        self._gone |= self._roster.refresh() or set()

    def _begin(self, watch: Watch, now: int) -> None:
        if watch.under_way is not None or now < watch.next_at:
            return
        asked = sum(1 for each in self._roster if each.under_way and not each.under_way.is_late)
        if asked < MOST_ASKED:
            watch.next_at = now + watch.fleet.interval_ms
            watch.ask(self._aside, is_dry=self._is_dry, now=now)

    def _collect(self, watch: Watch, now: int) -> None:
        under_way = watch.under_way
        if under_way is None:
            return
        if not under_way.future.done():
            if now - under_way.since >= self._roster.fleets.deadline_ms:
                self._is_late(watch, under_way, now)
            return
        watch.under_way = None
        if under_way.is_late:
            watch.next_at = now  # what it says is old; ask anew
        elif under_way.decision is not None:
            self._scaled(watch, under_way.decision, outcome_of(under_way), now)
        else:
            self._answered(watch, answer_of(under_way), now)

    def _is_late(self, watch: Watch, under_way: UnderWay, now: int) -> None:
        """Told once.  It is not asked again before it has answered; the answer will be dropped."""
        if under_way.is_late:
            return
        under_way.is_late = True
        text = f"no answer within {self._roster.fleets.deadline_ms} ms"
        part = ANSWERS if under_way.decision is None else SCALING
        if under_way.decision is not None:
            watch.know(state=fleet_run.record_attempt(watch.state, under_way.decision))
            self._note_decision(watch, under_way.decision, error="slow")
        else:
            watch.is_counted = False
        self._notes += watch.settle((part,), [Wrong(part, "slow", text)], now=now)
        watch.runs += 1

    # ---- deciding

    def _answered(self, watch: Watch, answer: Answer, now: int) -> None:
        self._take_pressure(watch, answer, now)
        watch.is_counted = answer.replicas is not None
        watch.know(seen_at=now, sample=answer.sample)
        if answer.replicas is None:
            self._notes += watch.settle(_PARTS, answer.wrong, now=now)
            watch.runs += 1
            return
        self._find_short(watch, answer, answer.replicas, now)
        decision = self._decide(watch, answer, answer.replicas, now)
        if not decision.change:
            self._notes += watch.settle((SCALING,), (), now=now)
        if decision.change and not self._is_dry:
            watch.scale(self._aside, decision, now=now)
            return
        watch.runs += 1
        if decision.change or decision.recommended:
            self._note_decision(watch, decision)
        if decision.change:
            watch.took(decision, is_done=False, now=now)

    def _decide(self, watch: Watch, answer: Answer, replicas: Replicas, now: int) -> Decision:
        limits, fleet = self._roster.fleets.pressure, watch.fleet.at(now)
        pressure = self._pressures.get(watch.fleet.source)
        level = level_of(pressure, limits)
        watch.is_yielding = yields(watch.fleet.yield_order, level, limits)
        reading = FleetReading(
            replicas=replicas,
            sample=answer.sample,
            trouble=answer.trouble_of(SOURCE),
            level=level,
            yields=watch.is_yielding,
            way=self._ways(watch.fleet.routes) if watch.fleet.routes else CircuitsState.FREE,
        )
        others = [each.standing for each in self._roster if each is not watch]
        state, decision = fleet_run.run(
            watch.state, reading, fleet, watch.plan.profile, others, now=now
        )
        watch.know(min=fleet.min, max=fleet.max)
        wrong = [*answer.wrong, *_flapping(state.odd_counts, replicas)]
        self._notes += watch.settle(_PARTS, wrong, now=now)
        watch.know(
            state=state, replicas=replicas, decision=decision, level=level, pressure=pressure
        )
        return decision

    def _scaled(self, watch: Watch, decision: Decision, wrong: tuple[Wrong, ...], now: int) -> None:
        watch.runs += 1
        failed = [msgspec.structs.replace(one, part=SCALING) for one in wrong]
        self._notes += watch.settle((SCALING,), failed, now=now)
        if failed:
            watch.know(state=fleet_run.record_attempt(watch.state, decision))
        else:
            watch.know(state=fleet_run.record_scaling(watch.state, decision, watch.fleet, now=now))
        watch.took(decision, is_done=not failed, now=now)
        self._note_decision(watch, decision, error=failed[0].code if failed else None)

    def _find_short(self, watch: Watch, answer: Answer, replicas: Replicas, now: int) -> None:
        """Workers that were asked for do not appear: another fleet may give one of its own."""
        if not fleet_run.is_short(watch.state, replicas, watch.fleet, now=now):
            return
        if not answer.trouble_of(REPLICAS):  # such as a crash loop, which more room does not end
            self._notes.append(watch.report_short())
            if not self._is_dry:
                self._short[watch.name] = watch.standing  # with what it desired when it asked
        watch.know(state=fleet_run.record_shortage(watch.state))

    def _make_room(self, now: int) -> None:
        """As soon as the one that is to give is not being asked about itself."""
        for name, asking in list(self._short.items()):
            found = who_makes_room(asking, [watch.standing for watch in self._roster])
            giver = next((w for w in self._roster if found and w.name == found.fleet), None)
            if giver is not None and giver.under_way is not None:
                continue
            del self._short[name]
            if giver is not None:
                state, decision = fleet_run.give_one(giver.state)
                giver.know(state=state, decision=decision)
                giver.scale(self._aside, decision, now=now)
                self._collect(giver, now)

    def _take_pressure(self, watch: Watch, answer: Answer, now: int) -> None:
        if answer.pressure is None:
            return
        source, fleets = watch.fleet.source, self._roster.fleets
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
            self._roster.alerts.send(alert)
            self._notes.append(Note(ALERT, source, msgspec.to_builtins(alert)))

    # ---- telling

    def _note_decision(self, watch: Watch, decision: Decision, error: str | None = None) -> None:
        """What is done is a fact each time; what is not, when it is something new."""
        is_acted = bool(decision.change) and error is None and not self._is_dry
        noted = (decision.change, decision.wanted, decision.reason, error)
        if not is_acted and noted == watch.noted:
            return
        watch.noted = noted
        _log.info("fleet %s: %s", watch.name, _line(decision, error, is_dry=self._is_dry))
        data = {
            "acted": is_acted,
            "dry_run": self._is_dry,
            "by": self._holder,
            **msgspec.to_builtins(decision),
        }
        if error is not None:
            data["error"] = error
        self._notes.append(Note(DECISION, watch.name, data))

    def _keep(self, now: int) -> None:
        changed = [watch for watch in self._roster if watch.is_changed]
        if not changed and not self._notes and not self._gone:
            return
        # What a dry run sees must not take the place of what the real one has kept.
        is_shown = not self._is_dry or not self._scaling.is_led(self._roster.fleets.group, now=now)
        statuses = [watch.status for watch in changed] if is_shown else []
        gone = self._gone if is_shown else ()
        self._scaling.keep(statuses, self._notes, gone=gone, now=now).result()
        for watch in changed:
            watch.is_changed = False
        self._notes, self._gone = [], set()

    def _next_at(self, now: int) -> int:
        due = [self._refresh_at, self._leading.next_at]
        for watch in self._roster:
            waiting = watch.under_way
            if waiting is None:
                due.append(max(watch.next_at, now + 1))
            else:
                due.append(now + (SECOND if waiting.is_late else LOOK_MS))
        return max(min(due), now + 1)


def _flapping(odd_counts: int, replicas: Replicas) -> list[Wrong]:
    if odd_counts < FLAPPING:
        return []
    text = f"the count of replicas changes by itself all the time; now it is {replicas.total}"
    return [Wrong(COUNT, "replicas_flapping", text)]


def _line(decision: Decision, error: str | None, *, is_dry: bool) -> str:
    before = decision.wanted - decision.change
    what = f"{before} → {decision.wanted} workers" if decision.change else f"{before} workers stay"
    how = "would be " if is_dry else ""
    return f"{how}{what} ({decision.reason})" + (f", which failed: {error}" if error else "")
