"""The clock mark: the latest instant that a store has seen; reads it and sets it back."""

from __future__ import annotations

import logging
from typing import Any, cast

import msgspec

from penstock.domain.circuit.circuit import PROBE_MS
from penstock.domain.lake.progress import FINAL_AFTER_DAYS
from penstock.domain.limits import DAY, Limits
from penstock.domain.message.claim_key import KEPT_MS
from penstock.domain.message.draft import uuid7
from penstock.domain.schedule import schedule
from penstock.domain.store import store_time
from penstock.domain.store.store_time import EARLIEST_WALL, LONGEST_DELAY_MS, MAX_CARRY_MS, Start
from penstock.ports.store import Session, Store
from penstock.store.commit.session import SqlSession
from penstock.store.database import Database
from penstock.store.meta_names import CLOCK_MARK
from penstock.store.verbs.dedup_claims import NO_END

CLOCK_SET_BACK = "clock_set_back"  # a fact about the store

_STATEMENTS = (
    "set_back_messages",
    "set_back_queues",
    "set_back_dedup",
    "set_back_claim_keys",
    "set_back_steps",
    "set_back_signals",
    "set_back_waits",
    "set_back_rates",
    "set_back_moves",
    "set_back_workers",
    "set_back_circuits",
    "set_back_outcomes",
    "set_back_holds",
    "drop_minutes",
    "reopen_days",
)
_OLDEST_DIGITS = "0" * 19

_log = logging.getLogger("penstock.store")


class SetBack(msgspec.Struct, frozen=True):
    """What was done to a store whose time was ahead."""

    mark: int
    now: int
    messages: int = 0  # moved with the time
    schedules: int = 0  # planned again
    dates: int = 0  # messages sent ahead of time that keep their due dates
    last_date: int = 0

    @property
    def text(self) -> str:
        parts = [
            f"the store's time is set back from {store_time.instant_text(self.mark)}"
            f" to {store_time.instant_text(self.now)},"
            f" by {store_time.difference_text(self.mark - self.now)}",
            f"the leases and delays of {self.messages} messages continue from now",
            f"the next firing of {self.schedules} schedules was planned again",
        ]
        if self.dates:
            last = store_time.instant_text(self.last_date)
            parts.append(
                f"{self.dates} messages that were sent meanwhile keep their due dates, up to {last}"
            )
        return "; ".join(parts)


def read_mark(session: Session) -> int:
    """0 if nothing has been written yet."""
    rows = _db(session).rows("meta.get", {"name": CLOCK_MARK})
    return int(rows[0][0]) if rows else 0


def begin(session: Session, start: Start) -> None:
    """Called by the first process that opens a store: set its time back if needed, and log it."""
    _db(session).run("meta.raise", {"name": CLOCK_MARK, "value": str(start.now)})
    if start.is_set_back:
        done = set_back(session, mark=start.mark, now=start.now, since=start.now)
        _log.warning("the wall clock is behind the store: %s", done.text)
    elif start.ahead_ms > MAX_CARRY_MS and start.wall < EARLIEST_WALL:
        _log.warning(
            "the wall clock shows %s, so it was never set; the store's time continues at %s",
            store_time.instant_text(start.wall),
            store_time.instant_text(start.now),
        )


def follow(store: Store, *, now: int) -> SetBack | None:
    """Set back a store that nodes share and whose database provides their clock.

    Only if the mark is ahead by more than clocks can differ; None if it is not.
    """
    if store.read(read_mark).result() - now <= MAX_CARRY_MS:
        return None
    return store.write(lambda session: _follow(session, now=now)).result()


def _follow(session: Session, *, now: int) -> SetBack | None:
    db = _db(session)
    db.post("queues.serialize_removals")
    db.post("queues.stop_writes")  # from here on no other node holds a lock
    mark = read_mark(session)
    if mark - now <= MAX_CARRY_MS:  # another node was faster
        return None
    done = set_back(session, mark=mark, now=now, since=now + MAX_CARRY_MS)
    _log.warning("the clock of the database was set back: %s", done.text)
    return done


def set_back(session: Session, *, mark: int, now: int, since: int) -> SetBack:
    """Shift instants after `since`: the clock that wrote them was ahead by `mark - now`."""
    db = _db(session)
    db.raise_time_limits()
    params: dict[str, Any] = {
        "since": since,
        "shift_ms": mark - now,
        "delay_ms": LONGEST_DELAY_MS,
        "longest_at": now + Limits().max_lease_ms,
        "since_id": uuid7(since, _OLDEST_DIGITS),
        "no_end": NO_END,
        "kept_ms": KEPT_MS,
        "day_ms": DAY,
        "probe_ms": PROBE_MS,
        "first_open_day": now // DAY - FINAL_AFTER_DAYS,
    }
    [(dates, last_date)] = db.rows("clock.waiting_dates", params)
    changed = {name: db.run(f"clock.{name}", params) for name in _STATEMENTS}
    db.run("meta.set", {"name": CLOCK_MARK, "value": str(now)})
    done = SetBack(
        mark,
        now,
        messages=changed["set_back_messages"],
        schedules=_plan_again(session, now=now, since=since),
        dates=int(dates),
        last_date=int(last_date),
    )
    data = {"from": mark, "to": now, "by_ms": mark - now}
    session.facts.add(CLOCK_SET_BACK, "store", at=now, data=data)
    return done


def _plan_again(session: Session, *, now: int, since: int) -> int:
    names = [name for (name,) in _db(session).rows("clock.schedules_ahead", {"since": since})]
    count = 0
    for name in names:
        before = session.schedules.lock(name)
        after = before and schedule.set_back(before, now=now)
        if after is not None and after != before:
            session.schedules.save(after)
            count += 1
    return count


def _db(session: Session) -> Database:
    return cast(SqlSession, session).db
