"""Pressure on a broker: how full its memory and disks are, and which fleets yield to it.

Levels as in autoscale-core: 0 (no pressure) to 3; the worse of memory and disk counts.  A fleet
yields at the first level whose threshold reaches its yield order: those with 1 first, then those up
to 3, then those up to 5.  A fleet without a yield order never yields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.domain.described import about
from penstock.domain.errors import FleetsRefused

MEMORY = "memory"
DISK = "disk"

Percent = Annotated[float, Meta(gt=0, le=100)]
Megabytes = Annotated[int, Meta(ge=0, le=10**12)]
Order = Annotated[int, Meta(ge=0, le=10**6)]


class Pressure(msgspec.Struct, frozen=True, kw_only=True):
    """The fullest node of a broker counts; None: not reported."""

    memory_percent: Annotated[
        float | None,
        about("Memory in use on the fullest node of the broker, in percent of its limit."),
    ] = None
    disk_free_mb: Annotated[
        int | None, about("The least free space of a disk of the broker, in MB.")
    ] = None


class PressureLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    memory_percent: tuple[Percent, Percent, Percent] = (70.0, 80.0, 90.0)
    disk_free_mb: tuple[Megabytes, Megabytes, Megabytes] = (400, 200, 100)
    yield_orders: tuple[Order, Order, Order] = (1, 3, 5)
    alert_memory_percent: Percent | None = None  # None: the first level's
    alert_disk_free_mb: Megabytes | None = None


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    what: str  # "memory" or "disk"
    level: int
    value: float  # percent, or MB
    text: str
    at: int


def check_limits(limits: PressureLimits) -> PressureLimits:
    """Return them, or raise FleetsRefused if a worse level would be reached before a better one."""
    for name in ("memory_percent", "yield_orders"):
        one, two, three = getattr(limits, name)
        if not one <= two <= three:
            raise FleetsRefused(f"pressure.{name} must not decrease from level to level")
    one, two, three = limits.disk_free_mb
    if not one >= two >= three:
        raise FleetsRefused("pressure.disk_free_mb must not increase from level to level")
    return limits


def level_of(pressure: Pressure | None, limits: PressureLimits) -> int:
    if pressure is None:
        return 0
    return max(_memory_level(pressure, limits), _disk_level(pressure, limits))


def yields(yield_order: int | None, level: int, limits: PressureLimits) -> bool:
    if yield_order is None or level == 0:
        return False
    return yield_order <= limits.yield_orders[level - 1]


def alerts_due(
    source: str,
    pressure: Pressure | None,
    limits: PressureLimits,
    *,
    last: Mapping[str, int],
    every_ms: int,
    now: int,
) -> list[Alert]:
    """For memory and disk, each at most once in `every_ms`; `last`: when they were raised."""
    if pressure is None:
        return []
    found: list[Alert] = []
    used, from_ = pressure.memory_percent, limits.alert_memory_percent or limits.memory_percent[0]
    if used is not None and used >= from_:
        level = _memory_level(pressure, limits)
        text = f"{used:.2f} % of the memory is used; alerts begin at {from_:g} %"
        found.append(_alert(source, MEMORY, level, used, text, now))
    free, below = pressure.disk_free_mb, limits.alert_disk_free_mb
    below = limits.disk_free_mb[0] if below is None else below
    if free is not None and free <= below:
        level = _disk_level(pressure, limits)
        text = f"{free:.2f} MB of disk are free; alerts begin at {below} MB"
        found.append(_alert(source, DISK, level, free, text, now))
    return [
        alert
        for alert in found
        if alert.what not in last or abs(now - last[alert.what]) >= every_ms
    ]


def _memory_level(pressure: Pressure, limits: PressureLimits) -> int:
    used = pressure.memory_percent
    return 0 if used is None else sum(used >= limit for limit in limits.memory_percent)


def _disk_level(pressure: Pressure, limits: PressureLimits) -> int:
    free = pressure.disk_free_mb
    return 0 if free is None else sum(free <= limit for limit in limits.disk_free_mb)


def _alert(source: str, what: str, level: int, value: float, text: str, now: int) -> Alert:
    text = f"source {source}: {text}"
    return Alert(source=source, what=what, level=level, value=value, text=text, at=now)
