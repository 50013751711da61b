"""Store time: the time by which a store judges leases, delays and schedules.

    plan_start(mark, wall) ──▶ at which instant the store continues, and whether it is set back
    hold_pruning(...)      ──▶ whether data may be pruned after a gap in time

The mark is the latest instant that the store has seen.  Time that continues from it never goes
backwards, so a lease is never counted twice and history stays in order.  But a mark written by a
clock that was ahead would shift every due date.  So if the mark is ahead of the wall clock by more
than `MAX_CARRY_MS`, the wall clock is trusted instead, and the store is set back.

Pure: all instants come in as values.
"""

from __future__ import annotations

import msgspec

from penstock.domain.datetimes import moment_of
from penstock.domain.limits import DAY, HOUR, MINUTE

# NTP steps a clock by seconds.  Five minutes are more than any correction of a synchronized clock,
# and the most by which a due date is early if the mark is ahead.
MAX_CARRY_MS = 5 * MINUTE

# The store cannot distinguish a delay from a due date: both are stored as an instant.  A wait of up
# to an hour is taken for a delay (SQS allows 15 minutes) and is shifted; a longer one stays.
LONGEST_DELAY_MS = HOUR

# 2025-01-01.  A wall clock before this was never set (it shows 1970 or 2000): trust the mark.
EARLIEST_WALL = 1_735_689_600_000

# An operator has this long to correct a clock that jumped ahead before data is pruned.
PRUNING_GAP_MS = DAY
PRUNING_HOLD_MS = DAY


class Start(msgspec.Struct, frozen=True):
    """At which instant a store continues."""

    now: int
    mark: int  # the latest instant that the store has seen; 0: none
    wall: int
    is_set_back: bool

    @property
    def ahead_ms(self) -> int:
        """How far the mark is ahead of the wall clock."""
        return max(0, self.mark - self.wall)


class Pruning(msgspec.Struct, frozen=True):
    """What a store remembers between two rounds of pruning."""

    seen_at: int  # when the last round was
    held_until: int | None = None  # nothing is pruned before


def plan_start(mark: int, wall: int, *, max_carry_ms: int = MAX_CARRY_MS) -> Start:
    is_set_back = mark - wall > max_carry_ms and wall >= EARLIEST_WALL
    return Start(wall if is_set_back else max(mark, wall), mark, wall, is_set_back)


def hold_pruning(before: Pruning | None, *, now: int) -> Pruning:
    """The next state; data may be pruned if `held_until` is None.

    After a gap it is unknown whether the store was stopped or the clock has jumped.  Pruning waits
    only once per gap: a store that runs an hour a week is pruned at its next start.
    """
    if before is None or now < before.seen_at:  # new, or the store was set back
        return Pruning(now)
    if before.held_until is not None:
        return Pruning(now, before.held_until if now < before.held_until else None)
    if now - before.seen_at > PRUNING_GAP_MS:
        return Pruning(now, now + PRUNING_HOLD_MS)
    return Pruning(now)


def difference_text(ms: int) -> str:
    """Such as 1 d 2 h 3 min 4.005 s; exact, without the sign."""
    days, rest = divmod(abs(ms), DAY)
    hours, rest = divmod(rest, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    parts = [f"{n} {unit}" for n, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if n]
    if rest or not parts:
        parts.append(f"{rest / 1000:.3f} s" if rest % 1000 else f"{rest // 1000} s")
    return " ".join(parts)


def instant_text(instant: int) -> str:
    try:
        text = moment_of(instant).isoformat(timespec="milliseconds")
    except OverflowError:  # beyond the year 9999
        return f"{instant} ms"
    return text.replace("+00:00", "Z")
