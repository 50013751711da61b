"""When is the disk full?  From the table capacity."""

from __future__ import annotations

import math

from penstock.domain.insights.answer import Picture, Row, Rows, Unit, days_of, grouped, lines
from penstock.domain.insights.wording import counted, number, size
from penstock.domain.lake.layout import dt_of, midnight_of
from penstock.domain.limits import DAY

ALL = "*"  # the row for all queues together
MAX_AHEAD = 28  # days of the forecast that are drawn
NONE = "No messages in these days."


def storage(rows: Rows) -> tuple[list[str], Picture | None]:
    together = [row for row in rows if row["queue"] == ALL]
    if not together:
        return [NONE], None
    last = max(together, key=lambda row: row["dt"])
    sentences = [*_full(last), *_growing(rows, last)]
    sentences += [_offline(last)] if last.get("days_offline") is not None else []
    return sentences, _picture(together, last)


def _full(last: Row) -> list[str]:
    stored, room, left = (last.get(n) for n in ("stored_end", "storage_bytes", "days_until_full"))
    of = "" if room is None else f" of {size(room)}"
    used = [f"Live messages took {size(stored or 0)}{of} at the end of {last['dt']}."]
    return [_when(last["dt"], room, left), *(used if stored is not None else [])]


def _when(day: str, room: int | None, left: float | None) -> str:
    if room is None:
        return "The size of the storage is not known: set pipeline.storage_bytes."
    if left is None:
        return "Not in sight: the backlog of all queues together does not grow."
    if left == 0:
        return "It is full."
    return f"In {_days(left)}, on {_day_after(day, left)}, at the growth of the last four weeks."


def _growing(rows: Rows, last: Row) -> list[str]:
    of_day = [row for row in rows if row["dt"] == last["dt"] and row["queue"] != ALL]
    growing = [row for row in of_day if (row.get("backlog_growth") or 0) * _payload(row) > 0]
    if not growing:
        return []
    most = max(growing, key=lambda row: (row["backlog_growth"] * _payload(row), row["queue"]))
    bytes_a_day = most["backlog_growth"] * _payload(most)
    return [f"The queue {most['queue']} grows most, by {size(bytes_a_day)} a day."]


def _payload(row: Row) -> float:
    return float(row.get("payload") or 0)


def _offline(last: Row) -> str:
    peak = last.get("days_offline_at_peak")
    at_peak = "" if peak is None else f", or {_days(peak)} at the rate of the busiest minute"
    return f"If all workers stopped, it would be full after {_days(last['days_offline'])}{at_peak}."


def _days(days: float) -> str:
    if days < 2:
        return counted(max(round(days * 24), 1), "hour")
    return f"{number(round(days, 1) if days < 10 else round(days))} days"


def _day_after(day: str, days: float) -> str:
    # A date that no calendar has is never reached.
    return dt_of(midnight_of(day) + math.floor(min(days, 365_000)) * DAY)


def _picture(together: Rows, last: Row) -> Picture | None:
    by_day = {day: them[0] for (day,), them in grouped(together, "dt").items()}
    room, left, now = (last.get(n) for n in ("storage_bytes", "days_until_full", "stored_end"))
    values = [(day, [by_day[day].get("stored_end"), None, room]) for day in days_of(together)]
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
