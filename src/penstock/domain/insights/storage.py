"""When will storage be full?  From the table capacity.

An estimate of the live messages alone: their number, times the mean body of the messages that
ended on that day.  What else takes space (history, indexes, logs) is not in it.
"""

from __future__ import annotations

import math

from penstock.domain.insights.answer import Chart, Disk, Row, Rows, SourceTable, Unit, lines
from penstock.domain.insights.wording import count_phrase, number, size
from penstock.domain.lake.layout import dt_of, midnight_of
from penstock.domain.limits import DAY

ALL = "*"  # the row for all queues together
MAX_AHEAD = 28  # days of the forecast that are drawn
NO_DATA = "No messages in this period."
ESTIMATE = "This counts the bodies of live messages; history, indexes and logs come on top."
_COLUMNS = (
    "queue", "payload", "stored_end", "storage_bytes", "backlog_growth", "days_until_full",
    "days_offline", "days_offline_at_peak",
)  # fmt: skip


def storage(table: SourceTable, disk: Disk | None = None) -> tuple[list[str], Chart | None]:
    """`disk`: that of the store now; None: not known."""
    together = sorted(table.rows(*_COLUMNS, queue=[ALL]), key=lambda row: str(row["dt"]))
    if not together:
        return [NO_DATA, *_now(disk)], None
    last = together[-1]
    sentences = [*_full(last), *_growing(table, last)]
    sentences += [_offline(last)] if last["days_offline"] is not None else []
    return [*sentences, ESTIMATE, *_now(disk)], _chart(together, last)


def _full(last: Row) -> list[str]:
    stored, room, left = (last[n] for n in ("stored_end", "storage_bytes", "days_until_full"))
    of = "" if room is None else f" of {size(room)}"
    used = [f"Live messages took {size(stored or 0)}{of} at the end of {last['dt']}."]
    return [_when(last["dt"], room, left), *(used if stored is not None else [])]


def _when(day: str, room: int | None, left: float | None) -> str:
    if room is None:
        return "The size of the storage is not known: set pipeline.storage_bytes."
    if left is None:
        return "Never at the current rate: the total backlog is not growing."
    if left == 0:
        return "It is full."
    return f"In {_days(left)}, on {_day_after(day, left)}, at the growth of the last four weeks."


def _now(disk: Disk | None) -> list[str]:
    if disk is None:
        return []
    used, free = size(disk.used_bytes), size(disk.free_bytes)
    return [f"All files of the store take {used} now; {free} are free on its disk."]


def _growing(table: SourceTable, last: Row) -> list[str]:
    """The queue that grows most; one that has finished nothing has the mean payload of all."""
    queue, most = "", 0.0
    for row in table.rows("queue", "backlog_growth", "payload", dt=[last["dt"]]):
        payload = last["payload"] if row["payload"] is None else row["payload"]
        growth = (row["backlog_growth"] or 0) * (payload or 0)
        if row["queue"] != ALL and (growth, row["queue"]) > (most, queue):
            queue, most = row["queue"], growth
    return [f"The queue {queue} grows most, by {size(most)} a day."] if most else []


def _offline(last: Row) -> str:
    peak = last["days_offline_at_peak"]
    at_peak = "" if peak is None else f", or {_days(peak)} at the rate of the busiest minute"
    return f"If all workers stopped, it would be full after {_days(last['days_offline'])}{at_peak}."


def _days(days: float) -> str:
    if days < 2:
        return count_phrase(max(round(days * 24), 1), "hour")
    return f"{number(round(days, 1) if days < 10 else round(days))} days"


def _day_after(day: str, days: float) -> str:
    # A date that no calendar has is never reached.
    return dt_of(midnight_of(day) + math.floor(min(days, 365_000)) * DAY)


def _chart(together: Rows, last: Row) -> Chart | None:
    room, left, now = (last[n] for n in ("storage_bytes", "days_until_full", "stored_end"))
    values = [(row["dt"], [row["stored_end"], None, room]) for row in together]
    if room is not None and left and now is not None:
        values[-1][1][1] = now
        ahead = min(math.ceil(left), MAX_AHEAD)
        for day in range(1, ahead + 1):
            forecast = now + (room - now) * min(day / left, 1)
            values.append((_day_after(last["dt"], day), [None, forecast, room]))
    series = ("live messages", "forecast", "available")
    if all(stored is None for _, (stored, *_rest) in values):
        return None
    return lines("Storage of live messages", Unit.BYTES, series, values)
