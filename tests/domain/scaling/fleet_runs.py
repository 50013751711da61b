"""A fleet, and one run of it, for tests."""

from __future__ import annotations

from typing import Any

from penstock.domain.scaling.fleet import External, Fleet
from penstock.domain.scaling.fleet_run import (
    Decision,
    FleetReading,
    FleetState,
    record_scaling,
    run,
)
from penstock.domain.scaling.governor import FleetNeed
from penstock.domain.scaling.recommendation import Profile, Replicas, Sample

NOW = 1_000_000
PROFILE = Profile(samples_needed=1, backlog_goal_s=1)
MANY = Sample(ready=100, consume_rate=1.0)
NONE_LEFT = Sample(ready=0)


def fleet(**more: Any) -> Fleet:
    return Fleet(name="mail", queue="mail", replicas=External(), **more)


def there(running: int, starting: int = 0, requested: int | None = None) -> Replicas:
    asked = running + starting if requested is None else requested
    return Replicas(running=running, starting=starting, requested=asked)


def once(
    reading: FleetReading,
    state: FleetState | None = None,
    *,
    of: Fleet | None = None,
    others: list[FleetNeed] | None = None,
    now: int = NOW,
) -> tuple[FleetState, Decision]:
    return run(state or FleetState(), reading, of or fleet(), PROFILE, others or [], now=now)


def after_scaling(change: int, of: Fleet, *, running: int = 1) -> FleetState:
    state, _ = once(FleetReading(replicas=there(running), sample=NONE_LEFT), of=of)
    done = Decision(change=change, wanted=running + change, reason="backlog")
    return record_scaling(state, done, of, now=NOW)
